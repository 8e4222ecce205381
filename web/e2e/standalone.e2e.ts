// `numa show --html`: page and recordings in one file, opened from the disk.

import assert from "node:assert/strict";
import { readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, before, describe, test } from "node:test";
import { pathToFileURL } from "node:url";
import { Client, NARROW } from "./infra/browser";
import { charts, drawnAt, range } from "./infra/chart";
import { temporary } from "./infra/ending";
import { runNuma } from "./infra/numa";
import { Panel } from "./infra/panel";
import { Known } from "./infra/recording";
import { thorough } from "./infra/thorough";
import { becomes, until } from "./infra/until";

/** A recording of NUMAscope whose name must be escaped. */
const HOSTILE = "<img src=x onerror=document.title=1>.json";
const ORIGINAL = JSON.stringify([["links", 2, 1_700_000_000_000_000], ["bytes:0", "bytes:1"], [1, 5, 6], [2, 7, 9]]);

let folder: string;
let known: Known;
const clients: Client[] = [];

before(async () => {
  folder = await temporary("file");
  known = await Known.write(join(folder, "a.arrows"), { series: 30, rows: 60_000, intervalMs: 10 });
  await Known.write(join(folder, "b.arrows"), { series: 30, rows: 3000, intervalMs: 10, startedS: 1_700_300_000 });
  await writeFile(join(folder, HOSTILE), ORIGINAL);
});

afterEach(async () => {
  const said = clients.flatMap((client) => client.errors);
  for (const client of clients.splice(0)) await client.context.close();
  assert.deepEqual(said, []);
});

/** Writes a file with recordings; returns the output of numa. */
async function write(...words: string[]): Promise<string> {
  const { code, out, err } = await runNuma(folder, ["show", ...words, "--html", "out.html", "--force"]);
  assert.equal(code, 0, err);
  return out.trim();
}

/** Opens the file, and checks that it requests nothing else. */
async function open(fragment = "", narrow = false): Promise<Client> {
  const address = pathToFileURL(join(folder, "out.html")).href;
  const client = await Client.open(`${address}${fragment}`, narrow ? { viewport: NARROW } : {});
  client.page.on("request", (request) => request.url().startsWith("http") && client.errors.push(`asked for ${request.url()}`));
  clients.push(client);
  return client;
}

const panels = "panels=m:test.row,m:test.spike";

describe("every sample", () => {
  before(async () => {
    assert.match(await write("a.arrows", "b.arrows", HOSTILE), /^wrote out\.html: [\d.]+ MiB, every sample of a\.arrows; every sample of b\.arrows; every sample of <img/);
  });

  test("it opens without a server, and shows no control that needs one", async () => {
    const client = await open(`#${panels}`);
    assert.equal(await client.status(), "standalone file");
    const shown = await client.page.locator("header.top button:visible, .side button:visible").evaluateAll((all) => all.map((one) => one.getAttribute("aria-label") ?? ""));
    assert.ok(shown.length > 2 && !shown.some((name) => /record|pause|add a label|live/i.test(name)), shown.join());
    await client.page.keyboard.press("n");
    assert.equal(await client.page.locator("dialog[open]").count(), 0);
  });

  test("the findings of the whole recording are on the strip", async () => {
    const client = await open(`#from=${known.timeMs(2200)}&to=${known.timeMs(2400)}&${panels}`);
    const strip = client.page.getByRole("region", { name: "Findings" });
    await until("the verdict", async () => /^Page faults wait for storage/.test((await strip.locator(".verdict").textContent()) ?? ""));
    assert.match((await strip.locator(".cost").textContent()) ?? "", /all of the recording, whatever is on screen$/);
  });

  test("zoom reaches single samples, the cursor shows them, and both are saved", async () => {
    const [from, to] = [known.timeMs(2200), known.timeMs(2400)];
    const client = await open(`#from=${from}&to=${to}&${panels}`);
    const panel = new Panel(client, "m:test.row");
    await until("single samples", async () => (await charts(client, "m:test.row"))[0]?.lines[0]?.times.length === 200 || (await charts(client, "m:test.row"))[0]?.lines[0]?.times.length === 201);
    const [line] = (await charts(client, "m:test.row"))[0]?.lines ?? [];
    line?.times.forEach((time, at) => assert.equal(line.values[at], known.value("test.row", known.rowAt(time))));
    await client.page.mouse.move(...(await panel.point(0.5)));
    const cursor = await until("a cursor", async () => (await charts(client, "m:test.row"))[0]?.cursor);
    assert.equal((await panel.legend())[0]?.value, String(known.value("test.row", known.rowAt(cursor))));
    const saved = await panel.save("Visible data, CSV");
    assert.ok((await readFile(saved.path, "utf8")).split("\n").length > 200);
    for (const [item, begin] of [["Image, PNG", "\x89PNG"], ["Image, SVG", "<svg"]] as const) {
      assert.ok((await readFile((await panel.save(item)).path, "latin1")).startsWith(begin), item);
    }
    await client.page.keyboard.press("a");
    await until("all of it", async () => (await range(client, "m:test.row"))[1] >= known.endedMs - 1);
  });

  test("search and tables work", async () => {
    const client = await open(`#${panels}`);
    await client.page.getByLabel("Search metrics").fill("test.spi");
    await becomes("what is found", () => client.page.locator(".tree .entry .name").allTextContents(), ["test.spike"]);
    const panel = new Panel(client, "m:test.row");
    await panel.press("Table");
    assert.ok((await panel.table()).length > 1);
  });

  test("a second recording is drawn over the first", async () => {
    const client = await open(`#from=${known.timeMs(0)}&to=${known.timeMs(200)}&${panels}`);
    await client.page.getByLabel("Compare with", { exact: true }).selectOption({ label: "b.arrows" });
    const panel = new Panel(client, "m:test.row");
    await client.page.mouse.move(...(await panel.point(0.5)));
    await until("no difference", async () => /\(B \+0\)/.test((await panel.legend())[0]?.value ?? ""));
  });

  test("the comparison of both recordings is the one of numa show, whatever is on screen", async () => {
    const client = await open(`#from=${known.timeMs(0)}&to=${known.timeMs(200)}&${panels}&beside=1`);
    const { out } = await runNuma(folder, ["show", "--json", "a.arrows", "b.arrows"]);
    const { headline } = JSON.parse(out) as { headline: { verdict: string } };
    const said = client.page.getByRole("region", { name: "Comparison", exact: true });
    await becomes("the verdict", () => said.getByRole("status").textContent(), headline.verdict);
    assert.match((await said.textContent()) ?? "", /All of both recordings: /);
  });

  test("a name is never markup", async () => {
    const client = await open();
    await client.page.getByLabel("Data source").selectOption({ label: HOSTILE });
    await until("its name", async () => (await client.page.locator(".about").textContent())?.includes(HOSTILE));
    assert.equal(await client.page.title(), "numakit");
  });

  thorough("it fits on a phone", "a phone", async () => {
    const client = await open(`#${panels}`, true);
    assert.ok((await client.page.evaluate(() => document.documentElement.scrollWidth)) <= NARROW.width);
  });
});

test("if the size limit is too small there are buckets, and every spike is visible in them", async () => {
  const said = await write("a.arrows", "--size", "1MiB");
  const step = /^wrote out\.html: [\d.]+ MiB, a\.arrows downsampled to buckets of (\d+)ms$/.exec(said)?.[1];
  assert.ok(step, said);
  assert.ok((await stat(join(folder, "out.html"))).size <= 1 << 20);
  const client = await open(`#${panels}`);
  assert.equal(await client.status(), `standalone file, buckets of ${step} ms`);
  await client.page.keyboard.press("a");
  assert.ok(known.spikes.length > 0);
  for (const spike of known.spikes.slice(0, 5)) await until(`spike ${spike}`, () => drawnAt(client, "m:test.spike", known.timeMs(spike), 900));
  const { path } = await new Panel(client, "m:test.spike").save("Visible data, CSV");
  assert.match(await readFile(path, "utf8"), /max/);
});

test("a truncated file is reported", async () => {
  await write("b.arrows");
  const whole = await readFile(join(folder, "out.html"), "utf8");
  const [first] = /(?<=octet-stream">)[^<]+/.exec(whole) ?? [""];
  await writeFile(join(folder, "out.html"), whole.replace(first, first.slice(0, 400)));
  const client = await Client.open(pathToFileURL(join(folder, "out.html")).href, { ready: false });
  clients.push(client);
  await until("what is wrong", async () => (await client.page.locator("body").textContent())?.includes("This file cannot be read"));
});
