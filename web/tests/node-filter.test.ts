import assert from "node:assert/strict";
import { test } from "node:test";
import { sourceInfo } from "../dev/machine";
import { catalogOf, ofNode } from "../src/node-filter";
import { around } from "../src/panels/near";
import { defaultPanels, panelOf } from "../src/panels/lines";
import { Catalog, type Series } from "../src/series";
import { readMachine } from "../src/topology";

const catalog = new Catalog(sourceInfo(4, 0));
const machine = readMachine(catalog.source.topology);

test("a node has its own series, its CPUs', its package's, its pairs' and the whole machine's", () => {
  const belongs = ofNode(machine, 1);
  const of = (instance: string) => belongs({ instance } as Series);
  for (const yes of ["", "node1", "cpu16", "cpu31", "package0", "pair1.3", "pair0.1", "bank7"]) assert.ok(of(yes), yes);
  for (const no of ["node0", "node11", "cpu15", "cpu32", "package1", "pair0.3", "pair11.0"]) assert.ok(!of(no), no);
});

test("panels of a node have its lines, in their colours", () => {
  const filtered = catalogOf(catalog, machine, 2);
  const memory = defaultPanels(filtered).find(({ id }) => id === "memory");
  assert.deepEqual(memory?.lines.map(({ label, slot }) => [label, slot]), [["node 2", 2]]);
  assert.equal(panelOf(filtered, "m:cpu.idle")?.lines.length, 16);
  assert.equal(panelOf(filtered, "m:node.MemFree@node1"), null);
  assert.equal(catalog.entry("node.MemFree")?.series.length, 4, "the catalog itself is unchanged");
});

test("the lines around a position are as many as there may be", () => {
  const all = Array.from({ length: 20 }, (_, at) => at);
  assert.deepEqual([0, 1, 10, 19].map((at) => around(all, at).join()), ["0,1,2,3,4,5,6", "0,1,2,3,4,5,6", "7,8,9,10,11,12,13", "13,14,15,16,17,18,19"]);
  assert.deepEqual(around([1, 2], 1), [1, 2]);
});
