// `numa show --page RESULT`: the page of results of `numa explain`, from a server and as one file. The results are made up.

import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { Client, NARROW, WIDE } from "./infra/browser";
import { temporary } from "./infra/ending";
import { emulated, madeUp, oneNode, waiting } from "./infra/made-up-result";
import { Numa, runNuma } from "./infra/numa";
import { thorough } from "./infra/thorough";
import { becomes, until } from "./infra/until";

const HOSTILE = "<img src=x onerror=document.title=1>";
let folder: string;
const clients: Client[] = [];

before(async () => {
  folder = await temporary("result");
  const hostile = madeUp();
  hostile.program = HOSTILE;
  hostile.objects.forEach((object) => (object.name = `${HOSTILE}</script>`));
  for (const [name, result] of Object.entries({ four: madeUp(), waiting: waiting(), one: oneNode(), emulated: emulated(), large: madeUp(128, 200), hostile })) {
    await writeFile(join(folder, `${name}.json`), JSON.stringify(result));
  }
});

afterEach(async () => {
  const said = clients.flatMap((client) => client.errors);
  for (const client of clients.splice(0)) await client.context.close();
  assert.deepEqual(said, []);
});

const numa = (...words: string[]) => runNuma(folder, words);

/** Writes a file with these results and opens it; it may request nothing else. */
async function open(names: string[], options: Parameters<typeof Client.open>[1] = {}): Promise<Client> {
  const { code, out, err } = await numa("show", ...names, "--html", "out.html", "--force");
  assert.equal(code, 0, err);
  assert.match(out, /^wrote out\.html: \d+ KiB, /);
  const client = await Client.open(pathToFileURL(join(folder, "out.html")).href, { ready: false, ...options });
  client.page.on("request", (request) => request.url().startsWith("http") && client.errors.push(`asked for ${request.url()}`));
  clients.push(client);
  await until("a result", () => client.page.locator("main.result").count());
  return client;
}

const objects = (client: Client) => client.page.locator("table.objects tbody tr:visible");
const text = async (client: Client, selector: string) => (await client.page.locator(selector).innerText()).replace(/\s+/g, " ");

test("first line, objects with their verdicts, code, contended lines and notes are there", async () => {
  const client = await open(["four.json"]);
  assert.match(await text(client, ".where"), /Remote 41\.0 %.*Kernel 5\.0 % 781,250 page faults.*70\.0 % \(67 to 73 %\) was at memory of other nodes/);
  assert.equal(await client.page.locator(".bar rect").count(), 9);
  assert.equal(await objects(client).count(), 6);
  assert.match(await text(client, "aside"), /one thread touched all of it.*Do: initialise it with the same schedule.*numa run -c 8 --memory interleave \.\/solve 20000.*Worth at most 21\.0 %.*initialise \(solve\.c:52\).*91\.0 % multiply/);
  assert.equal(await client.page.locator("aside .square rect").count(), 16);
  assert.match(await text(client, ".contended-line"), /counters 0x7f001040 .*across nodes; memory of node 0\. False sharing.*4712 \(worker\) 1, 2 40 50 50 16 \(90\)/i);
  assert.match(await text(client, "[aria-label=Code]"), /multiply.*solve\.c:71/);
  assert.match(await text(client, "[aria-label=Samples]"), /perf_event_paranoid is 3.*Samples lost[^.]*: 3\./);
});

test("what the program does stands first, with what is wrong with it as a whole", async () => {
  const client = await open(["waiting.json"]);
  assert.match(await text(client, ".activity"), /^2 of 9 threads are busy; of their CPU time 61\.0 % is waiting for memory outside of the caches, 58\.0 % is in multiply \[solve\]; for 30\.0 % of the time in which they could run they had no CPU\. 3 processes, 2 began meanwhile, 1 have ended\.$/);
  assert.match(await text(client, ".of-program"), /4 busy threads may only use CPU 0\. rule: shared-mask Do: Remove the mask taskset -ap 0-7 4711 Copy Cost: at most 75\.0 % of the time\./);
});

test("waits have their share, object and other end, and locks both call chains", async () => {
  const client = await open(["waiting.json"]);
  const rows = client.page.locator("table.waits tbody tr");
  assert.equal(await rows.count(), 2);
  const row = async (at: number) => (await rows.nth(at).innerText()).replace(/\s+/g, " ");
  assert.equal(await row(0), "60.0 % 3 lock total_lock in 2 processes add < worker in futex");
  assert.equal(await row(1), "40.0 % 1 pipe from cat (12) worker in read");
  // The lock that costs next to nothing has no entry.
  assert.equal(await client.page.locator(".lock").count(), 1);
  assert.match(await text(client, ".lock"), /Lock total_lock 3 threads wait for it 75\.0 % of the time in which they have work\. waits add \(\/src\/solve\.c:21\) worker \(\/src\/solve\.c:40\) held by thread 4712 \(worker\) 90\.0 %, running grow \(\/src\/solve\.c:30\)/);
});

test("objects have their processes and members, and contended lines the processes of their threads", async () => {
  const client = await open(["waiting.json"]);
  await objects(client).nth(1).click();
  await becomes("the selected object", () => client.page.locator("aside h2").innerText(), "counters");
  assert.match(await text(client, "aside"), /Processes 2 x solve: 4711, 4720.*Members of struct counter\[64\].*an element has 24 B\. 98\.0 % \.hits offset 0, 8 B 2\.0 % \.next offset 16, 8 B/);
  assert.match(await objects(client).nth(1).innerText(), /variable, 2 x solve/);
  assert.match(await text(client, ".contended-line"), /4711 \(solve\) of process 4711.*4721 \(worker\) of process 4720/);
});

test("source lines have their part of the time, and a reason where they are not known", async () => {
  const client = await open(["waiting.json"]);
  assert.equal(await client.page.locator("details.source").count(), 2);
  const timed = client.page.locator(".annotated .timed");
  assert.equal(await timed.locator("td").nth(0).innerText(), "100.0 %");
  assert.equal(await timed.locator("td").nth(2).textContent(), "\tsum += a[i][k] * <b>[k][j];");
  assert.equal(await client.page.locator(".annotated .gap").count(), 1);
  await client.page.locator("details.source summary").nth(1).click();
  assert.match(await text(client, "details.source:nth-of-type(2)"), /norm \/src\/norm\.c.*Not shown: No such file or directory \(os error 2\)\./);
});

test("results of older versions have no such parts, and nothing fails", async () => {
  const client = await open(["four.json"]);
  assert.deepEqual(await Promise.all([".activity", "table.waits", "details.source", ".members"].map((selector) => client.page.locator(selector).count())), [0, 0, 0, 0]);
});

test("objects are selected by keyboard and filtered, and absent values say why", async () => {
  const client = await open(["four.json"]);
  await objects(client).first().focus();
  await client.page.keyboard.press("ArrowDown");
  await becomes("the selected object", () => client.page.locator("aside h2").innerText(), "counters");
  assert.match(await text(client, "aside"), /Worth not known: it is not measured\..*First touch Not known/);
  await client.page.keyboard.press("End");
  await client.page.keyboard.press("ArrowDown");
  assert.equal(await client.page.locator("tr[aria-selected=true]").count(), 1);
  await client.page.keyboard.press("/");
  await client.page.keyboard.type("block pool");
  await becomes("what is found", () => objects(client).count(), 1);
  await objects(client).first().click();
  assert.match(await text(client, "aside"), /No verdict.*Size not known.*Home of its pages no sample says it/);
  assert.equal(await objects(client).first().locator("td.absent[title]").count(), 6);
});

test("verdicts are listed first, and lead to their objects", async () => {
  const client = await open(["four.json", "one.json"]);
  const verdicts = client.page.locator(".verdicts button");
  assert.equal(await verdicts.count(), 2);
  await verdicts.nth(1).click();
  await becomes("the selected object", () => client.page.locator("aside h2").innerText(), "counters");
  assert.equal(await client.page.locator("tr[aria-selected=true]").evaluate((row) => row === document.activeElement), true);
  await client.page.getByLabel("Result", { exact: true }).selectOption("one.json");
  assert.match(await text(client, ".where"), /No object has a verdict/);
});

test("the line to try is copied", async () => {
  const client = await open(["four.json"]);
  await client.context.grantPermissions(["clipboard-read", "clipboard-write"]);
  await client.page.getByRole("button", { name: "Copy" }).click();
  await client.notice(/Copied|Selected/);
  assert.equal(await client.page.evaluate(() => navigator.clipboard.readText()), "numa run -c 8 --memory interleave ./solve 20000");
});

test("one node shows no matrix, and an emulated machine no time; both say why", async () => {
  const client = await open(["one.json", "emulated.json"]);
  assert.equal(await client.page.locator(".square").count(), 0);
  assert.match(await text(client, ".whole"), /one node with memory/);
  assert.match(await text(client, ".parts"), /Outside caches 59\.0 %/);
  assert.doesNotMatch(await text(client, "[aria-label=Code] thead >> nth=0"), /Remote/);
  await client.page.getByLabel("Result", { exact: true }).selectOption("emulated.json");
  assert.match(await text(client, ".where"), /time cannot be told/);
  assert.match(await text(client, ".whole"), /% of the pages in use/);
  assert.match(await text(client, "[aria-label='Contended lines']"), /Not told/);
});

for (const [viewport, why] of [[WIDE, null], [NARROW, "a phone"]] as const) thorough(`128 nodes and 200 objects, light and dark, ${viewport.width} pixels wide: all fits`, why, async () => {
  for (const colorScheme of ["light", "dark"] as const) {
    const client = await open(["large.json", "four.json"], { viewport, colorScheme });
    assert.equal(await objects(client).count(), 200);
    assert.equal(await client.page.locator("aside .square image").count(), 1);
    assert.ok((await client.page.evaluate(() => document.documentElement.scrollWidth)) <= viewport.width);
    const inside = () => client.page.locator("main.result").evaluate((main) => main.scrollWidth <= main.clientWidth);
    assert.ok(await inside(), "the page does not scroll sideways");
    await client.page.getByLabel("Result", { exact: true }).selectOption("four.json");
    assert.ok(await inside(), "nor with a matrix of single cells");
  }
});

test("the flame graph is enlarged by a click, and says why another one is not there", async () => {
  const client = await open(["four.json"]);
  const frames = client.page.locator(".flame .frame");
  assert.deepEqual(await frames.allInnerTexts(), ["all", "_start", "main", "multiply", "norm"]);
  const width = async (name: string) => (await client.page.locator(".flame .frame", { hasText: name }).boundingBox())?.width ?? 0;
  const [all, norm] = [await width("all"), await width("norm")];
  assert.ok(Math.abs(norm / all - 1 / 9) < 0.01, `${norm} of ${all}`);
  assert.match(await text(client, ".flame"), /3\.6 s.*node 0 33\.3 % node 1 22\.2 %/);
  await client.page.locator(".flame .frame", { hasText: "norm" }).click();
  assert.deepEqual(await frames.allInnerTexts(), ["all", "_start", "main", "norm"]);
  assert.ok(Math.abs((await width("norm")) - all) < 2);
  await frames.first().click();
  assert.equal(await frames.count(), 5);
  await client.page.getByRole("button", { name: "Resident memory by first touch" }).click();
  assert.match(await text(client, ".flame"), /Not known: no page faults were seen/);
});

test("what another machine would be is beside what this one is, or why it is not told", async () => {
  const client = await open(["four.json", "one.json", "emulated.json"]);
  assert.match(await text(client, ".projected"), /On another machine.*As on node:8 core:8, with its 64 threads.*86\.0 % \(82 to 90 %\) would be at memory of other nodes.*8\.0 % of the time at memory is left out/);
  assert.equal(await client.page.locator(".projected .square rect").count(), 64);
  const rows = client.page.locator("[aria-label='Objects there'] tbody tr");
  assert.equal(await rows.count(), 3);
  assert.match(await rows.first().innerText(), /double \*matrix.*62\.0 %.*node 0.*86\.0 %.*one thread touched all of it.*worth at most 34\.0 %/s);
  assert.equal(await rows.nth(2).locator("td.absent[title]").count(), 5);
  const fill = () => client.page.locator(".projected .square rect").first().evaluate((rect) => getComputedStyle(rect).fill);
  const before = await fill();
  await client.page.keyboard.press("d");
  assert.notEqual(await fill(), before);
  await client.page.getByLabel("Result", { exact: true }).selectOption("one.json");
  assert.equal(await client.page.locator(".projected").count(), 0);
  await client.page.getByLabel("Result", { exact: true }).selectOption("emulated.json");
  assert.match(await text(client, ".projected"), /node:4 Not told: samples of this machine do not tell time\./);
});

test("the theme changes colours of the matrix too", async () => {
  const client = await open(["four.json"], { colorScheme: "light" });
  const fill = () => client.page.locator("aside .square rect").first().evaluate((rect) => getComputedStyle(rect).fill);
  const before = await fill();
  await client.page.keyboard.press("d");
  assert.equal(await client.page.evaluate(() => document.documentElement.dataset.theme), "dark");
  assert.notEqual(await fill(), before);
});

test("names are never markup", async () => {
  const client = await open(["hostile.json"]);
  assert.equal(await client.page.title(), `${HOSTILE}: numakit`);
  assert.equal(await client.page.locator("aside h2").innerText(), `${HOSTILE}</script>`);
});

test("from a server: only with the access key, and it stays when the server ends", async () => {
  const server = await Numa.start({ verb: "show", args: [join(folder, "four.json")] });
  assert.equal((await fetch(`${server.origin}/results`)).status, 401);
  const client = await Client.open(server.viewer, { ready: false, expected: /WebSocket|ERR_CONNECTION/ });
  clients.push(client);
  await becomes("its objects", () => objects(client).count(), 6);
  await server.end();
  await until("the end on the page", () => client.page.evaluate(() => ["ended", "lost"].includes(window.numakit?.["link"].is ?? "")));
  assert.equal(await objects(client).count(), 6);
});

test("damaged and foreign files get a clear message and exit code 2", async () => {
  const whole = JSON.stringify(madeUp());
  for (const [name, content, expected] of [
    ["cut.json", whole.slice(0, 900), /cut\.json is neither a recording nor a result of 'numa explain --json' or 'numa bench --json': EOF/],
    ["foreign.json", '{"traceEvents": []}', /foreign\.json is neither a recording nor a result.*another kind of JSON/],
    ["newer.json", whole.replace('"version":1', '"version":99'), /newer\.json has version 99/],
  ] as const) {
    await writeFile(join(folder, name), content);
    for (const more of [["--html", "none.html"], ["--page", "--no-open"]]) {
      const { code, err } = await numa("show", name, ...more);
      assert.equal(code, 2, name);
      assert.match(err, expected);
    }
  }
  await writeFile(join(folder, "scope.json"), '[["links",2,1700000000000000],["a","b"],[1,5,6]]');
  const { code, err } = await numa("show", "four.json", "scope.json", "--page", "--no-open");
  assert.equal(code, 2);
  assert.match(err, /scope\.json is a recording: show files of one kind at a time/);
});
