// Findings of the generated data: as the server words them.

import type { FindingInfo, RangeFindings } from "../src/wire-findings";
import type { Made } from "./server";

const UNTOLD = [
  { what: "memory bandwidth", why: "hardware counters of Zen 5, cores and memory controllers: no PMU amd_df, amd_umc_*; run on bare metal: virtual machines do not have these PMUs" },
  { what: "time at memory", why: "no command or process is sampled" },
];
const ONE_NODE = { what: "remote memory", why: "the machine has one node" };

/** What is found between two times, in ns. */
export function foundIn({ nodes, fine }: Made, from: number, to: number): RangeFindings {
  const untold = nodes === 1 ? [ONE_NODE, ...UNTOLD] : UNTOLD;
  const all = fine === true ? [] : nodes === 1 ? [faults(from, to)] : [far(nodes, from, to), faults(from, to), threads(from)];
  const [worst] = all;
  const range = { from_ns: from, to_ns: to, problems: all, remarks: [], untold };
  if (!worst) return { ...range, verdict: "Nothing is wrong on this machine, as far as this recording tells", cost: `none; not known: ${untold.map(({ what }) => what).join(" and ")}`, action: "numa record COMMAND tells about one program" };
  return { ...range, verdict: worst.says, cost: worst.cost, action: worst.commands[0] ?? worst.remedy };
}

function far(nodes: number, from: number, to: number): FindingInfo {
  return {
    rule: "far-use", subject: "program", says: `Threads on nodes 1-${nodes - 1} use memory of node 0: 31.4 % of their time at memory is remote`,
    since_ns: from + (to - from) * 0.3, until_ns: null, cost: "18.6 % of the CPU time (15.2 % to 22.1 %)", percent: 18.6, certainty: "measured",
    evidence: [{ series: "locality@node1", inputs: [], says: "31.4 % of the time at memory is remote" }, { series: "link_util", inputs: [], says: "the links are 58 % full" }],
    remedy: "Give each thread a core, and its memory on that core's node", commands: ["numa run solver --steps 900"],
  };
}

function faults(from: number, to: number): FindingInfo {
  return {
    rule: "page-faults", subject: "machine", says: "Memory is mapped and unmapped all the time: 6.1 % of the CPU time in page faults",
    since_ns: from + (to - from) * 0.1, until_ns: from + (to - from) * 0.6, cost: "6.1 % of the CPU time (3.0 % to 9.1 %)", percent: 6.1, certainty: "likely",
    evidence: [{ series: "fault_rate", inputs: [], says: "48.2k page faults/s, about 1.2 us each" }],
    remedy: "Reuse memory instead of returning it", commands: ["numa run --thp on solver --steps 900", "numa run env MALLOC_TRIM_THRESHOLD_=4294967296 MALLOC_MMAP_THRESHOLD_=4294967296 solver --steps 900"],
  };
}

function threads(from: number): FindingInfo {
  return {
    rule: "too-many-threads", subject: "machine", says: "74 threads want to run on 64 CPUs: 13.5 % of them wait",
    since_ns: from, until_ns: null, cost: "cannot be told: no program is observed", percent: null, certainty: "possible",
    evidence: [{ series: "stall_cpu", inputs: [], says: "a thread waited for a CPU 9.1 % of the time" }], remedy: "Start as many threads as there are CPUs", commands: [],
  };
}
