// A card's JSON 2.0 as DOM. Agent text stands in plain_text and is shown as it is.

import { ask, toast } from "./dialog.js";
import { el } from "./dom.js";
import { markdown } from "./markdown.js";
import { localised, say } from "./words.js";

const TEMPLATES = new Set(["blue", "wathet", "turquoise", "green", "yellow", "orange", "red", "carmine", "violet",
  "purple", "indigo", "grey"]);
const TAG_COLOURS = new Set(["neutral", "blue", "turquoise", "lime", "orange", "violet", "indigo", "wathet", "green",
  "yellow", "red", "purple", "carmine"]);
const BUTTONS = new Set(["default", "primary", "danger", "text", "primary_text", "danger_text", "primary_filled",
  "danger_filled", "laser"]);
const FLEX = new Set(["none", "stretch", "flow", "bisect", "trisect"]);

const known = (set, value, otherwise) => (set.has(value) ? value : otherwise);
const label = (text) => localised(text?.content, text?.i18n_content);

/**
 * Draws a card. `press` takes `{selector, form_value, …}` for a tap; `people` names an id; `drafts`
 * keeps what was typed over redraws.
 */
export function drawCard(card, { id, press, people, drafts }) {
  const context = { id, press, people, drafts, fields: null, form: null };
  const header = card.header;
  const colour = known(TEMPLATES, header?.template, "default");
  const title = label(header?.title);
  return el("article", { class: "card", "aria-label": title || "card" },
    header ? drawHeader(header, colour, title) : null,
    spaced(el("div", { class: "card-body" }, drawAll(card.body?.elements ?? card.elements, context)), card.body));
}

function drawHeader(header, colour, title) {
  const tags = (header.text_tag_list ?? []).slice(0, 3).map((tag) =>
    el("span", { class: `tag tag-${known(TAG_COLOURS, tag.color, "neutral")}` }, label(tag.text)));
  const subtitle = label(header.subtitle);
  return el("header", { class: `card-head head-${colour}` },
    el("div", { class: "card-title" }, el("h3", {}, title), tags),
    subtitle ? el("p", { class: "card-subtitle" }, subtitle) : null);
}

const drawAll = (elements, context) => (elements ?? []).map((node) => drawNode(node, context));

function drawNode(node, context) {
  switch (node.tag) {
    case "markdown": return sized(node, markdown(localised(node.content, node.i18n_content), context.people));
    case "div": return drawDiv(node, context);
    case "plain_text": return drawText(node);
    case "hr": return el("hr");
    case "button": return drawButton(node, context);
    case "column_set": return drawColumns(node, context);
    case "form": return drawForm(node, context);
    case "input": return drawInput(node, context);
    case "select_static": return drawSelect(node, context);
    case "multi_select_static": return drawMany(node, context);
    case "checker": return drawChecker(node, context);
    case "collapsible_panel": return drawPanel(node, context);
    default: return el("p", { class: "unknown" }, `⟨${String(node.tag)}⟩`);
  }
}

function sized(node, drawn) {
  if (node.text_size === "notation") drawn.classList.add("size-notation");
  if (String(node.text_size).startsWith("heading")) drawn.classList.add("size-heading");
  return drawn;
}

function drawText(text) {
  const colour = known(TAG_COLOURS, text.text_color, text.text_color === "grey" ? "grey" : null);
  return sized(text, el("div", { class: `plain${colour ? ` ink-${colour}` : ""}` }, label(text)));
}

function drawDiv(node, context) {
  const text = node.text ?? {};
  if (text.tag === "lark_md") return sized(text, markdown(label(text), context.people));
  return drawText(text);
}

function drawColumns(node, context) {
  const mode = known(FLEX, node.flex_mode, "none");
  const grey = node.background_style === "grey" ? " ground-grey" : "";
  return el("div", { class: `columns flex-${mode}${grey}` }, (node.columns ?? []).map((column) => {
    const box = el("div", { class: "column" }, drawAll(column.elements, context));
    if (column.vertical_spacing) box.style.gap = spacing(column.vertical_spacing);
    if (column.width === "weighted") box.style.flexGrow = String(Math.min(Math.max(Number(column.weight) || 1, 1), 5));
    else if (mode === "none") box.classList.add("column-auto");
    return box;
  }));
}

const SPACES = { small: "4px", medium: "8px", large: "12px", extra_large: "16px" };
const spacing = (value) => SPACES[value] ?? (/^\d{1,2}px$/.test(value) ? value : "8px");

/** The room that a card's body keeps, as Feishu's client does. */
function spaced(box, body) {
  if (body?.vertical_spacing) box.style.gap = spacing(body.vertical_spacing);
  if (/^(\d{1,2}px ?){1,4}$/.test(body?.padding ?? "")) box.style.padding = body.padding;
  return box;
}

function drawPanel(node, context) {
  const title = node.header?.title ?? {};
  const shown = title.tag === "markdown" ? markdown(label(title), context.people) : label(title);
  const panel = el("details", { class: "panel", open: Boolean(node.expanded) },
    el("summary", {}, shown), el("div", { class: "panel-body" }, drawAll(node.elements, context)));
  const key = `panel:${node.element_id ?? label(title)}`;
  if (context.drafts.has(key)) panel.open = context.drafts.get(key);
  panel.addEventListener("toggle", () => context.drafts.set(key, panel.open));
  return panel;
}

function drawForm(node, context) {
  const fields = new Map();
  const form = el("form", { class: "form", novalidate: true, onsubmit: (event) => event.preventDefault() });
  form.append(...drawAll(node.elements, { ...context, fields, form }));
  return form;
}

/** Keeps a field's value over redraws and, in a form, offers it to the submit button. */
function remember(node, context, control, read, write) {
  const key = `field:${node.name ?? node.element_id}`;
  if (context.drafts.has(key)) write(context.drafts.get(key));
  control.addEventListener("input", () => context.drafts.set(key, read()));
  const needed = node.required ?? node.tag === "multi_select_static";
  context.fields?.set(node.name, { read, required: needed, control });
}

const uniqueId = (node, context) => `${context.id}-${node.name ?? node.element_id ?? "x"}`;

function labelled(node, control, id) {
  const text = label(node.label);
  if (!text) control.setAttribute("aria-label", label(node.placeholder) || node.name || node.tag);
  return el("div", { class: "field" }, text ? el("label", { for: id }, text) : null, control);
}

function drawInput(node, context) {
  const id = uniqueId(node, context);
  const long = node.input_type === "multiline_text";
  const control = el(long ? "textarea" : "input", {
    id, class: "control", name: node.name, placeholder: label(node.placeholder), disabled: node.disabled === true,
  });
  if (long) control.rows = Math.min(Number(node.rows) || 3, 10);
  else control.type = node.input_type === "password" ? "password" : "text";
  control.maxLength = Number(node.max_length) || 1000;
  control.value = node.default_value ?? "";
  remember(node, context, control, () => control.value, (value) => { control.value = value; });
  const field = labelled(node, control, id);
  if (!context.form && hasCallback(node)) {
    const go = el("button", { type: "button", class: "btn btn-primary", onclick: () => send(node, context, go, { input_value: control.value }) }, "➤");
    go.setAttribute("aria-label", say("send"));
    field.append(go);
  }
  return field;
}

function drawSelect(node, context) {
  const id = uniqueId(node, context);
  const options = (node.options ?? []).map((option) => el("option", { value: option.value }, label(option.text)));
  const control = el("select", { id, class: "control", name: node.name, disabled: node.disabled === true },
    el("option", { value: "" }, label(node.placeholder) || say("choose")), options);
  control.value = node.initial_option ?? node.options?.[(node.initial_index ?? 0) - 1]?.value ?? "";
  remember(node, context, control, () => control.value, (value) => { control.value = value; });
  if (!context.form) {
    control.addEventListener("change", () => { if (control.value) send(node, context, control, { option: control.value }); });
  }
  return labelled(node, control, id);
}

function drawMany(node, context) {
  const id = uniqueId(node, context);
  const boxes = (node.options ?? []).map((option, i) => {
    const box = el("input", { type: "checkbox", id: `${id}-${i}`, value: option.value, disabled: node.disabled === true });
    box.checked = (node.selected_values ?? []).includes(option.value);
    return [box, el("label", { class: "choice", for: `${id}-${i}` }, box, el("span", {}, label(option.text)))];
  });
  const name = label(node.label) || label(node.placeholder) || node.name;
  const control = el("fieldset", { class: "many" }, el("legend", {}, name), boxes.map(([, shown]) => shown));
  const read = () => boxes.filter(([box]) => box.checked).map(([box]) => box.value);
  remember(node, context, control, read, (values) => boxes.forEach(([box]) => { box.checked = values.includes(box.value); }));
  return control;
}

function drawChecker(node, context) {
  const id = uniqueId(node, context);
  const box = el("input", { type: "checkbox", id, disabled: node.disabled === true });
  box.checked = node.checked === true;
  remember(node, context, box, () => box.checked, (value) => { box.checked = value; });
  if (!context.form) box.addEventListener("change", () => send(node, context, box, { checked: box.checked }));
  return el("label", { class: "choice", for: id }, box, el("span", {}, label(node.text)));
}

const hasCallback = (node) => (node.behaviors ?? []).some((behavior) => behavior.type === "callback");

function drawButton(node, context) {
  const kind = known(BUTTONS, node.type, "default");
  const button = el("button", {
    type: "button",
    class: `btn btn-${kind}${node.width === "fill" ? " btn-wide" : ""}${node.size === "small" || node.size === "tiny" ? " btn-small" : ""}`,
    disabled: node.disabled === true,
    title: node.disabled ? label(node.disabled_tips) || null : label(node.hover_tips) || null,
    "data-name": node.name ?? null,
    "data-action": node.behaviors?.find((behavior) => behavior.type === "callback")?.value?.action ?? null,
  }, label(node.text));
  button.addEventListener("click", () => tap(node, context, button));
  return button;
}

async function tap(node, context, button) {
  if (context.form && node.form_action_type === "reset") {
    context.form.reset();
    return;
  }
  let extra = {};
  if (context.form) {
    const values = {};
    for (const [name, field] of context.fields) {
      const value = field.read();
      const empty = value === "" || (Array.isArray(value) && !value.length);
      const missing = Boolean(empty && field.required);
      field.control.classList.toggle("missing", missing);
      field.control.toggleAttribute("aria-invalid", missing);
      if (missing) {
        (field.control.querySelector("input") ?? field.control).focus();
        toast("error", say("required"));
        return;
      }
      if (!empty) values[name] = value;
    }
    extra = { form_value: values };
  }
  if (node.confirm && !(await ask(label(node.confirm.title), label(node.confirm.text)))) {
    button.focus();
    return;
  }
  await send(node, context, button, extra);
}

/** Names the component as Feishu's client would: by what the card says of it. */
async function send(node, context, control, extra) {
  const selector = {};
  if (node.element_id) selector.element_id = node.element_id;
  if (node.name) selector.name = node.name;
  const value = (node.behaviors ?? []).find((behavior) => behavior.type === "callback")?.value;
  if (value !== undefined) selector.value = value;
  control.setAttribute("aria-busy", "true");
  control.disabled = true;
  try {
    await context.press({ ...selector, ...extra });
  } finally {
    control.disabled = false;
    control.removeAttribute("aria-busy");
  }
}
