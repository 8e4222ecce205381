import assert from "node:assert/strict";
import { test } from "node:test";
import { sourceInfo } from "../dev/machine";
import { columnsFor, firstSpan } from "../src/panels/fit";
import { defaultPanels } from "../src/panels/lines";
import { Catalog } from "../src/series";

test("the default panels fit into a window of 1440 x 900 and of 1920 x 1080", () => {
  for (const nodes of [1, 2, 4, 8, 128]) {
    const count = defaultPanels(new Catalog(sourceInfo(nodes, 0))).length;
    for (const [width, height] of [[840, 660], [1320, 840]] as const) {
      const columns = columnsFor(count, width, height);
      assert.ok(columns > 0, `${count} panels of ${nodes} nodes in ${width} x ${height}`);
      assert.equal((count + firstSpan(count, columns) - 1) % columns, 0, "no place is empty");
    }
  }
});

test("panels that do not fit are left to the style sheet", () => {
  assert.equal(columnsFor(40, 840, 660), 0);
  assert.equal(columnsFor(3, 200, 600), 0);
  assert.deepEqual([columnsFor(1, 840, 660), columnsFor(2, 840, 660), columnsFor(4, 1320, 840)], [1, 1, 2]);
  assert.deepEqual([firstSpan(7, 3), firstSpan(8, 3), firstSpan(9, 3), firstSpan(5, 0)], [3, 2, 1, 1]);
});
