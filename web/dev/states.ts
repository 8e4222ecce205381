// Tries states that are hard to reach: `node dist-dev/states.js FOLDER`. Starts its own fake servers.

import { spawn, type ChildProcess } from "node:child_process";
import { chromium } from "playwright-core";

const folder = process.argv[2] ?? "/tmp/shots";
const start = (...args: string[]): ChildProcess => spawn(process.execPath, [new URL("fake.js", import.meta.url).pathname, ...args], { stdio: "ignore" });
const wait = (ms: number) => new Promise((done) => setTimeout(done, ms));

let server = start("7090", "4");
const large = start("7091", "128");
const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
const page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
page.on("pageerror", (error) => console.log(error.stack));
await wait(500);

await page.goto("http://127.0.0.1:7090/");
await wait(2500);
server.kill();
await wait(4000);
console.log("lost:", await page.textContent(".status"));
await page.screenshot({ path: `${folder}/lost.png` });
server = start("7090", "4");
await wait(6000);
console.log("back:", await page.textContent(".status"), "|", await page.textContent("[data-panel=locality] .legend"));
await page.screenshot({ path: `${folder}/back.png` });

const session = await page.context().newCDPSession(page);
await session.send("Performance.enable");
const script = async () => {
  const { metrics } = await session.send("Performance.getMetrics");
  return Object.fromEntries(metrics.map((m) => [m.name, m.value])) as Record<string, number>;
};
const before = await script();
await wait(5000);
const after = await script();
const per = (name: string) => (((after[name] ?? 0) - (before[name] ?? 0)) / 50) * 1000;
console.log(`ms per update: script ${per("ScriptDuration").toFixed(1)}, all ${per("TaskDuration").toFixed(1)}; heap ${((after.JSHeapUsedSize ?? 0) / 1e6).toFixed(0)} MB`);

await page.click('[aria-label="Pause all sampling, for everyone"]');
await wait(1500);
console.log("paused:", await page.textContent(".status"));
await page.click('[aria-label="Resume all sampling, for everyone"]');
await page.keyboard.press("n");
await page.keyboard.type("tried a label");
await page.keyboard.press("Enter");
await wait(1200);
console.log("labels:", await page.textContent(".labels"));
await page.click('[data-panel=locality] .chip >> nth=1', { clickCount: 2, delay: 20 });
await wait(300);
console.log("alone:", await page.locator('[data-panel=locality] .chip[aria-pressed=true]').count());
await page.keyboard.press("a");
await wait(900);
console.log("all:", new URL(page.url()).hash, await page.textContent(".status"));
await page.screenshot({ path: `${folder}/all.png` });
await page.keyboard.press("End");

await page.goto("http://127.0.0.1:7091/");
await wait(5000);
await page.screenshot({ path: `${folder}/many.png` });
await page.goto("http://127.0.0.1:7099/").catch(() => undefined);
await browser.close();
server.kill();
large.kill();
