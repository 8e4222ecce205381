import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { signal, sourceInfo } from "../dev/machine";
import { extremes } from "../src/panels/legend";
import { defaultPanels, missingPanel, panelOf } from "../src/panels/lines";
import { runs } from "../src/panels/paths";
import { contrast, lightText, lineColour, loadColour, luminance } from "../src/panels/palette";
import { Catalog, numberOf, place } from "../src/series";
import { cpuList, readMachine, squares } from "../src/topology";

test("series are numbered through metrics, then formulas", () => {
  const info = sourceInfo(4, 0);
  const catalog = new Catalog(info);
  const names = [...info.metrics, ...info.formulas].flatMap((m) => m.instances.map((at) => `${m.name}@${at}`));
  assert.deepEqual(catalog.series.map((s) => `${s.name}@${s.instance}`), names);
  assert.ok(catalog.series.every((s, at) => s.number === at));
  assert.equal(catalog.at("node.MemFree", "node2")?.number, names.indexOf("node.MemFree@node2"));
});

const named = (catalog: Catalog, query: string) => catalog.search(query).entries.map(({ entry }) => entry.name);

test("search requires all words and lists matching names first", () => {
  const catalog = new Catalog(sourceInfo(4, 0));
  assert.ok(named(catalog, "page fault").includes("vmstat.pgfault"));
  assert.equal(named(catalog, "pgfault")[0], "vmstat.pgfault");
  assert.deepEqual(named(catalog, "nothing like that"), []);
  assert.equal(named(catalog, "").length, catalog.entries.length);
  assert.deepEqual(catalog.search("bandwidth").absent.map((one) => one.name), ["resctrl"]);
});

test("search finds single series by their instance", () => {
  const catalog = new Catalog(sourceInfo(32, 0));
  const series = (query: string) => catalog.search(query).entries.flatMap((found) => found.series?.map((one) => `${one.name}@${one.instance}`) ?? ["all"]);
  assert.deepEqual(series("memfree node3"), ["node.MemFree@node3"]);
  assert.deepEqual(series("node.MemFree@node31"), ["node.MemFree@node31"]);
  assert.deepEqual(series("memfree"), ["all"]);
  assert.deepEqual(series("memfree node99"), []);
});

test("entries are filtered by instance kind and quantity", () => {
  const catalog = new Catalog(sourceInfo(4, 0));
  assert.deepEqual(catalog.kinds(), ["machine", "node", "cpu", "pair", "package"]);
  assert.ok(catalog.quantities().includes("percent"));
  const locality = catalog.entry("locality");
  assert.deepEqual([...catalog.kindsOf(locality!)], ["machine", "node"]);
});

test("search works with 128 nodes and 32,000 series", () => {
  const info = sourceInfo(128, 0, 250);
  const catalog = new Catalog(info);
  assert.ok(catalog.series.length > 32_000);
  assert.deepEqual(named(catalog, "made_up_249"), ["node.made_up_249"]);
  assert.equal(catalog.search("made_up node127").entries.flatMap((found) => found.series ?? []).length, 250);
});

test("a panel shows one series, or says why it has none", () => {
  const catalog = new Catalog(sourceInfo(4, 0));
  assert.deepEqual(panelOf(catalog, "m:node.MemFree@node2+cpu.idle@cpu3")?.lines.map((line) => line.label), ["MemFree node 2", "idle CPU 3"]);
  assert.equal(panelOf(catalog, "m:node.MemFree@node9"), null);
  assert.match(missingPanel(catalog, "m:perf.cycles").help, /counters of whole CPUs.*paranoid/);
  assert.match(missingPanel(catalog, "m:no.such").help, /does not have this metric/);
  assert.equal(missingPanel(catalog, "links").title, "Links");
});

test("default panels show what the source has and leave out the rest", () => {
  const ids = defaultPanels(new Catalog(sourceInfo(4, 0))).map((spec) => spec.id);
  assert.deepEqual(ids, ["locality", "memory", "cpu", "faults", "remote", "pressure", "links", "controllers", "sampler"]);
  const poor = { ...sourceInfo(1, 0), formulas: [], metrics: sourceInfo(1, 0).metrics.filter((m) => m.sensor === "vmstat") };
  assert.deepEqual(defaultPanels(new Catalog(poor)).map((spec) => spec.id), ["faults"]);
});

test("busy is 100 minus idle", () => {
  const line = panelOf(new Catalog(sourceInfo(4, 0)), "cpu")?.lines[0];
  assert.equal((line?.offset ?? 0) + (line?.factor ?? 0) * 30, 70);
  assert.equal(panelOf(new Catalog(sourceInfo(4, 0)), "m:no.such"), null);
  assert.equal(panelOf(new Catalog(sourceInfo(4, 0)), "m:node.MemFree+node.MemUsed")?.lines.length, 8);
});

test("instances have display names and numbers", () => {
  assert.deepEqual(["", "node3", "cpu12", "link0.2"].map(place), ["machine", "node 3", "CPU 12", "link 0.2"]);
  assert.deepEqual([numberOf("node3", "node"), numberOf("cpu3", "node"), numberOf("link0.2", "link")], [3, -1, -1]);
});

test("CPU lists are parsed, and the machine is grouped by packages", () => {
  assert.deepEqual(cpuList("0-2,8,x,10-10"), [0, 1, 2, 8, 10]);
  assert.deepEqual(cpuList(""), []);
  const machine = readMachine(sourceInfo(4, 0).topology);
  assert.deepEqual(machine?.packages.map((p) => p.nodes.map((n) => n.id)), [[0, 1], [2, 3]]);
  assert.equal(machine?.nodes[0]?.cores.length, 8);
  assert.equal(readMachine(null), null);
  assert.equal(readMachine({ nodes: [] }), null);
  const far = readMachine({ nodes: [{ os_index: 0, cpus: "0", memory_kb: 1 }, { os_index: 7, cpus: "", memory_kb: null }], packages: [{ os_index: 0, cpus: "0" }] });
  assert.deepEqual(far?.packages.map((p) => p.name), ["package 0", "memory only"]);
});

test("squares fill their box and stay inside", () => {
  for (const [count, width, height] of [[1, 100, 40], [16, 140, 40], [64, 140, 40], [97, 30, 200], [256, 140, 44]] as const) {
    const cells = squares(count, width, height, 2, 15);
    assert.equal(cells.length, count);
    for (const cell of cells) assert.ok(cell.x + cell.size <= width + 0.01 && cell.y + cell.size <= height + 0.01, `${count} in ${width}x${height}`);
    assert.equal(new Set(cells.map((cell) => `${cell.x} ${cell.y}`)).size, count);
  }
  assert.deepEqual(squares(0, 10, 10, 1, 5), []);
});

test("lines break at gaps but not at single missing values", () => {
  const x = [0, 10, 20, 30, 100, 110];
  assert.deepEqual(runs(x, Float64Array.of(1, NaN, 3, 4, 5, 6), 0, 5, 25), [[0, 2, 3], [4, 5]]);
  assert.deepEqual(runs(x, new Float64Array(6).fill(NaN), 0, 5, 25), []);
});

test("text is readable on every load colour", () => {
  for (const dark of [false, true]) {
    for (let load = 0; load <= 1; load += 0.01) {
      const colour = luminance(loadColour(load, dark).match(/\d+/g)!.map(Number));
      const ratio = lightText(load, dark) ? contrast(1, colour) : contrast(colour, 0);
      assert.ok(ratio >= 4.5, `load ${load}: ${ratio}`);
    }
  }
});

test("text colours of the style sheet have enough contrast", async () => {
  const css = await readFile(new URL("../src/theme.css", import.meta.url), "utf8");
  const themes = css.split("}").filter((block) => block.includes("--ground:")).slice(0, 2);
  assert.equal(themes.length, 2);
  for (const block of themes) {
    const colour = (name: string) => luminance(new RegExp(`--${name}: #(..)(..)(..)`).exec(block)!.slice(1).map((part) => parseInt(part, 16)));
    for (const ground of ["ground", "panel", "sunk"]) {
      for (const text of ["text", "quiet", "accent", "warn", "bad"]) {
        const [low, high] = [colour(text), colour(ground)].sort((a, b) => a - b) as [number, number];
        assert.ok(contrast(high, low) >= 4.5, `${text} on ${ground}: ${contrast(high, low).toFixed(2)} in ${block.slice(0, 40)}`);
      }
    }
    assert.ok(contrast(colour("blue-text"), colour("blue")) >= 4.5, "text on buttons");
  }
});

test("line colours are distinct", () => {
  for (const count of [8, 40]) assert.equal(new Set(Array.from({ length: count }, (_, at) => lineColour(at, count, true))).size, count);
  assert.notEqual(loadColour(0, false), loadColour(1, false));
  assert.equal(loadColour(-3, false), loadColour(0, false));
  assert.ok(Number.isFinite(signal("locality", "node1", 1.7e12, 4)));
});

test("the extremes of many lines name the word of all once; a number stays with its unit", () => {
  const lines = panelOf(new Catalog(sourceInfo(128, 0)), "locality")?.lines ?? [];
  const values = lines.map((_, at) => 50 + (at % 40));
  const [high, low] = [values.indexOf(89), values.indexOf(50)];
  assert.equal(extremes(lines, values, high, low, "node"), "max\u00a0node\u00a039\u00a089\u00a0%, min\u00a00\u00a050\u00a0%");
  assert.equal(extremes(lines, values, high, low, ""), "max\u00a0node\u00a039\u00a089\u00a0%, min\u00a0node\u00a00\u00a050\u00a0%");
});
