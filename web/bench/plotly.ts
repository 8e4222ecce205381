// Cost of one update in Plotly with a range slider: `node dist-bench/plotly.js SERIES POINTS MORE
// UPDATES WIDTH HEIGHT`. Each update adds MORE points to each series and drops as many; the values are
// those of `scripted.work`.

import { createRequire } from "node:module";
import { browser, closeBrowser } from "../e2e/infra/browser";
import { counted, median, percentile, print } from "./stopwatch";

const [series = 24, points = 60_000, more = 100, updates = 5, width = 900, height = 300] = process.argv.slice(2).map(Number);

interface Plotly {
  newPlot(element: HTMLElement, traces: object[], layout: object, config: object): Promise<unknown>;
  extendTraces(element: HTMLElement, update: { x: number[][]; y: number[][] }, traces: number[], most: number): Promise<unknown>;
}

interface Chart {
  Plotly: Plotly;
  /** One update: the time of its script, and the time until it was on screen. */
  update(): Promise<{ script: number; frame: number }>;
}

const page = await (await browser()).newPage({ viewport: { width: 1440, height: 900 } });
await page.setContent('<!doctype html><div id="chart"></div>');
await page.addScriptTag({ path: createRequire(import.meta.url).resolve("plotly.js-dist-min") });
await page.evaluate(async ({ series, points, more, width, height }) => {
  const chart = window as unknown as Chart;
  const element = document.getElementById("chart") as HTMLElement;
  const traces = Array.from({ length: series }, (_, at) => at);
  let time = 0;
  const next = (count: number) => {
    const x = Array.from({ length: count }, (_, row) => time + row);
    time += count;
    const y = traces.map(() => x.map(() => Math.random() * 2e6));
    return { x: traces.map(() => x), y };
  };
  const { x, y } = next(points);
  const lines = traces.map((at) => ({ type: "scatter", mode: "lines", name: `node ${at}`, x: x[at], y: y[at] }));
  const layout = { width, height, xaxis: { rangeslider: { visible: true } } };
  await chart.Plotly.newPlot(element, lines, layout, {});
  chart.update = async () => {
    const added = next(more);
    const from = performance.now();
    await chart.Plotly.extendTraces(element, added, traces, points);
    const script = performance.now() - from;
    await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
    return { script, frame: performance.now() - from };
  };
}, { series, points, more, width, height });
const cdp = await page.context().newCDPSession(page);
await cdp.send("Performance.enable");
await page.evaluate(() => (window as unknown as Chart).update());
const before = await counted(cdp);
const script: number[] = [];
const frame: number[] = [];
for (let n = 0; n < updates; n++) {
  const times = await page.evaluate(() => (window as unknown as Chart).update());
  script.push(times.script);
  frame.push(times.frame);
}
const after = await counted(cdp);
print({
  script_ms: median(script),
  frame_ms: median(frame),
  frame_p95_ms: percentile(frame, 0.95),
  all_script_ms: ((after.ScriptDuration - before.ScriptDuration) * 1000) / updates,
  all_tasks_ms: ((after.TaskDuration - before.TaskDuration) * 1000) / updates,
  heap_mib: after.JSHeapUsedSize / 2 ** 20,
});
await closeBrowser();
