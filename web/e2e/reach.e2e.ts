// Accessibility: keyboard, names, and a table for each chart. Contrast is checked by accessibility.e2e.ts.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Client, NARROW } from "./infra/browser";
import { Controls } from "./infra/controls";
import { Panel } from "./infra/panel";
import { stage } from "./infra/stage";
import { thorough } from "./infra/thorough";
import { until } from "./infra/until";

const s = stage({ args: ["-i", "100ms"] });

/** Marks every control, so that it can be found again. */
const usable = () => s.one.page.evaluate(() => {
  const all = [...document.querySelectorAll<HTMLElement>("button, select, input, summary, a[href], [role=slider], [role=switch]")];
  const shown = all.filter((one) => one.offsetParent !== null && !(one as HTMLButtonElement).disabled && getComputedStyle(one).visibility !== "hidden");
  shown.forEach((one, at) => one.setAttribute("data-e2e", String(at)));
  return shown.map((one) => (one.getAttribute("aria-label") ?? one.textContent ?? one.title).slice(0, 60) || one.outerHTML.slice(0, 120));
});

test("every control can be reached by Tab", async () => {
  const { page } = s.one;
  await new Controls(s.one).hold();
  const names = await usable();
  assert.ok(names.length > 30, names.join());
  const reached = new Set<string>();
  await page.evaluate(() => (document.activeElement as HTMLElement | null)?.blur());
  for (let count = 0; count < names.length + 40; count++) {
    await page.keyboard.press("Tab");
    const at = await page.evaluate(() => document.activeElement?.getAttribute("data-e2e"));
    if (at) reached.add(at);
  }
  // What the page has replaced meanwhile, such as a finding, is no control any more.
  const left = new Set(await page.evaluate(() => Array.from(document.querySelectorAll("[data-e2e]"), (element) => element.getAttribute("data-e2e"))));
  assert.ok(left.size > 30, `${left.size} of ${names.length}`);
  const missed = names.filter((_, at) => left.has(String(at)) && !reached.has(String(at)));
  assert.deepEqual(missed, []);
});

test("every control has a name", async () => {
  const cdp = await s.one.cdp();
  const { nodes } = (await cdp.send("Accessibility.getFullAXTree")) as { nodes: { ignored?: boolean; role?: { value?: string }; name?: { value?: string } }[] };
  const roles = new Set(["button", "combobox", "textbox", "searchbox", "slider", "switch", "link", "menuitem", "img", "image", "table", "DisclosureTriangle"]);
  const controls = nodes.filter((node) => !node.ignored && roles.has(node.role?.value ?? ""));
  assert.ok(controls.length > 30);
  const nameless = controls.filter((node) => !node.name?.value?.trim());
  assert.deepEqual(nameless.map((node) => node.role?.value), []);
  for (const landmark of ["main", "navigation", "complementary"]) assert.ok(nodes.some((node) => node.role?.value === landmark), landmark);
});

test("the focus is visible", async () => {
  const { page } = s.one;
  await page.keyboard.press("Tab");
  const outline = await page.evaluate(() => {
    const style = getComputedStyle(document.activeElement ?? document.body);
    return style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 1;
  });
  assert.ok(outline);
});

thorough("nothing exceeds the width of a narrow screen", "a phone", async () => {
  const client = await Client.open(s.numa.controller, { viewport: NARROW });
  const wide = await client.page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  assert.ok(wide <= 0, `${wide} pixels too wide`);
  await client.close();
});

test("every chart has a name and a table", async () => {
  for (const id of await Panel.drawn(s.one)) {
    const panel = new Panel(s.one, id);
    assert.match((await panel.element.locator(".chart").first().getAttribute("aria-label")) ?? "", /^Chart: ./);
    const toggle = panel.element.getByRole("button", { name: "Table" });
    await toggle.focus();
    await s.one.page.keyboard.press("Enter");
    await until(`the table of ${id}`, async () => (await panel.table()).length > 1 && (await toggle.getAttribute("aria-expanded")) === "true");
    const { caption, heads } = await panel.element.locator("table.values").evaluate((table) => ({
      caption: table.querySelector("caption")?.textContent ?? "",
      heads: [...table.querySelectorAll("th")].every((head) => head.hasAttribute("scope")),
    }));
    assert.ok(caption.length > 5 && heads, id);
    await s.one.page.keyboard.press("Enter");
  }
});

test("a dialog traps the focus and returns it", async () => {
  const { page } = s.one;
  const help = new Controls(s.one).button(/^Keyboard shortcuts/);
  await help.focus();
  await page.keyboard.press("Enter");
  const inside = () => page.evaluate(() => document.activeElement?.closest("dialog") !== null);
  await until("the focus in the dialog", inside);
  await page.keyboard.press("Escape");
  await until("the focus on the button", () => help.evaluate((button) => button === document.activeElement));
});
