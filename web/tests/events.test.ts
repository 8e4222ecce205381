import assert from "node:assert/strict";
import { test } from "node:test";
import { clusters, eventsOf, linesOf } from "../src/panels/events";
import type { WireLabel } from "../src/wire";

let id = 0;
const label = (ms: number, text: string): WireLabel => ({ id: ++id, time_ns: ms * 1e6, text });
const own = (ms: number, text: string) => label(ms, `numakit:${text}`);

test("every label of the recorder is told in words", () => {
  const texts = ["command ep 22", "exit 0", "exit 3", "exit 137", "lost 1", "lost 12", "dropped 9", "damaged 1000", "clock -3600000000000ns", "clock +5000000ns", "interval 5000000ns", "back node", "resume", "new thing"];
  const events = eventsOf(texts.map((text, at) => own(at, text)));
  assert.deepEqual(events.map(({ kind, text }) => `${kind}: ${text}`), [
    "program: The program started: ep 22", "program: The program ended with exit status 0", "program: The program ended with exit status 3", "program: The program was killed by signal 9",
    "loss: 1 tick lost", "loss: 12 ticks lost", "loss: 9 samples dropped: the recorder was too slow", "loss: 1000 samples cannot be read: the file is damaged",
    "change: The clock was set back by 1 h", "change: The clock was set forward by 5 ms", "change: The interval changed to 5 ms", "change: Values of ‘node’ again", "pause: Sampling continued", "change: new thing",
  ]);
  assert.ok(events.every(({ from, to }) => from === to));
});

test("a pause and a sensor without values last until they end", () => {
  const events = eventsOf([own(9000, "resume"), own(1000, "absent node: removed"), own(2000, "pause"), own(3000, "absent cpu"), own(6000, "back node"), label(5, "numa")]);
  assert.deepEqual(events, [
    { kind: "loss", from: 1000, to: 6000, text: "No values of ‘node’: removed, for 5 s" },
    { kind: "pause", from: 2000, to: 9000, text: "Sampling was paused, for 7 s" },
    { kind: "loss", from: 3000, to: null, text: "No values of ‘cpu’" },
  ]);
});

test("events that are near to each other share a mark, with the sign of the worst", () => {
  const events = eventsOf([own(0, "command x"), own(100, "lost 3"), own(5000, "interval 1000000ns"), own(20_000, "exit 0")]);
  const found = clusters(events, 0, 10_000, 1000, 24);
  assert.deepEqual(found.map(({ kind, at, events: own }) => [kind, at, own.length]), [["loss", 0, 2], ["change", 500, 1]]);
  const lasting = eventsOf([own(0, "pause"), own(4000, "absent a")]);
  assert.deepEqual(clusters(lasting, 5000, 10_000, 1000, 24).map(({ at, events: own }) => [at, own.length]), [[0, 2]]);
  assert.deepEqual(clusters(eventsOf([own(0, "pause"), own(10, "resume")]), 5000, 10_000, 1000, 24), []);
});

test("what a mark says is short, and lost ticks are added up", () => {
  const time = (ms: number) => String(ms);
  const events = eventsOf([own(1, "lost 3"), own(2, "lost 70"), own(3, "exit 0")]);
  assert.deepEqual(linesOf(events, time), ["1 to 2  73 ticks lost, 2 times", "3  The program ended with exit status 0"]);
  assert.deepEqual(linesOf(eventsOf([own(1, "lost 3")]), time), ["1  3 ticks lost"]);
  const many = linesOf(eventsOf(Array.from({ length: 20 }, (_, at) => own(at, "exit 0"))), time);
  assert.equal(many.length, 6);
  assert.equal(many[5], "and 15 more");
});
