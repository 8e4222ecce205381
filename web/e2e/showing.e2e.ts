// What an address brings back, and the picture of the whole page.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { afterEach, before, test } from "node:test";
import type { FakeServer } from "../dev/server";
import { Client } from "./infra/browser";
import { fakeServer } from "./infra/fake";
import { download, Panel } from "./infra/panel";
import { becomes, until } from "./infra/until";

let fake: FakeServer;
let one: Client;

before(async () => {
  fake = await fakeServer({ nodes: 4, two: true });
  one = await Client.open(`${fake.url}#panels=memory,cpu`, { permissions: ["clipboard-read", "clipboard-write"] });
});

afterEach(() => assert.deepEqual(one.errors, []));

const shown = async (client: Client, panel: string) => (await new Panel(client, panel).legend()).filter(({ on }) => on).map(({ name }) => name);
const theme = (client: Client) => client.page.evaluate(() => document.documentElement.dataset.theme);

test("the address has hidden lines, tables, search and theme, in a new browser too", async () => {
  await new Panel(one, "memory").chip("node 1").click();
  await new Panel(one, "cpu").chip("node 2").click({ modifiers: ["Shift"] });
  await new Panel(one, "cpu").press("Table");
  await one.page.getByLabel("Search metrics").fill("mem node2");
  await one.page.getByRole("heading", { name: "CPU busy" }).click();
  await one.page.keyboard.press("d");
  await becomes("the theme", () => theme(one), "dark");
  await until("the address", () => ["hide=memory", "only=cpu", "tables=cpu", "search=mem", "theme=dark"].every((part) => one.page.url().includes(part)));
  const two = await Client.open(one.page.url());
  await becomes("memory", () => shown(two, "memory"), ["node 0", "node 2", "node 3"]);
  assert.deepEqual(await shown(two, "cpu"), ["node 2"]);
  await until("the table", async () => (await new Panel(two, "cpu").table()).length > 1);
  assert.equal(await two.page.getByLabel("Search metrics").inputValue(), "mem node2");
  assert.equal(await theme(two), "dark");
  await two.close();
});

test("lines that are switched on again, and a closed table, leave the address", async () => {
  await new Panel(one, "memory").chip("node 1").click();
  await new Panel(one, "cpu").chip("node 2").click({ modifiers: ["Shift"] });
  await new Panel(one, "cpu").press("Table");
  await one.page.getByLabel("Search metrics").fill("");
  await until("the address", () => !/hide=|only=|tables=|search=/.test(one.page.url()));
});

test("an address with lines that do not exist hides none", async () => {
  await one.visit(`${fake.url}#panels=memory&only=${encodeURIComponent("memory|node.MemUsed@node77")}`);
  assert.equal((await shown(one, "memory")).length, 4);
});

test("one picture has host, time and all panels, machine and nodes", async () => {
  await one.visit(`${fake.url}#panels=memory,cpu,faults`);
  await one.page.getByLabel("Save visible data as CSV").click();
  const { name, path } = await download(one, () => one.page.getByRole("button", { name: "Picture of the page, PNG" }).click());
  assert.equal(name, "quercus-live.png");
  const png = await readFile(path);
  assert.equal(png.subarray(1, 4).toString(), "PNG");
  // Two columns of panels of 960 pixels, one of drawings of 600, at 1.5.
  assert.equal(png.readUInt32BE(16), (16 + 2 * 976 + 616) * 1.5);
  assert.ok(png.readUInt32BE(20) > 900, `${png.readUInt32BE(20)} high`);
  assert.ok(png.length > 40_000, `${png.length} bytes`);
});

test("and is copied to the clipboard", async () => {
  await one.page.getByLabel("Save visible data as CSV").click();
  await one.page.getByRole("button", { name: "Picture of the page, to the clipboard" }).click();
  await one.notice(/Picture copied/);
  const types = await one.page.evaluate(async () => (await navigator.clipboard.read()).flatMap((item) => item.types));
  assert.deepEqual(types, ["image/png"]);
});
