import assert from "node:assert/strict";
import { test } from "node:test";
import { Losses, RECENT_MS } from "../src/losses";

test("lost ticks count for ten seconds, however often they are read", () => {
  const losses = new Losses();
  assert.equal(losses.take(0, 77), 0, "what was lost before anybody looked");
  // A state a second, ten drawings for each: 77 to 270.
  for (let tick = 1; tick <= 100; tick++) {
    const lost = 77 + Math.min(193, 2 * tick - 7 > 0 ? 2 * tick - 7 : 0);
    assert.equal(losses.take(100 * tick, lost), lost - 77, `after ${tick} drawings`);
  }
  assert.equal(losses.take(10_000, 270), 193);
  assert.equal(losses.take(10_050, 270), 193, "a second drawing of the same state");
  assert.equal(losses.take(10_000 + RECENT_MS + 1, 270), 0);
});

test("a few lost ticks are not forgotten when more follow", () => {
  const losses = new Losses();
  losses.take(0, 0);
  assert.equal(losses.take(1000, 1), 1);
  assert.equal(losses.take(2000, 78), 78);
  assert.equal(losses.take(1000 + RECENT_MS - 1, 78), 78);
  assert.equal(losses.take(1000 + RECENT_MS, 78), 77);
  assert.equal(losses.take(2000 + RECENT_MS, 78), 0);
});

test("a new sampler begins at nothing lost", () => {
  const losses = new Losses();
  losses.take(0, 500);
  losses.take(10, 510);
  assert.equal(losses.take(20, 3), 0);
  assert.equal(losses.take(30, 5), 2);
  losses.forget();
  assert.equal(losses.take(40, 90), 0);
});
