// The tour: which scene plays, what to do, what came of it, and at the end what all of it came to.

import { announce } from "./dialog.js";
import { byId, call, el, label } from "./dom.js";
import { median, span, tally } from "./tally.js";
import { left } from "./terminal.js";
import { pick, say } from "./words.js";

const SETUP = "nod setup";
const TEAM_SETUP = "nod gateway init --bus wss://bus.example.com";
const state = { scenes: [], team: false, scene: null, what: null, end: null, over: false, claude: null, wrote: false, locked: false };

const wish = (note) => call("/control/note", note);

/** Takes one note of the tour; true if the scene's chat should be shown. */
export function note(detail, what) {
  switch (detail.note) {
    case "programme":
      Object.assign(state, { scenes: detail.scenes, team: detail.team });
      byId("app").classList.remove("bare");
      byId("app").classList.toggle("team", detail.team === true);
      break;
    case "scene":
      Object.assign(state, { scene: detail, what: null, end: null, over: false, wrote: false });
      drawGuide();
      announce([counted(detail), pick(detail.title), pick(detail.hint)].join(" · "));
      return true;
    case "hook_in": break;
    case "hook_out": state.what = what; break;
    case "scene_end":
      state.end = detail;
      announce(outcome());
      break;
    case "tour_end": state.over = true; break;
    case "locked": state.locked = true; break;
    case "unlocked":
      state.locked = false;
      announce(say("unlocked"));
      break;
    case "claude": state.claude = detail.command; break;
    default: return false;
  }
  drawGuide();
  return false;
}

export const sceneNow = () => state.scene;

/** The visitor has written something, so the words need not be offered any more. */
export function wrote() {
  state.wrote = true;
  if (state.scene?.write) drawGuide();
}

function button(text, wanted, look = "") {
  return el("button", { type: "button", class: `btn ${look}`, onclick: () => wish(wanted) }, text);
}

const counted = (scene) => say("scene", { n: scene.number, of: state.scenes.length || scene.number });

/** What the visitor's choice came to, whatever they chose. */
function outcome() {
  if (!state.what) return pick(state.end.ending) || say("did_left");
  const time = state.what.ms === null ? "" : say("wentOn", { ms: span(state.what.ms) });
  return `${say(`did_${state.what.how}`)}${time}`;
}

/** The words a session begins with, ready to be put into the text box. */
function words(scene) {
  const text = pick(scene.write);
  const put = () => byId("guide").dispatchEvent(new CustomEvent("write", { detail: text }));
  return el("div", { class: "words" }, el("code", {}, text),
    el("button", { type: "button", class: "btn btn-primary_filled", "data-write": "", onclick: put }, say("writeIt")));
}

/** A command and a button that copies it. */
function command(text, name, ...more) {
  const shown = el("code", { "data-command": name }, text);
  const copy = el("button", { type: "button", class: "btn btn-primary_filled", "data-copy": name }, say("copy"));
  copy.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text);
      copy.textContent = say("copied");
      announce(say("copied"));
    } catch {
      getSelection().selectAllChildren(shown);
    }
  });
  return el("div", { class: "command" }, shown, copy, more);
}

function playing(scene) {
  const clock = left() && !state.end
    ? el("span", { class: "countdown" }, `${say("timeLeft")} `, el("span", { id: "countdown", role: "timer" }, left())) : null;
  return [
    el("div", { class: "guide-head" },
      el("h2", { id: "guide-title", "data-scene": scene.name }, pick(scene.title)),
      el("span", { class: "guide-count" }, counted(scene)), clock,
      state.end ? null : button(say("skip"), { ask: "next" }, "btn-text guide-skip")),
    el("p", { class: "guide-story" }, pick(scene.story)),
    state.end
      ? el("div", { class: "guide-end" },
        el("p", { "data-end": state.what?.how ?? "task" }, `✓ ${outcome()}`),
        button(say("again"), { ask: "play", scene: scene.number }),
        button(say("next"), { ask: "next" }, "btn-primary_filled guide-next"))
      : el("p", { class: "guide-hint" }, pick(scene.hint)),
    scene.write && !state.end && !state.wrote ? words(scene) : null,
  ];
}

function figure(value, text) {
  return el("li", {}, el("strong", {}, value), el("span", {}, text));
}

function finished() {
  const all = tally.allowed + tally.denied + tally.left;
  return [
    el("div", { class: "guide-head" }, el("h2", { id: "guide-title", "data-scene": "end" }, say("allSeen"))),
    el("ul", { class: "figures" },
      figure(`${tally.seen.size} / ${state.scenes.length}`, say("figScenes")),
      figure(String(all), say("figRequests", { allowed: tally.allowed, denied: tally.denied, left: tally.left })),
      tally.toasts.length ? figure(span(Number(median(tally.toasts).toFixed(1))), say("figToast", { n: tally.toasts.length })) : null,
      tally.runs.length ? figure(span(median(tally.runs)), say("figRun")) : null,
      tally.back.length ? figure(span(median(tally.back)), say("figBack", { n: tally.back.length })) : null),
    el("p", { class: "guide-story" }, say(state.team ? "forRealTeam" : "forReal")),
    command(state.team ? TEAM_SETUP : SETUP, "setup", button(say("restart"), { ask: "play", scene: 1 }, "guide-restart")),
  ];
}

function lock() {
  return el("div", { class: "locked", role: "status" }, el("p", {}, say("locked")),
    button(say("unlock"), { ask: "unlock" }, "btn-danger"));
}

/** The scenes, those that were seen with a tick, wherever the list stands. */
function drawScenes() {
  const current = state.over ? null : state.scene?.number;
  for (const list of document.querySelectorAll("ol.scenes")) {
    const focused = [...list.querySelectorAll("button")].indexOf(document.activeElement);
    list.replaceChildren(...state.scenes.map((scene, i) => {
      const seen = tally.seen.has(i + 1);
      return el("li", {}, el("button", {
        type: "button", class: `scene-pick${seen ? " seen" : ""}`, "aria-current": i + 1 === current ? "step" : null,
        onclick: () => {
          list.closest("dialog")?.close();
          wish({ ask: "play", scene: i + 1 });
        },
      }, el("span", { class: "tick", "aria-hidden": "true" }, seen ? "✓" : String(i + 1)), pick(scene.title),
      seen ? el("span", { class: "hidden" }, say("seenIt")) : null));
    }));
    if (focused >= 0) list.querySelectorAll("button")[focused]?.focus();
  }
  byId("list-open").textContent = `☰ ${tally.seen.size}/${state.scenes.length}`;
  label("list-open", say("scenesSeen", { n: tally.seen.size, of: state.scenes.length }));
}

export function drawGuide() {
  const parts = state.over ? finished() : state.scene ? playing(state.scene) : [el("p", {}, say("waitingTour"))];
  const guide = byId("guide");
  const focused = guide.contains(document.activeElement);
  guide.replaceChildren(...[
    state.locked ? lock() : null,
    ...parts,
    state.claude && state.over ? el("div", { class: "claude" }, el("p", {}, say("claude")), command(state.claude, "claude"), el("p", {}, say("claudeThen"))) : null,
  ].filter(Boolean));
  // What was pressed is gone; who presses by keyboard goes on from here.
  if (focused) (guide.querySelector(".guide-next, [data-write]") ?? guide.querySelector("button"))?.focus();
  drawScenes();
}

export function drawOver() {
  byId("guide").replaceChildren(
    el("h2", { id: "guide-title", class: "guide-over", "data-scene": "over" }, say("overTitle")),
    el("p", { class: "guide-story" }, say("over")), command(state.team ? TEAM_SETUP : SETUP, "setup"));
}
