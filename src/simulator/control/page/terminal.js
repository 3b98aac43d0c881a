// The terminal beside the phone: it plays Claude Code, told by what the hooks really were asked and printed.

import { byId, call, el } from "./dom.js";
import { span } from "./tally.js";
import { gateways } from "./travel.js";
import { localised, say } from "./words.js";

const MAX_LINES = 120;
const TICK_MS = 250;
const SPINNER = ["✻", "✽", "✶", "✢"];

/** What is on the screen: `{look, words: () => text}`, so that a change of language redraws it. */
const lines = [];
const state = { scene: null, waiting: null, down: false, short: false, asleep: false, over: false, steps: new Map() };

const press = (answer) => call("/control/note", { ask: "terminal", answer });

function print(look, words) {
  lines.push({ look, words });
  lines.splice(0, Math.max(0, lines.length - MAX_LINES));
}

function asked(stdin) {
  const input = stdin.tool_input ?? {};
  if (input.questions) return input.questions.map((one) => one.question).join(" · ");
  if (input.plan) return input.plan;
  const file = input.file_path?.split("/").slice(-2).join("/");
  return `${stdin.tool_name}(${input.command ?? file ?? ""})`;
}

function ran() {
  (state.scene?.run ?? "").split("\n").filter(Boolean).forEach((line) => print("out", () => line));
}

const MARKS = { allow: "good", always: "good", answers: "good", plan: "good", yes: "good", deny: "bad", interrupt: "bad", esc: "bad", timeout: "dim" };

function ended(what) {
  print(`${MARKS[what.how]} result`, () => `└ ${say(`end_${what.how}`, { why: what.why ?? "", rule: what.rule ?? "" })}`);
  if (what.ms !== null) lines.at(-1).time = () => say("afterTap", { ms: span(what.ms) });
  for (const [question, answer] of Object.entries(what.answers ?? {})) print("out", () => `${question} → ${answer}`);
  if (["allow", "always", "yes"].includes(what.how)) ran();
  if (["answers", "plan"].includes(what.how)) print("says", () => `● ${say("goesOn")}`);
  if (what.how === "deny") print("says", () => `● ${say("otherWay")}`);
  if (what.how === "interrupt" || what.how === "esc") print("says", () => `❯ ${say("whatInstead")}`);
}

function session(entry) {
  if (entry.kind === "event_out" && entry.payload?.event?.message && !state.steps.has("begun")) {
    state.steps.set("begun", true);
    print("says", () => `● ${say("begun")}`);
  }
  const card = entry.card;
  if (!["message", "card"].includes(entry.kind) || !card?.header) return;
  const title = localised(card.header.title?.content, card.header.title?.i18n_content);
  const tag = card.header.text_tag_list?.at(-1)?.text;
  const shown = `${title}${tag ? ` · ${localised(tag.content, tag.i18n_content)}` : ""}`;
  const known = state.steps.has(entry.message_id);
  // An edit of a card from an earlier scene is no part of this one.
  if (state.steps.get(entry.message_id) === shown || (!known && entry.kind === "card")) return;
  state.steps.set(entry.message_id, shown);
  print(known ? "out" : "asks", () => (known ? `└ ${shown}` : `● ${shown}`));
}

/** Takes one entry of the history; `what` is what a hook's end came to. */
export function play(entry, what) {
  if (state.scene?.write) session(entry);
  if (entry.kind === "event_out" && state.scene?.laptop && gateways.has(entry.connection)) {
    const { laptop } = state.scene;
    print("out", () => say("tapCame", { gateway: gateways.get(entry.connection), laptop }));
    drawTerminal();
  }
  if (entry.kind !== "note") return;
  switch (entry.note) {
    case "scene":
      for (const line of lines) line.past = true;
      if (!lines.length || entry.laptop !== state.scene?.laptop) {
        print("banner", () => `✻ Claude Code · ${entry.laptop ? `${entry.laptop}:` : ""}~/shop (checkout)`);
      }
      Object.assign(state, { scene: entry, waiting: null, asleep: false, steps: new Map() });
      if (entry.write) print("dim", () => say("nobodyHere"));
      break;
    case "hook_in":
      print("asks", () => `● ${asked(entry.stdin)}`);
      state.waiting = { since: entry.at, until: entry.at + entry.within_ms };
      break;
    case "hook_out":
      state.waiting = null;
      ended(what);
      break;
    case "passed":
      print("asks", () => `● ${entry.rule}`);
      print("good", () => `└ ${say("byRule")}`);
      ran();
      break;
    case "daemon":
      state.down = entry.what === "crashed";
      print(state.down ? "bad" : "good", () => (entry.what === "crashed" ? say("crashedHere") : say("startedHere", { ms: span(entry.ms) })));
      break;
    case "gateway":
      state.short = entry.what === "crashed";
      if (state.scene) print(state.short ? "bad" : "good", () => (entry.what === "crashed" ? "✗ " : "✓ ") + say(entry.what === "crashed" ? "gatewayCrashed" : "gatewayStarted", entry));
      break;
    case "laptop":
      state.asleep = entry.what === "asleep";
      print(state.asleep ? "bad" : "good", () => say(entry.what === "asleep" ? "fellAsleep" : "wokeUp"));
      break;
    default: return;
  }
  drawTerminal();
}

function dialog() {
  if (!state.scene?.dialog || !state.waiting || state.asleep) return null;
  const key = (text, answer) => el("button", { type: "button", class: "key", "data-key": answer, onclick: () => press(answer) }, text);
  return el("div", { class: "dialog" },
    el("p", {}, say("terminalAsks")),
    el("div", { class: "keys" }, key(say("terminalYes"), "yes"), key(say("terminalEsc"), "esc")));
}

function draw(line, i) {
  const shown = el("p", { class: `line line-${line.look.split(" ").join(" line-")}` }, line.words());
  if (line.time) shown.append(el("span", { class: "took", "data-took": "", title: say("afterTapWhy") }, line.time()));
  shown.style.setProperty("--late", String(line.drawn ? 0 : Math.min(i, 8)));
  if (line.drawn) shown.classList.add("old");
  if (line.past) shown.classList.add("past");
  line.drawn = true;
  return shown;
}

/** What the button does in this scene, or undoes. */
function mishap() {
  if (state.scene?.mishap === "gateway") return state.short ? "startGateway" : "killGateway";
  if (state.scene?.mishap === "sleep") return state.asleep ? "wake" : "sleep";
  return "kill";
}

export function drawTerminal() {
  const laptop = state.scene?.laptop;
  byId("terminal-title").textContent = laptop ? `${laptop} · Claude Code` : say("terminal");
  byId("daemon").textContent = say(state.over ? "daemonOver" : state.asleep ? "sleeping" : state.down ? "daemonDown" : "daemonUp");
  byId("daemon").className = state.over || state.down || state.asleep ? "down" : "up";
  byId("kill").textContent = say(mishap());
  byId("kill").disabled = state.over || state.down;
  const screen = byId("screen");
  const fresh = lines.filter((line) => !line.drawn);
  screen.replaceChildren(...lines.map((line) => draw(line, fresh.indexOf(line))));
  if (state.waiting) screen.append(el("p", { class: "line waiting" }, el("span", { id: "spinner", "aria-hidden": "true" }, SPINNER[0]), ` ${say("waitsForYou")} `, el("span", { id: "left", role: "timer" })));
  const open = dialog();
  if (open) screen.append(open);
  tick();
  screen.scrollTop = screen.scrollHeight;
}

/** The demo has ended: nothing runs, and nobody waits any more. */
export function closeTerminal() {
  Object.assign(state, { over: true, waiting: null });
  drawTerminal();
}

/** The time that is left while somebody waits, as `4:59`; empty while nobody does. */
export function left() {
  if (!state.waiting) return "";
  const seconds = Math.max(0, Math.ceil((state.waiting.until - Date.now()) / 1000));
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
}

function tick() {
  const time = left();
  for (const id of ["left", "countdown"]) {
    const box = byId(id);
    if (box && box.textContent !== time) box.textContent = time;
  }
  const spinner = byId("spinner");
  if (spinner) spinner.textContent = SPINNER[Math.floor(Date.now() / TICK_MS) % SPINNER.length];
}

export function wireTerminal() {
  byId("kill").addEventListener("click", () => {
    byId("kill").disabled = true;
    call("/control/note", { ask: "kill" });
  });
  const screen = byId("screen");
  new ResizeObserver(() => { screen.scrollTop = screen.scrollHeight; }).observe(screen);
  setInterval(tick, TICK_MS);
}
