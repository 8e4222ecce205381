import assert from "node:assert/strict";
import { test } from "node:test";
import { COLUMNS, matching, sorted, type Row } from "../src/processes/columns";
import { memoryText } from "../src/processes/memory-bar";
import type { ProcessInfo, ProcessList } from "../src/wire-processes";

function row(pid: number, more: Partial<ProcessInfo> = {}): Row {
  const process = { pid, parent: 1, user: "me", name: "made", threads: 1, observed: false, cpu: 0, remote: null, resident: 0, memory: null, why: null, faults: null, major: null, moved: null, ...more };
  return { process, waits: null };
}

const pids = (rows: Row[]) => rows.map(({ process }) => process.pid);

test("rows are sorted by a column, either way, and those without a value are last", () => {
  const rows = [row(4, { remote: 10 }), row(3), row(2, { remote: 90 }), row(1, { remote: 10 })];
  assert.deepEqual(pids(sorted(rows, "remote")), [2, 1, 4, 3]);
  assert.deepEqual(pids(sorted(rows, "-remote")), [1, 4, 2, 3]);
  assert.deepEqual(pids(sorted(rows, "pid")), [1, 2, 3, 4]);
  assert.deepEqual(pids(sorted(rows, "-pid")), [4, 3, 2, 1]);
  assert.deepEqual(pids(sorted([row(2, { cpu: 1 }), row(1, { cpu: 7 })], "no such column")), [1, 2]);
});

test("a filter keeps the rows that have all of its words", () => {
  const rows = [row(12, { name: "postgres", user: "ada" }), row(120, { name: "bash", user: "ada" }), row(7, { name: "Bash", user: "root" })];
  assert.deepEqual(pids(matching(rows, " ")), [12, 120, 7]);
  assert.deepEqual(pids(matching(rows, "bash")), [120, 7]);
  assert.deepEqual(pids(matching(rows, "12 ADA")), [12, 120]);
  assert.deepEqual(pids(matching(rows, "nothing")), []);
});

test("every absent value has a reason", () => {
  const list = { nodes: [0, 1], fix: "run as root" } as ProcessList;
  for (const why of ["denied", "late", "refused"] as const) {
    const unknown = row(1, { why });
    for (const column of COLUMNS) if (column.text(unknown) === "–") assert.ok(column.absent(unknown, list).length > 10, column.id);
  }
  const remote = COLUMNS.find(({ id }) => id === "remote");
  assert.match(remote?.absent(row(1), { ...list, nodes: [0] }) ?? "", /one memory node/);
  assert.match(remote?.absent(row(1, { why: "denied" }), list) ?? "", /run as root/);
});

test("the memory of a process is named by node, the largest first", () => {
  assert.equal(memoryText([[0, 2 ** 20], [1, 2 ** 30]], [0, 4]), "node 4: 1 GiB, node 0: 1 MiB");
  const many = Array.from({ length: 9 }, (_, at): [number, number] => [at, 4096]);
  assert.match(memoryText(many, many.map(([at]) => at)), /and 3 more nodes$/);
});
