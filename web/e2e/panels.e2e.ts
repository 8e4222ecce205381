// The metric list, panels, their legends, tables, chart types and files.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { beforeEach, test } from "node:test";
import { charts, freeze, type ShownChart } from "./infra/chart";
import { Controls } from "./infra/controls";
import { Panel } from "./infra/panel";
import { skip } from "./infra/skip";
import { stage } from "./infra/stage";
import { becomes, until } from "./infra/until";

const s = stage({ args: ["-i", "50ms"] });

const controls = () => new Controls(s.one);
const entries = () => s.one.page.locator(".tree .entry .name").allTextContents();
const search = async (text: string) => s.one.page.getByLabel("Search metrics").fill(text);
/** Finds a metric in the list by search. */
async function entry(name: string) {
  await search(name);
  return s.one.page.locator(".tree .entry", { has: s.one.page.getByText(name, { exact: true }) });
}

beforeEach(async () => {
  await controls().live();
  await controls().span.selectOption("60000");
  await search("");
  await s.one.page.getByLabel("Search metrics").blur();
  await s.one.page.keyboard.press("0");
  await s.one.page.mouse.move(700, 20);
});

test("search finds names and descriptions", async () => {
  await search("pgfault");
  const named = await entries();
  assert.ok(named.includes("vmstat.pgfault") && named.length < 10, named.join());
  // A word that occurs only in a description.
  const { name, word } = await s.one.page.evaluate(() => {
    for (const { name, help } of window.numakit?.["sources"][0]?.metrics ?? []) {
      const word = help.toLowerCase().split(/[^a-z]+/).find((one) => one.length > 6 && !name.toLowerCase().includes(one));
      if (word) return { name, word };
    }
    return { name: "", word: "" };
  });
  await search(word);
  assert.ok((await entries()).includes(name), `${word}: ${(await entries()).join()}`);
  await search("no such thing at all");
  assert.deepEqual(await entries(), []);
  assert.match((await s.one.page.locator(".tree").textContent()) ?? "", /No metric matches/);
  await s.one.page.getByLabel("Search metrics").press("Escape");
  assert.equal(await s.one.page.getByLabel("Search metrics").inputValue(), "");
});

test("a click opens a panel, another closes it, Shift+click adds to it", async () => {
  const { page } = s.one;
  const before = await Panel.all(s.one);
  await (await entry("vmstat.pgfault")).click();
  assert.deepEqual(await Panel.all(s.one), ["m:vmstat.pgfault", ...before]);
  await until("samples of it", async () => /\d/.test((await new Panel(s.one, "m:vmstat.pgfault").legend())[0]?.value ?? ""));
  await (await entry("vmstat.pgmajfault")).click({ modifiers: ["Shift"] });
  const joined = "m:vmstat.pgfault+vmstat.pgmajfault";
  assert.deepEqual(await Panel.all(s.one), [joined, ...before]);
  assert.equal((await new Panel(s.one, joined).legend()).length, 2);
  await new Panel(s.one, joined).press("Close panel");
  assert.deepEqual(await Panel.all(s.one), before);
  const idle = await entry("cpu.idle");
  await idle.click();
  assert.equal(await idle.getAttribute("aria-pressed"), "true");
  await idle.click();
  assert.deepEqual(await Panel.all(s.one), before);
  await page.keyboard.press("Escape");
});

test("unavailable metrics are listed with the reason", async (t) => {
  const absent = await s.one.page.evaluate(() => window.numakit?.["sources"][0]?.absent ?? []);
  const group = s.one.page.locator(".tree summary", { hasText: "unavailable" });
  assert.equal(await group.count(), absent.length > 0 ? 1 : 0);
  if (absent.length === 0) return skip(t, "machine", "every metric is available");
  await group.click();
  await becomes("the list", () => s.one.page.locator(".absent").count(), absent.length);
  const shown = await s.one.page.locator(".absent").allTextContents();
  absent.forEach((one, at) => assert.ok(shown[at]?.includes(one.name) && shown[at]?.includes(one.missing) && shown[at]?.includes(one.seen), shown[at]));
});

test("a click in the legend hides a line, a double-click shows only this line", async () => {
  const panel = new Panel(s.one, "faults");
  const all = (await panel.legend()).map((line) => line.name);
  assert.ok(all.length >= 3);
  const on = async () => (await panel.legend()).filter((line) => line.on).map((line) => line.name);
  const ink = () => panel.element.locator("canvas").first().evaluate((canvas: HTMLCanvasElement) => {
    const { data } = canvas.getContext("2d")?.getImageData(0, 0, canvas.width, canvas.height) ?? { data: [] };
    let sum = 0;
    for (let at = 0; at < data.length; at += 4) sum += Math.max(data[at] ?? 0, data[at + 1] ?? 0, data[at + 2] ?? 0) - Math.min(data[at] ?? 0, data[at + 1] ?? 0, data[at + 2] ?? 0);
    return sum;
  });
  await controls().hold();
  const before = await ink();
  assert.ok(before > 0, "lines have colours");
  for (const name of all) await panel.chip(name).click({ delay: 0 });
  assert.deepEqual(await on(), []);
  await until("a chart without lines", async () => (await ink()) < before / 2);
  for (const name of all) await panel.chip(name).click();
  await becomes("all lines", on, all);
  await panel.chip(all[1] ?? "").dblclick();
  await becomes("one line", on, [all[1] ?? ""]);
  await panel.chip(all[1] ?? "").dblclick();
  await becomes("all lines", on, all);
  await controls().live();
});

test("lines are stacked, or drawn with one chart per line", async () => {
  await (await entry("cpu.user")).click();
  const panel = new Panel(s.one, "m:cpu.user");
  const count = (await panel.legend()).length;
  assert.ok(count > 1);
  await panel.press("One chart per line");
  await becomes("charts", () => panel.element.locator(".u-over").count(), count);
  await becomes("their names", () => panel.element.locator(".cell-name").allTextContents(), (await panel.legend()).map((line) => line.name));
  await panel.press("Lines");
  await becomes("charts", () => panel.element.locator(".u-over").count(), 1);
  await search("");
  await s.one.page.keyboard.press("0");
  await (await entry("vmstat.pgfault")).click();
  await (await entry("fault_rate")).click({ modifiers: ["Shift"] });
  const joined = new Panel(s.one, "m:vmstat.pgfault+fault_rate");
  const top = () => s.one.page.evaluate(() => window.numakit?.["screen"]?.["board"].list[0]?.["charts"][0]?.plot.scales.y?.max ?? 0);
  await until("samples", async () => (await joined.legend()).every((line) => /\d/.test(line.value)));
  await controls().hold();
  await joined.press("Stacked");
  await until("an axis for the sum", async () => {
    const [chart] = await charts(s.one, joined.id);
    const sums = chart?.lines[0]?.values.map((value, row) => value + (chart.lines[1]?.values[row] ?? 0)).filter((value) => !Number.isNaN(value)) ?? [];
    return sums.length > 0 && (await top()) >= Math.max(...sums) * 0.999;
  });
  assert.equal((await s.one.view())?.modes[joined.id], "stack");
  await controls().live();
});

test("percentages have their own axis if there are other units", async () => {
  await (await entry("vmstat.pgfault")).click();
  await (await entry("cpu.idle")).click({ modifiers: ["Shift"] });
  const [id] = await Panel.all(s.one);
  assert.equal(id, "m:vmstat.pgfault+cpu.idle");
  await until("both axes", async () => new Set((await charts(s.one, id ?? ""))[0]?.lines.map((line) => line.scale)).size === 2);
  const [chart] = await charts(s.one, id ?? "");
  assert.equal(chart?.lines[0]?.scale, "y");
  assert.ok(chart?.lines.slice(1).every((line) => line.scale === "second"));
  assert.equal(await new Panel(s.one, id ?? "").element.locator(".u-axis").count(), 3);
});

test("the table matches the chart", async () => {
  await controls().hold();
  for (const id of await Panel.drawn(s.one)) {
    const panel = new Panel(s.one, id);
    await panel.press("Table");
    // A chart that becomes wider is fetched again, and a table is not filled with every drawing.
    await becomes(`what differs in the table of ${id}`, () => differences(panel), []);
    await panel.press("Table");
  }
  await controls().live();
});

/** What a panel's table has that its chart and its legend do not. */
async function differences(panel: Panel): Promise<unknown[]> {
  const [head, ...rows] = await panel.table();
  const [chart] = await charts(s.one, panel.id);
  const legend = await panel.legend();
  if (!chart || rows.map((row) => row[0]).join() !== chart.lines.map((line) => line.name).join()) return ["the names", rows];
  if (head?.slice(2, 5).join() !== "min,mean,max") return [head];
  return chart.lines.flatMap((line, at) => {
    const values = line.values.filter((value) => !Number.isNaN(value));
    const [, last, min, mean, max] = rows[at] ?? [];
    const expected = values.reduce((sum, value) => sum + value, 0) / values.length;
    const isRight = values.length === 0 ? [min, mean, max].every((cell) => cell === "–")
      : close(number(mean), expected) && number(min) <= Math.min(...values) * 1.01 + 0.005 && number(max) >= Math.max(...values) * 0.99 - 0.005;
    return isRight && last === legend[at]?.value ? [] : [{ line: line.name, cells: rows[at], legend: legend[at]?.value, mean: expected }];
  });
}

const PREFIXES: Record<string, number> = { n: 1e-9, µ: 1e-6, m: 1e-3, k: 1e3, M: 1e6, G: 1e9, T: 1e12, Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, Ti: 2 ** 40 };

/** Parses a number as it is shown: `12.3k/s`, `1.50 GiB`, `87 %`. */
function number(text = ""): number {
  const match = /^([−-]?[\d.]+)\s?(Ki|Mi|Gi|Ti|n|µ|m|k|M|G|T)?/.exec(text);
  return Number(match?.[1]?.replace("−", "-")) * (PREFIXES[match?.[2] ?? ""] ?? 1);
}

/** Equal in the shown digits. */
function close(a: number, b: number): boolean {
  return Math.abs(a - b) <= Math.max(Math.abs(b) * 0.02, 0.006);
}

/** Freezes so short a time that each sample has its own pixels; returns the chart of a panel. */
async function zoomed(id: string): Promise<ShownChart> {
  await controls().hold();
  const to = ((await s.one.state())?.history.to_ns ?? 0) / 1e6 - 500;
  await freeze(s.one, [to - 4000, to]);
  return until("four seconds", async () => (await charts(s.one, id)).find((chart) => chart.to === to));
}

test("all panels have one cursor, and legends show its values", async () => {
  const ids = await Panel.drawn(s.one);
  await zoomed(ids[0] ?? "");
  const [first, second] = [ids[0] ?? "", ids[1] ?? ""];
  await s.one.page.mouse.move(...(await new Panel(s.one, first).point(0.9)));
  const [chart] = await until("a cursor", async () => {
    const all = await charts(s.one, first);
    return all[0]?.cursor ? all : null;
  });
  const time = chart?.cursor ?? 0;
  await until("the same cursor elsewhere", async () => Math.abs(((await charts(s.one, second))[0]?.cursor ?? 0) - time) < 200);
  for (const id of [first, second]) {
    await until(`the value at the cursor in ${id}`, async () => {
      const [chart] = await charts(s.one, id);
      const at = chart?.cursor;
      const line = chart?.lines[0];
      if (at === null || at === undefined || !line) return false;
      const nearest = line.times.reduce((best, each, row) => (Math.abs(each - at) < Math.abs((line.times[best] ?? 0) - at) ? row : best), 0);
      const value = line.values[nearest] ?? NaN;
      return close(number((await new Panel(s.one, id).legend())[0]?.value), value);
    });
  }
  await s.one.page.mouse.move(700, 20);
  await until("no cursor", async () => (await charts(s.one, first))[0]?.cursor === null);
});

test("the machine is coloured by the values at the cursor", async () => {
  const { page } = s.one;
  assert.equal(await page.getByRole("group", { name: "Coloured by" }).count(), 1);
  const { from, to, lines: [line] } = await zoomed("cpu");
  const measured = (line?.values ?? []).flatMap((value, row) => (Number.isNaN(value) ? [] : [{ value, at: ((line?.times[row] ?? 0) - from) / (to - from) }]));
  assert.ok(measured.length > 10, `${measured.length}`);
  measured.sort((a, b) => a.value - b.value);
  for (const one of [measured[0], measured.at(-1)]) {
    await page.mouse.move(...(await new Panel(s.one, "cpu").point(one?.at ?? 0)));
    const drawn = async () => number((await page.locator(".machine .node-value").first().textContent()) ?? "");
    await until(`${one?.value} in the drawing`, async () => Math.abs((await drawn()) - (one?.value ?? NaN)) <= 1);
  }
  await page.mouse.move(700, 20);
});

test("a panel is saved as values, PNG and SVG", async () => {
  const panel = new Panel(s.one, "faults");
  const names = (await panel.legend()).map((line) => line.name);
  const csv = await panel.save("Visible data, CSV");
  const rows = (await readFile(csv.path, "utf8")).trim().split("\n").map((row) => row.split(","));
  assert.match(csv.name, /^faults.*\.csv$/);
  assert.equal(rows[0]?.[0], "time");
  assert.ok(rows.length > 5 && rows.every((row) => row.length === rows[0]?.length) && (rows[0]?.length ?? 0) > names.length, rows[0]?.join());
  assert.ok(rows.slice(1).some((row) => Number(row[1]) > 0));
  const png = await readFile((await panel.save("Image, PNG")).path);
  assert.equal(png.subarray(0, 8).toString("hex"), "89504e470d0a1a0a");
  const [wide, high] = [png.readUInt32BE(16), png.readUInt32BE(20)];
  const svg = await readFile((await panel.save("Image, SVG")).path, "utf8");
  const drawing = await s.one.page.evaluate((text) => {
    const parsed = new DOMParser().parseFromString(text, "image/svg+xml");
    const [, , width = 0, height = 0] = (parsed.documentElement.getAttribute("viewBox") ?? "").split(" ").map(Number);
    return { width, height, wrong: parsed.querySelector("parsererror")?.textContent ?? null, paths: parsed.querySelectorAll("path").length, text: parsed.documentElement.textContent ?? "" };
  }, svg);
  assert.equal(drawing.wrong, null);
  assert.deepEqual([wide, high], [drawing.width * 2, drawing.height * 2], "the picture is the drawing, twice as fine");
  assert.ok(drawing.paths >= 1);
  for (const name of names) assert.ok(drawing.text.includes(name), `${name} is not in: ${drawing.text}`);
});
