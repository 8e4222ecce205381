// Accessibility: keyboard, names, contrast, and a table for each chart.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Client, NARROW } from "./infra/browser";
import { Controls } from "./infra/controls";
import { Panel } from "./infra/panel";
import { stage } from "./infra/stage";
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
  const missed = names.filter((_, at) => !reached.has(String(at)));
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

/** Texts with a contrast below 4.5, or below 3 if they are large. */
const faint = (client: Client) => client.page.evaluate(() => {
  type Colour = [number, number, number, number];
  const canvas = Object.assign(document.createElement("canvas"), { width: 1, height: 1 }).getContext("2d", { willReadFrequently: true });
  const read = (text: string): Colour => {
    if (!canvas) return [0, 0, 0, 0];
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = text;
    canvas.fillRect(0, 0, 1, 1);
    const [r = 0, g = 0, b = 0, a = 0] = canvas.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const over = (top: Colour, under: Colour): Colour => [0, 1, 2].map((at) => (top[at] ?? 0) * top[3] + (under[at] ?? 0) * (1 - top[3])).concat(1) as Colour;
  const light = ([r, g, b]: Colour) => [r, g, b].map((one) => one / 255).map((one) => (one <= 0.03928 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4)).reduce((sum, one, at) => sum + one * ([0.2126, 0.7152, 0.0722][at] ?? 0), 0);
  const behind = (element: Element | null): Colour => {
    if (!element) return [255, 255, 255, 1];
    const own = read(getComputedStyle(element).backgroundColor);
    return own[3] >= 1 ? own : over(own, behind(element.parentElement));
  };
  const found: string[] = [];
  let looked = 0;
  for (const element of document.querySelectorAll("body *")) {
    const text = [...element.childNodes].filter((node) => node.nodeType === 3).map((node) => node.textContent?.trim() ?? "").join("");
    const style = getComputedStyle(element);
    const box = element.getBoundingClientRect();
    if (!text || box.width < 2 || box.height < 2 || style.visibility === "hidden" || element.closest("svg, .unseen, [hidden]")) continue;
    if (!(element as HTMLElement).offsetParent && style.position !== "fixed") continue;
    if ((element as HTMLButtonElement).disabled) continue;
    looked++;
    const ground = behind(element);
    const shown = over(read(style.color), ground);
    const [a, b] = [light(shown), light(ground)];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    const large = parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.6 && Number(style.fontWeight) >= 700);
    if (ratio < (large ? 3 : 4.5)) found.push(`${ratio.toFixed(2)} ${element.tagName.toLowerCase()}.${element.className}: ${text.slice(0, 30)}`);
  }
  return { looked, found: [...new Set(found)] };
});

test("texts have enough contrast, in light and dark, on wide and narrow screens", async () => {
  for (const colorScheme of ["light", "dark"] as const) {
    for (const viewport of [{ width: 1440, height: 900 }, NARROW]) {
      const client = await Client.open(s.numa.controller, { colorScheme, viewport });
      await new Controls(client).hold();
      for (const tab of ["charts", "side", "tree"]) {
        const button = client.page.locator(`.tabs [data-tab=${tab}]`);
        if (await button.isVisible()) await button.click();
        const { looked, found } = await faint(client);
        // On one node, the machine view has two choices of colours, not four.
        assert.ok(looked > (tab === "side" ? 13 : 15), `only ${looked} texts in ${tab}`);
        assert.deepEqual(found, [], `${colorScheme}, ${viewport.width}, ${tab}`);
      }
      await client.close();
    }
  }
});

test("nothing exceeds the width of a narrow screen", async () => {
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
