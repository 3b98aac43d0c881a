// The page: chats, messages, who acts, and the feed that keeps it live.

import { drawCard } from "./card.js";
import { announce, failure, toast } from "./dialog.js";
import { byId, call, clock, el, fresh, label, recall, remember } from "./dom.js";
import { drawGuide, drawOver, note, sceneNow, wrote } from "./guide.js";
import { sheet } from "./sheet.js";
import { count } from "./tally.js";
import { closeTerminal, drawTerminal, play, wireTerminal } from "./terminal.js";
import { drawTravel, travelled } from "./travel.js";
import { language, localised, say, setLanguage } from "./words.js";

const FEED_WAIT_MS = 25000;
/** A laptop that slept, or a busy machine, is not the end: the page asks this often before it says so. */
const TRIES = 4;
const TRY_AGAIN_MS = 1000;
const REVEAL_MARGIN = 8;
const NEAR_END = 40;
const state = { users: [], groups: [], me: null, chat: null, parent: null, seen: 0, over: false };
const messages = new Map();
const drafts = new Map();
const unread = new Map();

const owner = () => state.users[0];
const isGroup = (chat) => state.groups.includes(chat);
const ownChats = () => [...state.me.chats.map((chat) => chat.chat_id), ...state.groups];
/** The app whose bot is spoken to in a private chat. */
const appOf = (chat) => state.me.chats.find((known) => known.chat_id === chat);

/** The name this page gives a person or the bot. */
function name(openId) {
  const user = state.users.find((known) => known.open_id === openId);
  if (!user) return say("bot");
  return user === owner() ? say("owner") : say("stranger");
}

function chatName(chat) {
  if (isGroup(chat)) return say("group");
  const app = appOf(chat);
  return app && state.me.chats.length > 1 ? `${say("bot")} · ${app.bot} (${app.app_id.slice(-4)})` : say("bot");
}

/** What stands for a message in the list of chats and in a quote. */
function summary(message) {
  if (message.card) {
    const shown = message.card.config?.summary ?? message.card.header?.title;
    return localised(shown?.content, shown?.i18n_content);
  }
  return textOf(message);
}

function textOf(message) {
  try {
    const content = JSON.parse(message.content);
    if (content.file_name) return content.file_name;
    return (content.text ?? "").replace(/@_user_\d+ ?/g, "");
  } catch {
    return message.content;
  }
}

function drawChats() {
  byId("chats").replaceChildren(...ownChats().map((chat) => {
    const last = [...messages.values()].filter((message) => message.chat_id === chat).at(-1);
    const count = unread.get(chat) ?? 0;
    const button = el("button", {
      type: "button", class: "chat-pick", "aria-current": chat === state.chat ? "true" : null, "data-chat": isGroup(chat) ? "group" : "bot",
      onclick: () => show(chat), title: last ? summary(last) : null,
    },
    el("span", { class: `face ${isGroup(chat) ? "face-group" : "face-bot"}`, "aria-hidden": "true" }, isGroup(chat) ? "#" : "n"),
    el("span", { class: "chat-title" }, chatName(chat)),
    count ? el("span", { class: "badge", "aria-label": say("unread", { n: count }) }, String(count)) : null);
    return el("li", {}, button);
  }));
}

function drawPeople() {
  byId("people").replaceChildren(...state.users.map((user) => el("button", {
    type: "button", role: "radio", class: "person-pick", "data-person": user === owner() ? "owner" : "stranger",
    "aria-checked": user === state.me ? "true" : "false", tabindex: user === state.me ? "0" : "-1", onclick: () => become(user),
  }, name(user.open_id))));
}

function become(user) {
  state.me = user;
  drawPeople();
  show(ownChats().includes(state.chat) ? state.chat : user.chat_id);
}

/** Takes the people and the apps as they are now: a scan may have made one. */
async function meet() {
  const people = await call("/control/people");
  state.users = people.users;
  state.groups = people.groups;
  state.me = state.users.find((user) => user.open_id === state.me?.open_id) ?? owner();
}

function show(chat) {
  state.chat = chat;
  unread.delete(chat);
  quote(null);
  byId("chat-name").textContent = chatName(chat);
  const note = isGroup(chat) ? say("groupOf") : say("botTag");
  // In a team there is more than one phone.
  byId("chat-note").textContent = sceneNow()?.laptop ? `${note} · ${say(state.me === owner() ? "ownPhone" : "otherPhone")}` : note;
  drawChats();
  drawMessages();
}

function drawMessages() {
  const shown = [...messages.values()].filter((message) => message.chat_id === state.chat);
  const list = byId("messages");
  list.replaceChildren(...shown.map(drawMessage));
  if (!shown.length) list.append(el("li", { class: "empty" }, say("empty")));
  reveal(list.lastElementChild);
}

/** Scrolls to a message: to its end, or to its beginning if it is taller than the chat. */
function reveal(item) {
  const list = byId("messages");
  const top = item.offsetTop - list.offsetTop - REVEAL_MARGIN;
  list.scrollTop = Math.min(list.scrollHeight - list.clientHeight, top);
}

function drawMessage(message) {
  const mine = message.sender === state.me.open_id;
  const bot = message.sender_type === "app";
  const parent = message.parent_id ? messages.get(message.parent_id) : null;
  const content = message.deleted
    ? el("p", { class: "recalled" }, say("recalled"))
    : message.card ? card(message) : message.msg_type === "file" ? file(message) : el("p", { class: "bubble" }, textOf(message));
  return el("li", { class: `message${mine ? " mine" : ""}`, id: message.message_id, tabindex: "-1" },
    el("span", { class: `face ${bot ? "face-bot" : mine ? "face-me" : "face-other"}`, "aria-hidden": "true" }, bot ? "n" : name(message.sender).slice(0, 1)),
    el("div", { class: "message-body" },
      el("div", { class: "message-from" }, el("span", {}, name(message.sender)),
        bot ? el("span", { class: "tag tag-blue" }, say("botTag")) : null, el("time", {}, clock(message.create_time)),
        message.deleted ? null : el("button", { type: "button", class: "reply", onclick: () => quote(message) }, `↩ ${say("reply")}`)),
      parent ? el("p", { class: "message-quote" }, summary(parent)) : null,
      content));
}

/** A file: its name, and its text once somebody asks for it. */
function file(message) {
  const shown = el("pre", { class: "file-text", hidden: true });
  const open = el("button", { type: "button", class: "file-open", onclick: async () => {
    try {
      const kept = await call(`/control/files/${message.message_id}`);
      const bytes = Uint8Array.from(atob(kept.base64), (letter) => letter.charCodeAt(0));
      shown.textContent = new TextDecoder().decode(bytes);
      shown.hidden = false;
      const saved = el("a", { href: URL.createObjectURL(new Blob([bytes])), download: kept.file_name }, say("saveFile"));
      open.replaceWith(saved);
    } catch (error) {
      failure(null, error.message);
    }
  } }, say("openFile"));
  return el("div", { class: "bubble file" }, el("span", {}, `📄 ${textOf(message)} `), open, shown);
}

function card(message) {
  if (!drafts.has(message.message_id)) drafts.set(message.message_id, new Map());
  return drawCard(message.card, {
    id: message.message_id,
    people: name,
    drafts: drafts.get(message.message_id),
    press: (press) => tap(message.message_id, press),
  });
}

async function tap(messageId, press) {
  if (state.over) {
    toast("info", say("overTitle"));
    return;
  }
  try {
    const seen = await call("/control/click", { message_id: messageId, user: state.me.open_id, ...press });
    if (seen.popup) failure(seen.popup, seen.problem);
    else if (seen.toast) toast(seen.toast.type, localised(seen.toast.content, seen.toast.i18n));
  } catch (why) {
    failure(null, say("cannot", { why: why.message }));
  }
  byId(messageId)?.focus({ preventScroll: true });
}

function quote(message) {
  state.parent = message?.message_id ?? null;
  const box = byId("quote");
  box.hidden = !message;
  box.replaceChildren(...(message ? [
    el("span", {}, `${say("replyTo")} ${summary(message)}`),
    el("button", { type: "button", class: "tool", "aria-label": say("cancel"), onclick: () => quote(null) }, "✕"),
  ] : []));
  if (message) byId("text").focus();
}

/** Puts words into the text box, in the owner's chat with the bot; sending is left to the visitor. */
function write(text) {
  if (state.me !== owner() || state.chat !== owner().chat_id) {
    state.me = owner();
    drawPeople();
    show(owner().chat_id);
  }
  byId("text").value = text;
  byId("text").focus();
}

async function send() {
  const box = byId("text");
  const text = box.value.trim();
  if (!text || state.over) return;
  const written = { user: state.me.open_id, text, mention_bot: isGroup(state.chat) };
  if (isGroup(state.chat)) written.chat_id = state.chat;
  else written.app_id = appOf(state.chat)?.app_id;
  if (state.parent) written.parent_id = state.parent;
  box.value = "";
  quote(null);
  wrote();
  try {
    await call("/control/text", written);
  } catch (why) {
    failure(null, why.message);
  }
}

/** Takes a message as it is now; redraws only that one, so that nothing typed elsewhere is lost. */
async function refresh(id) {
  const message = await call(`/control/messages/${encodeURIComponent(id)}`);
  const known = messages.has(id);
  messages.set(id, message);
  if (message.chat_id !== state.chat) {
    if (!known && ownChats().includes(message.chat_id)) unread.set(message.chat_id, (unread.get(message.chat_id) ?? 0) + 1);
    drawChats();
    return;
  }
  drawChats();
  const old = byId(id);
  if (!old) {
    const list = byId("messages");
    list.querySelector(".empty")?.remove();
    list.append(drawMessage(message));
    reveal(list.lastElementChild);
    if (message.sender !== state.me.open_id) announce(`${name(message.sender)}: ${summary(message)}`);
    return;
  }
  const list = byId("messages");
  const atEnd = list.scrollHeight - list.clientHeight - list.scrollTop < NEAR_END;
  const before = old.querySelector(".card-title")?.textContent;
  const hadFocus = old.contains(document.activeElement);
  const fresh = drawMessage(message);
  old.replaceWith(fresh);
  if (atEnd && fresh === list.lastElementChild) reveal(fresh);
  if (hadFocus) fresh.focus({ preventScroll: true });
  const after = fresh.querySelector(".card-title")?.textContent;
  if (after && after !== before) announce(say("nowSays", { title: after }));
}

async function take(entries, live) {
  travelled(entries, name);
  const changed = new Set();
  let opened = false;
  for (const entry of entries) {
    if (["message", "card", "reaction"].includes(entry.kind)) changed.add(entry.message_id);
    const what = count(entry);
    play(entry, what);
    if (entry.kind === "note") opened = note(entry, what) || opened;
    if (entry.kind === "registration" && entry.app_id && !state.me.chats.some((chat) => chat.app_id === entry.app_id)) {
      await meet();
      drawPeople();
      drawChats();
    }
  }
  for (const id of changed) await refresh(id);
  if (opened && live) openScene();
}

/** A new scene plays before whoever its laptop belongs to, in its chat. */
function openScene() {
  const scene = sceneNow();
  const person = state.users.find((user) => user.open_id === scene.person) ?? owner();
  const chat = scene.chat_id || person.chat_id;
  quote(null);
  if (state.me !== person) {
    state.me = person;
    drawPeople();
    show(chat);
  } else if (chat !== state.chat || scene.laptop) show(chat);
}

async function follow() {
  let failed = 0;
  while (failed < TRIES) {
    const first = state.seen === 0;
    let feed;
    try {
      feed = await call(`/control/feed?after=${state.seen}&timeout_ms=${FEED_WAIT_MS}`);
    } catch {
      failed += 1;
      await new Promise((later) => { setTimeout(later, TRY_AGAIN_MS); });
      continue;
    }
    failed = 0;
    state.seen = feed.last;
    await take(feed.entries, !first).catch(() => {});
    if (first && sceneNow()) openScene();
  }
}

/** The demo has ended: what was said can still be read, nothing can be done. */
function end() {
  state.over = true;
  drawOver();
  closeTerminal();
  byId("text").disabled = true;
  byId("send").disabled = true;
  announce(say("over"));
}

function words() {
  document.title = say("page");
  byId("tagline").textContent = say("tagline");
  byId("people").setAttribute("aria-label", say("actAs"));
  byId("language").textContent = say("languageShort");
  label("language", say("language"));
  byId("theme").textContent = "◐";
  label("theme", say("theme"));
  byId("rail-title").textContent = say("scenes");
  byId("list-title").textContent = say("scenes");
  byId("travel-title").textContent = say("travel");
  byId("travel-open").textContent = "⇄";
  label("travel-open", say("travel"));
  byId("list-close").textContent = "✕";
  byId("list-close").setAttribute("aria-label", say("close"));
  byId("travel-hint").textContent = say("travelHint");
  byId("travel-close").textContent = "✕";
  byId("travel-close").setAttribute("aria-label", say("close"));
  byId("chats").setAttribute("aria-label", say("chats"));
  byId("send").textContent = say("send");
  byId("text-label").textContent = say("write");
  byId("text").placeholder = say("write");
}

function drawAll() {
  words();
  drawPeople();
  show(state.chat);
  drawTerminal();
  (state.over ? drawOver : drawGuide)();
  drawTravel(name);
}

function wire() {
  byId("language").addEventListener("click", () => {
    setLanguage(language() === "en" ? "zh" : "en");
    remember("language", language());
    drawAll();
    if (!state.over) call("/control/note", { ask: "speak", lang: language() });
  });
  byId("theme").addEventListener("click", () => {
    const dark = document.documentElement.dataset.theme
      ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
    document.documentElement.dataset.theme = dark === "dark" ? "light" : "dark";
    remember("theme", document.documentElement.dataset.theme);
  });
  sheet("travel", () => drawTravel(name));
  sheet("list");
  wireTerminal();
  byId("composer").addEventListener("submit", (event) => {
    event.preventDefault();
    send();
  });
  byId("text").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      send();
    }
    if (event.key === "Escape") quote(null);
  });
  byId("guide").addEventListener("write", (event) => write(event.detail));
  byId("people").addEventListener("keydown", (event) => {
    if (!event.key.startsWith("Arrow")) return;
    event.preventDefault();
    const step = event.key === "ArrowRight" || event.key === "ArrowDown" ? 1 : -1;
    const at = state.users.indexOf(state.me);
    become(state.users.at((at + step) % state.users.length));
    byId("people").querySelector("[aria-checked=true]").focus();
  });
}

async function start() {
  const asked = new URLSearchParams(location.search).get("lang");
  // A new address says which language it wants; a reload keeps what was chosen.
  const kept = fresh ? null : recall("language");
  setLanguage(kept ?? asked ?? (navigator.language.startsWith("zh") ? "zh" : "en"));
  const theme = recall("theme");
  if (["light", "dark"].includes(theme)) document.documentElement.dataset.theme = theme;
  try {
    await meet();
  } catch (refused) {
    byId("chat-name").textContent = say("noTokenTitle");
    byId("chat-note").textContent = refused.status === 401 ? say("noToken") : refused.message;
    return;
  }
  state.chat = owner().chat_id;
  wire();
  drawAll();
  await follow();
  end();
}

start();
