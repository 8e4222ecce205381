// Generated from crates/server/src/wire/findings.rs; do not edit. To update it:
// UPDATE=1 cargo test -p numakit-server wire

import type { Ns } from "./wire";

/**
 * What was found in a range, the most important first.
 */
export type RangeFindings = { 
/**
 * Start of the range: not before the first sample.
 */
from_ns: Ns, 
/**
 * Its end: not after the last sample.
 */
to_ns: Ns, 
/**
 * What is wrong, or that nothing is.
 */
verdict: string, 
/**
 * What it costs, or what is not known.
 */
cost: string, 
/**
 * What to do next: a command, or words.
 */
action: string, 
/**
 * Problems of the observed program, then of the machine.
 */
problems: Array<FindingInfo>, 
/**
 * What is worth knowing and is no problem.
 */
remarks: Array<FindingInfo>, 
/**
 * What cannot be told, and why.
 */
untold: Array<UntoldInfo>, };

/**
 * One thing that was found.
 */
export type FindingInfo = { 
/**
 * The name of the rule.
 */
rule: string, 
/**
 * Whose it is: `program`, `machine`, `node 2`, `CPU 7`, `recording`.
 */
subject: string, 
/**
 * One sentence.
 */
says: string, 
/**
 * When it began.
 */
since_ns: Ns, 
/**
 * When it ended; `null`: it lasts to the end of the range.
 */
until_ns: Ns | null, 
/**
 * What it costs, in words.
 */
cost: string, 
/**
 * The share of time that is lost, in percent; `null` if it cannot be told.
 */
percent: number | null, 
/**
 * `measured`, `likely` or `possible`.
 */
certainty: string, 
/**
 * The numbers that support it.
 */
evidence: Array<EvidenceInfo>, 
/**
 * What to do, in words.
 */
remedy: string, 
/**
 * Commands that do it, the first one first.
 */
commands: Array<string>, };

/**
 * A number that supports a finding.
 */
export type EvidenceInfo = { 
/**
 * Name of the metric or formula, with its place: `remote_time_share@node2`.
 */
series: string, 
/**
 * The metrics that it is computed from, if it is not a series of the source.
 */
inputs: Array<string>, 
/**
 * In words.
 */
says: string, };

/**
 * What cannot be told.
 */
export type UntoldInfo = { 
/**
 * What.
 */
what: string, 
/**
 * Why.
 */
why: string, };
