"use strict";
// Takes the tour in a real browser: every tap is a click on what the page shows.
//
// usage: node tour.js ADDRESS WIDTHxHEIGHT light|dark zh|en DIRECTORY

const assert = require("node:assert");
const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");

const { chromium } = require(path.join(process.env.NOD_PEERS_PLAYWRIGHT, "playwright-core"));

const [address, size, scheme, lang, directory] = process.argv.slice(2);
const [width, height] = size.split("x").map(Number);
const LIMIT = 20000;
const say = (zh, en) => (lang === "en" ? en : zh);

const WORDS = {
  allowed: say("已批准", "Allowed"),
  always: say("已始终允许", "Always allowed"),
  answered: say("已回答", "Answered"),
  denied: say("已拒绝", "Denied"),
  interrupted: say("已拒绝并中断", "Denied and interrupted"),
  terminal: say("已在终端批准", "Allowed in the terminal"),
  gone: say("请求已失效", "Void"),
  timeout: say("已超时", "Timed out"),
  chosen: say("四舍五入", "Half up"),
};

async function main() {
  const profile = fs.mkdtempSync(path.join(os.tmpdir(), "nod-chromium-"));
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: process.env.NOD_PEERS_BROWSER,
    headless: true,
    env: { ...process.env, HOME: profile },
    args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
      "--disable-component-update", "--disable-sync"],
    viewport: { width, height },
    colorScheme: scheme,
    deviceScaleFactor: Number(process.env.NOD_PEERS_SCALE ?? 1),
    locale: lang === "en" ? "en-GB" : "zh-CN",
    isMobile: width < 500,
    hasTouch: width < 500,
  });
  try {
    await tour(context);
  } finally {
    await context.close();
    fs.rmSync(profile, { recursive: true, force: true });
  }
}

async function tour(context) {
  const page = context.pages()[0] ?? await context.newPage();
  page.setDefaultTimeout(LIMIT);
  const problems = [];
  page.on("console", (message) => { if (message.type() === "error") problems.push(message.text()); });
  page.on("pageerror", (error) => problems.push(String(error)));
  page.on("request", (request) => { if (!request.url().startsWith(new URL(address).origin) && !request.url().startsWith("data:")) problems.push(`asked for ${request.url()}`); });
  await page.goto(address);

  const shot = (name) => page.screenshot({ path: path.join(directory, `${size}-${scheme}-${lang}-${name}.png`) });
  const card = () => page.locator("#messages .card").last();
  const button = (action) => card().locator(`[data-action=${action}]`);
  const scene = (name) => page.locator(`#guide [data-scene=${name}]`).waitFor();
  const waiting = (action = "allow") => button(action).waitFor();
  const ended = async (title) => {
    await page.waitForFunction(([wanted]) => [...document.querySelectorAll("#messages .card")].at(-1)?.querySelector("h3")?.textContent === wanted, [title], { timeout: LIMIT });
  };
  const toast = (kind) => page.locator(`[data-toast=${kind}]`).last().waitFor();
  const confirm = () => page.locator("dialog [data-confirm=yes]").click();
  const planned = () => page.locator("#guide [data-end=planned]").waitFor();
  const next = async () => {
    await planned();
    const overflow = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
    assert.ok(overflow <= 0, `the page is ${overflow} px too wide`);
    await page.locator(".guide-next").click();
  };

  await scene("allow");
  await waiting();
  await shot("1-waiting");
  if (width > 1000 && scheme === "light" && lang === "en") await card().screenshot({ path: path.join(directory, "card.png") });
  await button("allow").focus();
  await page.keyboard.press("Enter");
  await toast("success");
  await ended(WORDS.allowed);
  await planned();
  await shot("1-allowed");
  const focused = await page.evaluate(() => document.activeElement.closest("#messages") !== null);
  assert.ok(focused, "the focus stays in the chat after a tap");
  await next();

  await scene("always");
  await waiting("always");
  await button("always").click();
  await page.locator("dialog").waitFor();
  await shot("2-confirm");
  await page.keyboard.press("Escape");
  await page.locator("dialog").waitFor({ state: "detached" });
  await button("always").click();
  await confirm();
  await ended(WORDS.always);
  await page.locator("[data-step=passed]").first().waitFor({ state: "attached" });
  await shot("2-always");
  await next();

  await scene("deny");
  await waiting("deny");
  await card().locator("textarea").fill(say("先开一个合并请求", "Open a pull request first"));
  await shot("3-reason");
  await button("deny").click();
  await ended(WORDS.denied);
  await next();

  await scene("reply");
  await waiting("deny");
  await shot("4-edit");
  await page.locator("#messages .message:has(.card) .reply").last().click();
  assert.ok(await page.locator("#quote").isVisible(), "the quote is shown");
  await page.locator("#text").fill(say("用分，不要用浮点数", "Use cents, not floats"));
  await shot("4-quote");
  await page.keyboard.press("Enter");
  await page.waitForFunction(([wanted]) => [...document.querySelectorAll("#messages .card h3")].at(-1)?.textContent === wanted, [WORDS.denied]);
  await next();

  await scene("question");
  await card().locator("[data-name=submit_answer]").waitFor();
  const fits = await card().evaluate((shown) => {
    const list = document.querySelector("#messages").getBoundingClientRect();
    return shown.querySelector("h3").getBoundingClientRect().top >= list.top;
  });
  assert.ok(fits, "a new card is shown from its beginning");
  await card().locator("select").selectOption("o1");
  await card().getByText(say("监控指标", "Metrics"), { exact: true }).click();
  await card().getByText(say("测试", "Tests"), { exact: true }).click();
  await shot("5-question");
  await card().locator("[data-name=submit_answer]").click();
  await toast("success");
  await ended(WORDS.answered);
  await next();

  await scene("plan");
  await card().locator("[data-name=submit_approve_plan]").waitFor();
  await shot("6-plan");
  await card().locator("[data-name=submit_approve_plan]").click();
  await ended(WORDS.answered);
  await next();

  await scene("interrupt");
  await waiting("interrupt");
  await button("interrupt").click();
  await confirm();
  await ended(WORDS.interrupted);
  await next();

  await scene("stranger");
  await waiting();
  await page.locator("[data-person=stranger]").click();
  await waiting();
  const look = async () => {
    await button("allow").click();
    if (await page.locator("dialog").count()) await confirm();
  };
  await look();
  await toast("error");
  await shot("8-stranger");
  await page.locator("[data-person=owner]").click();
  await look();
  await ended(WORDS.allowed);
  await next();

  await scene("crash");
  await waiting();
  await page.locator("[data-step=started]").first().waitFor({ state: "attached" });
  await button("allow").click();
  await ended(WORDS.allowed);
  await next();

  await scene("terminal");
  await waiting();
  await shot("10-terminal");
  await page.locator(".terminal button").first().click();
  await ended(WORDS.terminal);
  await next();

  await scene("gone");
  await waiting();
  await page.locator(".terminal button").last().click();
  await ended(WORDS.gone);
  await next();

  await scene("timeout");
  await waiting();
  await ended(WORDS.timeout);
  await shot("12-timeout");
  await next();

  await scene("session");
  await page.locator("[data-write]").click();
  await shot("13-write");
  await page.keyboard.press("Enter");
  const choice = page.locator("#messages .card button", { hasText: WORDS.chosen }).last();
  await choice.waitFor();
  await shot("13-question");
  await choice.click();
  const allowTests = page.locator("#messages .card [data-action=allow]").last();
  await allowTests.waitFor();
  await allowTests.click();
  await page.locator("#messages .card strong", { hasText: WORDS.chosen }).last().waitFor();
  await planned();
  await shot("13-answer");
  await next();

  await scene("stop");
  await page.locator("[data-write]").click();
  await page.keyboard.press("Enter");
  await page.locator("#messages .card", { hasText: "Read · src/" }).last().waitFor();
  await shot("14-works");
  const stop = page.locator("#messages [data-action=stop]").last();
  await stop.focus();
  await page.keyboard.press("Enter");
  await page.locator("dialog").waitFor();
  const first = await page.evaluate(() => document.activeElement.dataset.confirm ?? "no");
  assert.strictEqual(first, "no", "a dialog does not begin on its dangerous button");
  await page.keyboard.press("Tab");
  await shot("14-confirm");
  await page.keyboard.press("Enter");
  await planned();
  await shot("14-stopped");
  await next();

  await scene("end");
  if (await page.locator("#travel-open").isVisible()) await page.locator("#travel-open").click();
  const raw = page.locator(".raw summary").last();
  await raw.click();
  await page.locator(".raw[open] pre").last().waitFor();
  await shot("15-travel");
  for (const step of ["hook_in", "message", "event_out", "reply_in", "card", "hook_out"]) {
    assert.ok(await page.locator(`[data-step=${step}]`).count(), `what travels shows ${step}`);
  }
  await accessible(page);
  if (await page.locator("#travel-close").isVisible()) await page.keyboard.press("Escape");
  await page.locator("#language").click();
  await page.locator("#theme").click();
  await page.locator("#guide .btn-primary_filled").click();
  await scene("allow");
  await page.waitForFunction(([wanted]) => [...document.querySelectorAll("#messages .card")].at(-1)?.querySelector("[data-action=allow]")?.textContent === wanted, [say("Allow once", "批准运行")], { timeout: LIMIT });
  await shot("16-switched");
  assert.deepStrictEqual(problems, []);

  // The demo ends, and the page says so instead of pretending.
  console.log("ready to end");
  await page.locator("#guide [data-scene=over]").waitFor();
  assert.ok(await page.locator("#text").isDisabled(), "nothing can be written any more");
  await button("allow").click();
  await toast("info");
  await shot("17-over");
}

/** Everything that can be pressed or filled in has a name, and the live regions are there. */
async function accessible(page) {
  const nameless = await page.evaluate(() => [...document.querySelectorAll("button, input, select, textarea, summary")]
    .filter((node) => !(node.textContent.trim() || node.getAttribute("aria-label") || node.labels?.length))
    .map((node) => node.outerHTML.slice(0, 120)));
  assert.deepStrictEqual(nameless, [], "every control has a name");
  assert.ok((await page.locator("#news[role=status]").textContent()).trim(), "news is announced");
  assert.strictEqual(await page.locator("#toasts").getAttribute("role"), "alert");
  const chosen = page.locator("#people [role=radio][tabindex='0']");
  assert.strictEqual(await chosen.count(), 1, "one stop for Tab among the people");
}

main().then(() => console.log("toured"), (error) => {
  console.error(error);
  process.exitCode = 1;
});
