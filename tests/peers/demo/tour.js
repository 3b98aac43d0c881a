"use strict";
// Takes the tour in a real browser: every tap is a click on what the page shows, or, by `keys`, the
// Enter key on what the Tab key reached.
//
// usage: node tour.js ADDRESS WIDTHxHEIGHT light|dark zh|en DIRECTORY [keys]

const assert = require("node:assert");
const path = require("node:path");

const { LIMIT, browse, fault, looksRight, visit } = require("./browser.js");

const [address, size, scheme, lang, directory, by] = process.argv.slice(2);
const [width] = size.split("x").map(Number);
const MAX_TABS = 400;
const say = (zh, en) => (lang === "en" ? en : zh);

const WORDS = {
  allowed: say("已批准", "Allowed"),
  always: say("已始终允许", "Always allowed"),
  approvePlan: say("批准计划", "Approve the plan"),
  answered: say("已回答", "Answered"),
  denied: say("已拒绝", "Denied"),
  interrupted: say("已拒绝并中断", "Denied and interrupted"),
  terminal: say("已在终端批准", "Allowed in the terminal"),
  gone: say("请求已失效", "No longer waiting"),
  timeout: say("已超时", "Timed out"),
  chosen: say("四舍五入", "Half up"),
};

async function tour(context) {
  const { page, problems } = await visit(context, address);

  const shot = (name) => page.screenshot({ path: path.join(directory, `${size}-${scheme}-${lang}-${name}.png`) });
  const card = () => page.locator("#messages .card").last();
  const button = (action) => card().locator(`[data-action=${action}]`);
  const scene = (name) => page.locator(`#guide [data-scene=${name}]`).waitFor();
  const waiting = (action = "allow") => button(action).waitFor();
  const ended = async (title) => {
    await page.waitForFunction(([wanted]) => [...document.querySelectorAll("#messages .card")].at(-1)?.querySelector(".card-title .tag:last-child")?.textContent === wanted, [title], { timeout: LIMIT });
  };
  const toast = (kind) => page.locator(`[data-toast=${kind}]`).last().waitFor();
  const confirm = () => press(page.locator("dialog.ask [data-confirm=yes]"));
  const became = (how) => page.locator(`#guide [data-end=${how}]`).waitFor();
  const reach = async (target) => {
    await target.waitFor();
    for (let i = 0; i < MAX_TABS; i += 1) {
      if (await target.evaluate((node) => node === document.activeElement)) return;
      await page.keyboard.press("Tab");
    }
    throw new Error(`no Tab leads to ${target}`);
  };
  const press = async (target) => {
    if (by !== "keys") return target.click();
    await reach(target);
    return page.keyboard.press("Enter");
  };
  const write = async (target, text) => {
    if (by !== "keys") return target.fill(text);
    await reach(target);
    return page.keyboard.type(text);
  };
  const tick = async (label) => {
    if (by !== "keys") return card().getByText(label, { exact: true }).click();
    await reach(card().getByLabel(label, { exact: true }));
    return page.keyboard.press("Space");
  };
  const become = async (person) => {
    if (by !== "keys") return page.locator(`[data-person=${person}]`).click();
    await reach(page.locator("#people [aria-checked=true]"));
    return page.keyboard.press("ArrowRight");
  };
  const next = async (how) => {
    await became(how);
    await looksRight(page, width);
    await press(page.locator(".guide-next"));
  };

  await scene("allow");
  await waiting();
  await fault(page, "the first scene");
  await shot("1-waiting");
  if (width > 1000 && scheme === "light" && lang === "en") await card().screenshot({ path: path.join(directory, "card.png") });
  await button("allow").focus();
  await page.keyboard.press("Enter");
  await toast("success");
  assert.ok(!(await coversChats(page)), "a toast covers neither the chats nor who speaks");
  await ended(WORDS.allowed);
  await became("allow");
  await page.locator("[data-took]").last().waitFor();
  await shot("1-allowed");
  const focused = await page.evaluate(() => document.activeElement.closest("#messages") !== null);
  assert.ok(focused, "the focus stays in the chat after a tap");
  await next("allow");

  await scene("always");
  await waiting("always");
  await press(button("always"));
  await page.locator("dialog.ask").waitFor();
  const first = await page.evaluate(() => document.activeElement.dataset.confirm ?? "no");
  assert.strictEqual(first, "no", "a dialog does not begin on its dangerous button");
  await shot("2-confirm");
  await page.keyboard.press("Escape");
  await page.locator("dialog.ask").waitFor({ state: "detached" });
  await press(button("always"));
  await confirm();
  await page.locator("[data-toast=success]", { hasText: say("已始终允许", "Always allowed") }).waitFor();
  assert.ok(!(await leavesPhone(page)), "a long toast stays on the phone");
  await ended(WORDS.always);
  await page.locator("[data-step=passed]").first().waitFor({ state: "attached" });
  await shot("2-always");
  await next("always");

  await scene("deny");
  await waiting("deny");
  await press(card().locator("summary"));
  await write(card().locator("textarea"), say("先开一个合并请求", "Open a pull request first"));
  await shot("3-reason");
  await press(button("deny_with"));
  await ended(WORDS.denied);
  await next("deny");

  await scene("reply");
  await waiting("deny");
  await shot("4-edit");
  await press(page.locator("#messages .message:has(.card) .reply").last());
  assert.ok(await page.locator("#quote").isVisible(), "the quote is shown");
  await write(page.locator("#text"), say("用分，不要用浮点数", "Use cents, not floats"));
  await shot("4-quote");
  await page.keyboard.press("Enter");
  await page.waitForFunction(([wanted]) => [...document.querySelectorAll("#messages .card .card-title")].at(-1)?.querySelector(".tag:last-child")?.textContent === wanted, [WORDS.denied]);
  await next("deny");

  await scene("question");
  await card().locator("[data-name=submit_answer]").waitFor();
  const fits = await card().evaluate((shown) => {
    const list = document.querySelector("#messages").getBoundingClientRect();
    return shown.querySelector("h3").getBoundingClientRect().top >= list.top;
  });
  assert.ok(fits, "a new card is shown from its beginning");
  await card().locator("select").selectOption("o1");
  await tick(say("监控指标", "Metrics"));
  await tick(say("测试", "Tests"));
  await shot("5-question");
  await press(card().locator("[data-name=submit_answer]"));
  await toast("success");
  await ended(WORDS.answered);
  await next("answers");

  await scene("plan");
  await card().getByRole("button", { name: WORDS.approvePlan, exact: true }).waitFor();
  await shot("6-plan");
  await press(card().getByRole("button", { name: WORDS.approvePlan, exact: true }));
  await ended(WORDS.answered);
  await next("plan");

  await scene("interrupt");
  await waiting("interrupt");
  await press(button("interrupt"));
  await ended(WORDS.interrupted);
  await next("interrupt");

  await scene("stranger");
  await waiting();
  await become("stranger");
  await waiting();
  const look = async () => {
    await press(button("allow"));
    if (await page.locator("dialog.ask").count()) await confirm();
  };
  await look();
  await toast("error");
  await shot("8-stranger");
  await become("owner");
  await look();
  await ended(WORDS.allowed);
  await next("allow");

  await scene("crash");
  await waiting();
  const before = await page.locator("[data-step=started]").count();
  await press(page.locator("#kill"));
  await page.waitForFunction((count) => document.querySelectorAll("[data-step=started]").length > count, before);
  await page.locator("#daemon.up").waitFor();
  await shot("9-killed");
  await press(button("allow"));
  await ended(WORDS.allowed);
  await next("allow");

  await scene("terminal");
  await waiting();
  await shot("10-terminal");
  await press(page.locator("[data-key=yes]"));
  await ended(WORDS.terminal);
  await next("yes");

  await scene("gone");
  await waiting();
  await press(page.locator("[data-key=esc]"));
  await ended(WORDS.gone);
  await next("esc");

  await scene("timeout");
  await waiting();
  const left = await page.locator("#countdown").textContent();
  assert.match(left, /^0:(0\d|10)$/, "the time that is left is shown");
  await ended(WORDS.timeout);
  await shot("12-timeout");
  await next("timeout");

  await scene("session");
  await press(page.locator("[data-write]"));
  await shot("13-write");
  await page.keyboard.press("Enter");
  const choice = page.locator("#messages .card button", { hasText: WORDS.chosen }).last();
  await choice.waitFor();
  await shot("13-question");
  await press(choice);
  const allowTests = page.locator("#messages .card [data-action=allow]").last();
  await allowTests.waitFor();
  await press(allowTests);
  await page.locator("#messages .card strong", { hasText: WORDS.chosen }).last().waitFor();
  await became("task");
  await shot("13-answer");
  await next("task");

  await scene("stop");
  await press(page.locator("[data-write]"));
  await page.keyboard.press("Enter");
  await page.locator("#messages .card", { hasText: "Read · src/" }).last().waitFor();
  await shot("14-works");
  await press(page.locator("#messages [data-action=stop]").last());
  await became("task");
  await shot("14-stopped");
  await next("task");

  await scene("end");
  assert.strictEqual(await page.locator("[data-command=setup]").textContent(), "nod setup");
  assert.ok(await page.locator(".figures li").count() >= 5, "it ends with what happened in figures");
  const ticked = await page.locator("#rail .seen").count();
  assert.strictEqual(ticked, 14, "each scene has its tick");
  await shot("15-figures");
  await locks(page, press);
  await press(page.locator("#travel-open"));
  const raw = page.locator(".raw summary").last();
  await press(raw);
  await page.locator(".raw[open] pre").last().waitFor();
  await shot("15-travel");
  for (const step of ["hook_in", "message", "event_out", "reply_in", "card", "hook_out"]) {
    assert.ok(await page.locator(`[data-step=${step}]`).count(), `what travels shows ${step}`);
  }
  await fault(page, "what travels");
  await page.goBack();
  await page.locator("#travel:not([open])").waitFor({ state: "attached" });
  if (await page.locator("#list-open").isVisible()) {
    await press(page.locator("#list-open"));
    await shot("15-list");
    await fault(page, "the list of scenes");
    await page.goBack();
    await page.locator("#list:not([open])").waitFor({ state: "attached" });
  }
  await accessible(page);
  await hostile(page);
  await press(page.locator("#language"));
  await press(page.locator("#theme"));
  await page.reload();
  await page.locator("#guide [data-scene=end]").waitFor();
  const kept = await page.evaluate(() => [document.documentElement.lang, document.documentElement.dataset.theme]);
  assert.deepStrictEqual(kept, [say("en", "zh-CN"), scheme === "dark" ? "light" : "dark"], "a reload keeps language and theme");
  await press(page.locator(".guide-restart"));
  await scene("allow");
  await page.waitForFunction(([wanted]) => [...document.querySelectorAll("#messages .card")].at(-1)?.querySelector("[data-action=allow]")?.textContent === wanted, [say("Allow once", "批准运行")], { timeout: LIMIT });
  await shot("16-switched");
  assert.deepStrictEqual(problems, []);

  // The demo ends, and the page says so instead of pretending.
  console.log("ready to end");
  await page.locator("#guide [data-scene=over]").waitFor();
  assert.ok(await page.locator("#text").isDisabled(), "nothing can be written any more");
  assert.match(await page.locator("#daemon").textContent(), /has ended|已退出/);
  assert.equal(await page.locator("#screen .waiting").count(), 0, "the terminal waits for nobody");
  await press(page.locator("#language"));
  assert.ok(await page.locator("#kill").isDisabled(), "nor can anything be killed, in either language");
  assert.equal(await page.locator("#guide [data-scene=over]").count(), 1, "the guide says so in both, too");
  await press(button("allow"));
  await toast("info");
  await shot("17-over");
}

/** `/lock` in the chat, and the way back. */
async function locks(page, press) {
  await page.locator("#text").fill("/lock");
  await page.locator("#text").press("Enter");
  await page.locator(".locked").waitFor();
  await fault(page, "a locked demo");
  await press(page.locator(".locked button"));
  await page.locator(".locked").waitFor({ state: "detached" });
}

/** Markup that somebody else wrote stays text, on cards, in messages and in the terminal. */
async function hostile(page) {
  const markup = '<img src="x" onerror="window.taken = 1"><svg onload="window.taken = 1"></svg><b id="taken">';
  await page.evaluate(async (text) => {
    const { call } = await import("/dom.js");
    await call("/control/text", { text });
    await call("/control/note", { note: "passed", rule: text });
  }, markup);
  await page.locator("#messages .bubble", { hasText: "onerror" }).last().waitFor();
  await page.locator("#screen .line", { hasText: "onerror" }).last().waitFor({ state: "attached" });
  assert.strictEqual(await page.locator("#app img, #app svg, #taken").count(), 0);
  assert.strictEqual(await page.evaluate(() => window.taken), undefined);
}

const leavesPhone = (page) => page.evaluate(() => {
  const phone = document.getElementById("phone").getBoundingClientRect();
  const toasts = [...document.querySelectorAll(".toast")].map((toast) => toast.getBoundingClientRect());
  return toasts.some((toast) => toast.left < phone.left || toast.right > phone.right);
});

const coversChats = (page) => page.evaluate(() => {
  const side = document.getElementById("side").getBoundingClientRect();
  const toasts = [...document.querySelectorAll(".toast")].map((toast) => toast.getBoundingClientRect());
  return toasts.some((toast) => toast.bottom > side.top && toast.top < side.bottom);
});

/** Everything that can be pressed or filled in has a name, and the live regions are there. */
async function accessible(page) {
  await fault(page, "the page");
  const nameless = await page.evaluate(() => [...document.querySelectorAll("button, input, select, textarea, summary")]
    .filter((node) => !(node.textContent.trim() || node.getAttribute("aria-label") || node.labels?.length))
    .map((node) => node.outerHTML.slice(0, 120)));
  assert.deepStrictEqual(nameless, [], "every control has a name");
  const untold = await page.locator("#top .tool:not([title])").count();
  assert.strictEqual(untold, 0, "every tool says what it is for when it is pointed at");
  assert.ok((await page.locator("#news[role=status]").textContent()).trim(), "news is announced");
  assert.strictEqual(await page.locator("#toasts").getAttribute("role"), "alert");
  const chosen = page.locator("#people [role=radio][tabindex='0']");
  assert.strictEqual(await chosen.count(), 1, "one stop for Tab among the people");
}

browse(size, scheme, lang, tour);
