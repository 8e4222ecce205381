// Screenshots of a served page: `node dist-dev/shots.js URL FOLDER [NAME]`.

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

async function mode(page: import("playwright-core").Page, panel: string, title: string): Promise<void> {
  await page.hover(`[data-panel=${panel}]`);
  await page.click(`[data-panel=${panel}] [title="${title}"]`);
}

const only = process.argv[4];
const all: [string, number, number, boolean, ((page: import("playwright-core").Page) => Promise<void>)?][] = [
  ["wide-light", 1440, 900, false],
  ["wide-dark", 1440, 900, true, async (page) => { await page.mouse.move(600, 300); await page.waitForTimeout(300); }],
  ["narrow-light", 390, 844, false],
  ["narrow-dark", 390, 844, true, async (page) => { await page.click("[data-tab=side] >> nth=-1"); await page.waitForTimeout(500); }],
  ["modes", 1440, 900, false, async (page) => {
    await mode(page, "memory", "Stacked");
    await mode(page, "locality", "One chart per line");
    await mode(page, "faults", "Table");
    await page.keyboard.press("/");
    await page.keyboard.type("mem node2");
    await page.waitForTimeout(600);
  }],
  ["compare", 1440, 900, false, async (page) => {
    await page.selectOption('[aria-label="Data source"]', "1");
    await page.selectOption('[aria-label="Compare with"]', "0");
    await mode(page, "memory", "Stacked");
    await mode(page, "faults", "Table");
    await page.mouse.move(560, 330);
    await page.waitForTimeout(900);
    console.log("compare:", new URL(page.url()).hash);
  }],
  ["off", 1440, 900, true, async (page) => {
    await page.click('[aria-label="Sample node for everyone"]');
    await page.waitForTimeout(6000);
    await page.click("text=unavailable");
    await page.click('text="series of locality"');
    await page.waitForTimeout(500);
    await page.screenshot({ path: `${folder}/off-tree.png` });
    await page.click('[aria-label="Sample node for everyone"]');
  }],
  ["save", 1440, 900, false, async (page) => {
    await page.click('[aria-label="Record to a file on the server"]');
    await page.keyboard.press("Enter");
    await page.waitForTimeout(1500);
    await page.click('[title^="Recording to"]');
    await page.screenshot({ path: `${folder}/record.png` });
    await page.click("text=Stop recording");
    await page.click('[aria-label="Save visible data as CSV"]');
    await page.waitForTimeout(300);
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
