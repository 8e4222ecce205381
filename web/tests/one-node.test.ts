import assert from "node:assert/strict";
import { test } from "node:test";
import { sourceInfo } from "../dev/machine";
import { defaultPanels, panelOf } from "../src/panels/lines";
import { Catalog } from "../src/series";
import { memoryNodes } from "../src/topology";

const WHY = "Cannot tell: this machine has one memory node.";
const one = new Catalog(sourceInfo(1, 0));

test("on one node no panel claims that all memory is local: the findings say that it cannot be told", () => {
  const panels = defaultPanels(one);
  assert.ok(panels.length > 3 && panels.every(({ lines }) => lines.length > 0));
  assert.ok(!panels.some(({ id }) => ["locality", "remote", "far", "remote-pages"].includes(id)));
  assert.ok(panels.some(({ id, lines }) => id === "memory" && lines.length === 1));
});

test("a panel that is asked for says it, too, and keeps what can be told", () => {
  for (const id of ["remote", "locality", "m:locality", "m:locality@node0", "m:locality+remote_allocations"]) {
    const spec = panelOf(one, id);
    assert.deepEqual([spec?.lines, spec?.help], [[], WHY], id);
  }
  const mixed = panelOf(one, "m:fault_rate+locality");
  assert.deepEqual(mixed?.lines.map(({ label }) => label), ["fault_rate"]);
  assert.match(mixed?.help ?? "", /one memory node/);
});

test("a value of the machine is not drawn a second time as that of its only node", () => {
  const source = sourceInfo(1, 0);
  const instances = (nodes: number) => panelOf(new Catalog(sourceInfo(nodes, 0)), "m:idle")?.lines.map(({ series }) => series.instance);
  assert.deepEqual([instances(1), instances(2)], [[""], ["", "node0", "node1"]]);
  const node = panelOf(new Catalog(source), "m:idle@node0")?.lines.map(({ series }) => series.instance);
  assert.deepEqual(node, ["node0"], "asked for by name");
});

test("several nodes, or an unknown topology, are not one node", () => {
  assert.deepEqual([sourceInfo(1, 0).topology, sourceInfo(4, 0).topology, null, { nodes: [] }].map(memoryNodes), [1, 4, null, null]);
  assert.equal(memoryNodes({ nodes: [{ memory_kb: 5 }, { memory_kb: 0 }] }), 1, "a node of CPUs only");
  assert.equal(memoryNodes({ nodes: [{ memory_kb: 5 }, { memory_kb: null }] }), 2, "memory of unknown size");
  const unknown = new Catalog({ ...sourceInfo(1, 0), topology: null });
  for (const catalog of [new Catalog(sourceInfo(2, 0)), unknown]) assert.ok(panelOf(catalog, "locality")!.lines.length > 0);
});
