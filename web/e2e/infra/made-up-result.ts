// Results of `numa explain` that are made up: no machine was measured. They have every kind of value, and each kind of
// absence.

import type { Code, ContendedLine, ExplainedObject, FlameGraph, Pair, PlaceTimes, Projection, Result, Wait } from "../../src/explained/result";

const MS = 1_000_000;
const NONE: PlaceTimes = { computing: 0, private_cache: 0, shared_cache: 0, contended: 0, local: 0, remote: 0, unknown: 0 };

/** All nodes wait for one node, more for themselves than for others. */
function pairs(nodes: number, home: number, time: number): Pair[] {
  return Array.from({ length: nodes }, (_, node) => ({ cpu_node: node, memory_node: home, time: node === home ? time : Math.round(time * 0.9) }));
}

function evenly(nodes: number) {
  return Array.from({ length: nodes }, (_, node) => ({ node, share: 1 / nodes }));
}

/** A matrix that one thread has initialised and threads of all nodes use. */
export function initialised(nodes: number): ExplainedObject {
  return {
    pid: 4711, name: "double *matrix (solve.c:41)", kind: "allocated", size: 3.2e9, pieces: 1,
    home: [{ node: 0, share: 1 }], used_from: evenly(nodes), nodes: pairs(nodes, 0, 900 * MS),
    time_share: 0.62, remote: { share: 0.73, low: 0.7, high: 0.76 }, in_cache: 0.02, contended: 0,
    first_touch: [{ thread: 4711, node: 0, share: 1, chain: ["initialise (solve.c:52)", "main (solve.c:90)"] }],
    used_by: [{ function: "multiply", module: "solve", file: "solve.c", line: 71, share: 0.91 }, { function: "norm", module: "solve", file: "solve.c", line: 80, share: 0.09 }],
    verdict: { rule: "one-toucher", says: "one thread touched all of it first, and threads of other nodes each use a part" },
    do: "initialise it with the same schedule as multiply: #pragma omp parallel for schedule(static) at solve.c:52",
    try: "numa run -c 8 --memory interleave ./solve 20000",
    worth: { at_most: 0.21, why: "the remote share of memory time, times one minus local over remote latency by the distances" },
  };
}

/** An object without anything that can be told. */
export function unknown(at: number): ExplainedObject {
  return { pid: 4711, name: `block ${at} (pool.cpp:${at})`, kind: "allocated", size: 0, pieces: 12, home: null, used_from: null, nodes: null, time_share: null, remote: null, in_cache: null, contended: null, first_touch: null, used_by: null, verdict: null, do: null, try: null, worth: null };
}

function local(at: number, nodes: number): ExplainedObject {
  const node = at % nodes;
  return {
    ...unknown(at), name: `slice_${at}`, kind: "variable", size: 65536 * (at + 1), pieces: 1, home: [{ node, share: 1 }], used_from: [{ node, share: 1 }],
    nodes: [{ cpu_node: node, memory_node: node, time: 5 * MS }], time_share: 0.001, remote: { share: 0, low: 0, high: 0.03 }, in_cache: 0.5, contended: 0,
  };
}

const LINE: ContendedLine = {
  address: 0x7f00_1040, object: 1, home: 0, sharing: "false", across_nodes: true, weight: 700 * MS,
  users: [
    { thread: 0, nodes: [0], offsets: { 0: 120, 8: 3 }, loads: 60, stores: 63, atomics: 0 },
    { thread: 1, nodes: [1, 2], offsets: { 16: 90 }, loads: 40, stores: 50, atomics: 50 },
  ],
};

/** Two functions, of which one uses memory of all nodes. */
function flame(nodes: number): FlameGraph {
  return {
    title: "Time at memory outside of the caches, by call chain", unit: "ns", parts: Array.from({ length: nodes }, (_, node) => `node ${node}`),
    names: ["main", "multiply", "norm", "_start"],
    stacks: [{ frames: [3, 0, 1], values: Array.from({ length: nodes }, () => 800 * MS) }, { frames: [3, 0, 2], values: Array.from({ length: nodes }, (_, node) => (node === 0 ? 400 * MS : 0)) }],
  };
}

/** What it would be on this number of nodes. */
function projection(nodes: number): Projection {
  const [remote, home] = [{ share: 0.86, low: 0.82, high: 0.9 }, [{ node: 0, share: 1 }]];
  const matrix: ExplainedObject = { ...initialised(nodes), remote, home, nodes: pairs(nodes, 0, 400 * MS), worth: { at_most: 0.34, why: "by the distances there" } };
  return { machine: `node:${nodes} core:8`, threads: 8 * nodes, why_not: null, remote_share: remote, unknown: 0.08, nodes: pairs(nodes, 0, 400 * MS), objects: [matrix, local(2, nodes), unknown(3)] };
}

/** A result of a machine with this number of nodes. */
export function madeUp(nodes = 4, objects = 6): Result {
  const counters: ExplainedObject = { ...local(1, nodes), name: "counters", size: 4096, home: [{ node: 0, share: 1 }], used_from: evenly(nodes), nodes: pairs(nodes, 0, 40 * MS), time_share: 0.2, remote: { share: 0.6, low: 0.5, high: 0.7 }, contended: 0.95, verdict: { rule: "contended", says: "threads write different bytes of one line" }, do: "align each element of counters to 64 bytes", try: null, worth: { at_most: null, why: "it is not measured" } };
  const rest = Array.from({ length: Math.max(0, objects - 2) }, (_, at) => (at % 3 === 2 ? unknown(at) : local(at, nodes)));
  const code = (name: string, line: number, time: Partial<PlaceTimes>) => ({ function: name, module: "solve", file: "solve.c", line, time: { ...NONE, ...time } });
  const functions = [code("multiply", 71, { local: 900 * MS, remote: 2400 * MS, unknown: 90 * MS, computing: 500 * MS, private_cache: 300 * MS }), code("count", 33, { contended: 700 * MS, computing: 60 * MS }), code("norm", 80, { local: 90 * MS, remote: 200 * MS, computing: 90 * MS })];
  return {
    version: 1, regime: "precise", road: "by timers in the program", road_reason: "performance events are not permitted: kernel.perf_event_paranoid is 3", rate: 199, seconds: 12.4, program: "./solve 20000", complete: true, exit_status: 0,
    missing: { lost: 3, thinned: 0, late: 0, threads: 1 }, samples: { total: 20_312, memory: 15_208, recovered: 14_960, in_cache: 1_210 },
    time: { computing: 0.14, cached: 0.06, local: 0.18, remote: 0.41, unknown: 0.02, contended: 0.1, kernel: 0.05, runnable: 0.01, asleep: 0.03 },
    threads: { user: 5330 * MS, kernel: 300 * MS, runnable: 60 * MS, asleep: 180 * MS, faults: 781_250 },
    remote_share: { share: 0.7, low: 0.67, high: 0.73 }, nodes: pairs(nodes, 0, 950 * MS), caches: { private: 1 << 20, last_level: 4 << 20 }, traffic: null, lines: [LINE], functions, source_lines: functions,
    threads_sampled: [{ pid: 4711, tid: 4711, name: "solve" }, { pid: 4711, tid: 4712, name: "worker" }],
    objects: [initialised(nodes), counters, ...rest].slice(0, objects),
    flame: { time: flame(nodes), resident: null },
    projected: projection(2 * nodes),
  };
}

/** The same of three processes whose threads also wait, with the source of a function and the members of an object. */
export function waiting(): Result {
  const result = madeUp();
  const chain: Code[] = [{ function: "add", module: "solve", file: "/src/solve.c", line: 21 }, { function: "worker", module: "solve", file: "/src/solve.c", line: 40 }];
  const row: Wait = { kind: "lock", what: "total_lock", peers: [], call: "futex", time: 600 * MS, threads: 3, processes: 2, chain };
  const pipe: Wait = { ...row, kind: "pipe", what: null, peers: ["cat (12)"], call: "read", time: 400 * MS, threads: 1, processes: 1, chain: chain.slice(1) };
  const holder = { thread: 4712, name: "worker", share: 0.9, runs: true, chain: [{ function: "grow", module: "solve", file: "/src/solve.c", line: 30 }] };
  const [matrix, counters, ...rest] = result.objects as [ExplainedObject, ExplainedObject, ...ExplainedObject[]];
  const used = [{ name: ".hits", offset: 0, size: 8, share: 0.98 }, { name: ".next", offset: 16, size: 8, share: 0.02 }];
  return {
    ...result,
    processes: [{ pid: 4711, name: "solve", joined: false, ended: false }, { pid: 4720, name: "solve", joined: true, ended: true }, { pid: 4730, name: "sh", joined: true, ended: false }],
    waits: { threads: 9, busy: 2, rows: [row, pipe], locks: [{ what: "total_lock", time: 600 * MS, worked: 200 * MS, threads: 3, chain, holders: [holder] }, { what: "free_lock", time: 1, worked: 900 * MS, threads: 1, chain, holders: [] }], unseen: 0, looks: 40, cost: 12 * MS, refused: null },
    activity: { threads: 9, busy: 2, cpus: 1.8, is_busy: true, part: ["memory", 0.61], function: [{ function: "multiply", module: "solve" }, 0.58], without_cpu: 0.3, waits: [[row, 0.6], [pipe, 0.4]] },
    findings: [{ rule: "shared-mask", subject: { kind: "program" }, says: "4 busy threads may only use CPU 0", cost: { kind: "share", of: "wall-time", percent: 75, low: 0, high: 75 }, remedy: { words: "Remove the mask", commands: ["taskset -ap 0-7 4711"] } }],
    sources: [
      { function: "multiply", module: "solve", file: "/src/solve.c", time: 4190 * MS, why_not: null, lines: [{ line: 70, text: "for (int k = 0; k < n; k++)", time: 0 }, { line: 71, text: "\tsum += a[i][k] * <b>[k][j];", time: 4190 * MS }, { line: 90, text: "}", time: 0 }] },
      { function: "norm", module: "solve", file: "/src/norm.c", time: 380 * MS, why_not: "No such file or directory (os error 2)", lines: [] },
    ],
    objects: [matrix, { ...counters, processes: [4711, 4720], members: { type: "struct counter[64]", element: 24, used } }, ...rest],
    lines: [{ ...LINE, processes: [0, 1] }],
    threads_sampled: [{ pid: 4711, tid: 4711, name: "solve" }, { pid: 4720, tid: 4721, name: "worker" }],
  };
}

/** The same where all of it is on one node: local and remote are not distinguished. */
export function oneNode(): Result {
  const result = madeUp(1);
  return { ...result, projected: null, remote_share: null, nodes: [], objects: result.objects.map((object) => ({ ...object, nodes: null, remote: null, verdict: null, do: null, try: null, worth: null })) };
}

/** The same on an emulated processor: only pages in use are told. */
export function emulated(): Result {
  const result = madeUp(2);
  const pages = result.nodes.map(({ cpu_node, memory_node, time }) => ({ cpu_node, memory_node, pages: Math.round(time / MS) }));
  return { ...result, projected: { machine: "node:4", threads: 0, why_not: "samples of this machine do not tell time", remote_share: null, unknown: 1, nodes: [], objects: [] }, regime: "block", time: null, remote_share: null, nodes: [], lines: [], traffic: { pages, unknown: 7 } };
}
