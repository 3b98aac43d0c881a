// The part of Feishu's markdown that cards use, as DOM nodes. Unknown tags and links stay visible
// text; nothing is ever handed to an HTML parser.

import { clock, el } from "./dom.js";

const TAG = /<(\/?)(font|text_tag|person|at|local_datetime|number_tag|link|br|hr|raw)\b([^>]*)>/;
const COLOURS = new Set(["grey", "red", "green", "blue", "orange", "yellow", "purple", "violet", "indigo",
  "turquoise", "wathet", "carmine", "lime", "neutral"]);

function attributes(text) {
  const found = {};
  for (const match of text.matchAll(/([\w-]+)\s*=\s*(?:'([^']*)'|"([^"]*)"|([^\s'">]+))/g)) {
    found[match[1]] = match[2] ?? match[3] ?? match[4];
  }
  return found;
}

const entities = (text) => text.replace(/&#(\d{1,6});|&(amp|lt|gt|quot|nbsp);/g, (whole, number, name) => {
  if (number) return Number(number) <= 0x10ffff ? String.fromCodePoint(Number(number)) : whole;
  return { amp: "&", lt: "<", gt: ">", quot: '"', nbsp: "\u00a0" }[name];
});

function moment(values) {
  const ms = Number(values.millisecond);
  if (!Number.isFinite(ms)) return "";
  const date = new Date(ms);
  switch (values.format_type) {
    case "time": return clock(ms);
    case "time_sec": return clock(ms, true);
    case "week": case "week_short": return date.toLocaleDateString([], { weekday: "short" });
    default: return `${date.toLocaleDateString()} ${clock(ms)}`;
  }
}

/** Feishu's own tags; everything between an opening and a closing tag is its content. */
function tagged(text, people) {
  const nodes = [];
  let rest = text;
  for (let found = TAG.exec(rest); found; found = TAG.exec(rest)) {
    nodes.push(...plainMarks(rest.slice(0, found.index)));
    rest = rest.slice(found.index + found[0].length);
    const [, closing, name, raw] = found;
    if (closing) continue;
    const values = attributes(raw);
    if (name === "br") { nodes.push(el("br")); continue; }
    if (name === "hr") { nodes.push(el("hr")); continue; }
    const close = `</${name}>`;
    const end = rest.indexOf(close);
    const inner = end < 0 ? "" : rest.slice(0, end);
    if (end >= 0) rest = rest.slice(end + close.length);
    nodes.push(...special(name, values, inner, people));
  }
  nodes.push(...plainMarks(rest));
  return nodes;
}

function special(name, values, inner, people) {
  const colour = COLOURS.has(values.color) ? values.color : "neutral";
  switch (name) {
    case "font": return [el("span", { class: `ink-${colour}` }, tagged(inner, people))];
    case "text_tag": return [el("span", { class: `tag tag-${colour}` }, entities(inner))];
    case "number_tag": return [el("span", { class: "tag tag-neutral" }, entities(inner))];
    case "local_datetime": return [el("time", { datetime: instant(values.millisecond) }, moment(values))];
    case "person": case "at": {
      const who = people(values.id ?? "");
      return [el("span", { class: "person" }, el("span", { class: "face", "aria-hidden": "true" }, who.slice(0, 1)),
        name === "at" ? `@${who}` : who)];
    }
    case "link": return [el("span", { class: "link" }, entities(inner || values.url || ""))];
    default: return [entities(inner)];
  }
}

function instant(millisecond) {
  const ms = Number(millisecond);
  return Number.isFinite(ms) && Math.abs(ms) < 8.64e15 ? new Date(ms).toISOString() : null;
}

/** `code`, **bold**, *slanted*, ~~struck~~ and [links](shown as text). */
function plainMarks(text) {
  const nodes = [];
  const mark = /(`+)([^`]+?)\1|\*\*([^*]+?)\*\*|~~([^~]+?)~~|\*([^*\s][^*]*?)\*|\[([^\]]+)\]\(([^)\s]+)\)/;
  let rest = text;
  for (let found = mark.exec(rest); found; found = mark.exec(rest)) {
    nodes.push(entities(rest.slice(0, found.index)));
    const [whole, , code, bold, struck, slanted, label, address] = found;
    if (code !== undefined) nodes.push(el("code", {}, code));
    else if (bold !== undefined) nodes.push(el("strong", {}, entities(bold)));
    else if (struck !== undefined) nodes.push(el("s", {}, entities(struck)));
    else if (slanted !== undefined) nodes.push(el("em", {}, entities(slanted)));
    else nodes.push(el("span", { class: "link", title: address }, entities(label)));
    rest = rest.slice(found.index + whole.length);
  }
  nodes.push(entities(rest));
  return nodes.filter((node) => node !== "");
}

/** Blocks: fences, headings, lists, quotes, rules and paragraphs. */
export function markdown(content, people) {
  const box = el("div", { class: "md" });
  const lines = content.split("\n");
  const inline = (text) => tagged(text, people);
  let paragraph = [];
  const flush = () => {
    if (!paragraph.length) return;
    const nodes = paragraph.flatMap((line, i) => (i ? [el("br"), ...inline(line)] : inline(line)));
    box.append(el("p", {}, nodes));
    paragraph = [];
  };
  for (let i = 0; i < lines.length; i += 1) {
    const line = lines[i];
    const fence = /^\s*(`{3,})\s*\w*\s*$/.exec(line);
    const heading = /^(#{1,6})\s+(.*)$/.exec(line);
    const item = /^(\s*)([-*]|\d+\.)\s+(.*)$/.exec(line);
    if (fence) {
      flush();
      const code = [];
      for (i += 1; i < lines.length && !lines[i].trim().startsWith(fence[1]); i += 1) code.push(lines[i]);
      box.append(el("pre", { tabindex: "0" }, el("code", {}, code.join("\n"))));
    } else if (heading) {
      flush();
      box.append(el("p", { class: "md-heading" }, inline(heading[2])));
    } else if (/^\s*(---+|\*\*\*+)\s*$/.test(line)) {
      flush();
      box.append(el("hr"));
    } else if (line.startsWith(">")) {
      flush();
      const quote = [];
      for (; i < lines.length && lines[i].startsWith(">"); i += 1) quote.push(lines[i].replace(/^>\s?/, ""));
      i -= 1;
      box.append(el("blockquote", {}, markdown(quote.join("\n"), people)));
    } else if (item) {
      flush();
      const list = el(/\d/.test(item[2]) ? "ol" : "ul");
      for (let next = item; next; next = /^(\s*)([-*]|\d+\.)\s+(.*)$/.exec(lines[i + 1] ?? "")) {
        if (next !== item) i += 1;
        const level = Math.min(Math.floor(next[1].length / 4), 3);
        list.append(el("li", { class: `level-${level}` }, inline(next[3])));
      }
      box.append(list);
    } else if (line.trim() === "") {
      flush();
    } else {
      paragraph.push(line);
    }
  }
  flush();
  return box;
}
