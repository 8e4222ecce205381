// The page is safe to leave running.

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { closeBrowser } from "./infra/browser";
import { stream } from "./infra/heap";

/** `cargo xtask bench page` streams 3.6 million. */
const FRAMES = 150_000;

/** So few frames are not long enough for all of the page's code to be compiled before the first look. */
const COMPILED_MIB = 0.25;

after(() => closeBrowser());

test(`${FRAMES / 1000} thousand frames as fast as they go leave nothing behind`, async (t) => {
  const { early, late, taken, seconds } = await stream(FRAMES);
  t.diagnostic(`heap ${early.toFixed(2)} MiB after ${FRAMES / 10} frames, ${late.toFixed(2)} MiB after ${taken}; ${Math.round(taken / seconds)} frames/s`);
  assert.equal(taken, FRAMES);
  assert.ok(late < early * 1.1 + COMPILED_MIB, `the heap grew from ${early} to ${late} MiB`);
});
