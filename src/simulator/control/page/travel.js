// What travels: each step between hook, daemon and Feishu in words, with its raw data.

import { byId, clock, el } from "./dom.js";
import { decision, span } from "./tally.js";
import { language, localised, pick, say } from "./words.js";

const MAX_STEPS = 200;
const entries = [];
/** When each tap was pushed, by push number: latencies come with the outcome. */
const latencies = new Map();
/** The gateways of a team, by the connections they hold. */
export const gateways = new Map();
const nodAt = (entry) => (gateways.has(entry.connection) ? `nod gateway ${gateways.get(entry.connection)}` : "nod");

function printed(stdout) {
  const made = decision(stdout);
  if (!made) return say("nothing");
  if (made.behavior === "allow") {
    const rule = made.updatedPermissions?.[0]?.rules?.[0];
    if (rule) return say("allowRule", { rule: rule.ruleContent ? `${rule.toolName}(${rule.ruleContent})` : rule.toolName });
    return made.updatedInput ? say("answered") : say("allow");
  }
  return made.interrupt ? say("interrupt") : say("denySaying", { why: made.message });
}

function asked(stdin) {
  const input = stdin.tool_input ?? {};
  const what = input.command ?? input.file_path ?? input.url ?? "";
  return what ? `${stdin.tool_name} · ${what}` : stdin.tool_name;
}

/** A step as `{from, to, text, aside, raw}`, or null for what is no step. */
function describe(entry, people) {
  switch (entry.kind) {
    case "note": return describeNote(entry);
    case "message":
      if (entry.repeated) return null;
      if (entry.content) return { way: "nod → 飞书", text: say("textSent"), aside: textOf(entry.content) };
      if (!entry.card) return null;
      return { way: "nod → 飞书", text: say("cardSent"), aside: entry.card.header?.title?.content, raw: entry.card };
    case "event_out": {
      const event = entry.payload?.event ?? {};
      const who = people(event.operator?.open_id ?? event.sender?.sender_id?.open_id ?? "");
      const text = say(event.action ? "tapOut" : "textOut", { who });
      return { way: `飞书 → ${nodAt(entry)}`, text, aside: say("frames", { n: entry.frames ?? 1 }), raw: entry.payload };
    }
    case "reply_in": {
      const toast = entry.data?.toast;
      const text = toast ? say("toastBack", { text: localised(toast.content, toast.i18n) }) : say("ackBack");
      const us = latencies.get(entry.push);
      const aside = us === undefined ? null : `${say("after", { ms: (us / 1000).toFixed(1) })} · ${say("limit")}`;
      return { way: `${nodAt(entry)} → 飞书`, text, aside, raw: { code: entry.code, headers: entry.headers, data: entry.data } };
    }
    case "card":
      if (entry.why !== "patched") return null;
      return { way: "nod → 飞书", text: say("patched"), aside: entry.card?.header?.title?.content, raw: entry.card };
    case "connection_up": return { way: "nod ⇄ 飞书", text: say("linkUp") };
    case "connection_down": return { way: "nod ⇄ 飞书", text: say("linkDown"), aside: entry.why };
    default: return null;
  }
}

function describeNote(entry) {
  switch (entry.note) {
    case "scene": return { scene: true, text: `${entry.number}. ${pick(entry.title)}` };
    case "hook_in": return { way: "Claude → nod", text: say("hookIn", { what: asked(entry.stdin) }), aside: say("hookInNote"), raw: entry.stdin };
    case "hook_out": return { way: "nod → Claude", text: say("hookOut", { what: printed(entry.stdout) }), aside: say("ms", { ms: span(entry.ms) }), raw: rawOutput(entry) };
    case "passed": return { way: "Claude", text: say("passed", { rule: entry.rule }) };
    case "daemon": return { way: "nod", text: say(entry.what === "crashed" ? "crashed" : "started") };
    case "gateway": return { way: `nod gateway ${entry.name}`, text: say(entry.what === "crashed" ? "gatewayCrashed" : "gatewayStarted", entry) };
    case "laptop": return { way: "nod", text: say(entry.what === "asleep" ? "fellAsleep" : "wokeUp") };
    default: return null;
  }
}

function rawOutput(entry) {
  try {
    return JSON.parse(entry.stdout);
  } catch {
    return { stdout: entry.stdout, stderr: entry.stderr };
  }
}

function textOf(content) {
  try {
    return JSON.parse(content).text;
  } catch {
    return null;
  }
}

const english = (way) => (language() === "en" ? way.replaceAll("飞书", "Feishu") : way);

function draw(entry, people) {
  const step = describe(entry, people);
  if (!step) return null;
  if (step.scene) return el("li", { class: "step-scene" }, step.text);
  const raw = step.raw === undefined ? null : el("details", { class: "raw" },
    el("summary", {}, say("raw")),
    el("pre", { tabindex: "0" }, JSON.stringify(step.raw, null, 2)));
  return el("li", { class: "step", "data-step": entry.what ?? entry.note ?? entry.kind },
    el("div", { class: "step-way" }, el("span", {}, english(step.way)), el("time", {}, clock(entry.at, true))),
    el("p", {}, step.text),
    step.aside ? el("p", { class: "step-aside" }, step.aside) : null,
    raw);
}

/** Learns how long a reply took: the outcome of a tap follows its reply. */
function learn(entry) {
  if (entry.kind === "reply_in") learn.push = entry.push;
  if (entry.kind === "clicked" && entry.latency_us !== null && learn.push !== undefined) {
    latencies.set(learn.push, entry.latency_us);
    learn.push = undefined;
    return true;
  }
  return false;
}

export function travelled(fresh, people) {
  let late = false;
  for (const entry of fresh) {
    if (entry.note === "gateway" && entry.connection) gateways.set(entry.connection, entry.name);
    late = learn(entry) || late;
  }
  entries.push(...fresh.filter((entry) => describe(entry, people)));
  entries.splice(0, Math.max(0, entries.length - MAX_STEPS));
  if (late) {
    drawTravel(people);
    return;
  }
  const list = byId("steps");
  list.append(...fresh.map((entry) => draw(entry, people)).filter(Boolean));
  while (list.children.length > MAX_STEPS) list.firstChild.remove();
  list.scrollTop = list.scrollHeight;
}

export function drawTravel(people) {
  const list = byId("steps");
  const open = new Set([...list.children].map((step, i) => (step.querySelector("details[open]") ? i : null)));
  list.replaceChildren(...entries.map((entry) => draw(entry, people)).filter(Boolean));
  [...list.children].forEach((step, i) => {
    const raw = step.querySelector("details");
    if (raw && open.has(i)) raw.open = true;
  });
  list.scrollTop = list.scrollHeight;
}
