import assert from "node:assert/strict";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { Embedded, unpack } from "../src/embedded";
import type { Link, Listener } from "../src/connection";
import type { Frame } from "../src/frame";
import type { Contained, Contents, FrameColumn, FromServer } from "../src/wire";

const START = 1_763_690_400_000 * 1e6;
const GROUP = 2;

function packed(bytes: Uint8Array): string {
  return Buffer.from(gzipSync(bytes)).toString("base64");
}

/** A frame of columns of doubles, as the exporter writes it. */
function frame(header: object, columns: [Omit<FrameColumn, "at" | "type" | "base" | "scale">, number[]][]): Uint8Array {
  const rows = columns[0]?.[1].length ?? 0;
  const told = columns.map(([column], at) => ({ ...column, type: "f64", base: 0, scale: 1, at: at * rows * 8 }));
  const text = new TextEncoder().encode(JSON.stringify({ id: 0, source: 0, seq: 0, dropped: 0, ...header, rows, columns: told }));
  const begin = Math.ceil((4 + text.length) / 8) * 8;
  const out = new Uint8Array(begin + 8 * rows * columns.length);
  new DataView(out.buffer).setUint32(0, text.length, true);
  out.set(text, 4);
  columns.forEach(([, values], at) => out.set(new Uint8Array(Float64Array.from(values).buffer), begin + at * rows * 8));
  return out;
}

function contained(parts: Partial<Contained>, series: number): Contained {
  const metric = { name: "a.x", sensor: "a", unit: "count", kind: "gauge" as const, scope: "cpu", help: "", source: "", resolution_ns: 0, instances: Array.from({ length: series }, (_, at) => `cpu${at}`) };
  const info = { id: 0, kind: "recording" as const, name: "</script>", host: "", kernel: "", command: null, program: "", started_ns: START, ended_ns: START, read_percent: null, interval_ns: 1e6, page_size: 4096, topology: null, metrics: [metric], formulas: [], absent: [] };
  return { info, labels: [{ id: 1, time_ns: START, text: "<img>" }], from_ns: START, to_ns: START, step_ns: 0, group: GROUP, block: 1, stretches: [], ...parts } as Contained;
}

/** The messages of an opened file, and a function that queries it. */
class Opened implements Listener {
  readonly messages: FromServer[] = [];
  link: Link = { is: "connecting" };
  private taken: (frame: Frame) => void = () => {};
  readonly embedded: Embedded;

  constructor(blocks: (string | Uint8Array)[]) {
    const texts = blocks.map((block) => (typeof block === "string" ? block : packed(block)));
    this.embedded = new Embedded(this, (at) => unpack(texts[at] ?? ""));
  }

  static async of(source: Contained, blocks: Uint8Array[]): Promise<Opened> {
    const contents: Contents = { format: 1, sources: [source], comparisons: [] };
    const opened = new Opened([new TextEncoder().encode(JSON.stringify(contents)), ...blocks]);
    await opened.embedded.start();
    return opened;
  }

  message(message: FromServer): void {
    this.messages.push(message);
  }
  frame(frame: Frame): void {
    this.taken(frame);
  }
  linkChanged(link: Link): void {
    this.link = link;
  }

  fetch(series: number[], from: number, to: number, buckets: number): Promise<Frame> {
    return new Promise((done) => {
      this.taken = done;
      assert.ok(this.embedded.send({ type: "fetch", id: 7, source: 0, series, from_ns: from, to_ns: to, buckets }));
    });
  }

  watch(series: number[], from: number, step: number): Promise<Frame> {
    return new Promise((done) => {
      this.taken = done;
      this.embedded.send({ type: "watch", id: 8, source: 0, series, from_ns: from, step_ns: step });
    });
  }
}

let seed = 5;
const random = () => (seed = (seed * 1103515245 + 12345) % 2 ** 31) / 2 ** 31;

/** Rows about 1 ms apart in two stretches with a gap between. Of three series, one has a spike and the last lacks values. */
function rows() {
  const times: number[] = [];
  for (let at = 0; at < 3000; at++) times.push(START + at * 1e6 + Math.floor(random() * 5e5) * 2 + (at >= 2000 ? 5e9 : 0));
  const values = [times.map(() => Math.round(random() * 100)), times.map((_, at) => (at === 1234 ? 1e6 : 0)), times.map((_, at) => (at % 3 === 0 ? NaN : at))];
  return { times, values };
}

async function fileOfRows() {
  const { times, values } = rows();
  const stretches: Contained["stretches"] = [];
  const blocks: Uint8Array[] = [];
  for (const [first, last] of [[0, 2000], [2000, 3000]] as const) {
    const from = times[first] as number;
    const part = (series: number) => [{ series, what: "value" }, (values[series] as number[]).slice(first, last)] as [{ series: number; what: "value" }, number[]];
    stretches.push({ from_ns: from, to_ns: (times[last - 1] as number) + 256, rows: last - first });
    blocks.push(frame({ kind: "raw", from_ns: from }, [[{ series: 0, what: "time" }, times.slice(first, last).map((time) => time - from)]]));
    blocks.push(frame({ kind: "raw" }, [part(0), part(1)]), frame({ kind: "raw" }, [part(2)]));
  }
  return { times, values, opened: await Opened.of(contained({ stretches, to_ns: times.at(-1) as number }, 3), blocks) };
}

function naive(times: number[], values: number[], from: number, to: number, step: number) {
  const count = Math.ceil((to - from) / step);
  const cells = Array.from({ length: count }, () => [] as number[]);
  times.forEach((time, row) => {
    const value = values[row] as number;
    if (time >= from && time < to && !Number.isNaN(value)) cells[Math.floor((time - from) / step)]?.push(value);
  });
  const of = (compute: (cell: number[]) => number) => cells.map((cell) => (cell.length === 0 ? NaN : compute(cell)));
  return { min: of((cell) => Math.min(...cell)), max: of((cell) => Math.max(...cell)), mean: of((cell) => cell.reduce((sum, one) => sum + one, 0) / cell.length) };
}

test("a file sends the same first messages as a server, for a viewer", async () => {
  const { opened } = await fileOfRows();
  assert.deepEqual(opened.link, { is: "standalone", steps: [0] });
  const [hello, labels] = opened.messages;
  assert.ok(hello?.type === "hello" && hello.role === "viewer" && hello.sources[0]?.name === "</script>");
  assert.ok(labels?.type === "labels" && labels.all && labels.labels[0]?.text === "<img>");
  assert.equal(opened.embedded.send({ type: "order", id: 1, line: "pause" }), false);
  assert.ok(opened.embedded.send({ type: "unwatch", id: 1 }));
});

test("buckets equal those computed from each row", async () => {
  const { times, values, opened } = await fileOfRows();
  for (let round = 0; round < 40; round++) {
    const from = START + Math.floor(random() * 8e9) - 5e8;
    const to = from + Math.floor(random() * 6e9) + 1e6;
    const buckets = 1 + Math.floor(random() * 50);
    const { header, tracks } = await opened.fetch([0, 1, 2], from, to, buckets);
    if (header.kind === "raw") continue;
    assert.ok(header.rows <= buckets && header.id === 7 && header.from_ns === from);
    for (const series of [0, 1, 2]) {
      const wanted = naive(times, values[series] as number[], from, to, header.step_ns as number);
      const track = tracks.get(series);
      assert.ok(track);
      assert.deepEqual([...track.min], wanted.min);
      assert.deepEqual([...track.max], wanted.max);
      track.mean.forEach((value, row) => assert.ok(Object.is(value, wanted.mean[row]) || Math.abs(value - (wanted.mean[row] as number)) < 1e-9 * Math.abs(value)));
    }
  }
});

test("if there are fewer rows than buckets, the rows are returned", async () => {
  const { times, values, opened } = await fileOfRows();
  const [from, to] = [times[1990] as number, (times[2010] as number) + 512];
  const { header, tracks, times: own } = await opened.fetch([1, 2], from, to, 100);
  assert.equal(header.kind, "raw");
  assert.deepEqual([...(own ?? [])], times.slice(1990, 2011).map((time) => time - from));
  assert.deepEqual([...(tracks.get(2)?.mean ?? [])], (values[2] as number[]).slice(1990, 2011));
});

test("a spike of one row is visible at every zoom", async () => {
  const { times, opened } = await fileOfRows();
  const at = times[1234] as number;
  for (let length = 1e7; length < 1e12; length *= 3) {
    const { tracks } = await opened.fetch([1], at - length / 3, at + length, 200);
    assert.equal(Math.max(...[...(tracks.get(1)?.max ?? [])].filter((value) => value === value)), 1e6, String(length));
  }
});

test("a watch gets all buckets at once, including empty ones", async () => {
  const { times, values, opened } = await fileOfRows();
  const { header, tracks } = await opened.watch([0], 0, 1e9);
  assert.equal(header.first, START / 1e9);
  const wanted = naive(times, values[0] as number[], START, START + header.rows * 1e9, 1e9);
  assert.deepEqual([...(tracks.get(0)?.max ?? [])], wanted.max);
  assert.ok(wanted.max.some(Number.isNaN));
});

/** 1000 buckets of 20 ms; every third is empty, one has a spike. */
async function fileOfBuckets() {
  const step = 2e7;
  const first = START / step;
  const numbers = Array.from({ length: 1000 }, (_, at) => at);
  const value = (at: number) => (at % 3 === 0 ? NaN : at);
  const columns = (["min", "max", "mean"] as const).map((what) => [{ series: 0, what }, numbers.map((at) => value(at) + (what === "min" ? -1 : what === "max" ? (at === 500 ? 1e6 : 1) : 0))] as [{ series: number; what: typeof what }, number[]]);
  const blocks = [0, 600].map((from, part) => frame({ kind: "grid", first: first + from, step_ns: step }, columns.map(([column, values]) => [column, values.slice(from, part === 0 ? 600 : 1000)])));
  const stretches = [{ from_ns: START, to_ns: START + 600 * step, rows: 600 }, { from_ns: START + 600 * step, to_ns: START + 1000 * step, rows: 400 }];
  return { step, first, value, opened: await Opened.of(contained({ stretches, step_ns: step, to_ns: START + 1000 * step - 1 }, 1), blocks) };
}

test("buckets of the file are returned as they are, or merged", async () => {
  const { step, first, value, opened } = await fileOfBuckets();
  assert.deepEqual(opened.link, { is: "standalone", steps: [20] });
  const near = await opened.fetch([0], START + 590 * step + 5, START + 610 * step - 5, 1000);
  assert.deepEqual([near.header.first, near.header.step_ns, near.header.rows], [first + 590, step, 20]);
  assert.deepEqual([...(near.tracks.get(0)?.mean ?? [])], Array.from({ length: 20 }, (_, at) => value(590 + at)));
  const far = await opened.fetch([0], START, START + 1000 * step, 100);
  const track = far.tracks.get(0);
  assert.deepEqual([far.header.step_ns, far.header.rows], [10 * step, 100]);
  assert.deepEqual([track?.min[1], track?.max[1], track?.mean[1]], [9, 20, (10 + 11 + 13 + 14 + 16 + 17 + 19) / 7]);
  assert.equal(track?.max[50], 500 + 1e6);
  for (const buckets of [1, 3, 7, 500, 5000]) {
    const { tracks } = await opened.fetch([0], START, START + 1000 * step, buckets);
    assert.equal(Math.max(...[...(tracks.get(0)?.max ?? [])].filter((one) => one === one)), 500 + 1e6);
  }
});

test("a truncated file is reported", async () => {
  for (const block of ["", "AAAA", packed(new TextEncoder().encode("{}")), packed(new TextEncoder().encode('{"format":9,"sources":[]}'))]) {
    const opened = new Opened([block]);
    await opened.embedded.start();
    assert.ok(opened.link.is === "ended" && opened.link.why.startsWith("This file cannot be read: "));
  }
  const lacking = await Opened.of(contained({ stretches: [{ from_ns: START, to_ns: START + 1e9, rows: 5 }] }, 1), []);
  lacking.embedded.send({ type: "fetch", id: 1, source: 0, series: [0], from_ns: START, to_ns: START + 1e9, buckets: 9 });
  for (const end = Date.now() + 60_000; Date.now() < end && lacking.messages.length < 3; ) await new Promise((done) => setTimeout(done, 10));
  assert.equal(lacking.messages[2]?.type, "notice");
});

test("the findings of a file are those of the whole recording, whatever range is asked for", async () => {
  const found = { from_ns: START, to_ns: START + 9e9, verdict: "Nothing is wrong", cost: "none", action: "nothing", problems: [], remarks: [], untold: [] };
  const opened = await Opened.of(contained({ found }, 1), []);
  assert.ok(opened.embedded.send({ type: "findings", id: 12, source: 0, from_ns: START, to_ns: START + 5 }));
  assert.ok(!opened.embedded.send({ type: "findings", id: 13, source: 7, from_ns: START, to_ns: START + 5 }));
  await Promise.resolve();
  assert.deepEqual(opened.messages.filter(({ type }) => type === "findings"), [{ type: "findings", id: 12, source: 0, found }]);
});
