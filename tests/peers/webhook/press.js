// Opens a link of the webhook mode on a phone-sized screen, presses, goes back
// and presses again. Prints what the person sees at each step as one JSON line.
//
// usage: press.js CHROMIUM URL

const { chromium } = require("playwright-core");

async function seen(page) {
  return {
    title: await page.locator("h1").innerText(),
    button: await page.locator("#decide").count(),
    low: await page.evaluate(() => document.querySelector("#decide")?.getBoundingClientRect().bottom > innerHeight),
    wide: await page.evaluate(() => document.documentElement.scrollWidth > innerWidth),
  };
}

async function press(page) {
  await Promise.all([page.waitForNavigation(), page.locator("#decide").click()]);
}

async function main(executablePath, url) {
  const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
  const context = await browser.newContext({ viewport: { width: 360, height: 640 }, isMobile: true });
  const problems = [];
  const open = async () => {
    const page = await context.newPage();
    page.on("console", (message) => message.type() === "error" && problems.push(message.text()));
    await page.goto(url);
    return page;
  };
  const steps = {};
  const page = await open();
  const second = await open();
  steps.opened = await seen(page);
  steps.text = await page.locator("body").innerText();
  await press(page);
  steps.pressed = await seen(page);
  await page.goBack();
  steps.back = await seen(page);
  if (steps.back.button) await press(page);
  steps.again = await seen(page);
  await press(second);
  steps.second = await seen(second);
  steps.problems = problems;
  await browser.close();
  console.log(JSON.stringify(steps));
}

main(...process.argv.slice(2)).catch((error) => {
  console.error(error);
  process.exit(1);
});
