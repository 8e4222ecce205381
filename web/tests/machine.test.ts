import assert from "node:assert/strict";
import { test } from "node:test";
import { busyShare } from "../src/side-views/machine";

const share = (times: Record<string, number>) => busyShare(Object.entries(times).map(([name, percent]) => [`cpu.${name}`, percent]));

test("a CPU is busy when it is not idle and does not wait for storage", () => {
  assert.equal(share({ idle: 75, user: 25, system: 0 }), 0.25);
  assert.equal(share({ idle: 0, user: 60, system: 40 }), 1);
  assert.equal(share({ idle: 50, iowait: 25, user: 25 }), 0.25);
  assert.equal(share({ idle: 0, steal: 100, user: 0, system: 0 }), 1);
});

test("a CPU of which nothing is known is not busy", () => {
  assert.ok(Number.isNaN(share({})));
  assert.ok(Number.isNaN(share({ idle: NaN, user: NaN })));
  assert.ok(Number.isNaN(share({ idle: NaN, user: 40 })));
  assert.ok(Number.isNaN(share({ idle: 0, user: 0, system: 0 })), "its clock stands still");
});
