// Zooming and scrolling by mouse, wheel, touch, slider and keyboard.

import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { Client, NARROW } from "./infra/browser";
import { charts, range } from "./infra/chart";
import { Controls } from "./infra/controls";
import { Panel } from "./infra/panel";
import { stage } from "./infra/stage";
import { thorough } from "./infra/thorough";
import { pause, until } from "./infra/until";

const s = stage({ args: ["-i", "20ms"] });
const ID = "faults";

type Range = [number, number];
const length = ([from, to]: Range) => to - from;

/** Waits for a matching range. */
async function shows(what: string, fits: (now: Range) => boolean, client = s.one): Promise<Range> {
  return until(what, async () => {
    const now = await range(client, ID);
    return fits(now) ? now : null;
  });
}

const near = (a: number, b: number, by: number) => Math.abs(a - b) <= by;
const alike = (a: Range, b: Range, by: number) => near(a[0], b[0], by) && near(a[1], b[1], by);

/** Drags from one fraction of the chart's width to another. */
async function drag(from: number, to: number): Promise<void> {
  const { mouse } = s.one.page;
  const panel = new Panel(s.one, ID);
  const [[x, y], [end]] = [await panel.point(from), await panel.point(to)];
  await mouse.move(x, y);
  await mouse.down();
  await mouse.move((x + end) / 2, y, { steps: 3 });
  await mouse.move(end, y, { steps: 3 });
  await mouse.up();
}

/** The whole history, frozen. */
async function whole(): Promise<Range> {
  await new Controls(s.one).hold();
  await s.one.page.locator("h2").first().click();
  await s.one.page.keyboard.press("a");
  const { from_ns } = (await s.one.state())?.history ?? { from_ns: 0 };
  const [view, live] = [await s.one.view(), await range(s.one, ID)];
  assert.ok(view && !view.follow && near(view.from, from_ns / 1e6, 50) && view.to >= live[1] - 1);
  return shows("all the history", (now) => alike(now, [view.from, view.to], 1));
}

/** A frozen range with room on both sides. */
async function middle(): Promise<Range> {
  const all = await whole();
  await drag(0.4, 0.7);
  return shows("a part", (now) => near(length(now), length(all) * 0.3, length(all) * 0.03));
}

beforeEach(async () => {
  await until("some seconds of history", async () => {
    const history = (await s.one.state())?.history;
    return history && history.to_ns - history.from_ns > 8e9;
  });
  await new Controls(s.one).live();
  await s.one.page.mouse.move(700, 20);
});

test("dragging on a chart zooms all panels, a double-click goes back", async () => {
  const before = await whole();
  await drag(0.5, 0.9);
  const wanted: Range = [before[0] + length(before) * 0.5, before[0] + length(before) * 0.9];
  const now = await shows("the dragged part", (now) => alike(now, wanted, length(before) * 0.01));
  for (const id of await Panel.drawn(s.one)) assert.deepEqual(await range(s.one, id), now, id);
  const [x, y] = await new Panel(s.one, ID).point(0.5);
  await s.one.page.mouse.dblclick(x, y);
  await shows("the range before", (now) => alike(now, before, 1));
});

test("zooming out of live data stops following, a double-click follows again", async () => {
  await drag(0.6, 0.95);
  await until("hold", async () => (await s.one.view())?.follow === false);
  const [x, y] = await new Panel(s.one, ID).point(0.5);
  await s.one.page.mouse.dblclick(x, y);
  await until("live", async () => (await s.one.view())?.follow === true);
});

test("the wheel zooms around the pointer, with Ctrl if the page scrolls, with Shift it scrolls in time", async () => {
  const before = await middle();
  const { mouse, keyboard } = s.one.page;
  const [x, y] = await new Panel(s.one, ID).point(0.25);
  const at = before[0] + length(before) * 0.25;
  await mouse.move(x, y);
  const place = () => s.one.page.locator(".main").evaluate((main) => [main.scrollTop, main.scrollHeight - main.clientHeight]);
  const [top = 0, most = 0] = await place();
  const scrolls = most > 1;
  if (scrolls) {
    await mouse.wheel(0, top > 20 ? -20 : 20);
    await until("the scrolled page", async () => (await place())[0] !== top);
    assert.deepEqual(await range(s.one, ID), before, "the wheel without Ctrl scrolls");
    await mouse.move(...(await new Panel(s.one, ID).point(0.25)));
    await keyboard.down("Control");
  }
  await mouse.wheel(0, -200);
  const close = await shows("a closer look", (now) => length(now) < length(before) * 0.8);
  assert.ok(near(close[0] + length(close) * 0.25, at, length(before) * 0.02), "what is under the pointer stays there");
  await mouse.wheel(0, 200);
  await shows("the same as before", (now) => alike(now, before, length(before) * 0.02));
  if (scrolls) await keyboard.up("Control");
  await keyboard.down("Shift");
  await mouse.wheel(0, 60);
  const moved = await shows("a later range", (now) => now[0] > before[0] + 1);
  await keyboard.up("Shift");
  assert.ok(near(length(moved), length(before), length(before) * 0.02));
});

test("keys zoom, scroll, and go to the ends", async () => {
  const { keyboard } = s.one.page;
  const before = await middle();
  await keyboard.press("+");
  const closer = await shows("closer", (now) => near(length(now), length(before) * 0.7, 30));
  await keyboard.press("-");
  await shows("farther", (now) => near(length(now), length(closer) * 1.4, 30));
  const here = await range(s.one, ID);
  await keyboard.press("ArrowRight");
  await shows("to the right", (now) => near(now[0], here[0] + length(here) * 0.2, 30));
  await keyboard.press("ArrowLeft");
  await shows("back", (now) => alike(now, here, 30));
  await keyboard.press("Home");
  const { from_ns } = (await s.one.state())?.history ?? { from_ns: 0 };
  const oldest = await shows("the oldest", (now) => near(now[0], from_ns / 1e6, 50));
  await keyboard.press("Shift+ArrowRight");
  await shows("a whole range on", (now) => now[0] > oldest[0] + length(oldest) * 0.9);
  await keyboard.press("Backspace");
  await keyboard.press("End");
  await until("live", async () => (await s.one.view())?.follow === true);
});

test("the slider's window and its edges can be dragged, and a click moves it there", async () => {
  const { page } = s.one;
  await middle();
  const slider = await until("the slider", () => page.locator(".slider").boundingBox());
  const y = slider.y + slider.height / 2;
  const grip = async (selector: string) => until(selector, () => page.locator(`.slider ${selector}`).boundingBox());
  const pull = async (x: number, by: number) => {
    await page.mouse.move(x, y);
    await page.mouse.down();
    await page.mouse.move(x + by / 2, y, { steps: 3 });
    await page.mouse.move(x + by, y, { steps: 3 });
    await page.mouse.up();
  };
  const before = await range(s.one, ID);
  let box = await grip(".window");
  await pull(box.x + box.width / 2, -60);
  const moved = await shows("an earlier range", (now) => now[0] < before[0] - 100);
  assert.ok(near(length(moved), length(before), 20));
  box = await grip(".grip.from");
  await pull(box.x + box.width / 2, -40);
  const wider = await shows("an earlier begin", (now) => now[0] < moved[0] - 50);
  assert.ok(near(wider[1], moved[1], 20), "the end stays");
  box = await grip(".grip.to");
  await pull(box.x + box.width / 2, 50);
  const both = await shows("a later end", (now) => now[1] > wider[1] + 50);
  assert.ok(near(both[0], wider[0], 20), "the begin stays");
  box = await grip(".window");
  const x = box.x > slider.x + 80 ? slider.x + 20 : box.x + box.width + 40;
  await page.mouse.click(x, y);
  await shows("the range around the click", (now) => Math.abs(now[0] - both[0]) > 50);
});

test("one finger scrolls in time, two fingers zoom", async () => {
  const phone = await Client.open(s.numa.controller, { viewport: NARROW, hasTouch: true, isMobile: true });
  const cdp = await phone.cdp();
  const touch = (type: "touchStart" | "touchMove" | "touchEnd", points: [number, number][]) =>
    cdp.send("Input.dispatchTouchEvent", { type, touchPoints: points.map(([x, y], id) => ({ x, y, id })) });
  const box = await new Panel(phone, ID).box();
  const y = box.y + box.height / 2;
  const at = (share: number): [number, number] => [box.x + box.width * share, y];
  const moveTo = async (steps: [number, number][][]) => {
    for (const points of steps) await touch("touchMove", points);
  };
  await new Controls(phone).hold();
  const before = await range(phone, ID);
  await touch("touchStart", [at(0.4), at(0.6)]);
  await moveTo([[at(0.35), at(0.65)], [at(0.3), at(0.7)], [at(0.25), at(0.75)], [at(0.2), at(0.8)]]);
  await touch("touchEnd", []);
  const close = await shows("a closer look", (now) => length(now) < length(before) * 0.6, phone);
  await touch("touchStart", [at(0.3)]);
  await moveTo([[at(0.4)], [at(0.5)], [at(0.6)]]);
  await touch("touchEnd", []);
  const moved = await shows("an earlier range", (now) => now[0] < close[0] - length(close) * 0.1, phone);
  assert.ok(near(length(moved), length(close), length(close) * 0.05));
  await touch("touchStart", [at(0.2), at(0.8)]);
  await moveTo([[at(0.3), at(0.7)], [at(0.4), at(0.6)]]);
  await touch("touchEnd", []);
  await shows("more", (now) => length(now) > length(moved) * 1.3, phone);
  await phone.close();
});

thorough("a tap sets the cursor, another one moves it, and a tap at it removes it", "a phone", async () => {
  const phone = await Client.open(s.numa.controller, { viewport: NARROW, hasTouch: true, isMobile: true });
  await new Controls(phone).hold();
  const panel = new Panel(phone, ID);
  const cursor = async () => (await charts(phone, ID))[0]?.cursor ?? null;
  const held = async (): Promise<Range> => {
    const { from = NaN, to = NaN } = (await phone.view()) ?? {};
    return [from, to];
  };
  const before = await held();
  // Only visible charts are drawn.
  await panel.box();
  await shows("the held range", (now) => alike(now, before, 1), phone);
  for (const share of [0.3, 0.7]) {
    await phone.page.touchscreen.tap(...(await panel.point(share)));
    await until(`the cursor at ${share}`, async () => {
      const at = await cursor();
      return at !== null && Math.abs(at - before[0] - share * length(before)) < 0.03 * length(before);
    });
    // The browser sends events of a mouse after those of a finger.
    await pause(500);
    assert.notEqual(await cursor(), null);
  }
  assert.deepEqual(await held(), before, "a tap does not scroll");
  await phone.page.touchscreen.tap(...(await panel.point(0.7)));
  await until("no cursor", async () => (await cursor()) === null);
  await pause(500);
  assert.equal(await cursor(), null);
  await phone.close();
});

test("the Back of the browser undoes a zoom, and Forward does it again, without leaving the page", async () => {
  const { page } = s.one;
  const before = await middle();
  await until("its address", () => new URLSearchParams(new URL(page.url()).hash.slice(1)).get("from") === before[0].toFixed(3));
  // Sooner, it would be part of the movement before.
  await pause(1100);
  await drag(0.3, 0.6);
  const zoomed = await shows("a zoom", (now) => length(now) < 0.5 * length(before));
  await until("its address", () => new URLSearchParams(new URL(page.url()).hash.slice(1)).get("from") === zoomed[0].toFixed(3));
  const begun = await page.evaluate(() => performance.timeOrigin);
  await page.evaluate(() => history.back());
  await shows("the range before", (now) => alike(now, before, 1));
  await page.evaluate(() => history.forward());
  await shows("the zoom again", (now) => alike(now, zoomed, 1));
  assert.equal(await page.evaluate(() => performance.timeOrigin), begun, "the page was not loaded again");
});
