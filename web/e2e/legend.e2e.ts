// The legend has the last value of each drawn line, from the start and without a mouse; what still loads is not absent.

import assert from "node:assert/strict";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { after, before, test } from "node:test";
import { Client } from "./infra/browser";
import { charts, freeze } from "./infra/chart";
import { temporary } from "./infra/ending";
import { Numa, program, runNuma } from "./infra/numa";
import { Panel } from "./infra/panel";
import { until } from "./infra/until";

let folder: string;
let numa: Numa;

before(async () => {
  folder = await temporary("legend");
  await mkdir(join(folder, "run"));
  // Pressure is read ten times a second, other counters 200 times; and it ends before the recording does.
  const command = `sleep 2; ${program()} ctl disable pressure; sleep 4`;
  const { code, err } = await runNuma(folder, ["record", "-i", "5ms", "-o", "a.arrows", "--", "sh", "-c", command]);
  assert.equal(code, 0, err);
  numa = await Numa.start({ verb: "show", args: [join(folder, "a.arrows")] });
});

after(() => numa.close());

/** The drawn lines without a value in the legend; null while nothing is drawn. */
async function without(client: Client): Promise<string[] | null> {
  const wrong: string[] = [];
  let lines = 0;
  for (const id of await Panel.drawn(client)) {
    const legend = await new Panel(client, id).legend();
    const [chart] = await charts(client, id);
    for (const line of chart?.lines ?? []) {
      const value = legend.find(({ name }) => name === line.name)?.value;
      if (value === undefined || !line.values.some((one) => !Number.isNaN(one))) continue;
      lines += 1;
      if (!/\d/.test(value)) wrong.push(`${id}, ${line.name}: ${value}`);
    }
  }
  return lines > 5 ? wrong : null;
}

const every = (client: Client) => until("a value of each drawn line", async () => (await without(client))?.length === 0);

test("numa show --page", async () => {
  const client = await Client.open(numa.controller);
  await every(client);
  // Drawing again, and time, change nothing.
  await client.page.setViewportSize({ width: 1400, height: 900 });
  await every(client);
  await client.close();
});

test("a value that is not the newest says so", async () => {
  const client = await Client.open(numa.controller);
  await client.visit(`${numa.origin}/#panels=m:pressure.cpu_some,faults`);
  const chip = client.page.locator(".chip").first();
  await until("its reason", async () => /No data since 20\d\d-\d\d-\d\d \d\d:\d\d:\d\d UTC/.test((await chip.getAttribute("title")) ?? ""));
  assert.match((await chip.locator(".value").textContent()) ?? "", /\d %/);
  await client.close();
});

test("numa show --html", async () => {
  const { code, err } = await runNuma(folder, ["show", "a.arrows", "--html", "out.html", "--force"]);
  assert.equal(code, 0, err);
  const client = await Client.open(pathToFileURL(join(folder, "out.html")).href);
  await every(client);
  await client.close();
});

test("a frozen live page", async () => {
  const live = await Numa.start({ args: ["-i", "10ms"] });
  const client = await Client.open(live.controller);
  await every(client);
  await freeze(client);
  await every(client);
  await client.close();
  await live.close();
});

test("the pointer on an unbroken line reads a value everywhere", async () => {
  const client = await Client.open(numa.controller);
  await every(client);
  const [chart] = await charts(client, "pressure");
  const begin = (chart?.from ?? 0) + 500;
  await freeze(client, [begin, begin + 1000]);
  const panel = new Panel(client, "pressure");
  await until("single samples", async () => ((await charts(client, "pressure"))[0]?.lines[0]?.times.length ?? 0) > 150);
  for (let at = 0; at < 30; at++) {
    await client.page.mouse.move(...(await panel.point(0.02 + (0.96 * at) / 29)));
    await until("the cursor", async () => (await charts(client, "pressure"))[0]?.cursor !== null);
    const values = (await panel.legend()).map(({ value }) => value);
    assert.ok(values.length > 0 && values.every((value) => /\d/.test(value)), `position ${at}: ${values.join()}`);
  }
  await client.close();
});

test("what is still loading is shown as loading, and a range without samples as empty when it was answered", async () => {
  const client = await Client.open("about:blank", { ready: false });
  await client.page.addInitScript(() => {
    const send = WebSocket.prototype.send;
    // Held until the test lets it go.
    (window as unknown as { held: (() => void)[] }).held = [];
    WebSocket.prototype.send = function (data) {
      if (String(data).includes('"fetch"')) (window as unknown as { held: (() => void)[] }).held.push(() => send.call(this, data));
      else send.call(this, data);
    };
  });
  await client.page.goto(numa.controller);
  await client.ready();
  const notes = () => client.page.locator(".panel .note:visible").allTextContents();
  const values = async () => (await new Panel(client, "faults").legend()).map(({ value }) => value);
  await until("requests", () => client.page.evaluate(() => (window as unknown as { held: unknown[] }).held.length > 1));
  await until("that it loads", async () => (await notes()).length > 3 && (await notes()).every((note) => note === "Loading …"));
  assert.ok((await values()).every((value) => value === "…"), (await values()).join());
  await client.page.evaluate(() => (window as unknown as { held: (() => void)[] }).held.splice(0).forEach((go) => go()));
  await every(client);
  await client.close();
});
