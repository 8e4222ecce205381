// Every key in the table of docs/guide/live.md. Those that zoom and scroll are in zoom.e2e.ts.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { charts } from "./infra/chart";
import { Controls } from "./infra/controls";
import { Panel } from "./infra/panel";
import { stage } from "./infra/stage";
import { becomes, until } from "./infra/until";

const s = stage({ args: ["-i", "50ms"] });
const press = (key: string) => s.one.page.keyboard.press(key);
const follows = async () => (await s.one.view())?.follow;

test("space freezes and follows live data again", async () => {
  await press("Space");
  await becomes("hold", follows, false);
  await press("Space");
  await becomes("live", follows, true);
});

test("a shows the whole history", async () => {
  await press("a");
  const { from_ns, to_ns } = (await s.one.state())?.history ?? { from_ns: 0, to_ns: 0 };
  await until("all of it", async () => {
    const [chart] = await charts(s.one, "faults");
    return chart && Math.abs(chart.from - from_ns / 1e6) < 50 && chart.to > to_ns / 1e6 - 1500;
  });
  await press("End");
});

test("[ and ] move the cursor", async () => {
  await press("Space");
  await press("[");
  const cursor = async () => (await charts(s.one, "faults"))[0]?.cursor ?? 0;
  const first = await until("a cursor", cursor);
  await press("[");
  await until("an earlier cursor", async () => (await cursor()) < first);
  await press("]");
  await until("the same cursor", async () => Math.abs((await cursor()) - first) < 200);
  await press("Space");
});

test("/ searches, and keys typed there are text", async () => {
  const search = s.one.page.getByLabel("Search metrics");
  await press("/");
  await becomes("the focus", () => search.evaluate((one) => one === document.activeElement), true);
  await s.one.page.keyboard.type("n0d ");
  assert.equal(await search.inputValue(), "n0d ");
  assert.equal(await s.one.page.locator("dialog[open]").count(), 0);
  await press("Escape");
});

test("0 opens the default panels", async () => {
  const before = await Panel.all(s.one);
  await new Panel(s.one, "faults").press("Close panel");
  assert.ok(!(await Panel.all(s.one)).includes("faults"));
  await press("0");
  await becomes("the panels", () => Panel.all(s.one), before);
});

test("without panels the page says what to do", async () => {
  const before = await Panel.all(s.one);
  for (const id of before) await new Panel(s.one, id).press("Close panel");
  assert.match((await s.one.page.locator(".main").textContent()) ?? "", /No panel is open/);
  await s.one.page.locator("h2").first().click();
  await press("0");
  await becomes("the panels", () => Panel.all(s.one), before);
});

test("n asks for a label", async () => {
  await press("n");
  await new Controls(s.one).answer("noted");
  await until("the label", async () => ((await s.one.page.locator(".labels").textContent()) ?? "").includes("noted"));
});

test("s copies the link, d changes the theme", async () => {
  await s.one.context.grantPermissions(["clipboard-read", "clipboard-write"]);
  await press("s");
  await s.one.notice(/copied/);
  assert.equal(await s.one.page.evaluate(() => navigator.clipboard.readText()), s.one.page.url());
  const ground = () => s.one.page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await ground();
  await press("d");
  assert.notEqual(await ground(), light);
  await press("d");
  assert.equal(await ground(), light);
});

test("m and t hide the side views and the metric list", async () => {
  for (const [key, selector] of [["m", ".sides"], ["t", ".tree"]] as const) {
    const part = s.one.page.locator(selector);
    await press(key);
    await becomes(selector, () => part.isVisible(), false);
    await press(key);
    await becomes(selector, () => part.isVisible(), true);
  }
});

test("? shows all keys that the guide lists", async () => {
  await press("?");
  const dialog = s.one.page.locator("dialog[open]");
  const shown = (await dialog.locator("kbd").allTextContents()).map((key) => key.replace("−", "-").toLowerCase());
  const guide = await readFile(new URL("../../docs/guide/live.md", import.meta.url), "utf8");
  const keys = [...guide.slice(guide.indexOf("## Mouse, touch, keys")).matchAll(/^\| ([^|]+) \| [^|]+\|$/gm)].flatMap(([, cell]) => [...(cell ?? "").matchAll(/`([^`]+)`/g)].map(([, key]) => key ?? ""));
  assert.ok(keys.length >= 10, keys.join());
  for (const key of keys) assert.ok(shown.includes(key.toLowerCase()), `${key} is not among ${shown.join(" ")}`);
  await press("Escape");
  await becomes("the dialog", () => dialog.count(), 0);
});
