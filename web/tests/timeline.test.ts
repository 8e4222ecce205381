import assert from "node:assert/strict";
import { test } from "node:test";
import { sourceInfo } from "../dev/machine";
import type { Frame } from "../src/frame";
import { Ids, Timeline } from "../src/timeline";
import { freshView } from "../src/view";
import type { ObservationState, ToServer } from "../src/wire";

Object.assign(globalThis, { window: globalThis });

const START = 1_763_690_400_000;

/** A timeline that follows live data since `START`, and the watches that it sent. */
function following() {
  const watches: Extract<ToServer, { type: "watch" }>[] = [];
  const connection = { served: true, start: async () => {}, retry: () => {}, send: (message: ToServer) => (message.type === "watch" && watches.push(message), true) };
  const timeline = new Timeline({ ...sourceInfo(4, START), interval_ns: 1e6 }, freshView(), connection, new Ids(), 1, () => {});
  timeline.buckets = 450;
  const state = (from: number, to: number) => {
    timeline.state = { interval_ns: 1e6, history: { from_ns: from * 1e6, to_ns: to * 1e6 } } as ObservationState;
    timeline.refresh();
  };
  timeline.show([0]);
  const length = () => timeline.range()[1] - timeline.range()[0];
  return { timeline, watches, state, length };
}

test("a live range grows with the history up to the chosen length", () => {
  const { watches, state, length } = following();
  state(START, START + 1000);
  assert.equal(length(), 5000);
  state(START, START + 12_000);
  assert.equal(length(), 12_000);
  state(START, START + 300_000);
  assert.equal(length(), 60_000);
  const steps = watches.map(({ step_ns }) => step_ns / 1e6);
  assert.deepEqual(steps, [...new Set(steps)].sort((a, b) => a - b), "buckets grow with it");
  assert.deepEqual([steps[0], steps[steps.length - 1]], [20, 200]);
});

test("what was received before the server was restarted stays on screen", () => {
  const { timeline, watches, state, length } = following();
  state(START, START + 4000);
  const step_ns = watches[0]?.step_ns ?? 0;
  const track = { min: new Float64Array(200), max: new Float64Array(200), mean: new Float64Array(200) };
  const frame: Frame = { header: { id: 1, source: 0, seq: 0, dropped: 0, kind: "grid", first: START / 20, step_ns, rows: 200, columns: [] }, tracks: new Map([[0, track]]), times: null };
  assert.ok(timeline.take(frame));
  state(START + 20_000, START + 21_000);
  timeline.reconnected();
  state(START + 20_000, START + 34_000);
  assert.equal(length(), 34_000);
  assert.ok(watches.every((watch) => watch.step_ns === step_ns), "another step would lose it");
  assert.equal(timeline["grid"]?.start, START);
});
