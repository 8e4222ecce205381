// Pictures of the page as it is served somewhere: `node dist-dev/shots.js URL FOLDER`.

import { chromium } from "playwright-core";

const [url = "http://127.0.0.1:7078/", folder = "/tmp/shots"] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });

async function shoot(name: string, width: number, height: number, dark: boolean, act?: (page: import("playwright-core").Page) => Promise<void>): Promise<void> {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: dark ? "dark" : "light", deviceScaleFactor: 1, hasTouch: width < 500 });
  const page = await context.newPage();
  page.on("console", (message) => message.type() === "error" && console.log(`${name}: ${message.text()}`));
  page.on("pageerror", (error) => console.log(`${name}: ${error.message}\n${error.stack}`));
  await page.goto(url);
  await page.waitForTimeout(2500);
  await act?.(page);
  await page.screenshot({ path: `${folder}/${name}.png` });
  await context.close();
}

const only = process.argv[4];
const all: [string, number, number, boolean, ((page: import("playwright-core").Page) => Promise<void>)?][] = [
  ["wide-light", 1440, 900, false],
  ["wide-dark", 1440, 900, true, async (page) => { await page.mouse.move(600, 300); await page.waitForTimeout(300); }],
  ["narrow-light", 390, 844, false],
  ["narrow-dark", 390, 844, true, async (page) => { await page.click("[data-tab=side] >> nth=-1"); await page.waitForTimeout(500); }],
  ["modes", 1440, 900, false, async (page) => {
    for (const [id, title] of [["memory", "Stacked"], ["locality", "One chart each"]]) { await page.hover(`[data-panel=${id}]`); await page.click(`[data-panel=${id}] [title="${title}"]`); }
    await page.hover("[data-panel=cpu]"); await page.click('[data-panel=cpu] [title="As a table"]');
    await page.keyboard.press("/"); await page.keyboard.type("anon"); await page.waitForTimeout(600);
  }],
  ["zoom", 1440, 900, true, async (page) => {
    const box = await page.locator("[data-panel=faults] .u-over").boundingBox();
    if (!box) return;
    await page.mouse.move(box.x + 100, box.y + 30); await page.mouse.down(); await page.mouse.move(box.x + 160, box.y + 40, { steps: 4 }); await page.mouse.up();
    await page.waitForTimeout(900);
  }],
  ["keys", 1440, 900, false, async (page) => { await page.keyboard.press("?"); await page.waitForTimeout(300); }],
];
for (const one of all) if (!only || one[0] === only) await shoot(...one);
await browser.close();
