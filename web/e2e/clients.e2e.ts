// Several clients: what each may do and sees, independent of other clients.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Client } from "./infra/browser";
import { range } from "./infra/chart";
import { Controls } from "./infra/controls";
import { Numa } from "./infra/numa";
import { Socket } from "./infra/socket";
import { stage } from "./infra/stage";
import { becomes, until } from "./infra/until";

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
  for (const client of [s.one, other]) await until("both", async () => /2 clients/.test(await client.status()));
  await other.close();
  await until("one", async () => !/clients/.test(await s.one.status()));
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

test("a client that reads nothing delays neither the others nor the sampler", async () => {
  const numa = await Numa.start({ args: ["-i", "1ms"] });
  const [slow, quick] = await Promise.all([Socket.enter(numa, numa.controller), Socket.enter(numa, numa.controller)]);
  const { sources } = await slow.message("hello");
  const count = sources[0] ? sources[0].metrics.concat().reduce((sum, metric) => sum + metric.instances.length, 0) : 0;
  const series = Array.from({ length: count }, (_, number) => number);
  const now = Math.round(Date.now() * 1e6);
  const rows = { source: 0, series, step_ns: 1e6, from_ns: now };
  quick.send({ type: "watch", id: 1, ...rows });
  for (let id = 1; id <= 16; id++) slow.send({ type: "watch", id, ...rows });
  await until("first frames", () => slow.frames.length > 3 && quick.frames.length > 3);
  slow.stall();
  // Large answers fill the socket buffers of the system, and then the server's queue.
  for (let id = 100; id < 220; id++) slow.send({ type: "fetch", id, source: 0, series, from_ns: now - 1e9, to_ns: now + 60e9, buckets: 2000 });
  const lost = async () => Number(/(\d+) (?:ticks )?lost/.exec(await numa.ctl("status"))?.[1] ?? 0);
  const before = quick.frames.length;
  await until("frames for the client that reads", () => quick.frames.length > before + 60);
  const seqs = quick.frames.map((frame) => frame.header.seq);
  assert.ok(seqs.every((seq, at) => at === 0 || seq === (seqs[at - 1] ?? 0) + 1), "none of them is missing");
  assert.equal(quick.frames.at(-1)?.header.dropped, 0);
  const ticks = Number(/(\d+) samples/.exec(await numa.ctl("status"))?.[1] ?? 0);
  assert.ok((await lost()) < Math.max(ticks * 0.2, 50), await numa.ctl("status"));
  slow.resume();
  await until("a count of missed frames", () => slow.frames.some((frame) => frame.header.dropped > 0));
  await Promise.all([slow.close(), quick.close()]);
  await becomes("that numa runs", async () => (await numa.ctl("status")).length > 0, true);
  await numa.close();
});
