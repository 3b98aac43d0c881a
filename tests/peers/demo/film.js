"use strict";
// Films the split screen and photographs a card, for the READMEs: the real page, a real daemon, real taps.
//
// usage: node film.js ADDRESS zh|en FILM.gif CARD.png

const assert = require("node:assert");
const fs = require("node:fs");
const path = require("node:path");

const { chromium } = require(path.join(process.env.NOD_PEERS_PLAYWRIGHT, "playwright-core"));
const { GIFEncoder, applyPalette, quantize } = require(path.join(process.env.NOD_PEERS_GIF, "gifenc"));
const { PNG } = require(path.join(process.env.NOD_PEERS_GIF, "pngjs"));

const [address, lang, film, picture] = process.argv.slice(2);
const WIDTH = 960;
const HEIGHT = 600;
const COLOURS = 255;
const LIMIT = 20000;

const frames = [];

/** Takes a frame that is shown for so long. */
async function frame(page, ms) {
  const { data } = PNG.sync.read(await page.screenshot());
  frames.push({ data, ms });
}

/** A finger, as a dot that glides to a button and presses it. */
async function tap(page, target) {
  await target.scrollIntoViewIfNeeded();
  const box = await target.boundingBox();
  const to = { x: box.x + box.width / 2, y: box.y + box.height / 2 };
  const from = { x: to.x + 60, y: HEIGHT - 60 };
  for (let step = 0; step <= 4; step += 1) {
    const at = { x: from.x + ((to.x - from.x) * step) / 4, y: from.y + ((to.y - from.y) * step) / 4, r: step === 4 ? 13 : 18 };
    await page.evaluate((dot) => {
      let finger = document.getElementById("finger");
      if (!finger) {
        finger = document.body.appendChild(document.createElement("div"));
        finger.id = "finger";
      }
      Object.assign(finger.style, {
        position: "fixed", zIndex: "99", left: `${dot.x - dot.r}px`, top: `${dot.y - dot.r}px`, width: `${2 * dot.r}px`,
        height: `${2 * dot.r}px`, borderRadius: "50%", background: "rgb(255 140 0 / 55%)", border: "2px solid #c85a00",
      });
    }, at);
    await frame(page, step === 4 ? 300 : 70);
  }
  await page.evaluate(() => document.getElementById("finger").remove());
  await target.click();
}

async function shoot(browser) {
  const context = await browser.newContext({ viewport: { width: WIDTH, height: HEIGHT }, colorScheme: "light", reducedMotion: "reduce" });
  const page = await context.newPage();
  page.setDefaultTimeout(LIMIT);
  await page.goto(address);
  const allow = page.locator("#messages [data-action=allow]").last();
  const ran = () => page.locator(".guide-next").waitFor();
  await allow.waitFor();
  await frame(page, 1800);
  await tap(page, allow);
  await page.locator("[data-took]").last().waitFor();
  await frame(page, 500);
  await ran();
  await frame(page, 2600);
  await page.locator(".guide-next").waitFor();
  await page.evaluate(async () => (await import("/dom.js")).call("/control/note", { ask: "play", scene: 9 }));
  await page.locator("[data-scene=crash]").waitFor();
  await page.locator("#left").waitFor();
  await allow.waitFor();
  await frame(page, 1800);
  await tap(page, page.locator("#kill"));
  await page.locator("#screen .line-bad").last().waitFor();
  await frame(page, 700);
  await page.locator("#daemon.up").waitFor();
  await frame(page, 1800);
  await tap(page, allow);
  await ran();
  await page.locator("[data-took]").nth(1).waitFor();
  await frame(page, 3600);
  await context.close();
}

/** One palette for all, and of each frame only what changed. */
function develop() {
  const kinds = frames.filter((one) => one.ms >= 700).map((one) => Buffer.from(one.data));
  const palette = quantize(Buffer.concat(kinds), COLOURS, { format: "rgb565" });
  const clear = palette.length;
  const gif = GIFEncoder();
  let before = null;
  for (const { data, ms } of frames) {
    const shown = applyPalette(data, palette, "rgb565");
    const changed = shown.map((colour, i) => (before && before[i] === colour ? clear : colour));
    gif.writeFrame(changed, WIDTH, HEIGHT, {
      palette: before ? undefined : [...palette, [0, 0, 0]], delay: ms, transparent: true, transparentIndex: clear, dispose: 1,
    });
    before = shown;
  }
  gif.finish();
  return gif.bytes();
}

async function photograph(browser) {
  const context = await browser.newContext({ viewport: { width: 390, height: 844 }, deviceScaleFactor: 2, isMobile: true, hasTouch: true, colorScheme: "light" });
  const page = await context.newPage();
  await page.goto(address);
  await page.evaluate(async () => (await import("/dom.js")).call("/control/note", { ask: "play", scene: 3 }));
  await page.locator("[data-scene=deny]").waitFor({ timeout: LIMIT });
  await page.locator("#messages [data-action=deny]").last().waitFor({ timeout: LIMIT });
  await page.locator("#messages .card").last().screenshot({ path: picture });
  await context.close();
}

async function main() {
  const browser = await chromium.launch({ executablePath: process.env.NOD_PEERS_BROWSER, args: ["--no-sandbox", "--disable-gpu"] });
  try {
    await shoot(browser);
    await photograph(browser);
  } finally {
    await browser.close();
  }
  assert.ok(frames.length > 15, "a film has frames");
  fs.writeFileSync(film, develop());
  console.log(`${lang}: ${frames.length} frames, ${fs.statSync(film).size} bytes`);
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
