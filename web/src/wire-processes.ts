// Generated from crates/server/src/wire/processes.rs; do not edit. To update it:
// UPDATE=1 cargo test -p numakit-server wire

import type { Ns } from "./wire";

/**
 * The processes at one time, those that ran most first.
 */
export type ProcessList = { 
/**
 * When they were measured.
 */
time_ns: Ns, 
/**
 * Since the measurement before, in seconds: what rates and CPU time refer to.
 */
seconds: number, 
/**
 * The numbers of the nodes with memory or CPUs.
 */
nodes: Array<number>, 
/**
 * The processes.
 */
processes: Array<ProcessInfo>, 
/**
 * Number of processes that are left out, because there are too many.
 */
left_out: number, 
/**
 * What permits to read the memory of the processes that may not be read.
 */
fix: string, 
/**
 * Why there are no processes; `null` if there are.
 */
why: string | null, };

/**
 * A process.
 */
export type ProcessInfo = { 
/**
 * Its number.
 */
pid: number, 
/**
 * That of its parent.
 */
parent: number, 
/**
 * Its user: the name, or the number.
 */
user: string, 
/**
 * The name of its program.
 */
name: string, 
/**
 * Threads.
 */
threads: number, 
/**
 * Whether it is a process of the observed program.
 */
observed: boolean, 
/**
 * CPU time in percent of a CPU.
 */
cpu: number, 
/**
 * The share of its memory that is not on the node where it runs, in percent; `null` if unknown.
 */
remote: number | null, 
/**
 * Resident memory in bytes.
 */
resident: number, 
/**
 * The position of each node that has memory of it, and the bytes there; `null`: unknown.
 */
memory: Array<[number, number]> | null, 
/**
 * Why its memory is unknown.
 */
why: MemoryUnknown | null, 
/**
 * Page faults per second; `null`: not known yet.
 */
faults: number | null, 
/**
 * Of these, those that waited for a disk.
 */
major: number | null, 
/**
 * Pages per second that NUMA balancing moved; `null` unless the kernel counts them.
 */
moved: number | null, };

/**
 * Why the memory of a process is unknown.
 */
export type MemoryUnknown = "denied" | "late" | "refused";
