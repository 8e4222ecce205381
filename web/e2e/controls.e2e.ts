// The top bar: what changes one page and what changes all.

import assert from "node:assert/strict";
import { readFile, stat } from "node:fs/promises";
import { test } from "node:test";
import { Client } from "./infra/browser";
import { charts, range } from "./infra/chart";
import { Controls } from "./infra/controls";
import { download, Panel } from "./infra/panel";
import { stage } from "./infra/stage";
import { becomes, until } from "./infra/until";

const s = stage({ args: ["-i", "50ms"] }, 2);

/** The newest sample that a page has, in ms. */
const newest = async (client: Client) => ((await client.state())?.history.to_ns ?? 0) / 1e6;

test("freeze stops one page, live continues it", async () => {
  const { follow } = new Controls(s.one);
  await follow.click();
  const held = await range(s.one, "faults");
  await until("more samples", async () => (await newest(s.one)) > held[1] + 1500);
  assert.deepEqual(await range(s.one, "faults"), held);
  assert.match(await s.one.status(), /^(frozen|sampler behind)/);
  assert.ok(await s.two.isLive(), "the other page continues");
  assert.ok((await range(s.two, "faults"))[1] > held[1]);
  await follow.click();
  await until("the newest", async () => (await range(s.one, "faults"))[1] > held[1] + 1000);
  assert.ok(await s.one.isLive());
});

test("the time range is the one selected, as far as there is history", async () => {
  const { span, follow } = new Controls(s.one);
  const history = async () => (await s.one.state())?.history ?? { from_ns: 0, to_ns: 0 };
  for (const ms of [10_000, 300_000, 30_000]) {
    await span.selectOption(String(ms));
    await until(`a range of ${ms} ms, or from the first sample on`, async () => {
      const [from, to] = await range(s.one, "faults");
      const begin = (await history()).from_ns / 1e6;
      return Math.abs(to - from - ms) < 2 || (to - from < ms && (Math.abs(from - begin) < 2 || Math.abs(to - from - 5000) < 2));
    });
  }
  await until("a history of more than the range", async () => (await history()).to_ns - (await history()).from_ns > 11e9);
  await follow.click();
  await span.selectOption("10000");
  await until("a held range of 10 s", async () => {
    const [from, to] = await range(s.one, "faults");
    return Math.abs(to - from - 10_000) < 2;
  });
  assert.equal((await s.one.view())?.follow, false);
  await follow.click();
  await span.selectOption("60000");
});

test("the interval is the same in all pages and in numa ctl", async () => {
  const [one, two] = [new Controls(s.one), new Controls(s.two)];
  await one.interval.focus();
  await one.interval.selectOption("200ms");
  for (const client of [s.one, s.two]) await until("the new rate", async () => /, 5\/s/.test(await client.status()));
  await becomes("the other page's list", () => two.interval.inputValue(), "200ms");
  assert.match(await s.numa.ctl("status"), /interval 200/);
  await s.numa.ctl("interval", "50ms");
  for (const controls of [one, two]) await becomes("the list", () => controls.interval.inputValue(), "50ms");
  for (const client of [s.one, s.two]) await until("the old rate", async () => /, 20\/s/.test(await client.status()));
});

test("pause stops sampling for everyone and leaves a gap", async () => {
  await new Controls(s.one).pause.click();
  for (const client of [s.one, s.two]) await until("the pause", async () => /paused/.test(await client.status()));
  assert.match(await s.numa.ctl("status"), /paused/);
  const last = await newest(s.two);
  const before = (await s.two.state())?.samples ?? 0;
  await until("two more states", async () => (await s.numa.ctl("status")) && Date.now() > last + 2500);
  assert.ok(((await s.two.state())?.samples ?? 0) <= before + 1, "nothing was sampled");
  await new Controls(s.two).pause.click();
  for (const client of [s.one, s.two]) await until("samples", async () => (await newest(client)) > last + 3000);
  const [chart] = await charts(s.one, "faults");
  const line = chart?.lines[0];
  const measured = line?.times.filter((_, at) => !Number.isNaN(line.values[at])) ?? [];
  const widest = Math.max(...measured.slice(1).map((time, at) => time - (measured[at] ?? 0)));
  assert.ok(widest > 1500, `the widest gap is ${widest} ms`);
});

test("a recording is written on the server, then another", async () => {
  for (const name of ["one.arrows", "two.arrows"]) {
    await new Controls(s.one).recordTo(s.numa.file(name));
    for (const client of [s.one, s.two]) await until(`the recording ${name}`, async () => (await client.state())?.recording?.path.endsWith(name) && /B$/.test((await new Controls(client).record.textContent()) ?? ""));
    const begun = (await s.one.state())?.samples ?? 0;
    await until("some samples", async () => ((await s.one.state())?.samples ?? 0) > begun + 20);
  }
  await new Controls(s.two).record.click();
  await new Controls(s.two).dialog.getByRole("button", { name: /^Stop/ }).click();
  for (const client of [s.one, s.two]) await until("the end of the recording", async () => (await client.state())?.recording === null);
  for (const name of ["one.arrows", "two.arrows"]) {
    assert.ok((await stat(s.numa.file(name))).size > 0);
    const { code, out, err } = await s.numa.call("show", s.numa.file(name));
    assert.equal(code, 0, err);
    assert.match(out, /sample|fault|node/i);
  }
});

test("a file that cannot be written is reported with the reason", async () => {
  await new Controls(s.one).recordTo("/nowhere/x.arrows");
  await s.one.notice(/nowhere/);
  assert.equal((await s.one.state())?.recording, null);
});

test("an uploaded recording becomes another source", async () => {
  const own = await Client.open(s.numa.controller);
  await new Controls(own).load(s.numa.file("one.arrows"));
  await until("its name", async () => (await own.status()) === "recording");
  await own.ready();
  await until("its samples", async () => ((await charts(own, "faults"))[0]?.lines[0]?.values.filter((value) => !Number.isNaN(value)).length ?? 0) > 10);
  assert.ok(await s.one.isLive(), "other pages keep their view");
  await own.page.getByLabel("Data source").selectOption({ index: 0 });
  await until("the live source again", () => own.isLive());
  await own.close();
});

test("the link to a view shows the same view to others, and contains no access key", async () => {
  const { page, context } = s.one;
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  await new Panel(s.one, "faults").press("Close panel");
  const [x, y] = await new Panel(s.one, "cpu").point(0.7);
  await page.mouse.move(x, y);
  await page.mouse.down();
  await page.mouse.move(x + 120, y, { steps: 5 });
  await page.mouse.up();
  await until("the zoom", async () => (await s.one.view())?.follow === false);
  await new Controls(s.one).button(/^Copy link/).click();
  await s.one.notice(/Link copied/);
  const address = await page.evaluate(() => navigator.clipboard.readText());
  assert.ok(!address.includes(s.numa.controller.split("#")[1] ?? "?") && !address.includes(s.numa.viewer.split("#")[1] ?? "?"), address);
  const other = await Client.open(s.numa.viewer);
  await other.page.goto("about:blank");
  await other.page.goto(address);
  await other.ready();
  assert.deepEqual(await Panel.all(other), await Panel.all(s.one));
  const [[from, to], [wantedFrom, wantedTo]] = [await range(other, "cpu"), await range(s.one, "cpu")];
  assert.ok(Math.abs(from - wantedFrom) < 1 && Math.abs(to - wantedTo) < 1, `${from} to ${to}`);
  await other.close();
  await page.keyboard.press("0");
  await page.keyboard.press("End");
});

test("the guide is one click away, in a page of its own", async () => {
  const link = s.two.page.getByRole("link", { name: "Guide" });
  const [guide] = await Promise.all([s.two.context.waitForEvent("page"), link.click()]);
  await guide.waitForLoadState();
  assert.match(guide.url(), /\/guide\/$/);
  assert.match(await guide.title(), /\S/);
  await guide.close();
});

test("the theme changes and persists after a reload", async () => {
  const { page } = s.two;
  const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await ground();
  await new Controls(s.two).button(/^Switch light/).click();
  const dark = await ground();
  assert.notEqual(dark, light);
  await page.reload();
  await s.two.ready();
  assert.equal(await ground(), dark);
  await new Controls(s.two).button(/^Switch light/).click();
  assert.equal(await ground(), light);
});

test("visible data is saved as CSV with the shown values", async () => {
  await new Controls(s.one).hold();
  const [from, to] = await range(s.one, "faults");
  const saved = await saveAll("Visible data, CSV");
  assert.match(saved.name, /\.csv$/);
  const rows = (await readFile(saved.path, "utf8")).trim().split("\n");
  assert.ok(rows.length > 10 && (rows[0]?.split(",").length ?? 0) > 3, rows.slice(0, 2).join("\n"));
  const times = rows.slice(1).map((row) => Date.parse(row.split(",")[0] ?? "") || Number(row.split(",")[0]));
  assert.ok(times.every((time) => time >= from - 1 && time <= to + 1), `${times[0]} is not within ${from} and ${to}`);
  const samples = (await readFile((await saveAll("All samples, CSV")).path, "utf8")).trim().split("\n");
  assert.ok(samples.length >= rows.length && (samples[0] ?? "").split(",").length > 10, samples[0]);
  await new Controls(s.one).live();
});

/** Saves the visible data by an item of the menu. */
async function saveAll(item: string): Promise<{ name: string; path: string }> {
  await s.one.page.locator("header.top summary").click();
  return download(s.one, () => s.one.page.locator("header.top .menu-items").getByRole("button", { name: item }).click());
}
