// A machine of four nodes, recorded in a guest.

import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { Client, closeBrowser } from "./infra/browser";
import { charts } from "./infra/chart";
import { recordInGuest } from "./infra/guest";
import { Numa } from "./infra/numa";
import { Panel } from "./infra/panel";
import { skip } from "./infra/skip";
import { becomes, until } from "./infra/until";

/** Idle, then work on node 0 with memory of node 3, then idle. */
const COMMAND = ["sh", "-c", "sleep 1; numactl -N 0 -m 3 dd if=/dev/zero of=/dev/null bs=100M count=10; sleep 1"];

after(() => closeBrowser());

test("a recording of four nodes shows their machine, distances and panels", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "numa-four-"));
  const recorded = await recordInGuest(folder, "four", COMMAND);
  if ("skipped" in recorded) return skip(t, "guest", recorded.skipped);
  const numa = await Numa.start({ verb: "view", args: [recorded.path] });
  try {
    const one = await Client.open(numa.controller);
    await four(one);
    await moving(one);
    await one.close();
  } finally {
    await numa.close();
    await rm(folder, { recursive: true, force: true });
  }
});

async function four(one: Client): Promise<void> {
  const machine = one.page.getByRole("region", { name: "Machine", exact: true });
  await becomes("nodes of the drawing", () => machine.locator(".node-name").allTextContents(), [0, 1, 2, 3].map((node) => `node ${node}`));
  assert.equal(await machine.locator(".cpu").count(), 8);
  // Where samples of instructions were taken, the nodes show the use of memory first.
  const choice = one.page.getByRole("region", { name: "Nodes", exact: true }).getByRole("button", { name: "Distances" });
  if ((await choice.count()) > 0) await choice.click();
  const distances = await one.page.locator(".matrix table td").allTextContents();
  assert.equal(distances.length, 16);
  assert.deepEqual([0, 5, 10, 15].map((at) => distances[at]), ["10", "10", "10", "10"], "each is nearest to itself");
  // Near on one board, far between boards.
  assert.ok(Number(distances[1]) > 10 && Number(distances[2]) > Number(distances[1]), distances.join());
  const legend = await until("the locality panel", async () => {
    const legend = await new Panel(one, "locality").legend();
    return legend.length > 0 ? legend : null;
  });
  assert.deepEqual(legend.map((line) => line.name), [0, 1, 2, 3].map((node) => `node ${node}`));
}

async function moving(one: Client): Promise<void> {
  const machine = one.page.getByRole("region", { name: "Machine", exact: true });
  await machine.getByRole("button", { name: "CPU" }).click();
  const look = () => machine.locator("svg.drawing").evaluate((drawing) => drawing.innerHTML);
  const panel = new Panel(one, "cpu");
  await until("samples", async () => ((await charts(one, "cpu"))[0]?.lines[0]?.times.length ?? 0) > 20);
  const seen = new Set<string>();
  const busy: number[] = [];
  for (const share of [0.1, 0.3, 0.5, 0.7, 0.9]) {
    await one.page.mouse.move(...(await panel.point(share)));
    await until("the cursor", async () => (await charts(one, "cpu"))[0]?.cursor);
    seen.add(await look());
    const [chart] = await charts(one, "cpu");
    busy.push(nearest(chart?.lines[0]?.times ?? [], chart?.lines[0]?.values ?? [], chart?.cursor ?? 0));
  }
  assert.ok(seen.size > 1, "the drawing changes with the cursor");
  assert.ok(busy.some((value) => !Number.isNaN(value)), busy.join());
}

function nearest(times: number[], values: number[], ms: number): number {
  const distance = times.map((time) => Math.abs(time - ms));
  return values[distance.indexOf(Math.min(...distance))] ?? NaN;
}
