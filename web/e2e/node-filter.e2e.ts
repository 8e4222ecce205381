// One node alone: chosen in the machine, in the matrix or in the list, named by a chip, kept in the address.

import assert from "node:assert/strict";
import { afterEach, before, test } from "node:test";
import type { FakeServer } from "../dev/server";
import { Client } from "./infra/browser";
import { fakeServer } from "./infra/fake";
import { Panel } from "./infra/panel";
import { becomes, until } from "./infra/until";

let fake: FakeServer;
let one: Client;

before(async () => {
  fake = await fakeServer({ nodes: 4 });
  one = await Client.open(`${fake.url}#panels=memory,faults,m:cpu.user,m:node.MemFree@node1`);
});

afterEach(() => assert.deepEqual(one.errors, []));

const chip = () => one.page.locator(".node-chip:visible").allTextContents();
const lines = async (panel: string) => (await new Panel(one, panel).legend()).map(({ name }) => name);

test("a click on a node in the machine shows its lines only, and the chip shows all again", async () => {
  assert.deepEqual(await chip(), []);
  await one.page.locator(".machine .choosable").nth(2).click({ position: { x: 20, y: 30 } });
  await becomes("the chip", chip, ["node 2"]);
  assert.deepEqual(await lines("memory"), ["node 2"]);
  assert.deepEqual(await lines("m:cpu.user"), Array.from({ length: 16 }, (_, n) => `CPU ${32 + n}`));
  assert.deepEqual(await lines("faults"), ["faults", "hint faults", "migrations", "major faults"], "the whole machine's");
  assert.match((await one.page.locator('[data-panel="m:node.MemFree@node1"] .note').textContent()) ?? "", /None of its series is of node 2/);
  assert.equal(await one.page.locator(".machine .faded").count(), 3);
  await until("the address", () => /node=2/.test(one.page.url()));
  await one.visit(one.page.url());
  await becomes("the chip again", chip, ["node 2"]);
  await one.page.locator(".node-chip").click();
  await becomes("no chip", chip, []);
  assert.equal((await lines("memory")).length, 4);
  await until("the address", () => !/node=/.test(one.page.url()));
});

test("a node can also be chosen in the matrix and in a list, and again by the same click", async () => {
  await one.page.locator(".matrix rect.choosable").nth(13).click();
  await becomes("the row's node", chip, ["node 3"]);
  await one.page.locator(".matrix rect.choosable").nth(12).click();
  await becomes("no chip", chip, []);
  const list = one.page.getByLabel("Panels show");
  await list.selectOption("1");
  await becomes("the chosen one", chip, ["node 1"]);
  assert.deepEqual(await lines("m:node.MemFree@node1"), ["node 1"]);
  await list.selectOption("");
  await becomes("no chip", chip, []);
});

test("pointing at a line names it and lists those around it", async () => {
  const [x, y] = await new Panel(one, "memory").point(0.5);
  const box = await new Panel(one, "memory").box();
  await one.page.keyboard.press("Space");
  const list = one.page.locator('[data-panel="memory"] .near-list:visible');
  await one.page.mouse.move(x, y);
  await becomes("four values", () => list.locator("p > span").count(), 4);
  // Down the chart, the pointer comes to every line once.
  const found = new Set<string>();
  for (let at = 1; at < box.height; at += 4) {
    await one.page.mouse.move(x, box.y + at);
    for (const name of await list.locator(".chosen > span").allTextContents()) found.add(name);
  }
  assert.deepEqual([...found].sort(), ["node 0", "node 1", "node 2", "node 3"]);
  await one.page.mouse.move(5, 5);
  await becomes("no list", () => list.count(), 0);
});
