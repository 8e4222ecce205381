// Heat maps, on a machine of 128 nodes.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { afterEach, before, test } from "node:test";
import type { FakeServer } from "../dev/server";
import type { Client } from "./infra/browser";
import { fakeServer } from "./infra/fake";
import { Panel } from "./infra/panel";
import { openWatched, textsOf } from "./infra/texts";
import { becomes, until } from "./infra/until";

let fake: FakeServer;
let client: Client;
let job: number;

before(async () => {
  fake = await fakeServer({ nodes: 128 });
  // A job runs on one node after the other, each for 24 seconds; this is within the time of one.
  job = Math.ceil(fake.started / 24_000) + 3;
  const from = job * 24_000 + 5000;
  client = await openWatched(`${fake.url}#from=${from}&to=${from + 10_000}&panels=cpu,memory`);
});

afterEach(() => assert.deepEqual(client.errors, []));

const cpu = () => new Panel(client, "cpu");
const names = async () => (await textsOf(client.page, "cpu")).texts.map(({ text }) => text).filter((text) => text.startsWith("node "));
const said = (id: string) => client.page.locator(`[data-panel="${id}"] .near-list:visible .chosen > span`).allTextContents();
const listed = (id: string) => client.page.locator(`[data-panel="${id}"] .near-list:visible p > span`).allTextContents();

test("the extremes, what shows all lines and the scale are all in sight", async () => {
  await until("extremes", async () => (await client.page.locator(".legend.many").allTextContents()).some((text) => /^max node \d/.test(text.replaceAll("\u00a0", " "))));
  const hidden = await client.page.locator(".legend.many").evaluateAll((all) => all.filter((one) => one.scrollHeight > one.clientHeight).map((one) => one.textContent));
  assert.deepEqual(hidden, []);
});

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
    await becomes("the cell", async () => (await said("cpu")).join(), `node ${row}`);
    const first = Math.max(0, Math.min(row - 3, 121));
    await becomes("its neighbours", () => listed("cpu"), Array.from({ length: 7 }, (_, at) => `node ${first + at}`));
    assert.deepEqual(await said("memory"), []);
  }
  await client.page.mouse.move(5, 5);
  await becomes("no name", () => said("cpu"), []);
});

test("pointing at a row fades the others", async () => {
  const box = await cpu().box();
  const at = (row: number): [number, number] => [box.x + box.width / 3, box.y + ((row + 0.5) / 128) * box.height];
  /** The colour of a row at two thirds of the width. */
  const colour = (row: number) => client.page.evaluate(([row]) => {
    const plot = window.numakit?.["screen"]?.["board"].list.find((one) => one.spec.id === "cpu")?.["charts"][0]?.plot;
    const { left = 0, top = 0, width = 0, height = 0 } = plot?.bbox ?? {};
    return [...(plot?.ctx.getImageData(left + (width * 2) / 3, top + ((row + 0.5) / 128) * height, 1, 1).data ?? [])].join();
  }, [row] as const);
  const [near, far] = [await colour(64), await colour(10)];
  await client.page.mouse.move(...at(64));
  await until("faded rows", async () => (await colour(10)) !== far);
  assert.equal(await colour(64), near);
  await client.page.mouse.move(5, 5);
  await becomes("all rows", () => colour(10), far);
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
