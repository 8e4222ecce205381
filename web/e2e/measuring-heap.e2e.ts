// The page does not leak memory.

import assert from "node:assert/strict";
import { stream } from "./infra/heap";
import { thorough } from "./infra/thorough";

/** `cargo xtask bench page` streams 3.6 million. */
const FRAMES = 150_000;

/** With fewer frames, not all code of the page is compiled before the first measurement. */
const COMPILED_MIB = 0.25;

thorough(`${FRAMES / 1000} thousand frames at full speed leave no garbage`, "it takes a CPU for half a minute", async (t) => {
  const { early, late, taken, seconds } = await stream(FRAMES);
  t.diagnostic(`heap ${early.toFixed(2)} MiB after ${FRAMES / 10} frames, ${late.toFixed(2)} MiB after ${taken}; ${Math.round(taken / seconds)} frames/s`);
  assert.ok(taken >= FRAMES, `${taken}`);
  assert.ok(late < early * 1.1 + COMPILED_MIB, `the heap grew from ${early} to ${late} MiB`);
});
