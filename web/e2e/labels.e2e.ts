// Labels: added in every way, drawn on every panel of every page, edited and removed.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Client } from "./infra/browser";
import { drawnMarks, range } from "./infra/chart";
import { Controls } from "./infra/controls";
import { Panel } from "./infra/panel";
import { stage } from "./infra/stage";
import { becomes, until } from "./infra/until";

const s = stage({ args: ["-i", "50ms"] }, 2);

/** The texts in a page's list of labels, the newest first. */
const listed = (client: Client) => client.page.locator(".labels li .jump span").allTextContents();
/** The times of labels in the page. */
const times = (client: Client) => client.page.evaluate(() => window.numakit?.labelsOf(0).filter((one) => !one.text.startsWith("numakit:")).map((one) => one.time_ns / 1e6) ?? []);

async function seenByBoth(text: string): Promise<void> {
  for (const client of [s.one, s.two]) await until(`the label ${text}`, async () => (await listed(client)).includes(text));
}

/** Waits, so that labels do not overlap on the charts. */
async function later(): Promise<void> {
  const now = (await s.one.state())?.samples ?? 0;
  await until("later samples", async () => ((await s.one.state())?.samples ?? 0) > now + 10);
}

test("labels come from the key, the button, numa ctl and the control FIFO", async () => {
  for (const client of [s.one, s.two]) await new Controls(client).span.selectOption("300000");
  await s.one.page.keyboard.press("n");
  await new Controls(s.one).answer("by key");
  await seenByBoth("by key");
  await later();
  await new Controls(s.two).label.click();
  await new Controls(s.two).answer("by button");
  await seenByBoth("by button");
  await later();
  await s.numa.ctl("label", "by", "order");
  await seenByBoth("by order");
  await later();
  await s.numa.fifo("label by FIFO");
  await seenByBoth("by FIFO");
  assert.deepEqual(await listed(s.one), ["by FIFO", "by order", "by button", "by key"]);
});

test("every panel of every page draws all of them", async () => {
  await later();
  for (const client of [s.one, s.two]) {
    const all = (await times(client)).sort((a, b) => a - b);
    assert.equal(all.length, 4);
    const [first = ""] = await Panel.all(client);
    // A busy page draws its newest samples some seconds after they came, and holds what it has drawn.
    await until("the labels in the range", async () => (await range(client, first))[1] > Math.max(...all));
    // The labels keep their places.
    await new Controls(client).hold();
    const gaps = all.slice(1).map((time, at) => [time - (all[at] ?? 0), (time + (all[at] ?? 0)) / 2] as const);
    const [, between = 0] = gaps.sort(([a], [b]) => b - a)[0] ?? [];
    for (const id of await Panel.drawn(client)) {
      await new Panel(client, id).element.scrollIntoViewIfNeeded();
      await becomes(`the marks on ${id}`, () => drawnMarks(client, id, all), all.map(() => true));
    }
    await new Panel(client, first).element.scrollIntoViewIfNeeded();
    await becomes("the mark at a label, and none between two", () => drawnMarks(client, first, [all[0] ?? 0, between]), [true, false]);
    await new Controls(client).live();
  }
});

test("a label edited in one page changes in all", async () => {
  const row = s.two.page.locator(".labels li", { hasText: "by key" });
  await row.hover();
  await row.getByRole("button", { name: "edit" }).click();
  await new Controls(s.two).answer("<b>changed</b>");
  await seenByBoth("<b>changed</b>");
  assert.ok(!(await listed(s.one)).includes("by key"));
  assert.equal(await s.one.page.locator(".labels b").count(), 0, "text is not markup");
});

test("a removed label disappears in all pages, also from the charts", async () => {
  const before = await times(s.one);
  const row = s.one.page.locator(".labels li", { hasText: "by button" });
  await row.hover();
  await row.getByRole("button", { name: "remove" }).click();
  for (const client of [s.one, s.two]) await until("its end", async () => !(await listed(client)).includes("by button"));
  const left = await times(s.one);
  const removed = before.find((time) => !left.includes(time)) ?? 0;
  const [first] = await Panel.all(s.two);
  await becomes("the mark", () => drawnMarks(s.two, first ?? "", [removed]), [false]);
});

test("a click on a label shows its time", async () => {
  const [oldest] = (await times(s.one)).sort((a, b) => a - b);
  await s.one.page.locator(".labels li .jump").last().click();
  await until("its time on screen", async () => {
    const view = await s.one.view();
    return view && !view.follow && view.from <= (oldest ?? 0) && (oldest ?? 0) <= view.to;
  });
});

test("empty labels and those with the recorder's prefix are refused", async () => {
  await s.one.page.keyboard.press("n");
  await new Controls(s.one).answer("numakit:lost 3");
  await s.one.notice(/reserved for the recorder/);
  await s.one.page.keyboard.press("n");
  await s.one.page.locator("dialog[open] button[type=submit]").click();
  assert.equal(await s.one.page.locator("dialog[open]").count(), 1, "nothing was typed yet");
  await s.one.page.keyboard.press("Escape");
  await becomes("the dialog", () => s.one.page.locator("dialog[open]").count(), 0);
});
