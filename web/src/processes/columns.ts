// The columns of the table of processes: what they show, and how they sort.

import { digits, format } from "../units";
import type { ProcessInfo, ProcessList } from "../wire-processes";

/** Shares of the CPU time of the observed program that waited for memory, in percent. */
export interface Waits {
  near: number;
  far: number;
  contended: number;
}

export interface Row {
  process: ProcessInfo;
  /** Of the process at the root of the observed program; null: not known of this one. */
  waits: Waits | null;
}

export interface Column {
  id: string;
  name: string;
  help: string;
  /** Whether the largest value comes first. */
  number: boolean;
  /** What rows are sorted by; null is always last. */
  key(row: Row): number | string | null;
  text(row: Row): string;
  /** Why there is no value. */
  absent(row: Row, list: ProcessList): string;
  /** The metrics of the observed program that the column is about. */
  metrics: string[];
}

export const NOT_SAMPLED = "Only the observed program is sampled: numa live --pid PID, or numa live COMMAND";
const ONE_NODE = "The machine has one memory node";
const NOT_YET = "Known from the second measurement on";

const number = (value: number | null): number | null => value;
const percent = (value: number | null): string => (value === null ? "–" : `${digits(value)} %`);

export function memoryAbsent({ process }: Row, { fix }: ProcessList): string {
  if (process.why === "denied") return `It may not be read: ${fix}`;
  if (process.why === "refused") return "Reading it would stop the process meanwhile";
  return "There was no time for it: processes that run more, or have more memory, come first";
}

export const COLUMNS: Column[] = [
  {
    id: "pid", name: "PID", help: "Process ID", number: false, metrics: [],
    key: ({ process }) => process.pid, text: ({ process }) => String(process.pid), absent: () => "",
  },
  {
    id: "name", name: "Name", help: "Name of the program", number: false, metrics: [],
    key: ({ process }) => process.name.toLowerCase(), text: ({ process }) => process.name, absent: () => "",
  },
  {
    id: "user", name: "User", help: "User", number: false, metrics: [],
    key: ({ process }) => process.user, text: ({ process }) => process.user, absent: () => "",
  },
  {
    id: "cpu", name: "CPU", help: "CPU time in percent of a CPU", number: true, metrics: ["task.cpu"],
    key: ({ process }) => process.cpu, text: ({ process }) => percent(process.cpu), absent: () => "",
  },
  {
    id: "waits", name: "Waits", help: "Share of CPU time that waits for memory outside of the caches, or at contended lines, in the visible range",
    number: true, metrics: ["access.near", "access.far", "access.contended"],
    key: ({ waits }) => (waits ? waits.near + waits.far + waits.contended : null),
    text: ({ waits }) => percent(waits ? waits.near + waits.far + waits.contended : null),
    absent: ({ process }) => (process.observed ? "No samples in this range, or the row of its parent has them" : NOT_SAMPLED),
  },
  {
    id: "remote", name: "Remote", help: "Share of its memory that is not on the node where it runs, weighted with the CPU time of its threads",
    number: true, metrics: [],
    key: ({ process }) => number(process.remote), text: ({ process }) => percent(process.remote),
    absent: (row, list) => (list.nodes.length < 2 ? ONE_NODE : row.process.memory ? "Its CPUs are not known" : memoryAbsent(row, list)),
  },
  {
    id: "memory", name: "Memory", help: "Resident memory; the bar shows the nodes that it is on", number: true, metrics: ["task.resident"],
    key: ({ process }) => process.resident, text: ({ process }) => format(process.resident, "bytes"), absent: memoryAbsent,
  },
  {
    id: "faults", name: "Faults", help: "Page faults per second", number: true, metrics: ["task.minor_faults", "task.major_faults"],
    key: ({ process }) => number(process.faults), text: ({ process }) => (process.faults === null ? "–" : format(process.faults, "count/s")),
    absent: () => NOT_YET,
  },
  {
    id: "moved", name: "Moved", help: "Pages per second that NUMA balancing moved between nodes", number: true, metrics: [],
    key: ({ process }) => number(process.moved), text: ({ process }) => (process.moved === null ? "–" : format(process.moved, "count/s")),
    absent: () => "The kernel does not count them: it needs CONFIG_NUMA_BALANCING and CONFIG_SCHED_DEBUG",
  },
  {
    id: "threads", name: "Threads", help: "Threads", number: true, metrics: ["task.threads"],
    key: ({ process }) => process.threads, text: ({ process }) => String(process.threads), absent: () => "",
  },
];

export const USUAL_SORT = "cpu";

/** The rows in the order of a column. `-` before its name: the other way round. */
export function sorted(rows: Row[], sort: string): Row[] {
  const reverse = sort.startsWith("-");
  const column = COLUMNS.find(({ id }) => id === sort.replace("-", "")) ?? COLUMNS.find(({ id }) => id === USUAL_SORT);
  if (!column) return rows;
  const sign = column.number !== reverse ? -1 : 1;
  const order = (a: Row, b: Row): number => {
    const [one, two] = [column.key(a), column.key(b)];
    if (one === two) return a.process.pid - b.process.pid;
    if (one === null || two === null) return one === null ? 1 : -1;
    return sign * (one < two ? -1 : 1);
  };
  return [...rows].sort(order);
}

/** The rows that have all words of a filter in their PID, name or user. */
export function matching(rows: Row[], filter: string): Row[] {
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return rows;
  return rows.filter(({ process }) => {
    const text = `${process.pid} ${process.name} ${process.user}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
}
