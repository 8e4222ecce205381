// Long recordings: opened by reading them and by their stored levels, viewed as a whole and zoomed in.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { Client } from "./infra/browser";
import { charts, drawnAt, range } from "./infra/chart";
import { onScreen, type Saved } from "./infra/csv";
import { temporary } from "./infra/ending";
import { resident } from "./infra/memory";
import { Numa } from "./infra/numa";
import { Panel } from "./infra/panel";
import { Known } from "./infra/recording";
import { thorough } from "./infra/thorough";
import { until } from "./infra/until";

const SERIES = 190;
/** The memory budget of a source, and of the rest of the program. */
const BUDGET_MIB = 256 + 32;
/** Reading takes this long beside other programs, at most. */
const OPENING_LIMIT_MS = 120_000;
const VIEW = "panels=m:test.spike,m:test.row,faults";

for (const [minutes, rate, intervalMs, why] of [[60, "100 Hz", 10, null], [20, "1 kHz", 1, "three times the samples"]] as const) {
  const name = `${minutes} minutes of ${SERIES} series at ${rate}`;
  let known: Known;
  let numa: Numa;
  let one: Client;
  const spike = () => new Panel(one, "m:test.spike");

  thorough(`${name} opens by reading, then by its stored levels`, why, async (t) => {
    known = await Known.write(join(await temporary("hour"), "hour.arrows"), { series: SERIES, rows: (minutes * 60_000) / intervalMs, intervalMs });
    const times: string[] = [];
    for (const how of ["by reading", "by its levels"]) {
      assert.equal(existsSync(`${known.path}.levels`), how === "by its levels");
      const start = performance.now();
      numa = await Numa.start({ verb: "show", args: [known.path] });
      const served = performance.now();
      one = await Client.open(numa.controller);
      await until("lines", async () => ((await charts(one, "faults"))[0]?.lines[0]?.times.length ?? 0) > 100);
      const lines = performance.now();
      await until("all of it", async () => !(await one.page.locator(".verdict").textContent())?.includes("so far"), OPENING_LIMIT_MS);
      times.push(`${how} ${((served - start) / 1000).toFixed(2)} s to the address, ${((lines - start) / 1000).toFixed(2)} s to the lines, ${((performance.now() - start) / 1000).toFixed(2)} s to all of them`);
      if (how === "by its levels") break;
      await one.close();
      await numa.close();
    }
    t.diagnostic(`opening ${rate}: ${times.join("; ")} (goal: 2 s)`);
  });

  thorough(`${name}: all of it is visible, and no spike of one sample is lost`, why, async () => {
    await one.visit(`${numa.origin}/#${VIEW}`);
    const saved = await until("all of it", async () => complete(await onScreen(spike()), known));
    const [from, to] = await range(one, "m:test.spike");
    assert.ok(Math.abs(from - known.startedMs) < 1 && Math.abs(to - known.endedMs) < 1, `${from} to ${to}`);
    const greatest = saved.names.findIndex((one) => one.endsWith(" max"));
    const step = (saved.times.at(-1) as number) / saved.times.length - (saved.times[0] as number) / saved.times.length;
    const found = (saved.columns[greatest] ?? []).flatMap((value, row) => (value > 0 ? [[saved.times[row] as number, value] as const] : []));
    // If buckets and groups of samples overlap, two neighbours may have it.
    for (const [at, row] of known.spikes.entries()) {
      const near = found.filter(([time]) => Math.abs(time - known.timeMs(row)) < 2 * step);
      assert.ok(near.length > 0 && near.every(([, value]) => value === 1000 + at), `spike ${at}: ${JSON.stringify(near)}`);
      await until(`spike ${at} in the picture`, () => drawnAt(one, "m:test.spike", known.timeMs(row), 917));
      assert.equal(await drawnAt(one, "m:test.spike", known.timeMs(row) + 60_000, 917), false);
    }
    assert.ok(found.length < 4 * known.spikes.length, `${found.length} buckets`);
  });

  thorough(`${name}: zoomed in by dragging, samples have their recorded values`, why, async () => {
    const row = known.spikes[3] as number;
    for (let times = 0; times < 8 && !(await isRaw(one)); times++) {
      const before = await range(one, "m:test.spike");
      const box = await spike().box();
      const x = box.x + (box.width * (known.timeMs(row) - before[0])) / (before[1] - before[0]);
      await one.page.mouse.move(x - 30, box.y + 20);
      await one.page.mouse.down();
      await one.page.mouse.move(x + 30, box.y + 30, { steps: 3 });
      await one.page.mouse.up();
      await until("a nearer range", async () => {
        const [chart] = await charts(one, "m:test.spike");
        return chart && chart.to - chart.from < (before[1] - before[0]) / 4 && (chart.lines[0]?.times.length ?? 0) > 20;
      });
    }
    await until("every sample", () => isRaw(one));
    const seen = check(await onScreen(spike()), known, "test.spike");
    assert.ok(seen.includes(1003), "the spike is among them");
    check(await onScreen(new Panel(one, "m:test.row")), known, "test.row");
  });

  thorough(`${name}: scrolling through it needs no memory beyond the budget`, why, async (t) => {
    const { page } = one;
    await page.mouse.move(5, 5);
    for (const place of [0.05, 0.35, 0.65, 0.95]) {
      await page.keyboard.press("a");
      const [low, high] = await range(one, "faults");
      await page.evaluate((ms) => window.numakit?.["screen"]?.["timeline"].zoom(0.1, ms), low + place * (high - low));
      for (let step = 0; step < 8; step++) {
        await page.keyboard.press("+");
        await page.keyboard.press("+");
        await page.keyboard.press(step % 2 === 0 ? "ArrowLeft" : "ArrowRight");
        await page.waitForTimeout(120);
      }
      await until("samples there", async () => {
        const [chart] = await charts(one, "m:test.row");
        const line = chart?.lines[0];
        return line && line.times.length > 10 && line.values.some((value) => !Number.isNaN(value));
      });
    }
    const { now, most } = await resident(numa.pid);
    t.diagnostic(`memory of the server, ${rate}: ${now.toFixed(0)} MiB now, ${most.toFixed(0)} MiB at most; budget ${BUDGET_MIB} MiB`);
    assert.ok(most < BUDGET_MIB, `${most} MiB`);
    await one.close();
    await numa.close();
  });
}

/** The saved values, once they cover the whole recording. */
function complete(saved: Saved, known: Known): Saved | null {
  const [first = 0, last = 0] = [saved.times[0], saved.times.at(-1)];
  return saved.times.length > 100 && last - first > (known.endedMs - known.startedMs) * 0.98 ? saved : null;
}

/** Whether single samples are visible: they have no minimum and maximum. */
async function isRaw(client: Client): Promise<boolean> {
  return (await onScreen(new Panel(client, "m:test.row"))).names.length === 1;
}

/** Checks that every sample between the first and the last has its value; returns the values. */
function check(saved: Saved, known: Known, series: "test.row" | "test.spike"): number[] {
  const [values = []] = saved.columns;
  assert.ok(values.length > 50, `${values.length} samples`);
  const first = known.rowAt(saved.times[0] as number);
  values.forEach((value, at) => {
    const row = first + at;
    assert.equal(saved.times[at], Math.floor(known.timeMs(row)), `the time of sample ${row}`);
    assert.equal(value, known.value(series, row), `${series} in sample ${row}`);
  });
  return values;
}
