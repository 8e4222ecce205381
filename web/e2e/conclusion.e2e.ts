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
  // A job runs on each node in turn for 24 s: in this range of the recording on two of them, live on others.
  one = await openWatched(`${fake.url}#source=1&beside=0&panels=cpu,memory`);
});

afterEach(() => assert.deepEqual(one.errors, []));

const said = () => one.page.getByRole("region", { name: "Comparison", exact: true });

test("what differs beyond its noise is counted, over the whole range", async () => {
  await until("a sentence", async () => /^(\d+ of \d+ lines differ|None of \d+ lines differs) from live/.test((await said().getByRole("status").textContent()) ?? ""));
  assert.deepEqual(await said().locator(".which-key").allTextContents(), ["before.arrows", "live"]);
  const times = (await textsOf(one.page, "cpu")).texts.map(({ text }) => text).filter((text) => /^[+−]/.test(text));
  assert.ok(times.includes("+1:00") && times.includes("+2:00"), times.join());
});

test("over the time of one job, the nodes where it ran are listed, and lead to their panel", async () => {
  const start = fake.started - 3_600_000;
  const job = Math.ceil(start / 24_000) * 24_000;
  await one.visit(`${fake.url}#source=1&beside=0&panels=cpu,memory&from=${job + 4000}&to=${job + 12_000}`);
  await until("a list", async () => (await said().locator("li").count()) > 0);
  const items = await said().locator("li").allTextContents();
  assert.ok(items.length <= 5 && items.every((item) => /^(×[\d.]+|[+−][\d.]+ %) ± [\d.]+ % (CPU busy|Memory in use), node \d: .* → /.test(item)), items.join("\n"));
  await new Panel(one, "cpu").press("Table");
  await becomes("the columns", async () => (await new Panel(one, "cpu").table())[0], ["", "mean", "of live", "difference", "in %", "last", "min", "max"]);
  const rows = (await new Panel(one, "cpu").table()).slice(1);
  assert.ok(rows.every(([, , , , percent]) => /^[×+−].* ± [\d.]+ %$/.test(percent ?? "")), rows.join("\n"));
  await said().locator("li button").first().click();
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
