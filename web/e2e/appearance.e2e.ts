// What the page looks like in states that this machine does not have: other themes, comparisons, a sampler behind.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { afterEach, before, test } from "node:test";
import type { FakeServer } from "../dev/server";
import type { Client } from "./infra/browser";
import { fakeServer } from "./infra/fake";
import { Panel } from "./infra/panel";
import { openWatched, textsOf } from "./infra/texts";
import { thorough } from "./infra/thorough";
import { becomes, until } from "./infra/until";

let fake: FakeServer;
const open: Client[] = [];

before(async () => {
  fake = await fakeServer({ nodes: 4, two: true });
});

afterEach(async () => {
  for (const client of open.splice(0)) await client.close();
});

async function look(fragment = "", options = {}): Promise<Client> {
  const client = await openWatched(`${fake.url}${fragment}`, options);
  open.push(client);
  return client;
}

test("charts take the colours of the system's theme when it changes", async () => {
  const client = await look("#panels=faults", { colorScheme: "light" });
  const colours = async () => [...new Set((await textsOf(client.page, "faults")).texts.map(({ colour }) => colour))];
  const quiet = () => client.page.evaluate(() => getComputedStyle(document.documentElement).getPropertyValue("--quiet").trim());
  const light = await quiet();
  await becomes("labels of the light theme", async () => (await colours()).includes(light), true);
  await client.page.emulateMedia({ colorScheme: "dark" });
  const dark = await quiet();
  assert.notEqual(dark, light);
  await becomes("labels of the dark theme", async () => (await colours()).includes(dark) && !(await colours()).includes(light), true);
});

test("a sampler that is behind says how many ticks it lost, for longer than one drawing", async () => {
  const client = await look();
  const { clock } = client.page;
  const now = Date.now();
  await clock.setFixedTime(now);
  fake.state.lost += 77;
  fake.tell();
  await becomes("the warning", () => client.status(), "sampler behind: 77 ticks lost in 10 s, 100/s");
  await clock.setFixedTime(now + 9999);
  fake.state.lost += 193;
  fake.tell();
  await becomes("the sum", () => client.status(), "sampler behind: 270 ticks lost in 10 s, 100/s");
  await clock.setFixedTime(now + 19_999);
  fake.tell();
  await until("its end", async () => /^live/.test(await client.status()));
});

for (const [width, why] of [[1440, null], [1920, "another width"]] as const) {
  thorough(`all columns of a comparison's table are visible, ${width} pixels`, why, async () => {
    const client = await look("#source=1&beside=0&panels=faults,memory,cpu", { viewport: { width, height: 900 } });
    for (const id of ["faults", "memory"]) await new Panel(client, id).press("Table");
    for (const id of ["faults", "memory"]) {
      const panel = new Panel(client, id);
      await until("the columns", async () => (await panel.table())[0]?.includes("difference") && (await panel.table()).length > 2);
      const [box = 0, table = 0] = await panel.element.locator(".table-box").evaluate((one) => [one.clientWidth, one.scrollWidth]);
      assert.ok(table <= box, `${id}: ${table} of ${box} pixels`);
    }
  });
}

test("freezing one's display and pausing the sampler have different icons", async () => {
  const client = await look();
  const icons = () => client.page.locator("header.top .buttons:not(.tools) button:visible path").evaluateAll((all) => all.map((one) => one.getAttribute("d")));
  const differ = async () => assert.equal(new Set(await icons()).size, (await icons()).length);
  await differ();
  await client.page.keyboard.press("Space");
  await until("the frozen page", async () => (await client.view())?.follow === false);
  await differ();
  assert.equal((await icons()).length, 4, "display, sampler, recording, label");
});

test("after the last panel is closed, a button opens the default ones", async () => {
  const client = await look("#panels=faults");
  await new Panel(client, "faults").press("Close panel");
  await client.page.getByRole("button", { name: "Open the default panels" }).click();
  await until("the default panels", async () => (await Panel.all(client)).length > 5);
  assert.equal(await client.page.locator(".empty").count(), 0);
});

test("a saved picture names the host, the date and the compared source", async () => {
  const from = Date.UTC(2026, 10, 24, 9, 59, 58);
  const client = await look(`#from=${from}&to=${from + 60_000}&panels=memory&source=0&beside=1`, { timezoneId: "Europe/Berlin" });
  const svg = await readFile((await new Panel(client, "memory").save("Image, SVG")).path, "utf8");
  assert.match(svg, />quercus · 2026-11-24 09:59:58 to 10:00:58 UTC · dashed: before\.arrows</);
});

test("the bars of the machine view are as long as memory in use, within their node", async () => {
  const client = await look();
  const bars = () => client.page.locator(".machine g[transform]").evaluateAll((nodes) => nodes.map((node) => {
    const [used, back] = [".used", ".used-back"].map((name) => node.querySelector(name)?.getBoundingClientRect());
    return [Number(used?.width) / Number(back?.width), Number(used?.height) / Number(back?.height)];
  }));
  await until("memory in use", async () => (await bars()).every(([width = 0]) => width > 0));
  const all = await bars();
  assert.equal(all.length, 4);
  for (const [width = NaN, height] of all) assert.ok(width < 0.95 && height === 1, JSON.stringify(all));
});
