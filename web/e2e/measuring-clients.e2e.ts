// A client that is too slow. How many ticks are lost is measured, so this file runs alone.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Numa } from "./infra/numa";
import { Socket } from "./infra/socket";
import { until } from "./infra/until";

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
  // A tenth of that was usually enough to fill the buffers.
  await until("frames for the client that reads", () => quick.frames.length > before + 600);
  const seqs = quick.frames.map((frame) => frame.header.seq);
  assert.ok(seqs.every((seq, at) => at === 0 || seq === (seqs[at - 1] ?? 0) + 1), "none of them is missing");
  assert.equal(quick.frames.at(-1)?.header.dropped, 0);
  const ticks = Number(/(\d+) samples/.exec(await numa.ctl("status"))?.[1] ?? 0);
  assert.ok((await lost()) < Math.max(ticks * 0.2, 50), await numa.ctl("status"));
  slow.resume();
  await until("a count of missed frames", () => slow.frames.some((frame) => frame.header.dropped > 0));
  await Promise.all([slow.close(), quick.close()]);
  assert.match(await numa.ctl("status"), /interval/);
});
