// Generated from crates/server/src/wire/compared.rs; do not edit. To update it:
// UPDATE=1 cargo test -p numakit-server wire

import type { Ns } from "./wire";

/**
 * A range of a source that is compared.
 */
export type ComparedRange = { 
/**
 * The source.
 */
source: number, 
/**
 * Start.
 */
from_ns: Ns, 
/**
 * End.
 */
to_ns: Ns, };

/**
 * Two sources compared: A, the first one, and B.
 */
export type ComparedInfo = { 
/**
 * Whether this is about all of two recordings, and not about the ranges that were asked for.
 */
whole: boolean, 
/**
 * Whether B is better.
 */
verdict: string, 
/**
 * By how much.
 */
change: string, 
/**
 * What to do next: a command, or words.
 */
action: string, 
/**
 * What A is.
 */
first: string, 
/**
 * What B is.
 */
second: string, 
/**
 * Why they may differ for other reasons than the program.
 */
cautions: Array<string>, 
/**
 * How many values were compared, and how many differ.
 */
compared: string, 
/**
 * What of the program differs beyond noise, the clearest first.
 */
program: Array<DifferenceInfo>, 
/**
 * What of the machine does.
 */
machine: Array<DifferenceInfo>, 
/**
 * Findings of A that B does not have.
 */
gone: Array<string>, 
/**
 * Findings of B that A does not have.
 */
new: Array<string>, 
/**
 * Findings of both.
 */
kept: Array<string>, };

/**
 * A value that differs, in words.
 */
export type DifferenceInfo = { 
/**
 * Name of the metric or formula, with its place.
 */
series: string, 
/**
 * The same in words, with the number of others that changed by the same.
 */
what: string, 
/**
 * In A.
 */
before: string, 
/**
 * In B.
 */
after: string, 
/**
 * The change.
 */
change: string, 
/**
 * A change up to this is noise.
 */
noise: string, 
/**
 * What B is: `better`, `worse` or `equal`; empty: neither.
 */
verdict: string, 
/**
 * Others that changed by the same.
 */
alike: Array<string>, };
