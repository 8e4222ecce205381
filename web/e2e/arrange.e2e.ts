// Panels are moved and resized, with the mouse and with keys, and the address keeps it.

import assert from "node:assert/strict";
import { afterEach, before, test } from "node:test";
import type { FakeServer } from "../dev/server";
import { Client } from "./infra/browser";
import { fakeServer } from "./infra/fake";
import { Panel } from "./infra/panel";
import { becomes, until } from "./infra/until";

let fake: FakeServer;
let one: Client;

before(async () => {
  fake = await fakeServer({ nodes: 4 });
  one = await Client.open(`${fake.url}#panels=locality,memory,cpu,faults`);
});

afterEach(() => assert.deepEqual(one.errors, []));

const order = () => Panel.all(one);
const title = (panel: string) => new Panel(one, panel).element.locator(".title");
const size = async (panel: string) => (await new Panel(one, panel).element.boundingBox()) ?? { x: 0, y: 0, width: 0, height: 0 };

test("a title that is dragged to another panel takes its place", async () => {
  const from = await title("locality").boundingBox();
  const to = await size("faults");
  await one.page.mouse.move((from?.x ?? 0) + 10, (from?.y ?? 0) + 8);
  await one.page.mouse.down();
  await one.page.mouse.move(to.x + 100, to.y + 100, { steps: 5 });
  await becomes("its place at once", order, ["memory", "cpu", "faults", "locality"]);
  await one.page.mouse.up();
  await until("the address", () => /panels=memory%2Ccpu%2Cfaults%2Clocality/.test(one.page.url()));
});

test("Escape takes it back", async () => {
  const from = await title("memory").boundingBox();
  const to = await size("locality");
  await one.page.mouse.move((from?.x ?? 0) + 10, (from?.y ?? 0) + 8);
  await one.page.mouse.down();
  await one.page.mouse.move(to.x + 100, to.y + 100, { steps: 5 });
  await until("another place", async () => (await order())[0] !== "memory");
  await one.page.keyboard.press("Escape");
  await becomes("its place", order, ["memory", "cpu", "faults", "locality"]);
  await one.page.mouse.up();
});

test("arrow keys on a title move the panel, not the time, and keep the focus", async () => {
  const follows = async () => (await one.view())?.follow;
  await title("memory").focus();
  await one.page.keyboard.press("ArrowRight");
  await becomes("one later", order, ["cpu", "memory", "faults", "locality"]);
  await one.page.keyboard.press("ArrowDown");
  await one.page.keyboard.press("ArrowLeft");
  await one.page.keyboard.press("ArrowUp");
  await one.page.keyboard.press("ArrowUp");
  await becomes("the first", order, ["memory", "cpu", "faults", "locality"]);
  assert.equal(await follows(), true);
});

test("Shift and arrow keys, or the corner, change the size by columns and rows", async () => {
  const before = await size("memory");
  await title("memory").focus();
  await one.page.keyboard.press("Shift+ArrowRight");
  await until("two columns", async () => (await size("memory")).width > 1.9 * before.width);
  await one.page.keyboard.press("Shift+ArrowDown");
  await until("the address", () => /sizes=memory(=|%3D)2x2/.test(one.page.url()));
  await one.visit(one.page.url());
  await until("the same size", async () => (await size("memory")).width > 1.9 * before.width);
  const now = await size("memory");
  await one.page.mouse.move(now.x + now.width - 5, now.y + now.height - 5);
  await one.page.mouse.down();
  await one.page.mouse.move(now.x + before.width, now.y + now.height * 0.4, { steps: 4 });
  await one.page.mouse.up();
  await until("one column", async () => (await size("memory")).width < 1.1 * before.width);
  await until("the address", () => !/sizes=/.test(one.page.url()));
});

test("at a zoom of 10 ms no line leaves its chart", async () => {
  const from = fake.started + 60_000;
  await one.visit(`${fake.url}#from=${from}&to=${from + 3000}&panels=memory,cpu,faults`);
  const outside = (at: number) => one.page.evaluate(async ([from, at]) => {
    const screen = window.numakit?.["screen"];
    screen?.["timeline"].showRange(from + at, from + at + 10);
    let coloured = 0;
    for (let frame = 0; frame < 12; frame++) {
      await new Promise((done) => requestAnimationFrame(done));
      for (const { plot } of screen?.["board"].list.flatMap((panel) => panel["charts"]) ?? []) {
        const { canvas } = plot.ctx;
        const { left, top, width, height } = plot.bbox;
        const { data } = plot.ctx.getImageData(0, 0, canvas.width, canvas.height);
        for (let pixel = 0; pixel < data.length / 4; pixel++) {
          const [x, y] = [pixel % canvas.width, Math.floor(pixel / canvas.width)];
          // A line is as wide as two pixels; labels are grey.
          if (x >= left - 2 && x <= left + width + 2 && y >= top - 2 && y <= top + height + 2) continue;
          const [red = 0, green = 0, blue = 0, alpha = 0] = data.subarray(4 * pixel, 4 * pixel + 4);
          if (alpha > 100 && Math.max(red, green, blue) - Math.min(red, green, blue) > 60) coloured++;
        }
      }
    }
    return coloured;
  }, [from, at] as const);
  for (const at of [0, 1003.3, 1500.7]) assert.equal(await outside(at), 0, `at ${at} ms`);
});
