"use strict";
// Measures every card on the page of the local Feishu, as a phone of 390 points shows it.
// Prints one JSON line: for each card its title, its height and where its buttons end.
//
// usage: node measure.js ADDRESS CARDS PICTURE

const path = require("node:path");

const { chromium } = require(path.join(process.env.NOD_PEERS_PLAYWRIGHT, "playwright-core"));

const [address, cards, picture] = process.argv.slice(2);

// A card that is drawn anew meanwhile is looked at once more.
async function shoot(card, path, tries = 20) {
  try {
    await card.screenshot({ path });
  } catch (error) {
    if (tries === 0 || !/not attached|not visible/.test(String(error))) throw error;
    await shoot(card, path, tries - 1);
  }
}

async function main() {
  const browser = await chromium.launch({ executablePath: process.env.NOD_PEERS_BROWSER, args: ["--no-sandbox", "--disable-gpu"] });
  const context = await browser.newContext({ viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true });
  const page = await context.newPage();
  await page.goto(address);
  await page.waitForFunction((count) => document.querySelectorAll("#messages .card").length >= count, Number(cards));
  const seen = await page.evaluate(() => [...document.querySelectorAll("#messages .card")].map((card) => {
    const { top, height } = card.getBoundingClientRect();
    const visible = [...card.querySelectorAll(".btn")].filter((button) => !button.closest("details:not([open])"));
    const places = Object.fromEntries(visible.map((button) => {
      const at = button.getBoundingClientRect();
      return [button.dataset.action ?? button.textContent, { left: Math.round(at.left), end: Math.round(at.bottom - top) }];
    }));
    return { title: card.querySelector("h3").textContent, height: Math.round(height), places };
  }));
  const drawn = page.locator("#messages .card");
  for (let i = 0; i < await drawn.count(); i += 1) await shoot(drawn.nth(i), `${picture}-${i}.png`);
  console.log(JSON.stringify(seen));
  await browser.close();
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
