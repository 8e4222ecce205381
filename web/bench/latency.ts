// Latency from a sample to the screen: `node dist-bench/latency.js ADDRESS SECONDS`. The values of
// `scripted.clock` are the times of its samples, so the page itself shows how old the data on screen
// is. Counts every sample, until the frame with it is drawn.

import type { Page } from "playwright-core";
import { Client, closeBrowser } from "../e2e/infra/browser";
import { median, percentile, print } from "./stopwatch";

const [address = "", seconds = "10"] = process.argv.slice(2);
const CLOCK = "scripted.clock";

interface Drawn {
  /** When the frame was drawn, and the time of its newest sample; ms since the source began. */
  done: number;
  newest: number;
}

interface Parts {
  screen: {
    draw(): void;
    board: { add(id: string): void };
    source: { started_ns: number };
    catalog: { entry(name: string): { series: { number: number }[] } };
    timeline: { slice: { track(series: number): { max: Float64Array } | undefined } };
  };
}

/** Records for each frame the time of its newest sample. */
async function watchFrames(page: Page): Promise<void> {
  await page.evaluate((name) => {
    const { screen } = window.numakit as unknown as Parts;
    const series = screen.catalog.entry(name).series[0]?.number ?? -1;
    screen.board.add(`m:${name}`);
    const frames: Drawn[] = [];
    Object.assign(window, { frames });
    const draw = screen.draw.bind(screen);
    screen.draw = () => {
      draw();
      const values = screen.timeline.slice.track(series)?.max ?? new Float64Array(0);
      const newest = values.findLast((value) => !Number.isNaN(value)) ?? NaN;
      requestAnimationFrame(() => frames.push({ done: Date.now() - screen.source.started_ns / 1e6, newest }));
    };
  }, CLOCK);
}

const client = await Client.open(address);
const interval = ((await client.state())?.interval_ns ?? NaN) / 1e6;
await watchFrames(client.page);
await client.page.waitForTimeout(Number(seconds) * 1000);
const frames = await client.page.evaluate(() => (window as unknown as { frames: Drawn[] }).frames);
await client.close();
await closeBrowser();

const ages: number[] = [];
let before = NaN;
for (const { done, newest } of frames) {
  if (newest > before) for (let sample = newest; sample > before + interval / 2; sample -= interval) ages.push(done - sample);
  before = newest;
}
print({ samples: ages.length, frames_per_second: frames.length / Number(seconds), median_ms: median(ages), p95_ms: percentile(ages, 0.95), most_ms: Math.max(...ages) });
