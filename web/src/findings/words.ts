// What the strip says, and what a finding shows: pure functions of findings.

import { NS_PER_MS } from "../store";
import { clock, digits } from "../units";
import type { FindingInfo, RangeFindings } from "../wire-findings";

/** `bad`: something is wrong. `aside`: not with the program. `good`: nothing. `unknown`: too little to tell. */
export type State = "bad" | "aside" | "good" | "unknown";

/** What the server's verdict begins with if it is a good one. */
const GOOD = "Nothing is wrong";
/** Times at both ends of a finding that are shown with it, as a share of its length. */
const MARGIN = 0.08;
/** Shorter ranges, and those of fewer samples, are too short to see what a finding is about. */
const LEAST_MS = 1000;
const LEAST_SAMPLES = 10;
/** An end this near to that of the range is the end of the range. */
const NEAR = 0.02;

export function stateOf(found: RangeFindings): State {
  const good = found.verdict.startsWith(GOOD);
  if (found.problems.length > 0) return good ? "aside" : "bad";
  return good ? "good" : "unknown";
}

/** The same finding in another range has the same name. */
export function nameOf({ rule, subject }: FindingInfo): string {
  return `${rule} ${subject}`;
}

/** What it costs in short: `34 %`. */
export function costOf({ percent, cost }: FindingInfo): string {
  if (percent === null) return "cost unknown";
  return /^[\d.]+ %/.exec(cost)?.[0] ?? `${digits(percent)} %`;
}

/** `costs 34 % of the CPU time`, or `cost: none; not known: remote memory`. */
export function costWords(cost: string): string {
  if (cost.startsWith("meanwhile")) return cost;
  return /^\d/.test(cost) ? `costs ${cost}` : `cost: ${cost}`;
}

/** Since when, within the range that was judged. */
export function whenOf({ since_ns, until_ns }: FindingInfo, found: RangeFindings): string {
  const near = (found.to_ns - found.from_ns) * NEAR;
  const atStart = since_ns - found.from_ns <= near;
  const toEnd = until_ns === null || found.to_ns - until_ns <= near;
  if (atStart && toEnd) return "all the time";
  if (toEnd) return `since ${clock(since_ns / NS_PER_MS)}`;
  return `${clock(since_ns / NS_PER_MS)} to ${clock(until_ns / NS_PER_MS)}`;
}

/** What a line says of a problem: its numbers if the verdict says the rest already. */
export function lineOf(finding: FindingInfo, found: RangeFindings): string {
  const [first] = finding.evidence;
  return finding.says === found.verdict && first ? first.says : finding.says;
}

/** The range to show for a finding, in ms. `interval`: that of the samples, in ns. */
export function rangeOf({ since_ns, until_ns }: FindingInfo, found: RangeFindings, interval = 0): [number, number] {
  const [from, to] = [since_ns / NS_PER_MS, (until_ns ?? found.to_ns) / NS_PER_MS];
  const margin = Math.max((to - from) * MARGIN, (Math.max(LEAST_MS, (LEAST_SAMPLES * interval) / NS_PER_MS) - (to - from)) / 2);
  return [Math.max(from - margin, Math.min(from, found.from_ns / NS_PER_MS)), Math.min(to + margin, Math.max(to, found.to_ns / NS_PER_MS))];
}

/** Whether an action is a command, which can be copied, or words. */
export function isCommand(action: string, found: RangeFindings): boolean {
  return [...found.problems, ...found.remarks].some(({ commands }) => commands.includes(action));
}

/** An action that is not a command, as words. */
export function actionWords(action: string): string {
  return action === "nothing" ? "nothing to do" : action;
}

/** What is folded: `2 more`, `1 remark`, `3 cannot be told`. */
export function foldedOf({ problems, remarks, untold }: RangeFindings): string[] {
  const more = problems.length - 1;
  return [
    more > 0 ? `${more} more` : "",
    remarks.length > 0 ? `${remarks.length} ${remarks.length === 1 ? "remark" : "remarks"}` : "",
    untold.length > 0 ? `${untold.length} cannot be told` : "",
  ].filter(Boolean);
}
