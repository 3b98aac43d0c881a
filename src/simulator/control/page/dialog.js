// Questions, errors and toasts above the chat, as Feishu's clients show them.

import { byId, el } from "./dom.js";
import { say } from "./words.js";

const TOAST_MS = 4000;

/** Says it to those who listen to the page instead of looking at it. */
export function announce(text) {
  byId("news").replaceChildren(el("p", {}, text));
}

/** Asks with the browser's modal dialog, which keeps the focus inside; true if confirmed. */
export function ask(title, text) {
  return new Promise((answer) => {
    const dialog = el("dialog", { class: "ask", "aria-labelledby": "ask-title", "aria-describedby": "ask-text" },
      el("h2", { id: "ask-title" }, title),
      el("p", { id: "ask-text" }, text),
      el("div", { class: "ask-buttons" },
        el("button", { type: "button", class: "btn", onclick: () => dialog.close("no") }, say("cancel")),
        el("button", { type: "button", class: "btn btn-primary_filled", "data-confirm": "yes", onclick: () => dialog.close("yes") }, say("confirm"))));
    dialog.addEventListener("close", () => {
      dialog.remove();
      answer(dialog.returnValue === "yes");
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}

const MARKS = { success: "✓", error: "✕", warning: "!", info: "i" };

export function toast(kind, text) {
  const box = el("div", { class: `toast toast-${kind}`, "data-toast": kind },
    el("span", { class: "toast-mark", "aria-hidden": "true" }, MARKS[kind] ?? "i"), text);
  byId("toasts").replaceChildren(box);
  setTimeout(() => box.remove(), TOAST_MS);
}

/** The popup a client shows when the callback went wrong. */
export function failure(code, problem) {
  const dialog = el("dialog", { class: "ask", role: "alertdialog", "aria-labelledby": "fail-title", "aria-describedby": "fail-text" },
    el("h2", { id: "fail-title" }, say("errorTitle")),
    el("p", { id: "fail-text" }, [code ? say("errorCode", { code }) : null, problem].filter(Boolean).join("\n")),
    el("div", { class: "ask-buttons" },
      el("button", { type: "button", class: "btn btn-primary_filled", onclick: () => dialog.close() }, say("confirm"))));
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}
