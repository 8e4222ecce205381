// Comparison of two sources: recordings, a recording and live data, recordings of NUMAscope.

import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { before, describe, test } from "node:test";
import { Client } from "./infra/browser";
import { charts, range } from "./infra/chart";
import { Controls } from "./infra/controls";
import { onScreen } from "./infra/csv";
import { temporary } from "./infra/ending";
import { Numa } from "./infra/numa";
import { Panel } from "./infra/panel";
import { Known } from "./infra/recording";
import { becomes, until } from "./infra/until";

let folder: string;
let first: Known;
let second: Known;

before(async () => {
  folder = await temporary("compare");
  first = await Known.write(join(folder, "first.arrows"), { series: 20, rows: 6000, intervalMs: 10 });
  second = await Known.write(join(folder, "second.arrows"), { series: 20, rows: 4000, intervalMs: 10, startedS: 1_700_300_000 });
});

/** Moves the cursor to the middle of a panel; returns the sample there and the text of the legend. */
async function atCursor(client: Client, panel: Panel, known: Known): Promise<{ row: number; text: string }> {
  await client.page.mouse.move(...(await panel.point(0.5)));
  const cursor = await until("a cursor", async () => (await charts(client, panel.id))[0]?.cursor);
  return { row: known.rowAt(cursor), text: (await panel.legend())[0]?.value ?? "" };
}

describe("two recordings", () => {
  let numa: Numa;
  let one: Client;
  const rows = (client = one) => new Panel(client, "m:test.row");
  const pick = (client: Client, label: string) => client.page.getByLabel(label, { exact: true });
  /** The text after `value` if the second recording is shifted by that number of samples. */
  const said = (row: number, earlier: number) => {
    const difference = (row % 1000) - ((row - earlier) % 1000);
    return `${row % 1000} (B ${difference > 0 ? "−" : "+"}${Math.abs(difference)})`;
  };

  before(async () => {
    numa = await Numa.start({ verb: "show", args: [first.path, second.path] });
    one = await Client.open(numa.controller);
    const [from, to] = [first.timeMs(2200), first.timeMs(2400)];
    await one.visit(`${numa.origin}/#from=${from}&to=${to}&panels=m:test.row,m:test.spike`);
    await until("single samples", async () => (await onScreen(rows())).names.length === 1);
  });

  test("are aligned at their starts", async () => {
    await pick(one, "Compare with").selectOption({ label: second.path });
    await until("the second next to the first", async () => {
      const { row, text } = await atCursor(one, rows(), first);
      return text === said(row, 0);
    });
  });

  test("or at a label that both have, with the differences in legend and table", async () => {
    await becomes("the choice", () => pick(one, "Align at").locator("option").allTextContents(),
      ["at the start", ...[0, 1, 2, 3].map((phase) => `at ‘phase ${phase}’`)]);
    await pick(one, "Align at").selectOption({ label: "at ‘phase 1’" });
    // `phase 1` is sample 1500 of the first and 1000 of the second.
    await until("the second at the label", async () => {
      const { row, text } = await atCursor(one, rows(), first);
      return text === said(row, 500);
    });
    await rows().press("Table");
    // Samples 2200 to 2400 against 1700 to 1900: on average 300 against 800.
    await until("the table", async () => {
      const [head = [], line = []] = await rows().table();
      const cell = (name: string) => line[head.indexOf(name)];
      return cell("mean") === "300" && cell(`of ${second.path}`) === "800" && cell("difference") === "+500";
    });
    await rows().press("Table");
  });

  test("say of all of both what numa show says of them, row by row", async () => {
    const all = await Client.open(`${numa.controller}`);
    await pick(all, "Compare with").selectOption({ label: second.path });
    const said = all.page.getByRole("region", { name: "Comparison", exact: true });
    const { out } = await numa.call("show", "--json", first.path, second.path);
    const report = JSON.parse(out) as { headline: { verdict: string; change: string; action: string }; program: { name: string }[]; machine: { name: string }[] };
    await becomes("the verdict", () => said.getByRole("status").textContent(), report.headline.verdict);
    const about = await said.locator("p.quiet").first().locator("span").allTextContents();
    assert.deepEqual(about.slice(0, 2), [`Change: ${report.headline.change}`, `Do: ${report.headline.action}`]);
    assert.ok(about.some((text) => text.startsWith("All of both recordings: ")), about.join("; "));
    const more = said.getByRole("button", { name: /^all \d/ });
    if ((await more.count()) > 0) await more.click();
    const names = await said.locator("tbody th").evaluateAll((cells) => cells.map((cell) => cell.querySelector("[title]")?.getAttribute("title")?.split("\n")[0]));
    assert.deepEqual(names, [...report.program, ...report.machine].map(({ name }) => name));
    await all.close();
  });

  test("the address contains the comparison", async () => {
    await until("the address", () => /beside=1/.test(one.page.url()) && /at=phase\+1/.test(one.page.url()));
    const two = await Client.open(numa.viewer);
    await two.visit(one.page.url());
    await until("the same comparison", async () => {
      const { row, text } = await atCursor(two, rows(two), first);
      return text === said(row, 500);
    });
    const [same, other] = [await range(one, "m:test.row"), await range(two, "m:test.row")];
    same.forEach((ms, at) => assert.ok(Math.abs(ms - (other[at] as number)) < 0.01, `${same} and ${other}`));
    await two.close();
  });

  test("can be swapped", async () => {
    await pick(one, "Data source").selectOption({ label: second.path });
    await until("all of the second", async () => {
      const [from, to] = await range(one, "m:test.row");
      return Math.abs(from - second.startedMs) < 1 && Math.abs(to - second.endedMs) < 1;
    });
    assert.equal(await pick(one, "Compare with").locator("option:checked").textContent(), first.path);
    // All of the second: samples 0 to 3999 against 500 to 4499.
    await rows().press("Table");
    await until("the first next to it", async () => {
      const [head = [], line = []] = await rows().table();
      return /^\d/.test(line[head.indexOf(`of ${first.path}`)] ?? "");
    });
    await rows().press("Table");
    await pick(one, "Compare with").selectOption({ label: "Compare with …" });
    await until("only the second", async () => !(await atCursor(one, rows(), second)).text.includes("("));
  });
});

test("a recording is uploaded to a live page and compared with live data", async () => {
  const numa = await Numa.start({ args: ["-i", "50ms"] });
  const one = await Client.open(numa.controller);
  await new Controls(one).load(first.path);
  const faults = new Panel(one, "faults");
  await until("the recording on screen", async () => {
    const [from, to] = await range(one, "faults").catch(() => [0, 0]);
    return Math.abs(from - first.startedMs) < 1 && Math.abs(to - first.endedMs) < 1;
  });
  assert.equal(await one.page.getByLabel("Compare with", { exact: true }).locator("option", { hasText: ", live" }).count(), 1);
  await one.page.getByLabel("Data source", { exact: true }).selectOption("0");
  await until("live again", () => one.isLive());
  await one.page.getByLabel("Compare with", { exact: true }).selectOption({ label: "first.arrows" });
  await faults.press("Table");
  await until("the recording next to it", async () => {
    const [head = [], line = []] = await faults.table();
    return /^\d/.test(line[head.indexOf("of first.arrows")] ?? "") && /^[+−]\d/.test(line[head.indexOf("difference")] ?? "");
  });
  await one.close();
  await numa.close();
});

describe("recordings of NUMAscope", () => {
  const start = 1_600_000_000;
  const samples = (values: (row: number) => number[]) =>
    Array.from({ length: 600 }, (_, row) => `[${(start * 10 + row) * 100_000},${values(row).join()}]`);

  async function shown(name: string, text: string, look: (client: Client) => Promise<void>): Promise<void> {
    const path = join(folder, name);
    await writeFile(path, text);
    const numa = await Numa.start({ verb: "show", args: [path] });
    const one = await Client.open(numa.controller, { ready: false });
    await until("the list", async () => (await one.page.locator(".tree").count()) > 0);
    await look(one);
    await one.close();
  }

  const open = (client: Client, metric: string) => client.visit(`${client.page.url().split("#")[0]}#panels=m:${metric}`);

  test("with kernel metrics only", async () => {
    const rows = samples((row) => [row % 50, row === 300 ? 9000 : 2]);
    rows.splice(100, 0, `["label",${(start + 10) * 1_000_000},"phase 2"]`);
    await shown("kernel.json", `[["Linux Kernel", 1, 0],\n["pgfault","pgmajfault"],\n${rows.join(",\n")}]\n`, async (one) => {
      await one.page.getByLabel("Search metrics").fill("vmstat");
      await becomes("the list", () => one.page.locator(".tree .entry .name").allTextContents(), ["vmstat.pgfault", "vmstat.pgmajfault"]);
      await open(one, "vmstat.pgmajfault");
      const panel = new Panel(one, "m:vmstat.pgmajfault");
      const saved = await until("its samples", async () => {
        const saved = await onScreen(panel);
        return saved.times.length === 600 ? saved : null;
      });
      assert.equal(saved.columns[0]?.[300], 9000);
      assert.equal(saved.times[0], start * 1000);
      await until("its label", async () => (await one.page.locator(".sides").textContent())?.includes("phase 2"));
    });
  });

  test("with metrics of cards", async () => {
    const rows = samples((row) => [row * 1e5, 2e5 * row]);
    await shown("cards.json", `[["NumaConnect2",2,200000000],\n["cycles:0","cycles:1"],\n${rows.join(",\n")}]\n`, async (one) => {
      await open(one, "numaconnect2.n2Cyc");
      const panel = new Panel(one, "m:numaconnect2.n2Cyc");
      await until("both cards", async () => (await panel.legend()).length === 2);
      const saved = await until("its samples", async () => {
        const saved = await onScreen(panel);
        return saved.times.length === 600 ? saved : null;
      });
      // Relative to the maximum that the card can count in a second.
      assert.deepEqual([saved.columns[0]?.[250], saved.columns[1]?.[250]], [12.5, 25]);
    });
  });

  test("a finding of a card opens its numbers, in a range with samples", async () => {
    const wait = "wait cycles for requests from from SIU to RMPE";
    const rows = samples((row) => [5e6, row > 60 ? 194e6 : 4e6]);
    await shown("wait.json", `[["NumaConnect2",2,200000000],\n["${wait}:0","${wait}:1"],\n${rows.join(",\n")}]\n`, async (one) => {
      const finding = one.page.locator('.finding[data-rule="saturated-card"]').first();
      await until("the finding", async () => (await finding.count()) > 0);
      await finding.click();
      const id = "m:card_wait@card1";
      await becomes("its panel", () => one.page.locator(".panel:not(.faded)").evaluateAll((all) => all.map((panel) => panel.getAttribute("data-panel"))), [id]);
      await until("its values", async () => ((await charts(one, id))[0]?.lines[0]?.values ?? []).some((value) => Math.abs(value - 97) < 0.1));
      const [from, to] = await range(one, id);
      assert.ok(from > start * 1000 && to > start * 1000 + 59_000 && to - from > 50_000, `${from} to ${to}`);
    });
  });
});
