// Cost of one update of the page: `node dist-bench/page.js ADDRESS METRIC SECONDS [lines|usual]`. One panel with
// all series of that metric follows the newest minute, drawn as lines, or as the page usually shows that number.

import { Client, closeBrowser } from "../e2e/infra/browser";
import { counted, median, percentile, print, takeTimes, watchUpdates } from "./stopwatch";

const [address = "", metric = "scripted.work", seconds = "10", how = "lines"] = process.argv.slice(2);

interface Parts {
  screen: {
    panelsChanged(): void;
    board: { list: { spec: { lines: unknown[] } }[] };
    timeline: { slice: { x: Float64Array } };
  };
  view: { panels: string[]; modes: Record<string, string> };
}

const client = await Client.open(address, { ready: false });
const { page } = client;
await page.waitForSelector(".board");
await page.evaluate(([id, how]) => {
  const { screen, view } = window.numakit as unknown as Parts;
  view.panels = [id];
  // Lines, as the other program draws them; the usual chart of many is a heat map.
  view.modes = how === "lines" ? { [id]: how } : {};
  screen.panelsChanged();
}, [`m:${metric}`, how] as const);
const cdp = await client.cdp();
await cdp.send("Performance.enable");
await page.waitForTimeout(3000);
await watchUpdates(page);
await takeTimes(page);
const before = await counted(cdp);
await page.waitForTimeout(Number(seconds) * 1000);
const times = await takeTimes(page);
const after = await counted(cdp);
const shown = await page.evaluate(() => {
  const { screen } = window.numakit as unknown as Parts;
  const { width, height } = document.querySelector(".panel .uplot")?.getBoundingClientRect() ?? { width: 0, height: 0 };
  const lines = screen.board.list.reduce((sum, panel) => sum + panel.spec.lines.length, 0);
  return { lines, buckets: screen.timeline.slice.x.length, width, height };
});
const updates = times.script.length;
print({
  ...shown,
  updates_per_second: updates / Number(seconds),
  script_ms: median(times.script),
  script_p95_ms: percentile(times.script, 0.95),
  frame_ms: median(times.frame),
  frame_p95_ms: percentile(times.frame, 0.95),
  all_script_ms: ((after.ScriptDuration - before.ScriptDuration) * 1000) / updates,
  all_tasks_ms: ((after.TaskDuration - before.TaskDuration) * 1000) / updates,
  heap_mib: after.JSHeapUsedSize / 2 ** 20,
});
await client.close();
await closeBrowser();
