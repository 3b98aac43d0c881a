"use strict";
// A real browser for the demo's page, and what has to be true of the page whatever it shows.

const assert = require("node:assert");
const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");

const { chromium } = require(path.join(process.env.NOD_PEERS_PLAYWRIGHT, "playwright-core"));

const axe = path.join(process.env.NOD_PEERS_AXE, "axe-core/axe.min.js");
const LIMIT = 20000;
const TOUCH = 44;

/** Opens a browser for one walk through the page, and ends this program as that ends. */
async function browse(size, scheme, lang, walk) {
  const [width, height] = size.split("x").map(Number);
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
    bypassCSP: true, // For axe alone: the policy itself is tested where the page is served.
    isMobile: width < 500,
    hasTouch: width < 500,
  });
  try {
    await walk(context);
    console.log("toured");
  } catch (error) {
    console.error(error);
    process.exitCode = 1;
  } finally {
    await context.close();
    fs.rmSync(profile, { recursive: true, force: true });
  }
}

/** The page at this address, and all that goes wrong in it. */
async function visit(context, address) {
  const page = context.pages()[0] ?? await context.newPage();
  page.setDefaultTimeout(LIMIT);
  const problems = [];
  page.on("console", (message) => { if (message.type() === "error") problems.push(message.text()); });
  page.on("pageerror", (error) => problems.push(String(error)));
  page.on("request", (request) => { if (!request.url().startsWith(new URL(address).origin) && !request.url().startsWith("data:")) problems.push(`asked for ${request.url()}`); });
  await page.goto(address);
  return { page, problems };
}

/** No sideways scrolling, one scroller at most on the phone's side, and targets a thumb can hit. */
async function looksRight(page, width) {
  const seen = await page.evaluate((touch) => {
    const tall = (node) => node.scrollHeight > node.clientHeight + 1 && getComputedStyle(node).scrollbarWidth !== "none"
      && ["auto", "scroll"].includes(getComputedStyle(node).overflowY);
    const small = [...document.querySelectorAll("#app button, #app summary")]
      .map((node) => [node, node.getBoundingClientRect()])
      .filter(([, box]) => box.width && (box.height < touch - 0.5 || box.width < touch - 0.5));
    return {
      wide: document.documentElement.scrollWidth - innerWidth,
      page: document.documentElement.scrollHeight - innerHeight,
      bars: [...document.querySelectorAll("#app *")].filter(tall).map((node) => node.id || node.className),
      small: small.map(([node, box]) => `${node.textContent} ${Math.round(box.width)}x${Math.round(box.height)}`),
    };
  }, TOUCH);
  assert.ok(seen.wide <= 0, `the page is ${seen.wide} px too wide`);
  assert.ok(seen.page <= 0, "the page itself does not scroll");
  assert.deepStrictEqual(seen.bars.filter((id) => id !== "messages"), [], "no second scrollbar");
  if (width < 500) assert.deepStrictEqual(seen.small, [], `targets of at least ${TOUCH} px`);
}

/** What axe finds that keeps somebody from using the page. */
async function fault(page, where) {
  if (!(await page.evaluate(() => "axe" in window))) await page.addScriptTag({ path: axe });
  const found = await page.evaluate(async () => {
    const { violations } = await window.axe.run(document);
    return violations.filter((one) => ["serious", "critical"].includes(one.impact))
      .flatMap((one) => one.nodes.map((node) => `${one.id}: ${node.html.slice(0, 160)} ${node.any[0]?.message ?? ""}`));
  });
  assert.deepStrictEqual(found, [], `axe finds nothing serious in ${where}`);
}

module.exports = { LIMIT, browse, fault, looksRight, visit };
