// A recording that is still being read. The messages of the server are held back, so that every step can be seen.

import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { before, test } from "node:test";
import type { FromServer, SourceInfo, ToServer } from "../src/wire";
import { Client } from "./infra/browser";
import { temporary } from "./infra/ending";
import { Numa } from "./infra/numa";
import { until } from "./infra/until";

const ROWS = Array.from({ length: 200 }, (_, row) => `[${row * 10_000},${row * 30},0]`);
const RECORDING = `[["Linux Kernel", 1, 0],\n["pgfault","pgmajfault"],\n${ROWS.join(",\n")}]\n`;

let files: string[];
let numa: Numa;

before(async () => {
  const folder = await temporary("opening");
  files = ["a.json", "b.json"].map((name) => join(folder, name));
  for (const file of files) await writeFile(file, RECORDING);
  numa = await Numa.start({ verb: "show", args: files });
});

/**
 * A page whose first message says that all sources are still being opened, or with `opening` false that there is none; `tell` sends it a
 * message. `asked`: what it requests; `cut` ends its connection.
 */
async function early({ opening = true } = {}): Promise<{ one: Client; hello: FromServer & { type: "hello" }; tell(message: FromServer): void; asked: ToServer[]; cut(): Promise<void> }> {
  const one = await Client.open("about:blank", { ready: false });
  let tell: ((message: FromServer) => void) | undefined;
  let hello: (FromServer & { type: "hello" }) | undefined;
  const asked: ToServer[] = [];
  let cut: (() => Promise<void>) | undefined;
  await one.page.routeWebSocket(/\/stream$/, (page) => {
    const server = page.connectToServer();
    tell = (message) => page.send(JSON.stringify(message));
    cut = () => page.close();
    page.onMessage((data) => {
      asked.push(JSON.parse(String(data)) as ToServer);
      server.send(data);
    });
    server.onMessage((data) => {
      const message = typeof data === "string" ? (JSON.parse(data) as FromServer) : null;
      if (message?.type !== "hello") return page.send(data);
      hello = message;
      page.send(JSON.stringify({ ...message, sources: [], opening: opening ? message.sources.map(({ name }) => ({ name, percent: 0 })) : [] }));
    });
  });
  await one.page.goto(numa.controller);
  await until("the first message", async () => hello !== undefined);
  return { one, hello: hello!, tell: (message) => tell!(message), asked, cut: () => cut!() };
}

test("a page shows how much was read, then the recording; a second one arrives behind it", async () => {
  const { one, hello, tell } = await early();
  const [a, b] = hello.sources as [SourceInfo, SourceInfo];
  const shown = () => one.page.locator(".full").textContent();
  await until("what is opened", async () => (await shown()) === `Opening${a.name}: 0 %, ${b.name}: 0 %`);
  tell({ type: "opening", opening: [{ name: a.name, percent: 34 }, { name: b.name, percent: 0 }] });
  await until("its progress", async () => (await shown()) === `Opening${a.name}: 34 %, ${b.name}: 0 %`);
  tell({ type: "source", source: a });
  tell({ type: "opening", opening: [{ name: b.name, percent: 0 }] });
  await one.ready();
  assert.deepEqual(await one.notices(), []);
  tell({ type: "source", source: b });
  tell({ type: "opening", opening: [] });
  await one.notice(/^Opened .*b\.json/);
  await one.close();
});

test("a page whose address names the second recording waits for it", async () => {
  const { one, hello, tell } = await early();
  const [a, b] = hello.sources as [SourceInfo, SourceInfo];
  await one.page.evaluate(() => Object.assign(window.numakit!.view, { source: 1 }));
  tell({ type: "source", source: a });
  tell({ type: "opening", opening: [{ name: b.name, percent: 7 }] });
  await until("the second", async () => (await one.page.locator(".full").textContent()) === `Opening${b.name}: 7 %`);
  tell({ type: "source", source: b });
  await one.ready();
  assert.equal((await one.view())?.source, 1);
  await one.close();
});

test("a part of a recording is shown while the rest is read, and requested again as it grows", async () => {
  const { one, hello, tell, asked } = await early();
  const [a] = hello.sources as [SourceInfo];
  const fetches = () => asked.filter(({ type }) => type === "fetch").length;
  const findings = () => asked.filter(({ type }) => type === "findings").length;
  const first = a.name;
  tell({ type: "source", source: { ...a, read_percent: 40 } });
  await one.ready();
  const verdict = () => one.page.locator(".verdict").textContent();
  await until("the part", async () => (await verdict()) === `40 % of ${first} was read so far`);
  await until("its samples", async () => fetches() > 0 && findings() > 0);
  const [fetched, judged] = [fetches(), findings()];
  const panels = (await one.view())?.panels;
  tell({ type: "source", source: { ...a, read_percent: 73 } });
  await until("more of it", async () => fetches() > fetched && findings() > judged);
  const grown = fetches();
  tell({ type: "source", source: a });
  tell({ type: "opening", opening: [] });
  await one.notice(/^Opened .*a\.json/);
  await until("all of it", async () => fetches() > grown && !(await verdict())?.includes("so far"));
  assert.deepEqual((await one.view())?.panels, panels);
  await one.close();
});

test("a page whose connection was lost meanwhile shows all of it", async () => {
  const { one, hello, tell, asked, cut } = await early();
  const [a] = hello.sources as [SourceInfo];
  const known = () => one.page.evaluate(() => window.numakit?.["sources"].map(({ read_percent }) => read_percent));
  const fetches = () => asked.filter(({ type }) => type === "fetch").length;
  tell({ type: "source", source: { ...a, read_percent: 40 } });
  await one.ready();
  await until("its samples", async () => fetches() > 0);
  assert.deepEqual(await known(), [40]);
  const before = fetches();
  await cut();
  await until("the next connection", async () => (await one.page.evaluate(() => window.numakit?.["arriving"] ?? null)) !== null);
  tell({ type: "source", source: a });
  await until("all of it", async () => (await known())?.join() === "" && fetches() > before);
  await one.close();
});

test("a page that is earlier than the first source shows it when it comes, and keeps it when the server restarts", async () => {
  const { one, hello, tell, asked, cut } = await early({ opening: false });
  const [a] = hello.sources as [SourceInfo];
  const fetches = () => asked.filter(({ type }) => type === "fetch").length;
  await until("what is missing", async () => (await one.page.locator(".full").textContent()) === "Nothing to showThe server has no data source.");
  tell({ type: "source", source: a });
  await one.ready();
  await until("its samples", async () => fetches() > 0);
  const before = fetches();
  await cut();
  await until("the next connection", async () => (await one.page.evaluate(() => window.numakit?.["arriving"] ?? null)) !== null);
  assert.equal(await one.page.locator(".panel").count() > 0, true, "the panels stay");
  tell({ type: "source", source: a });
  await until("the same source", async () => fetches() > before);
  assert.deepEqual(await one.notices(), []);
  await one.close();
});
