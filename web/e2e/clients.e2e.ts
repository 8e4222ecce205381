// Several clients: what each may do and sees, independent of other clients.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Client } from "./infra/browser";
import { range } from "./infra/chart";
import { Controls } from "./infra/controls";
import { stage } from "./infra/stage";
import { until } from "./infra/until";

const s = stage({ args: ["-i", "50ms"] });

test("a viewer sees everything and can change nothing", async () => {
  const viewer = await Client.open(s.numa.viewer);
  const { record, pause, label, interval, follow } = new Controls(viewer);
  for (const order of [record, pause, label, interval]) assert.equal(await order.isVisible(), false);
  assert.equal(await viewer.page.getByLabel("Open a recording").count(), 0);
  for (const one of await viewer.page.getByRole("switch").all()) assert.equal(await one.isDisabled(), true);
  await s.numa.ctl("label", "seen");
  await until("the label", async () => ((await viewer.page.locator(".labels").textContent()) ?? "").includes("seen"));
  assert.equal(await viewer.page.locator(".labels").getByRole("button", { name: /edit|remove/ }).count(), 0);
  await follow.click();
  assert.equal((await viewer.view())?.follow, false, "its view is independent");
  // The server decides, whatever buttons the page has.
  await viewer.page.evaluate(() => window.numakit?.order({ type: "order", line: "pause" }));
  await viewer.notice(/a viewer cannot change anything/);
  assert.equal((await s.one.state())?.paused, false);
  await viewer.close();
});

test("each page shows the number of clients", async () => {
  const other = await Client.open(s.numa.viewer);
  // A sampler that is behind would be shown instead.
  await s.numa.ctl("interval", "1s");
  for (const client of [s.one, other]) await until("both", async () => /2 clients/.test(await client.status()));
  await other.close();
  await until("one", async () => !/clients/.test(await s.one.status()));
  await s.numa.ctl("interval", "50ms");
});

test("zooming in one page does not change the other", async () => {
  const other = await Client.open(s.numa.controller);
  await new Controls(other).span.selectOption("10000");
  await until("ten seconds", async () => {
    const [from, to] = await range(other, "faults");
    return Math.abs(to - from - 10_000) < 2;
  });
  const [from, to] = await range(s.one, "faults");
  assert.deepEqual([(await s.one.view())?.follow, (await s.one.view())?.spanMs], [true, 60_000]);
  const begin = ((await s.one.state())?.history.from_ns ?? 0) / 1e6;
  assert.ok(Math.abs(to - from - 60_000) < 2 || Math.abs(from - begin) < 2, "all of a shorter history");
  await other.close();
});
