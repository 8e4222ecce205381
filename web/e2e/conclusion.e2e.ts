// What a comparison says: what changed, whether it is noise, which line is which source, and times as distances.

import assert from "node:assert/strict";
import { afterEach, before, test } from "node:test";
import type { FakeServer } from "../dev/server";
import type { Client } from "./infra/browser";
import { fakeServer } from "./infra/fake";
import { Panel } from "./infra/panel";
import { openWatched, textsOf } from "./infra/texts";
import { becomes, until } from "./infra/until";

let fake: FakeServer;
let one: Client;

before(async () => {
  fake = await fakeServer({ nodes: 4, two: true });
  one = await openWatched(`${fake.url}#source=1&beside=0&panels=cpu,memory`);
});

afterEach(() => assert.deepEqual(one.errors, []));

const said = () => one.page.getByRole("region", { name: "Comparison", exact: true });

test("it says what the server found, with what is A and what is B", async () => {
  await becomes("the verdict", () => said().getByRole("status").textContent(), "B is better: idle is 63.0 %, 41.2 % before");
  assert.deepEqual(await said().locator(".which-key").allTextContents(), ["A: before.arrows", "B: live"]);
  const about = (await said().locator("p.quiet").first().locator("span").allTextContents());
  assert.deepEqual(about, ["Change: idle +21.8 points (noise 3.1); fault_rate x 224 (noise 12.5)", "Do: keep B", "Caution: the command lines differ", "The time on screen: 61 values, of which 6 differ beyond noise"]);
  assert.match((await said().textContent()) ?? "", /Findings gone in B: Threads on node 1 use memory of node 0\./);
  const times = (await textsOf(one.page, "cpu")).texts.map(({ text }) => text).filter((text) => /^[+−]/.test(text));
  assert.ok(times.includes("+1:00") && times.includes("+2:00"), times.join());
});

test("its rows are those of the server, also what no panel shows; a click opens the panel", async () => {
  const rows = () => said().locator("tbody tr").evaluateAll((all) => all.map((row) => [...row.children].map((cell) => cell.textContent)));
  assert.equal((await rows()).length, 5);
  assert.deepEqual((await rows())[1], ["fault_rate", "224/s", "50.2k/s", "x 224", "12.5", "worse"]);
  await said().getByRole("button", { name: "all 6" }).click();
  assert.equal((await rows()).length, 6);
  assert.equal(await said().getByRole("button", { name: "made_up_by_nobody" }).count(), 0, "the source does not have it");
  await said().getByRole("button", { name: "vmstat.pgmajfault" }).click();
  await becomes("its panel", async () => (await one.view())?.panels, ["m:vmstat.pgmajfault", "cpu", "memory"]);
  await new Panel(one, "cpu").press("Table");
  await becomes("the columns", async () => (await new Panel(one, "cpu").table())[0], ["", "mean", "of live", "difference", "last", "min", "max"]);
  await new Panel(one, "cpu").press("Table");
});

test("in two columns each source has a chart, with one scale, and the address keeps it", async () => {
  await said().getByRole("button", { name: "Two columns" }).click();
  const names = () => one.page.locator('[data-panel="memory"] .cell-name').allTextContents();
  await becomes("two charts", names, ["before.arrows", "live"]);
  await until("the address", () => /columns=2/.test(one.page.url()));
  const tops = () => one.page.evaluate(() => window.numakit?.["screen"]?.["board"].list.find((panel) => panel.spec.id === "memory")?.["charts"].map(({ plot }) => plot.scales.y?.max));
  await until("one scale", async () => { const [a, b] = (await tops()) ?? []; return a !== undefined && a === b; });
  await one.visit(one.page.url());
  await becomes("two charts again", names, ["before.arrows", "live"]);
});
