// The tour beside the chat: which scene plays, what to do, what came of it.

import { announce } from "./dialog.js";
import { byId, call, el } from "./dom.js";
import { pick, say } from "./words.js";

const state = { scenes: [], scene: null, end: null, over: false, claude: null, list: false, wrote: false };

const wish = (note) => call("/control/note", note);

/** Takes one note of the tour; true if the scene's chat should be shown. */
export function note(detail) {
  switch (detail.note) {
    case "programme": state.scenes = detail.scenes; break;
    case "scene":
      Object.assign(state, { scene: detail, end: null, over: false, wrote: false });
      drawGuide();
      announce([counted(detail), pick(detail.title), pick(detail.hint)].join(" · "));
      return true;
    case "scene_end":
      state.end = detail;
      announce(outcome());
      break;
    case "tour_end": state.over = true; break;
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
  return el("button", { type: "button", class: `btn btn-small ${look}`, onclick: () => wish(wanted) }, text);
}

function terminal(scene) {
  return el("div", { class: "terminal", role: "group", "aria-label": say("terminal") },
    el("p", { class: "terminal-title" }, say("terminal")),
    el("pre", {}, `${scene.call}\n${say("terminalAsks")}`),
    el("div", { class: "row" },
      button(say("terminalYes"), { ask: "terminal", answer: "yes" }),
      button(say("terminalEsc"), { ask: "terminal", answer: "esc" })));
}

const counted = (scene) => say("scene", { n: scene.number, of: state.scenes.length || scene.number });
const outcome = () => say(state.end.as_planned ? "asPlanned" : "otherwise");

/** The words a session begins with, ready to be put into the text box. */
function words(scene) {
  const text = pick(scene.write);
  const put = () => byId("guide").dispatchEvent(new CustomEvent("write", { detail: text }));
  return el("div", { class: "words" }, el("code", {}, text),
    el("button", { type: "button", class: "btn btn-small btn-primary", "data-write": "yes", onclick: put }, say("writeIt")));
}

function playing(scene) {
  const ended = state.end
    ? el("p", { class: "guide-end", "data-end": state.end.as_planned ? "planned" : "otherwise" }, `✓ ${outcome()}`)
    : el("p", { class: "guide-hint" }, pick(scene.hint));
  return [
    el("p", { class: "guide-count" }, counted(scene)),
    el("h2", { "data-scene": scene.name }, pick(scene.title)),
    el("p", { class: "guide-story" }, pick(scene.story)),
    ended,
    scene.dialog && !state.end ? terminal(scene) : null,
    scene.write && !state.end && !state.wrote ? words(scene) : null,
    el("div", { class: "row" },
      state.end ? button(say("next"), { ask: "next" }, "btn-primary_filled guide-next") : button(say("skip"), { ask: "next" }),
      state.end ? button(say("again"), { ask: "play", scene: scene.number }) : null),
  ];
}

function finished() {
  return [
    el("h2", { "data-scene": "end" }, say("allSeen")),
    el("p", { class: "guide-story" }, say("allSeenText")),
    el("div", { class: "row" }, button(say("restart"), { ask: "play", scene: 1 }, "btn-primary_filled")),
  ];
}

function allScenes() {
  const current = state.scene?.number;
  const list = el("details", { class: "scenes", open: state.list },
    el("summary", {}, say("scenes")),
    el("ol", {}, state.scenes.map((scene, i) => el("li", {},
      el("button", {
        type: "button", class: "scene-pick", "aria-current": i + 1 === current ? "step" : null,
        onclick: () => wish({ ask: "play", scene: i + 1 }),
      }, pick(scene.title))))));
  list.addEventListener("toggle", () => { state.list = list.open; });
  return list;
}

function ownClaude() {
  const copy = el("button", { type: "button", class: "btn btn-small" }, say("copy"));
  const command = el("pre", { tabindex: "0" }, state.claude);
  copy.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(state.claude);
      copy.textContent = say("copied");
      announce(say("copied"));
    } catch {
      getSelection().selectAllChildren(command);
    }
  });
  return el("div", { class: "claude" }, el("p", {}, say("claude")), command, el("p", {}, say("claudeThen")), copy);
}

export function drawGuide() {
  const parts = state.over ? finished() : state.scene ? playing(state.scene) : [el("p", {}, say("waitingTour"))];
  byId("guide").replaceChildren(...[
    ...parts,
    state.scenes.length ? allScenes() : null,
    state.claude ? ownClaude() : null,
  ].filter(Boolean));
}

export function drawOver() {
  byId("guide").replaceChildren(
    el("h2", { class: "guide-over", "data-scene": "over" }, say("overTitle")),
    el("p", { class: "guide-story" }, say("over")));
}
