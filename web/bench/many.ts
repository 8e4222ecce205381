// Response times of the page with very many series: `node dist-bench/many.js ADDRESS METRIC SECONDS`.
// Connects, searches, opens a panel of that metric, and follows live data.

import type { Page } from "playwright-core";
import { Client, closeBrowser } from "../e2e/infra/browser";
import { until } from "../e2e/infra/until";
import { median, percentile, print, takeTimes, watchUpdates } from "./stopwatch";

const [address = "", metric = "scripted.work", seconds = "10"] = process.argv.slice(2);
const QUERIES = ["numa hit", "anon", "idle cpu", "a", "nothing has this"];

interface Greeting {
  bytes: number;
  /** Parsing the message and building the page. */
  took: number;
}

interface Parts {
  screen: {
    timeline: { slice: { track(series: number): unknown } };
    catalog: { series: unknown[]; entry(name: string): { series: { number: number }[] } };
  };
}

/** Times the first message, which describes the machine and all series. */
function watchGreeting(): void {
  const own = Object.getOwnPropertyDescriptor(WebSocket.prototype, "onmessage");
  Object.defineProperty(WebSocket.prototype, "onmessage", {
    set(this: WebSocket, take: (event: MessageEvent<string>) => void) {
      own?.set?.call(this, (event: MessageEvent<string>) => {
        const from = performance.now();
        take(event);
        const greeting: Greeting = { bytes: event.data.length, took: performance.now() - from };
        (window as unknown as { greeting?: Greeting }).greeting ??= greeting;
      });
    },
  });
}

/** Milliseconds from the last letter of a query until the result is on screen. */
function search(page: Page, query: string): Promise<number> {
  return page.evaluate(async (text) => {
    const input = document.querySelector<HTMLInputElement>('.tree input[type="search"]');
    if (!input) throw new Error("there is no search");
    const from = performance.now();
    input.value = text;
    input.dispatchEvent(new Event("input"));
    await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
    return performance.now() - from;
  }, query);
}

/** Milliseconds from a click on a metric until its samples are on screen. */
function open(page: Page, name: string): Promise<number> {
  return page.evaluate(async (wanted) => {
    const { screen } = window.numakit as unknown as Parts;
    const number = screen.catalog.entry(wanted).series[0]?.number ?? -1;
    const from = performance.now();
    document.querySelector<HTMLElement>(".tree .entry")?.click();
    while (!screen.timeline.slice.track(number)) await new Promise((done) => requestAnimationFrame(done));
    return performance.now() - from;
  }, name);
}

const client = await Client.open("about:blank", { ready: false });
const { page } = client;
await page.addInitScript(watchGreeting);
await page.goto(address);
await client.ready();
const greeting = await page.evaluate(() => (window as unknown as { greeting: Greeting }).greeting);
const series = await page.evaluate(() => (window.numakit as unknown as Parts).screen.catalog.series.length);
const searches: number[] = [];
for (const query of [...QUERIES, metric]) searches.push(await search(page, query));
await until("the metric in the list", async () => (await page.locator(".tree .entry").count()) === 1);
const opened = await open(page, metric);
await watchUpdates(page);
await page.waitForTimeout(2000);
await takeTimes(page);
await page.waitForTimeout(Number(seconds) * 1000);
const times = await takeTimes(page);
await client.close();
await closeBrowser();
print({
  series,
  hello_kib: greeting.bytes / 1024,
  hello_ms: greeting.took,
  search_ms: Math.max(...searches),
  open_ms: opened,
  updates_per_second: times.script.length / Number(seconds),
  script_ms: median(times.script),
  script_p95_ms: percentile(times.script, 0.95),
  frame_ms: median(times.frame),
  frame_p95_ms: percentile(times.frame, 0.95),
});
