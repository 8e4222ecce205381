// What users see when the server ends or is stopped, or when the observed process ends.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { afterEach, test } from "node:test";
import { Client } from "./infra/browser";
import { caughtUp, charts } from "./infra/chart";
import { Controls } from "./infra/controls";
import { closeAll, endsWithUs } from "./infra/ending";
import { Numa } from "./infra/numa";
import { becomes, pause, until } from "./infra/until";

/** The greatest step between values on the charts here, in ms: it grows with the range. */
const STEP = 500;

/** A page of which nothing leaves the range during a test. */
async function look(numa: Numa): Promise<Client> {
  const client = await Client.open(numa.controller);
  await new Controls(client).span.selectOption("300000");
  return client;
}

const start = (...args: string[]) => Numa.start({ args });

afterEach(closeAll);

/** Times of the visible values of a panel's first line. */
async function measured(client: Client, panel = "faults"): Promise<number[]> {
  const line = (await charts(client, panel))[0]?.lines[0];
  return line?.times.filter((_, row) => !Number.isNaN(line.values[row])) ?? [];
}

/** The longest time between two visible values. */
async function gap(client: Client): Promise<number> {
  const times = await measured(client);
  return Math.max(0, ...times.slice(1).map((time, at) => time - (times[at] ?? 0)));
}

/** Whether there is a value at each of these times. */
const covers = (times: number[], wanted: number[]) => wanted.every((time) => times.some((one) => Math.abs(one - time) <= STEP));

/** The permanent notices of a page that is not connected. */
const standing = (client: Client) => client.page.locator(".notice.bad").allTextContents();

function lineMayBeLost(client: Client): void {
  client.expect(/WebSocket connection to .* failed|ERR_CONNECTION_REFUSED|Failed to load resource/);
}

test("while a page connects it says so", async () => {
  const numa = await start();
  const client = await Client.open("about:blank", { ready: false });
  // The server accepts the connection but does not answer yet.
  let answer = () => {};
  const answered = new Promise<void>((done) => (answer = done));
  await client.page.route("**/session", async (route) => {
    await answered;
    await route.continue();
  });
  await client.page.goto(numa.controller);
  await until("what it says", async () => /Connecting/.test((await client.page.locator("body").textContent()) ?? ""));
  answer();
  await client.ready();
});

test("a page without an access key says what it needs", async () => {
  const numa = await start();
  const client = await Client.open(numa.origin, { ready: false, expected: /401|WebSocket connection/ });
  await until("what to do", async () => /Open the full address that numa printed/.test((await client.page.locator("body").textContent()) ?? ""));
  await client.page.goto(`${numa.origin}/#${"0".repeat(32)}`);
  await until("what is wrong", async () => /access key is not valid for this server/.test((await client.page.locator("body").textContent()) ?? ""));
  // The right address is pasted over the wrong one.
  await client.page.goto(numa.viewer);
  await client.ready();
});

test("a server is killed and restarted: the page keeps its data, says what to do, and continues", async () => {
  const numa = await start("-i", "50ms");
  const client = await look(numa);
  const other = await Client.in(client.context);
  lineMayBeLost(client);
  lineMayBeLost(other);
  await other.page.goto(numa.origin);
  await other.ready();
  await until("three seconds on screen", async () => (await measured(client)).length > 15);
  const seen = await measured(client);
  await numa.end("SIGKILL");
  await until("the lost connection", async () => /connection lost/.test(await client.status()));
  // A gap that is seen.
  await pause(1500);
  await caughtUp(client, "faults");
  const before = await measured(client);
  assert.ok(covers(before, seen), "history stays on screen");
  await numa.run();
  const again = /restarted: open the new address/;
  for (const page of [client, other]) await until("what to do", async () => (await standing(page)).some((text) => again.test(text)));
  assert.ok(covers(await measured(client), before), "history still stays on screen");
  assert.equal(await new Controls(client).pause.isDisabled().catch(() => false), false);

  // Pasting the new address over the old one does not reload the page.
  await client.page.evaluate((hash) => (location.hash = hash), `#${Numa.token(numa.controller)}`);
  await until("the connection", () => client.isLive());
  await until("new samples", async () => (await measured(client)).some((time) => time > (before.at(-1) ?? 0) + 1500));
  assert.ok((await measured(client)).some((time) => time <= (before.at(-1) ?? 0)), "what was before stays");
  const end = before.at(-1) ?? 0;
  const next = (await measured(client)).find((time) => time > end + STEP) ?? 0;
  assert.ok(next - end > 1000, `a gap of ${next - end} ms`);
  assert.ok(!client.page.url().includes(Numa.token(numa.controller)), "no key stays in the address");
  assert.deepEqual(await standing(client), []);
  // The other page of this browser shares its cookies.
  await until("the other page", () => other.isLive());
  other.errors.splice(0);
});

test("a server that ends says so, and the page keeps its charts", async () => {
  const numa = await start("-i", "50ms");
  const client = await Client.open(numa.controller);
  lineMayBeLost(client);
  await until("samples", async () => (await measured(client)).length > 5);
  await numa.ctl("stop");
  await until("the end", async () => /ended/.test(await client.status()));
  assert.ok((await measured(client)).length > 5);
});

test("a server is stopped for seconds: the page continues, and shows a gap", async () => {
  const numa = await start("-i", "50ms");
  const client = await look(numa);
  await until("samples", async () => (await measured(client)).length > 10);
  const last = (await measured(client)).at(-1) ?? 0;
  const lost = (await client.state())?.lost ?? 0;
  numa.signal("SIGSTOP");
  await pause(2500);
  numa.signal("SIGCONT");
  await until("new samples", async () => ((await measured(client)).at(-1) ?? 0) > last + 3000);
  await until("the gap", async () => (await gap(client)) > 1500);
  await until("lost ticks", async () => ((await client.state())?.lost ?? 0) > lost);
});

test("a connection is cut for seconds: the missed samples are fetched", async () => {
  const numa = await start("-i", "50ms");
  const client = await Client.open("about:blank", { ready: false });
  lineMayBeLost(client);
  // The browser's offline mode neither closes a stream nor lets it be closed.
  let isCut = false;
  let cut: (() => Promise<void>) | undefined;
  await client.page.routeWebSocket(/\/stream$/, (stream) => {
    cut = () => stream.close();
    if (isCut) void cut();
    else stream.connectToServer();
  });
  await client.page.goto(numa.controller);
  await client.ready();
  await new Controls(client).span.selectOption("300000");
  await until("samples", async () => (await measured(client)).length > 10);
  isCut = true;
  await cut?.();
  await until("the lost connection", async () => /connection lost/.test(await client.status()));
  const last = (await measured(client)).at(-1) ?? 0;
  await pause(2000);
  isCut = false;
  await until("the connection", () => client.isLive());
  await until("new samples", async () => ((await measured(client)).at(-1) ?? 0) > last + 2500);
  await until("samples of this time", async () => (await measured(client)).some((time) => time > last + 500 && time < last + 1500));
});

test("a sampler that loses ticks is reported", async () => {
  const numa = await start("-i", "1ms");
  const client = await Client.open(numa.controller);
  numa.signal("SIGSTOP");
  await pause(700);
  numa.signal("SIGCONT");
  await until("the warning", async () => /sampler behind: .* ticks lost/.test(await client.status()));
});

test("the observed command ends: page, findings and samples stay until the last viewer leaves", async () => {
  const wait = "while kill -0 $PPID && ! test -e end; do sleep 0.1; done; exit 3";
  const numa = await Numa.start({ args: ["-i", "50ms", "-e", "*"], command: ["sh", "-c", wait] });
  const client = await Client.open(numa.controller);
  await until("samples", async () => (await measured(client)).length > 0);
  await writeFile(numa.file("end"), "");
  await client.notice(/the command ended with status 3/);
  await until("the end on the page", async () => /sampling has ended/.test(await client.status()));
  const samples = (await measured(client)).length;
  assert.ok(samples > 0);
  // It is served, also again and to others.
  await client.page.reload();
  await client.ready();
  await until("its samples", async () => (await measured(client)).length >= samples / 2);
  await until("findings", async () => !/^Looking/.test((await client.page.locator(".verdict").first().textContent()) ?? "Looking"));
  const other = await Client.open(numa.viewer);
  await client.close();
  assert.ok(numa.running);
  await until("samples for the other one", async () => (await measured(other)).length > 0);
  await other.close();
  await becomes("the exit status", () => numa.exitCode, 3);
});

test("after the end of the command, Ctrl-C ends the page too", async () => {
  const numa = await Numa.start({ args: ["-i", "50ms", "-e", "pgfault"], command: ["sh", "-c", "while ! test -e end; do sleep 0.1; done"] });
  const client = await Client.open(numa.controller);
  await writeFile(numa.file("end"), "");
  await client.notice(/the command ended with status 0/);
  lineMayBeLost(client);
  numa.signal("SIGINT");
  await becomes("the exit status", () => numa.exitCode, 0);
});

test("an observed process ends: its memory becomes 0, and the page continues", async () => {
  const process = endsWithUs(spawn("sleep", ["600"]));
  const numa = await start("-i", "50ms", "-p", String(process.pid));
  const client = await Client.open(`${numa.controller}`);
  const chip = client.page.locator('[data-panel="tasks"] .chip').first();
  const memory = async () => (await chip.locator(".value").textContent()) ?? "";
  await until("its memory", async () => /[1-9]/.test(await memory()));
  process.kill("SIGKILL");
  await becomes("its memory", memory, "0 B");
  const last = (await measured(client)).at(-1) ?? 0;
  await until("samples of others", async () => ((await measured(client)).at(-1) ?? 0) > last + 500);
});

test("before the first sample the page waits for it", async () => {
  const numa = await start("-i", "1h");
  const client = await Client.open(numa.controller, { ready: false });
  await until("what is shown", async () => /no samples in this range|waiting for samples|Waiting/i.test(await client.page.evaluate(() => document.body.innerText + [...document.querySelectorAll(".charts")].map((one) => getComputedStyle(one, "::after").content).join(" "))));
  await new Controls(client).interval.selectOption("50ms");
  await client.ready();
  await becomes("the interval", async () => (await client.state())?.interval_ns, 5e7);
});
