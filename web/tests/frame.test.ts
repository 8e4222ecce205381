import assert from "node:assert/strict";
import { test } from "node:test";
import { encodeFrame, frameOf, type Columns } from "../dev/encode";
import { decodeFrame } from "../src/frame";
import type { FrameColumn, FrameHeader } from "../src/wire";

function header(rows: number, columns: FrameColumn[], more: Partial<FrameHeader> = {}): FrameHeader {
  return { id: 1, source: 0, seq: 3, dropped: 0, kind: "grid", first: 10, step_ns: 1e6, rows, columns, ...more } as FrameHeader;
}

function bufferOf(bytes: Uint8Array): ArrayBuffer {
  return bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength) as ArrayBuffer;
}

test("integers of each width are scaled, and the largest means that nothing was measured", () => {
  const stored = { u8: new Uint8Array([0, 5, 255]), u16: new Uint16Array([0, 500, 65535]), u32: new Uint32Array([0, 70000, 2 ** 32 - 1]) };
  for (const [type, values] of Object.entries(stored)) {
    const column = { series: 4, what: "value", type, base: 10, scale: 0.5, at: 0 } as FrameColumn;
    const frame = decodeFrame(bufferOf(frameOf(header(3, [column]), [new Uint8Array(values.buffer)])));
    const mean = [...(frame.tracks.get(4)?.mean ?? [])];
    assert.deepEqual(mean, [10, 10 + 0.5 * (values[1] ?? 0), NaN]);
  }
});

test("floats keep missing values, constants need no bytes", () => {
  const values = new Float32Array([1.5, NaN, -2]);
  const columns = [
    { series: 1, what: "min", type: "f32", base: 0, scale: 1, at: 0 },
    { series: 2, what: "min", type: "const", base: 7, scale: 1, at: 0 },
    { series: 3, what: "min", type: "const", base: null, scale: 1, at: 0 },
  ] as FrameColumn[];
  const frame = decodeFrame(bufferOf(frameOf(header(3, columns), [new Uint8Array(values.buffer)])));
  assert.deepEqual([...(frame.tracks.get(1)?.min ?? [])], [1.5, NaN, -2]);
  assert.deepEqual([...(frame.tracks.get(2)?.max ?? [])], [7, 7, 7]);
  assert.deepEqual([...(frame.tracks.get(3)?.mean ?? [])], [NaN, NaN, NaN]);
});

test("minimum, mean and maximum are decoded as they were encoded", () => {
  const columns: Columns = new Map([[9, { min: new Float32Array([1, 2]), max: new Float32Array([5, 9]), mean: new Float32Array([3, 4]) }]]);
  const { columns: _, ...about } = header(2, []);
  const track = decodeFrame(bufferOf(encodeFrame(about, columns))).tracks.get(9);
  assert.deepEqual([...(track?.min ?? [])], [1, 2]);
  assert.deepEqual([...(track?.max ?? [])], [5, 9]);
  assert.deepEqual([...(track?.mean ?? [])], [3, 4]);
});

test("times of raw rows are separate from the series", () => {
  const times = new Float64Array([0, 1e6, 2.5e6]);
  const column = { series: 0, what: "time", type: "f64", base: 0, scale: 1, at: 0 } as FrameColumn;
  const frame = decodeFrame(bufferOf(frameOf(header(3, [column], { kind: "raw", from_ns: 5e18 }), [new Uint8Array(times.buffer)])));
  assert.deepEqual([...(frame.times ?? [])], [0, 1e6, 2.5e6]);
  assert.equal(frame.tracks.size, 0);
});

test("a truncated or invalid frame is an error", () => {
  const good = frameOf(header(3, [{ series: 1, what: "min", type: "f32", base: 0, scale: 1, at: 0 } as FrameColumn]), [new Uint8Array(12)]);
  for (let length = 0; length < good.length; length++) assert.throws(() => decodeFrame(bufferOf(good.slice(0, length))));
  assert.throws(() => decodeFrame(bufferOf(frameOf(header(-1, []), []))), /rows/);
  assert.throws(() => decodeFrame(bufferOf(frameOf(header(1e12, []), []))), /rows/);
  const odd = { series: 1, what: "min", type: "f16", base: 0, scale: 1, at: 0 } as unknown as FrameColumn;
  assert.throws(() => decodeFrame(bufferOf(frameOf(header(1, [odd]), []))), /f16/);
});
