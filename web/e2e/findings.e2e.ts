// The strip with the findings of the range on screen, and the lane with what the recorder noted.

import assert from "node:assert/strict";
import { afterEach, before, beforeEach, describe, test } from "node:test";
import type { FakeServer } from "../dev/server";
import { Client, NARROW, WIDE } from "./infra/browser";
import { closeAll } from "./infra/ending";
import { fakeServer } from "./infra/fake";
import { thorough } from "./infra/thorough";
import { becomes, until } from "./infra/until";

let fake: FakeServer;
let one: Client;

const strip = () => one.page.getByRole("region", { name: "Findings" });
const lines = () => strip().locator(".finding");
const lane = () => one.page.getByRole("region", { name: "Events" });
const verdict = () => strip().locator(".verdict").textContent();
const faded = () => one.page.locator(".panel.faded").evaluateAll((all) => all.map((panel) => panel.getAttribute("data-panel") ?? ""));
const bright = () => one.page.locator(".panel:not(.faded)").evaluateAll((all) => all.map((panel) => panel.getAttribute("data-panel") ?? ""));

describe("problems", () => {
  before(async () => {
    fake = await fakeServer({ nodes: 4 });
  });

  beforeEach(async () => {
    one = await Client.open(fake.url, { permissions: ["clipboard-read", "clipboard-write"] });
    await becomes("the verdict", verdict, "Threads on nodes 1-3 use memory of node 0: 31.4 % of their time at memory is remote");
  });

  afterEach(() => one.close());

  test("the worst one is there with its cost, what to do, how sure it is and since when", async () => {
    assert.equal(await strip().locator(".cost").textContent(), "costs 18.6 % of the CPU time (15.2 % to 22.1 %)");
    assert.match((await lines().first().textContent()) ?? "", /^program31\.4 % of the time at memory is remote18\.6 %measuredsince \d\d:\d\d:\d\d$/);
    await strip().getByRole("button", { name: "Copy: numa run solver --steps 900" }).click();
    await one.notice(/copied/);
    assert.equal(await one.page.evaluate(() => navigator.clipboard.readText()), "numa run solver --steps 900");
  });

  test("a click shows its time and its numbers, a second one what was there before", async () => {
    const before = await one.view();
    assert.ok(before?.follow);
    await lines().first().click();
    await becomes("the panels with its numbers", bright, ["locality", "links"]);
    const zoomed = await one.view();
    assert.ok(zoomed && !zoomed.follow && zoomed.to - zoomed.from < 50_000);
    assert.equal(await lines().first().getAttribute("aria-pressed"), "true");
    // Findings of the new range arrive meanwhile.
    await becomes("the verdict", verdict, "Threads on nodes 1-3 use memory of node 0: 31.4 % of their time at memory is remote");
    assert.match((await lines().first().textContent()) ?? "", /^program31\.4 % of the time at memory is remote18\.6 %/);
    await lines().first().click();
    await becomes("faded panels", faded, []);
    const view = await one.view();
    assert.deepEqual([view?.follow, view?.spanMs, view?.panels], [true, before.spanMs, before.panels]);
  });

  test("the others are folded; one that no panel shows opens its own", async () => {
    const height = (await one.page.locator(".board").boundingBox())?.y;
    const folds = strip().locator(".folds");
    assert.equal(await folds.textContent(), "2 more· 2 cannot be told");
    await folds.focus();
    await one.page.keyboard.press("Enter");
    await becomes("its lines", () => lines().count(), 3);
    assert.match((await strip().locator("dl").textContent()) ?? "", /memory bandwidth.*no PMU/);
    assert.equal((await one.page.locator(".board").boundingBox())?.y, height, "charts do not move");
    await one.page.keyboard.press("Escape");
    assert.equal(await strip().locator(".rest").isVisible(), false);
    await folds.click();
    await lines().nth(1).click();
    await becomes("its panel", bright, ["faults"]);
    assert.equal(await verdict(), "Memory is mapped and unmapped all the time: 6.1 % of the CPU time in page faults");
    assert.equal(await strip().getByRole("button", { name: /^Copy: / }).count(), 2);
    await strip().getByRole("button", { name: /^Back/ }).click();
    await becomes("faded panels", faded, []);
    assert.ok((await one.view())?.follow);
  });

  test("charts do not move when the findings arrive, or change", async () => {
    const place = async () => (await one.page.locator(".board").boundingBox())?.y;
    const there = await place();
    const late = await Client.in(one.context);
    await late.page.addInitScript(() => {
      const send = WebSocket.prototype.send;
      WebSocket.prototype.send = function (data) {
        if (!String(data).includes('"findings"')) send.call(this, data);
      };
    });
    await late.page.goto(fake.url);
    await late.ready();
    assert.equal((await late.page.locator(".board").boundingBox())?.y, there);
    await late.page.close();
    assert.deepEqual(late.errors, []);
  });

  test("what the recorder noted is on the lane: focus tells it, a click shows its time", async () => {
    const times = (what: string) => fake.labels.filter(({ text }) => text.startsWith(`numakit:${what}`)).map((label) => label.time_ns / 1e6);
    await one.visit(`${fake.url}#from=${Math.min(...times("")) - 1000}&to=${Math.max(...times("")) + 1000}`);
    const mark = lane().getByRole("button", { name: /ticks lost/ });
    await mark.focus();
    assert.match((await lane().locator(".lane-tip").textContent()) ?? "", /15 ticks lost, 2 times/);
    await mark.click();
    await until("its time on screen", async () => {
      const view = await one.view();
      return view && view.to - view.from < 15_000 && times("lost").every((ms) => view.from < ms && ms < view.to);
    });
    await until("the start is out of range", async () => (await lane().getByRole("button", { name: /^.*started/ }).count()) === 0);
  });
});

/** Texts of the strip that are cut; of commands the start is enough. */
const cut = () => strip().evaluate((element) => [...element.querySelectorAll(".verdict, .cost, .when, .share, .untold")]
  .filter((one) => one.getClientRects().length > 0 && (one.scrollWidth > one.clientWidth || one.scrollHeight > one.clientHeight)).map((one) => one.textContent));

/** What a finger could not press. */
const small = () => one.page.locator("button:visible, select:visible, summary:visible").evaluateAll((all) => all
  .filter((button) => Math.min(button.getBoundingClientRect().width, button.getBoundingClientRect().height) < 24).map((button) => button.getAttribute("aria-label") ?? button.textContent));

for (const nodes of [1, 4, 128]) {
  thorough(`on a phone nothing of a finding is cut, and charts do not move when it is shown in full: ${nodes} nodes`, "a phone", async () => {
    fake = await fakeServer({ nodes });
    one = await Client.open(fake.url, { viewport: NARROW, hasTouch: true, isMobile: true });
    const top = (await one.page.locator(".board").boundingBox())?.y;
    await until("the verdict", async () => / % of /.test((await verdict()) ?? ""));
    assert.deepEqual(await cut(), []);
    assert.deepEqual(await small(), []);
    assert.equal((await one.page.locator(".board").boundingBox())?.y, top);
    await strip().locator(".folds").click();
    assert.deepEqual(await cut(), []);
    assert.ok((await one.page.evaluate(() => document.documentElement.scrollWidth)) <= NARROW.width);
    await closeAll();
  });
}

test("on one node each line of a panel has its name in sight", async () => {
  fake = await fakeServer({ nodes: 1 });
  one = await Client.open(fake.url);
  const hidden = await one.page.locator(".legend").evaluateAll((all) => all.filter((legend) => legend.scrollHeight > legend.clientHeight).map((legend) => legend.textContent));
  assert.deepEqual(hidden, []);
  await closeAll();
});

test("a wide page does not scroll sideways, whatever its tables for screen readers have", async () => {
  fake = await fakeServer({ nodes: 4 });
  one = await Client.open(fake.url);
  assert.equal(await one.page.locator(".matrix table").count(), 1);
  assert.ok((await one.page.evaluate(() => document.documentElement.scrollWidth)) <= WIDE.width);
  await closeAll();
});

const FINE = [
  [4, WIDE, /^Cannot tell: memory bandwidth, because/, null],
  [4, NARROW, /^Cannot tell: memory bandwidth, because/, "a phone"],
  [1, NARROW, /^Cannot tell: remote memory, because the machine has one node$/, "a phone"],
] as const;
for (const [nodes, viewport, says, why] of FINE) {
  thorough(`where nothing is wrong it says so, and what cannot be told: ${nodes} nodes, ${viewport.width} pixels`, why, async () => {
    fake = await fakeServer({ nodes, fine: true });
    one = await Client.open(fake.url, { viewport });
    await until("the verdict", async () => /^Nothing is wrong on this machine/.test((await verdict()) ?? ""));
    assert.match((await strip().locator(".untold").textContent()) ?? "", says);
    assert.equal(await lines().count(), 0);
    assert.ok((await one.page.evaluate(() => document.documentElement.scrollWidth)) <= viewport.width);
    await closeAll();
  });
}
