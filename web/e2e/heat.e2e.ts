// Heat maps, on a machine of 128 nodes.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, afterEach, before, test } from "node:test";
import { FakeServer } from "../dev/server";
import { closeBrowser, type Client } from "./infra/browser";
import { Panel } from "./infra/panel";
import { openWatched, textsOf } from "./infra/texts";
import { becomes, until } from "./infra/until";

let fake: FakeServer;
let client: Client;
let job: number;

before(async () => {
  fake = await FakeServer.start({ nodes: 128 });
  // A job runs on one node after the other, each for 24 seconds; this is within the time of one.
  job = Math.ceil(fake.started / 24_000) + 3;
  const from = job * 24_000 + 5000;
  client = await openWatched(`${fake.url}#from=${from}&to=${from + 10_000}&panels=cpu,memory`);
});

afterEach(() => assert.deepEqual(client.errors, []));

after(async () => {
  await client.close();
  await fake.close();
  await closeBrowser();
});

const cpu = () => new Panel(client, "cpu");
const names = async () => (await textsOf(client.page, "cpu")).texts.map(({ text }) => text).filter((text) => text.startsWith("node "));
const said = (id: string) => client.page.locator(`[data-panel="${id}"] .cell-text:visible`).allTextContents();

test("many lines are rows of cells, from the first node to the last", async () => {
  await until("names", async () => (await names()).length > 4);
  const shown = (await names()).map((name) => Number(name.slice(5)));
  assert.equal(shown[0], 0);
  assert.deepEqual(shown, [...shown].sort((a, b) => a - b));
  await becomes("the scale", () => cpu().element.locator(".heat-scale").textContent(), "0 – 100 %");
  assert.deepEqual(await cpu().element.locator('.modes [aria-pressed="true"]').evaluateAll((all) => all.map((one) => one.getAttribute("title"))), ["Heat map"]);
});

test("pointing at a cell names it, in its panel only", async () => {
  const box = await cpu().box();
  for (const row of [0, 64, 127]) {
    // The axis begins a pixel above the end of the cells.
    await client.page.mouse.move(box.x + box.width / 2, box.y + Math.min(((row + 0.5) / 128) * box.height, box.height - 1.3));
    await becomes("the cell", async () => (await said("cpu")).join().replace(/\d\d:\d\d:\d\d: [\d.]+ %$/, "TIME: VALUE"), `node ${row}, TIME: VALUE`);
    assert.deepEqual(await said("memory"), []);
  }
  await client.page.mouse.move(5, 5);
  await becomes("no name", () => said("cpu"), []);
});

test("sorted by worst, the busiest node is the first", async () => {
  await cpu().press("Sort by worst");
  const home = `node ${job % 128}`;
  await becomes("the busiest", async () => (await names())[0], home);
  await cpu().press("Sort by worst");
  await becomes("the first", async () => (await names())[0], "node 0");
});

test("it is saved as an image, and lines are a choice that the address keeps", async () => {
  const svg = await readFile((await cpu().save("Image, SVG")).path, "utf8");
  for (const part of ['<image href="data:image/png;base64,', ">node 0<", ">0 – 100 %<"]) assert.ok(svg.includes(part), part);
  await cpu().press("Lines");
  await until("the address", () => /modes=cpu(=|%3D)lines/.test(client.page.url()));
  await client.visit(client.page.url());
  await until("lines", async () => (await cpu().element.locator(".charts.lines").count()) === 1);
  assert.equal(await client.page.locator('[data-panel="memory"] .charts.heat').count(), 1);
  await cpu().press("Heat map");
  await until("the address", () => !/modes=/.test(client.page.url()));
});
