// Labels of axes: at their times, none cut, and not too many.

import assert from "node:assert/strict";
import { before, test } from "node:test";
import type { FakeServer } from "../dev/server";
import type { Client } from "./infra/browser";
import { charts } from "./infra/chart";
import { fakeServer } from "./infra/fake";
import { openWatched, textsOf, type DrawnText } from "./infra/texts";
import { thorough } from "./infra/thorough";
import { until } from "./infra/until";

let fake: FakeServer;
let client: Client;

before(async () => {
  fake = await fakeServer({ nodes: 4 });
  client = await openWatched(`${fake.url}#panels=faults`);
});

const TIME = /^\d\d:\d\d:\d\d(\.\d+)?$/;
/** Text on canvases has the size of 11 pixels; the browser's fonts may be a little wider than expected. */
const NEAR = 0.75;

/** Shows a range of some ms; returns its labels of times and of values once it is drawn. */
async function held(from: number, ms: number): Promise<{ times: DrawnText[]; values: DrawnText[]; width: number; height: number }> {
  await client.page.evaluate(([from, to]) => window.numakit?.["screen"]?.["timeline"].showRange(from, to), [from, from + ms] as const);
  const { texts, width, height } = await until("labels", async () => {
    const [chart] = await charts(client, "faults");
    const found = await textsOf(client.page, "faults");
    const drawn = chart?.from === from && Math.abs(chart.to - from - ms) < 0.01 && (await measured(from, ms));
    return drawn && found.texts.some(({ text }) => TIME.test(text)) && found.texts.length > 3 ? found : null;
  });
  return { times: texts.filter(({ text }) => TIME.test(text)), values: texts.filter(({ text }) => !TIME.test(text) && text !== ""), width, height };
}

/** Whether the samples of a range have arrived. */
function measured(from: number, ms: number): Promise<boolean> {
  return client.page.evaluate(([from, ms]) => {
    const slice = window.numakit?.["screen"]?.["timeline"].slice;
    return slice !== undefined && slice.stepMs < ms && (slice.x[0] ?? Infinity) <= from + ms / 2 && (slice.x[slice.x.length - 1] ?? 0) >= from + ms / 2;
  }, [from, ms] as const);
}

/** The times that labels name, in ms after midnight of UTC: the source has no zone. */
const named = (label: DrawnText) => {
  const [hours = 0, minutes = 0, seconds = 0] = label.text.split(":").map(Number);
  return ((hours * 60 + minutes) * 60 + seconds) * 1000;
};

test("a label stands at the time that it names, whatever fraction of a ms the range begins with", async () => {
  const second = Math.floor((fake.started + 60_000) / 1000) * 1000;
  for (const fraction of [0.2, 0.5, 0.731]) {
    const from = second - 3000 + fraction;
    const { times } = await held(from, 60_000);
    const [chart] = await charts(client, "faults");
    const over = await client.page.locator("[data-panel=faults] .u-over").evaluate((one) => ({ left: (one as HTMLElement).offsetLeft, width: one.clientWidth }));
    const midnight = new Date(from).setUTCHours(0, 0, 0, 0);
    for (const label of times) {
      const at = (chart?.from ?? NaN) + ((label.x - over.left) / over.width) * 60_000;
      const pixel = 60_000 / over.width;
      assert.ok(Math.abs(midnight + named(label) - at) <= NEAR * pixel, `${label.text} is drawn at ${new Date(at).toISOString()}`);
    }
  }
});

for (const [width, height, why] of [[1440, 900, null], [1920, 1080, "another size"], [390, 844, "another size"]] as const) {
  thorough(`labels of values are 38 to 95 pixels apart, those of times do not touch, and none is cut: ${width}x${height}`, why, async () => {
    await client.page.setViewportSize({ width, height });
    for (const ms of [60_000, 80_000, 7777, 130]) {
      const { times, values, ...size } = await held(fake.started + 30_000.6, ms);
      const about = `${ms} ms: ${times.map(({ text }) => text)}; ${values.map(({ text }) => text)}`;
      const axis = values.filter(({ right }) => right < 60);
      const ys = axis.map(({ y }) => y).sort((a, b) => a - b);
      const between = ys.slice(1).map((y, at) => y - (ys[at] as number));
      assert.ok(between.length > 0 && between.every((gap) => gap >= 37 && gap <= 96), `${about}: ${between}`);
      assert.ok(times.length >= 2, about);
      const xs = times.sort((a, b) => a.x - b.x);
      xs.slice(1).forEach((label, at) => assert.ok(label.left - (xs[at] as DrawnText).right >= 3, about));
      assert.ok(xs.every(({ left, right }) => left >= 0 && right <= size.width), `${about}: ${xs.map(({ right }) => right)} of ${size.width}`);
    }
  });
}
