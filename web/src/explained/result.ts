// A result of `numa explain --json`, and what its values say. Values that could not be told are null; those that the
// file does not have are undefined.

export interface Estimate {
  share: number;
  low: number;
  high: number;
}

export interface NodeShare {
  node: number;
  share: number;
}

export interface Pair {
  cpu_node: number;
  memory_node: number;
  /** CPU time in ns. */
  time: number;
}

export interface PlaceTimes {
  computing: number;
  private_cache: number;
  shared_cache: number;
  contended: number;
  local: number;
  remote: number;
  unknown: number;
}

export interface Code {
  function?: string | null;
  module: string;
  file?: string | null;
  line?: number | null;
}

export interface TimedCode extends Code {
  time: PlaceTimes;
}

export interface FirstTouch {
  thread: string | number;
  node: number | null;
  share: number;
  chain: string[];
}

/** The members of an object that samples accessed. */
export interface Members {
  type: string;
  /** Bytes of an element. */
  element: number;
  used: { name: string; offset: number; size: number; share: number }[];
}

export interface ExplainedObject {
  pid: number;
  processes?: number[] | null;
  name: string;
  kind: string;
  size: number;
  pieces: number;
  home?: NodeShare[] | null;
  used_from?: NodeShare[] | null;
  nodes?: Pair[] | null;
  time_share?: number | null;
  remote?: Estimate | null;
  in_cache?: number | null;
  contended?: number | null;
  first_touch?: FirstTouch[] | null;
  used_by?: (Code & { share: number })[] | null;
  members?: Members | null;
  verdict?: { rule: string; says: string } | null;
  do?: string | null;
  try?: string | null;
  expect?: string | null;
  worth?: { at_most: number | null; why: string } | null;
}

/** Threads that waited for the same, in the same function. */
export interface Wait {
  kind: string;
  what: string | null;
  /** The processes at the other end. */
  peers: string[];
  /** The system call. */
  call: string | null;
  /** In ns, of all of these threads. */
  time: number;
  threads: number;
  processes: number;
  chain: Code[];
}

export interface Lock {
  what: string;
  /** The time that threads waited for it, and that they ran or could have run, in ns. */
  time: number;
  worked: number;
  threads: number;
  chain: Code[];
  holders: { thread: number; name: string; share: number; runs: boolean; chain: Code[] }[];
}

export interface Waits {
  threads: number;
  busy: number;
  rows: Wait[];
  locks: Lock[];
  /** Time of threads that neither ran nor were seen to wait, in ns. */
  unseen: number;
  looks: number;
  /** In ns of CPU time. */
  cost: number;
  refused: string | null;
}

/** What the program does: CPU time first. */
export interface Activity {
  threads: number;
  busy: number;
  cpus: number;
  is_busy: boolean;
  part: [string, number] | null;
  function: [Code, number] | null;
  /** Null where a finding says it. */
  without_cpu: number | null;
  waits: [Wait, number][];
  cpu_wait?: number | null;
}

/** What is wrong, with what to do. Objects have the parts of their findings as keys of their own. */
export interface Finding {
  rule: string;
  subject: { kind: string };
  says: string;
  cost: { kind: "share"; of: string; percent: number; low: number; high: number } | { kind: "unknown"; why: string };
  remedy: { words: string; commands: string[] };
}

/** Source lines of a function in one file, with the time of each; or why there are none. */
export interface AnnotatedSource extends Code {
  file: string;
  time: number;
  lines: { line: number; text: string; time: number }[];
  why_not: string | null;
}

export interface LineUser {
  thread: number;
  nodes: number[];
  offsets: Record<string, number>;
  loads: number;
  stores: number;
  atomics: number;
  fields?: { at: number; offset: number; name: string }[] | null;
}

export interface ContendedLine {
  address: number;
  /** The places of its processes. */
  processes?: number[] | null;
  object: number;
  home: number | null;
  sharing: "false" | "true" | "lock";
  across_nodes: boolean;
  /** CPU time in ns. */
  weight: number;
  users: LineUser[];
}

/** A flame graph: the values of each stack are those of the parts, in order. */
export interface FlameGraph {
  title: string;
  unit: "ns" | "bytes";
  parts: string[];
  names: string[];
  stacks: { frames: number[]; values: number[] }[];
}

/** The same run on another machine, or why nothing can be told of it. */
export interface Projection {
  machine: string;
  threads: number;
  why_not: string | null;
  remote_share: Estimate | null;
  /** The part of the time at memory whose first touch was not seen. */
  unknown: number;
  nodes: Pair[];
  objects: ExplainedObject[];
}

export const TIME_PARTS = ["computing", "cached", "local", "remote", "unknown", "contended", "kernel", "runnable", "asleep"] as const;
export type TimePart = (typeof TIME_PARTS)[number];

export interface Result {
  version: number;
  regime: "precise" | "block" | "unknown";
  road: string;
  road_reason: string | null;
  rate: number;
  seconds: number;
  program: string;
  complete: boolean;
  exit_status: number | null;
  missing: { lost: number; thinned: number; late: number; threads: number };
  samples: { total: number; memory: number; recovered: number; in_cache: number };
  time: Record<TimePart, number> | null;
  threads: { user: number; kernel: number; runnable: number; asleep: number; faults: number };
  remote_share: Estimate | null;
  caches: { private: number; last_level: number };
  nodes: Pair[];
  traffic: { pages: { cpu_node: number; memory_node: number; pages: number }[]; unknown: number } | null;
  lines: ContendedLine[];
  functions: TimedCode[];
  source_lines: TimedCode[];
  threads_sampled: { pid: number; tid: number; name: string }[];
  processes?: { pid: number; name: string; joined: boolean; ended: boolean }[] | null;
  waits?: Waits | null;
  activity?: Activity | null;
  findings?: Finding[] | null;
  too_few_samples?: string | null;
  sources?: AnnotatedSource[] | null;
  objects: ExplainedObject[];
  flame?: { time?: FlameGraph | null; resident?: FlameGraph | null } | null;
  projected?: Projection | null;
}

export interface NamedResult {
  name: string;
  result: Result;
}

const LISTS = ["nodes", "lines", "functions", "source_lines", "threads_sampled", "objects"] as const;
const RECORDS = ["samples", "missing", "threads"] as const;

/** The results in a value of JSON; an error if it is something else. */
export function resultsIn(value: unknown): NamedResult[] {
  if (!Array.isArray(value)) throw new Error("these are no results of numa explain");
  return value.map(({ name, result }: NamedResult) => {
    const lacks = LISTS.find((key) => !Array.isArray(result?.[key])) ?? RECORDS.find((key) => typeof result?.[key] !== "object" || result[key] === null);
    if (lacks) throw new Error(`${name} has no '${lacks}': it is no result of numa explain, or it is damaged`);
    return { name, result };
  });
}

/** A share as a percentage; null if it is not known. */
export function percent(share: number | null | undefined): string | null {
  if (share === null || share === undefined || !Number.isFinite(share)) return null;
  const value = share * 100;
  return `${value > 0 && value < 0.05 ? "< 0.1" : value.toFixed(1)} %`;
}

/** A share with its 95 % interval. */
export function estimate(of: Estimate): string {
  return `${percent(of.share)} (${(of.low * 100).toFixed(0)} to ${(of.high * 100).toFixed(0)} %)`;
}

/** Bytes with IEC prefixes; 0 is a size that is not known. */
export function bytes(size: number): string | null {
  if (!(size > 0)) return null;
  const power = Math.min(4, Math.floor(Math.log2(size) / 10));
  const value = size / 1024 ** power;
  return `${value >= 100 || power === 0 ? value.toFixed(0) : value.toFixed(1)} ${["B", "KiB", "MiB", "GiB", "TiB"][power]}`;
}

/** What following a verdict may gain, in a few words. */
export function worthText({ worth }: ExplainedObject): string {
  const most = percent(worth?.at_most);
  return most === null ? "worth not known" : `worth at most ${most}`;
}

const SHARE_OF: Record<string, string> = { "cpu-time": "CPU time", "memory-time": "time at memory", "wall-time": "time" };

/** What a finding costs, in words. */
export function costText({ cost }: Finding): string {
  if (cost.kind === "unknown") return `cannot be told: ${cost.why}`;
  const of = `of the ${SHARE_OF[cost.of] ?? cost.of}`;
  const share = percent(cost.percent / 100);
  if (cost.low <= 0 && cost.percent > 0) return `at most ${share} ${of}`;
  return `${share} ${of}${cost.high - cost.low < 0.1 ? "" : ` (${percent(cost.low / 100)} to ${percent(cost.high / 100)})`}`;
}

/** The nodes in a few words, however many they are. */
export function nodesText(shares: NodeShare[] | null | undefined): string | null {
  if (!shares || shares.length === 0) return null;
  const sorted = [...shares].sort((one, other) => other.share - one.share);
  const [first] = sorted as [NodeShare];
  if (sorted.length === 1) return `node ${first.node}`;
  const most = sorted.filter(({ share }) => share >= 0.01);
  if (most.length === 1) return `node ${first.node} (${whole(first.share)})`;
  if (sorted.length <= 4) return sorted.map(({ node, share }) => `${node}: ${whole(share)}`).join(", ");
  return `${sorted.length} nodes, at most ${whole(first.share)} (node ${first.node})`;
}

function whole(share: number): string {
  return `${(share * 100).toFixed(share < 0.1 ? 1 : 0)} %`;
}

/** A square of numbers: rows are the nodes of CPUs, columns those of memory. */
export interface Square {
  nodes: number[];
  /** Shares of all. */
  cells: number[][];
  highest: number;
}

/** The pairs as a square; null if there is nothing in it or it has a single node. */
export function squareOf(pairs: Pair[] | null | undefined): Square | null {
  const all = (pairs ?? []).reduce((sum, pair) => sum + pair.time, 0);
  const nodes = [...new Set((pairs ?? []).flatMap((pair) => [pair.cpu_node, pair.memory_node]))].sort((one, other) => one - other);
  if (all <= 0 || nodes.length < 2) return null;
  const place = new Map(nodes.map((node, at) => [node, at]));
  const cells = nodes.map(() => nodes.map(() => 0));
  for (const { cpu_node, memory_node, time } of pairs ?? []) {
    const row = cells[place.get(cpu_node) ?? -1];
    const column = place.get(memory_node) ?? -1;
    if (row) row[column] = (row[column] ?? 0) + time / all;
  }
  return { nodes, cells, highest: Math.max(...cells.flat()) };
}

/** The pairs of the whole program: time, or where it cannot be told, pages in use. */
export function pairsOf(result: Result): Pair[] {
  if (result.nodes.length > 0 || !result.traffic) return result.nodes;
  return result.traffic.pages.map(({ cpu_node, memory_node, pages }) => ({ cpu_node, memory_node, time: pages }));
}

/** A function within its callers. */
export interface FlameFrame {
  name: string;
  values: number[];
  total: number;
  caller: FlameFrame | null;
  inner: Map<string, FlameFrame>;
}

/** All stacks of a flame graph as a tree. */
export function flameTree(graph: FlameGraph): FlameFrame {
  const create = (name: string, caller: FlameFrame | null): FlameFrame => ({ name, values: graph.parts.map(() => 0), total: 0, caller, inner: new Map() });
  const root = create("all", null);
  for (const { frames, values } of graph.stacks) {
    let at = root;
    for (const name of [null, ...frames.map((frame) => graph.names[frame] ?? "unknown")]) {
      if (name !== null) {
        const inner: FlameFrame = at.inner.get(name) ?? create(name, at);
        at.inner.set(name, inner);
        at = inner;
      }
      values.forEach((value, part) => (at.values[part] = (at.values[part] ?? 0) + value));
      at.total += values.reduce((sum, value) => sum + value, 0);
    }
  }
  return root;
}

/** What a sample of this machine says. */
export const REGIMES: Record<Result["regime"], string> = {
  precise: "Each sample names the instruction that waited.",
  block: "Samples land at starts of blocks, as on emulated processors: time cannot be told, only which pages are in use.",
  unknown: "Samples land elsewhere on this machine: neither time nor traffic can be told.",
};

/** Why no interval of remote memory is known. */
export function withoutNodes(result: Result): string {
  if (result.regime !== "precise") return REGIMES[result.regime];
  if (result.remote_share === null) return "The machine has one node with memory, or no sample outside of the caches has a known node: local and remote memory are not distinguished.";
  return "No sample at it waited outside of the caches for memory of a known node.";
}

/** What would be remote on another machine, in a sentence for each thing that is known. */
export function projectedText({ machine, threads, remote_share: far, unknown, why_not: whyNot }: Projection): string[] {
  if (whyNot) return [`Not told: ${whyNot}.`];
  const how = `As on ${machine}, with ${threads === 1 ? "its thread" : `its ${threads} threads`} spread over the nodes and pages where they are touched first.`;
  const share = far ? `Of the time at memory, ${estimate(far)} would be at memory of other nodes.` : "Too little time is at memory outside of the caches to tell what would be remote.";
  const rest = `${percent(unknown)} of the time at memory is left out: the first touch of its pages was not seen, or its addresses are not known.`;
  return [how, share, ...(unknown > MUCH ? [rest] : [])];
}

/** A part of the time that is too large to be passed over. */
const MUCH = 0.05;

/** All CPU time in ns, in the measure of samples: these are of user mode, and the kernel has its part by its own account. */
export function cpuTime({ functions, threads: { user, kernel } }: Result): number {
  const sampled = functions.reduce((sum, { time }) => sum + total(time), 0);
  return user > 0 ? (sampled * (user + kernel)) / user : sampled;
}

export function total(time: PlaceTimes): number {
  return time.computing + time.private_cache + time.shared_cache + outside(time);
}

export function outside(time: PlaceTimes): number {
  return time.contended + time.local + time.remote + time.unknown;
}

/** Where code is, for people. */
export function place(code: Code): { what: string; where: string } {
  const where = code.file ? `${code.file}${code.line ? `:${code.line}` : ""}` : code.module;
  return { what: code.function ?? "code without names", where };
}

/** Contended lines as text. */
export const SHARINGS: Record<ContendedLine["sharing"], string> = {
  false: "False sharing: each thread uses bytes of its own on one line.",
  true: "True sharing: threads use the same bytes.",
  lock: "A lock or an atomic counter: threads change the same bytes by atomic instructions.",
};

/** How samples were taken, and what is missing. */
export function notesOf(result: Result): string[] {
  const { samples, missing } = result;
  const count = (value: number, what: string) => (value > 0 ? `${what}: ${value.toLocaleString("en")}.` : null);
  const notes = [
    `${samples.total.toLocaleString("en")} samples ${result.road}, ${result.rate} per second of CPU time of a thread, in ${result.seconds.toFixed(1)} s. ${REGIMES[result.regime]}`,
    `${samples.recovered.toLocaleString("en")} of ${samples.memory.toLocaleString("en")} samples at memory have an address.`,
    result.road_reason,
    result.complete ? null : "The observation had not ended when this file was written: the rest is missing.",
    count(missing.lost, "Samples lost, since they were not taken from the ring buffer in time"),
    count(missing.thinned, "Samples skipped to bound memory, so that those that are left count more"),
    count(missing.late, "Samples of code that had gone when they were looked at"),
    count(missing.threads, "Threads that used CPU time and have no sample"),
  ];
  return notes.filter((note) => note !== null);
}
