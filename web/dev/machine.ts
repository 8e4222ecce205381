// A simulated machine and the values of its series.

import type { FormulaInfo, MetricInfo, SourceInfo } from "../src/wire";

const CORES = 8;
const MEMORY_KB = 64 * 2 ** 20;

/** `more`: number of additional meaningless metrics per node. */
export function sourceInfo(nodes: number, startedMs: number, more = 0): SourceInfo {
  const at = (kind: string, count: number) => Array.from({ length: count }, (_, n) => `${kind}${n}`);
  const cpus = nodes > 16 ? 0 : nodes * CORES * 2;
  const metric = (name: string, unit: string, kind: MetricInfo["kind"], scope: string, instances: string[], help: string): MetricInfo => ({
    name, sensor: name.split(".")[0] ?? "", unit, kind, scope, help, source: `/proc/${scope}`, resolution_ns: 0, instances,
  });
  const formula = (name: string, unit: string, instances: string[], help: string): FormulaInfo => ({ name, unit, instances, help });
  const [machine, perNode, packages] = [[""], at("node", nodes), at("package", Math.max(1, nodes / 2))];
  const pairs = nodes > 16 ? [] : at("", nodes).flatMap((cpus) => at("", nodes).map((memory) => `pair${cpus}.${memory}`));
  return {
    id: 0, kind: "live", name: "live", host: "quercus", kernel: "6.12.9", command: null, program: "numa 0.1",
    started_ns: startedMs * 1e6, ended_ns: null, utc_offset_minutes: null, read_percent: null, interval_ns: 1e7, page_size: 4096, topology: topology(nodes),
    metrics: [
      metric("vmstat.nr_free_pages", "pages", "gauge", "machine", machine, "Free memory."),
      metric("vmstat.pgfault", "count", "counter", "machine", machine, "Page faults of both kinds."),
      metric("vmstat.pgmajfault", "count", "counter", "machine", machine, "Page faults that had to wait for storage."),
      metric("vmstat.numa_hint_faults", "count", "counter", "machine", machine, "Faults by which NUMA balancing samples who uses which memory."),
      metric("vmstat.pgmigrate_success", "pages", "counter", "machine", machine, "Pages moved in memory, for whatever reason."),
      ...["pgalloc_normal", "pgfree", "pgactivate", "pgdeactivate", "thp_fault_alloc", "thp_fault_fallback", "compact_stall", "nr_dirtied", "nr_written"].map((n) =>
        metric(`vmstat.${n}`, "count", "counter", "machine", machine, "A count of the kernel."),
      ),
      metric("node.MemTotal", "KiB", "gauge", "node", perNode, "Memory of the node that the kernel manages."),
      metric("node.MemFree", "KiB", "gauge", "node", perNode, "Free memory."),
      metric("node.MemUsed", "KiB", "gauge", "node", perNode, "Memory that is not free, with caches."),
      metric("node.AnonPages", "KiB", "gauge", "node", perNode, "Anonymous memory mapped by processes."),
      metric("node.FilePages", "KiB", "gauge", "node", perNode, "Page cache, with shared memory and swap cache."),
      metric("node.local_node", "count", "counter", "node", perNode, "Allocations on this node by its own CPUs."),
      metric("node.other_node", "count", "counter", "node", perNode, "Allocations on this node by CPUs of other nodes."),
      ...Array.from({ length: more }, (_, n) => metric(`node.made_up_${n}`, "count", "counter", "node", perNode, "A count of the kernel.")),
      metric("cpu.idle", "ticks", "counter", "cpu", at("cpu", cpus), "Had nothing to do."),
      metric("cpu.user", "ticks", "counter", "cpu", at("cpu", cpus), "Ran programs, with guests and without niced programs."),
      metric("access.memory", "ns", "counter", "pair", pairs, "Time at memory outside of the caches by node of the CPU and node of the memory."),
      metric("access.clusters", "count", "counter", "node", perNode, "Independent observations of local and remote memory: the samples of a thread in 100 ms are one."),
      metric("pressure.memory_some", "us", "counter", "machine", machine, "Time in which at least one thread waited for memory."),
      metric("pressure.cpu_some", "us", "counter", "machine", machine, "Time in which at least one thread waited for a CPU."),
      metric("self.wakeup", "ns", "gauge", "machine", machine, "How late the tick began."),
      metric("self.lost", "count", "counter", "machine", machine, "Ticks that were missed."),
    ],
    formulas: [
      formula("locality", "percent", [...machine, ...perNode], "Share of allocations made by a CPU of the node that the memory is on."),
      formula("local_allocations", "count/s", [...machine, ...perNode], "Allocations made by a CPU of the node that the memory is on."),
      formula("remote_allocations", "count/s", [...machine, ...perNode], "Allocations made by a CPU of another node than the memory is on."),
      formula("fault_rate", "count/s", machine, "Page faults of both kinds."),
      formula("major", "count/s", machine, "Page faults that waited for storage."),
      formula("hint", "count/s", machine, "Faults by which NUMA balancing samples who uses which memory."),
      formula("moved", "count/s", machine, "Pages moved in memory, for whatever reason."),
      formula("idle", "percent", [...machine, ...perNode], "CPU time with nothing to do, with waiting for storage."),
      formula("stall", "percent", machine, "Time in which at least one thread waited for memory."),
      formula("stall_cpu", "percent", machine, "Time in which at least one thread waited for a CPU."),
      formula("stall_io", "percent", machine, "Time in which at least one thread waited for storage."),
      formula("sampler_share", "percent", machine, "CPU time of the sampler, of one CPU."),
      formula("process_share", "percent", machine, "CPU time of the whole process that samples, of one CPU."),
      formula("link_util", "percent", packages, "How full the links to other packages are, protocol included."),
      formula("dram_util", "percent", packages, "How full the memory bus is."),
    ],
    absent: [
      { name: "perf", missing: "counters of whole CPUs", seen: "kernel.perf_event_paranoid is 2", fix: "sysctl kernel.perf_event_paranoid=0" },
      { name: "resctrl", missing: "memory bandwidth by resctrl", seen: "no /sys/fs/resctrl", fix: "mount -t resctrl resctrl /sys/fs/resctrl" },
    ],
  };
}

function topology(nodes: number): unknown {
  const range = (from: number, count: number) => `${from}-${from + count - 1}`;
  const perNode = CORES * 2;
  const each = <T>(count: number, make: (n: number) => T) => Array.from({ length: count }, (_, n) => make(n));
  return {
    schema: 1, origin: "made up", page_size: 4096, cores: nodes * CORES, pus: nodes * perNode, online: range(0, nodes * perNode),
    nodes: each(nodes, (n) => ({ os_index: n, cpus: range(n * perNode, perNode), memory_kb: MEMORY_KB, free_kb: MEMORY_KB / 2 })),
    distances: each(nodes, (a) => each(nodes, (b) => distance(a, b, nodes))),
    packages: each(Math.max(1, nodes / 2), (p) => ({ os_index: p, cpus: range(p * 2 * perNode, 2 * perNode) })),
    core_list: each(nodes * CORES, (c) => ({ os_index: c, cpus: range(c * 2, 2), kind: null })),
    caches: each(nodes, (n) => ({ level: 3, kind: "unified", size: 33554432, line_size: 64, ways: 16, cpus: range(n * perNode, perNode) })),
    boards: [], dies: [], devices: [], notes: [],
  };
}

function distance(a: number, b: number, nodes: number): number {
  if (a === b) return 10;
  if (a >> 1 === b >> 1) return 12;
  if (nodes <= 8) return (a + b) % 2 ? 32 : 21;
  return a >> 3 === b >> 3 ? 21 : a >> 5 === b >> 5 ? 32 : 40;
}

function hash(text: string): number {
  let value = 2166136261;
  for (let at = 0; at < text.length; at++) value = Math.imul(value ^ text.charCodeAt(at), 16777619);
  return (value >>> 0) / 2 ** 32;
}

/** Between -1 and 1, varying on the given time scale. */
function wave(seed: number, time: number, scaleMs: number): number {
  const t = time / scaleMs + seed * 100;
  return (Math.sin(t) + Math.sin(t * 1.7 + seed * 9) * 0.6 + Math.sin(t * 3.1 + seed * 5) * 0.3) / 1.9;
}

function noise(seed: number, time: number): number {
  const x = Math.sin(time * 0.0131 + seed * 7919) * 43758.5453;
  return (x - Math.floor(x)) * 2 - 1;
}

/** The value of a series at a time. A job moves from node to node once in 24 seconds. */
export function signal(name: string, at: string, time: number, nodes: number): number {
  const seed = hash(name + at);
  const node = /^node(\d+)/.exec(at);
  const cpu = /^cpu(\d+)/.exec(at);
  const where = node ? Number(node[1]) : cpu ? Math.floor(Number(cpu[1]) / (CORES * 2)) : -1;
  const home = Math.floor(time / 24_000) % Math.max(1, nodes);
  const phase = (time % 24_000) / 24_000;
  const ramp = Math.min(1, Math.min(phase, 1 - phase) * 12);
  const busy = where < 0 ? 0.5 : where === home ? 0.25 + 0.65 * ramp : 0.16 + 0.06 * wave(hash(`n${where}`), time, 6000);
  const jitter = noise(seed, time);
  const spike = Math.floor(time / 10) % 2311 === Math.floor(seed * 2311) ? 1 : 0;
  const pair = /^pair(\d+)\.(\d+)$/.exec(at)?.slice(1).map(Number);
  const base = name.replace(/^.*\./, "");
  switch (base) {
    case "locality":
      return Math.max(0, Math.min(100, 93 - (where === (home + 1) % nodes ? 46 * ramp : 6) + 2 * wave(seed, time, 4000) + jitter - spike * 30));
    case "idle":
      if (cpu) return 100 * Math.max(0.01, Math.min(1, 1 - busy - 0.22 * wave(seed, time, 2500) - 0.08 * jitter));
      return 100 * Math.max(0, 1 - busy - 0.03 * jitter - 0.05 * wave(seed, time, 1500));
    case "user":
      return 100 * Math.min(1, Math.max(0, busy * 0.8));
    case "MemTotal":
      return MEMORY_KB;
    case "MemUsed":
      return MEMORY_KB * (0.34 + 0.09 * where % 0.5 + 0.2 * busy + 0.06 * wave(seed, time, 30_000));
    case "MemFree":
      return MEMORY_KB * (0.6 - 0.2 * busy);
    case "fault_rate":
    case "pgfault":
      return 48_000 + 22_000 * wave(0.3, time, 5000) + 5000 * jitter + spike * 160_000;
    case "major":
      return Math.max(0, spike * 400 + 3 * jitter);
    case "memory":
      // Of each node's time at memory, most is at its own; the first one's memory is used by all.
      return pair ? 1e9 * (pair[0] === pair[1] ? 3.1 : pair[1] === 0 ? 1.4 : 0.08) * (1 + 0.3 * wave(seed, time, 5000)) : 0;
    case "clusters":
      return 40;
    case "hint":
      return Math.max(0, 9000 * ramp * (0.6 + 0.4 * wave(0.7, time, 3000)) + 900 * jitter);
    case "moved":
      return Math.max(0, 5200 * (1 - ramp) + 500 * jitter + spike * 30_000);
    case "local_allocations":
      return 30_000 * busy + 2000 * jitter + 2000;
    case "remote_allocations":
      return Math.max(0, (where === (home + 1) % nodes ? 16_000 * ramp : 1400) + 600 * jitter);
    case "stall":
      return Math.max(0, 3 + 4 * wave(0.2, time, 4000) + jitter + spike * 40);
    case "stall_cpu":
      return Math.max(0, 9 + 6 * wave(0.4, time, 3000) + 2 * jitter);
    case "stall_io":
      return Math.max(0, 1 + 1.5 * wave(0.6, time, 7000));
    case "sampler_share":
      return 0.9 + 0.1 * jitter + spike * 2;
    case "process_share":
      return 2.6 + 0.5 * wave(0.1, time, 2000) + 0.2 * jitter;
    case "wakeup":
      return 24_000 + 9000 * jitter + spike * 900_000;
    case "lost":
      return 0;
    case "link_util":
      return Math.max(0, 34 + 24 * wave(seed, time, 6000) + 3 * jitter + spike * 30);
    case "dram_util":
      return Math.max(0, 46 + 22 * wave(seed, time, 9000) + 3 * jitter);
    default:
      return Math.abs(1e4 * wave(seed, time, 5000) + 1000 * jitter) * (0.1 + seed);
  }
}
