// A machine of four nodes, recorded in a guest.

import assert from "node:assert/strict";
import { Client } from "./infra/browser";
import { charts } from "./infra/chart";
import { temporary } from "./infra/ending";
import { recordInGuest } from "./infra/guest";
import { Numa } from "./infra/numa";
import { Panel } from "./infra/panel";
import { skip } from "./infra/skip";
import { thorough } from "./infra/thorough";
import { becomes, until } from "./infra/until";

/** Idle, then work on node 2 with memory of node 3, then idle. */
const COMMAND = ["sh", "-c", "sleep 1 && numactl -N 2 -m 3 sh -c 'timeout 2 dd if=/dev/zero of=/dev/null bs=100M; true' && sleep 1"];

thorough("a recording of four nodes shows their machine, distances and panels", "a machine of four nodes is booted", async (t) => {
  const recorded = await recordInGuest(await temporary("four"), "four", COMMAND);
  if ("skipped" in recorded) return skip(t, "guest", recorded.skipped);
  const numa = await Numa.start({ verb: "show", args: [recorded.path] });
  const one = await Client.open(numa.controller);
  await four(one);
  await moving(one);
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
  for (const share of [0.1, 0.3, 0.5, 0.7, 0.9]) {
    await one.page.mouse.move(...(await panel.point(share)));
    await until("the cursor", async () => (await charts(one, "cpu"))[0]?.cursor);
    seen.add(await look());
  }
  assert.ok(seen.size > 1, "the drawing changes with the cursor");
  const line = (await charts(one, "cpu"))[0]?.lines[2];
  const values = line?.values.filter((value) => !Number.isNaN(value)) ?? [];
  const third = (at: number) => values.slice((at * values.length) / 3, ((at + 1) * values.length) / 3).reduce((sum, value) => sum + value, 0);
  const [before, during, after] = [third(0), third(1), third(2)];
  assert.ok(during > 1.5 * before && during > 1.5 * after, `node 2 works in the middle: ${[before, during, after].join()}`);
}
