import assert from "node:assert/strict";
import { test } from "node:test";
import { multiplesBetween } from "../src/steps";
import { clock, digits, format, moment, offset, shownFormula, shownMetric, span, timesOf, useZone } from "../src/units";

test("numbers have three digits and the prefix of their unit", () => {
  assert.equal(format(12_345, "count/s"), "12.3k/s");
  assert.equal(format(0, "count/s"), "0/s");
  assert.equal(format(999_700, "count/s"), "1.00M/s");
  assert.equal(format(1.5 * 2 ** 30, "bytes"), "1.50 GiB");
  assert.equal(format(1000, "bytes"), "1000 B");
  assert.equal(format(2.5e9, "bytes/s"), "2.50 GB/s");
  assert.equal(format(87.23, "percent"), "87.2 %");
  assert.equal(format(100, "percent"), "100 %");
  assert.equal(format(24.1e-6, "seconds"), "24.1 µs");
  assert.equal(format(-2048, "bytes"), "-2 KiB");
});

test("a missing value is a dash and never 0", () => {
  for (const nothing of [null, undefined, NaN, Infinity]) assert.equal(format(nothing, "percent"), "–");
  assert.equal(format(0, "percent"), "0 %");
});

test("raw units are converted to shown units", () => {
  assert.deepEqual(shownMetric({ unit: "pages", kind: "gauge" }, 65536), { quantity: "bytes", factor: 65536 });
  assert.deepEqual(shownMetric({ unit: "KiB", kind: "gauge" }, 4096), { quantity: "bytes", factor: 1024 });
  assert.deepEqual(shownMetric({ unit: "pages", kind: "counter" }, 4096), { quantity: "bytes/s", factor: 4096 });
  assert.deepEqual(shownMetric({ unit: "ticks", kind: "counter" }, 4096), { quantity: "percent", factor: 1 });
  // Cycles of a card with a 200 MHz clock: 194 million per second are 97 %.
  assert.deepEqual(shownMetric({ unit: "cycles", kind: "rate", maximum: 200_000_000 }, 0), { quantity: "percent", factor: 100 / 200e6 });
  assert.deepEqual(shownMetric({ unit: "cycles", kind: "counter" }, 0), { quantity: "cycles/s", factor: 1 });
  assert.deepEqual(shownMetric({ unit: "ns", kind: "gauge" }, 4096), { quantity: "seconds", factor: 1e-9 });
  const us = shownMetric({ unit: "us", kind: "counter" }, 4096);
  assert.equal(us.quantity, "percent");
  assert.ok(Math.abs(1e6 * us.factor - 100) < 1e-9);
  assert.deepEqual(shownFormula("ns"), { quantity: "seconds", factor: 1e-9 });
  assert.equal(shownFormula("count/s").quantity, "count/s");
});

test("digits and spans", () => {
  assert.deepEqual([0.123, 1.239, 12.34, 123.4].map(digits), ["0.12", "1.24", "12.3", "123"]);
  assert.deepEqual([20, 1500, 60_000, 5_400_000].map(span), ["20 ms", "1.50 s", "1 min", "1.50 h"]);
});

test("times have a date and the zone of the source, which is the same for all readers", () => {
  const zone = process.env.TZ;
  const at = Date.UTC(2019, 7, 1, 0, 40);
  try {
    for (const reader of ["Asia/Kolkata", "America/St_Johns"]) {
      process.env.TZ = reader;
      useZone(null);
      assert.deepEqual([clock(at), moment(at), timesOf(at, at + 60_000)], ["00:40:00", "2019-08-01 00:40:00 UTC", "2019-08-01 00:40:00 to 00:41:00 UTC"]);
      useZone(120);
      assert.equal(moment(at), "2019-08-01 02:40:00 UTC+02:00");
      useZone(-210);
      assert.equal(timesOf(at, at + 86_400_000), "2019-07-31 21:10:00 to 2019-08-01 21:10:00 UTC−03:30");
    }
  } finally {
    useZone(null);
    if (zone === undefined) delete process.env.TZ;
    else process.env.TZ = zone;
  }
});

test("times while comparing are distances from where both are aligned", () => {
  assert.deepEqual([0, 12_000, -500, 61_000, 3_725_000].map((ms) => offset(ms)), ["+0 s", "+12 s", "−1 s", "+1:01", "+1:02:05"]);
  assert.deepEqual([offset(1500, 100), offset(-20, 10), offset(65_250, 100)], ["+1.5 s", "−0.02 s", "+1:05.3"]);
  assert.deepEqual(multiplesBetween(1003, 1031, 10, 1000), [1010, 1020, 1030]);
  assert.deepEqual(multiplesBetween(1000, 1020, 10, 1005), [1005, 1015]);
});
