"use strict";
// Takes the tour of a team in a real browser: two people's phones, three laptops, a gateway that dies and a
// laptop that sleeps.
//
// usage: node team.js ADDRESS WIDTHxHEIGHT light|dark zh|en DIRECTORY

const assert = require("node:assert");
const path = require("node:path");

const { LIMIT, browse, fault, looksRight, visit } = require("./browser.js");

const [address, size, scheme, lang, directory] = process.argv.slice(2);
const [width] = size.split("x").map(Number);
/** How long the laptop sleeps: longer than a tap is worth. */
const SLEEPS = 6000;
const say = (zh, en) => (lang === "en" ? en : zh);

async function tour(context) {
  const { page, problems } = await visit(context, address);
  const shot = (name) => page.screenshot({ path: path.join(directory, `${size}-${scheme}-${lang}-team-${name}.png`) });
  const card = () => page.locator("#messages .card").last();
  const button = (action) => card().locator(`[data-action=${action}]`);
  const toast = (kind) => page.locator(`[data-toast=${kind}]`).last().waitFor();
  const shows = (id, text) => page.waitForFunction(([box, wanted]) => document.getElementById(box).textContent.includes(wanted), [id, text]);
  const line = (text) => page.locator("#screen .line:not(.past)", { hasText: text }).last().waitFor({ state: "attached" });
  /** A scene plays on this laptop, and its card is on this person's phone. */
  const scene = async (name, laptop, person) => {
    await page.locator(`#guide [data-scene=${name}]`).waitFor();
    await button("allow").waitFor();
    await shows("terminal-title", laptop);
    await page.locator(`[data-person=${person}][aria-checked=true]`).waitFor();
    await shows("chat-note", person === "owner" ? say("你的手机", "your phone") : say("同事的手机", "your colleague's phone"));
    assert.ok(await page.locator("#chat-note").isVisible(), "whose phone it is can be seen");
    assert.match(await card().textContent(), new RegExp(`· ${laptop} ·`), "the card names its laptop");
  };
  const next = async (how) => {
    await page.locator(`#guide [data-end=${how}]`).waitFor();
    // The next scene's card must not be taken for one that only waits for its edit.
    await button("allow").waitFor({ state: "detached" });
    await looksRight(page, width);
    await page.locator(".guide-next").click();
  };

  await scene("desk", "desk", "owner");
  await fault(page, "the first scene of a team");
  await shot("1-desk");
  await button("allow").click();
  await line(say("网关 A", "gateway A"));
  await next("allow");

  await scene("travel", "travel", "owner");
  await button("deny").click();
  await line(say("网关 B", "gateway B"));
  await next("deny");

  await scene("loft", "loft", "stranger");
  await shot("3-loft");
  await button("allow").click();
  await next("allow");

  await scene("colleague", "desk", "owner");
  await page.locator("[data-person=stranger]").click();
  await button("allow").click();
  await toast("error");
  await shot("4-colleague");
  await page.locator("[data-person=owner]").click();
  await button("allow").click();
  await next("allow");

  await scene("gateway", "desk", "owner");
  await page.locator("#kill").click();
  await line(say("网关 A 被 kill -9", "gateway A was killed"));
  await shows("kill", say("重新启动网关", "Start it again"));
  await button("allow").click();
  await line(say("网关 B", "gateway B"));
  await shot("5-gateway");
  await next("allow");

  await scene("sleep", "travel", "owner");
  await page.locator("#kill").click();
  await shows("daemon", say("休眠中", "asleep"));
  assert.strictEqual(await page.locator("[data-key]").count(), 0, "nobody answers before a closed lid");
  await button("allow").click();
  await toast("info");
  await page.waitForTimeout(SLEEPS);
  await page.locator("#kill").click();
  await page.locator("#messages .bubble", { hasText: say("送达过晚", "arrived too late") }).last().waitFor();
  await shot("6-late");
  // It dials anew after its sleep: a tap may come too soon once more.
  const until = Date.now() + LIMIT;
  while (!(await page.locator("#guide [data-end=allow]").count())) {
    assert.ok(Date.now() < until, "a tap in time decides");
    const allow = page.locator("#messages .card [data-action=allow]").last();
    if (await allow.count()) await allow.click({ timeout: 1000 }).catch(() => {});
    await page.waitForTimeout(500);
  }
  await next("allow");

  await page.locator("#guide [data-scene=end]").waitFor();
  assert.strictEqual(await page.locator("#rail .seen").count(), 6, "each scene has its tick");
  assert.match(await page.locator("[data-command=setup]").textContent(), /^nod gateway init --bus /);
  await page.locator("#travel-open").click();
  await page.locator(".step-way", { hasText: "nod gateway B" }).last().waitFor();
  await shot("7-travel");
  await fault(page, "what travels in a team");
  assert.deepStrictEqual(problems, []);
  console.log("ready to end");
  await page.locator("#guide [data-scene=over]").waitFor({ state: "attached" });
}

browse(size, scheme, lang, tour);
