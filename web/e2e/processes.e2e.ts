// The list of processes: what it shows of a command that numa observes, and that nothing is measured unless it is open.

import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { before, test } from "node:test";
import { Client } from "./infra/browser";
import { Numa } from "./infra/numa";
import { until } from "./infra/until";

/** It ends with numa. */
const COMMAND = ["sh", "-c", "exec tail -f --pid=$PPID /dev/null"];
let numa: Numa;
let one: Client;

before(async () => {
  numa = await Numa.start({ args: ["-i", "100ms"], command: COMMAND });
});

const view = () => one.page.getByRole("region", { name: "Processes", exact: true });
const rows = () => view().locator("tbody tr");

/** The text of each cell of the rows that are shown. */
const cells = () => rows().evaluateAll((all) => all.map((row) => [...row.children].map((cell) => cell.textContent ?? "")));

/** Whether there are several, each next one in order. */
const isSorted = (pids: number[], inOrder: (a: number, b: number) => boolean) => pids.length > 1 && pids.every((pid, at) => at === 0 || inOrder(pids[at - 1] ?? NaN, pid));

/** Whether numa has a thread that measures processes. */
async function measures(): Promise<boolean> {
  const tasks = `/proc/${numa.pid}/task`;
  const names = await Promise.all((await readdir(tasks)).map((tid) => readFile(`${tasks}/${tid}/comm`, "utf8").catch(() => "")));
  return names.some((name) => name.trim() === "processes");
}

test("processes are measured while the list is open, and the observed one is marked", async () => {
  one = await Client.open(numa.controller);
  assert.equal(await measures(), false);
  await view().getByRole("button", { name: "Show" }).click();
  await until("processes", async () => (await rows().count()) > 1);
  assert.equal(await measures(), true);
  const observed = view().locator("tr.observed");
  await until("the observed command", async () => (await observed.count()) === 1);
  const [, name, , cpu] = await observed.locator("td").allTextContents();
  assert.equal(name, "tail");
  assert.match(cpu ?? "", /^\d.* %$/);
  assert.match((await view().getByRole("status").textContent()) ?? "", /^\d+ processes/);
});

test("a click on a heading sorts, and the filter keeps what it names", async () => {
  const pids = async () => (await cells()).map(([pid]) => Number(pid));
  await view().getByRole("button", { name: "PID" }).click();
  await until("ascending PIDs", async () => isSorted(await pids(), (a, b) => a < b));
  await view().getByRole("button", { name: "PID" }).click();
  await until("descending PIDs", async () => isSorted(await pids(), (a, b) => a > b));
  assert.equal(await view().getByRole("columnheader", { name: "PID" }).getAttribute("aria-sort"), "descending");
  await view().getByRole("searchbox").fill(String(numa.pid));
  await until("numa alone", async () => (await cells()).length === 1);
  assert.equal((await cells())[0]?.[1], "numa");
  await until("the address", () => one.page.url().includes(`processes=-pid&process=${numa.pid}`));
});

test("an address opens the list, and a value of the observed program opens its panel", async () => {
  const address = one.page.url();
  await one.close();
  one = await Client.open(numa.controller);
  await one.visit(address.replace(/process=\d+/, "process=tail"));
  const cpu = view().locator("tr.observed .to-panel").first();
  await cpu.click();
  await until("its panel", async () => (await one.page.locator('[data-panel="m:task.cpu"]').count()) === 1);
});

test("a closed list is measured no more", async () => {
  await view().getByRole("button", { name: "Hide" }).click();
  await until("the end of the thread", async () => !(await measures()));
  assert.equal(await rows().first().isVisible(), false);
  await one.close();
});

test("a recording says why it has no processes", async () => {
  const file = numa.file("run.arrows");
  assert.equal((await numa.call("record", "-i", "10ms", "-o", file, "--", "sleep", "0.3")).code, 0);
  const viewer = await Numa.start({ verb: "show", args: [file] });
  one = await Client.open(viewer.controller);
  assert.match((await view().textContent()) ?? "", /A recording has no processes but the observed ones/);
  assert.equal(await view().getByRole("button").count(), 0);
});
