// A comparison of the generated data: as the server words it.

import type { ComparedInfo, ComparedRange, DifferenceInfo } from "../src/wire-compared";

const ROWS: [string, string, string, string, string, string][] = [
  ["idle", "41.2 %", "63.0 %", "+21.8 points", "3.1", "better"],
  ["fault_rate", "224/s", "50.2k/s", "x 224", "12.5", "worse"],
  ["locality@node1", "68.6 %", "97.2 %", "+28.6 points", "4.0", "better"],
  ["vmstat.pgmajfault", "0/s", "14/s", "+14/s", "10/s", ""],
  ["node.MemFree@node0", "12.1 GiB", "9.4 GiB", "-22.3 %", "10.0 %", ""],
  ["made_up_by_nobody", "1", "2", "+100 %", "10.0 %", ""],
];

/** What differs between two ranges. */
export function comparedIn(first: ComparedRange, second: ComparedRange): ComparedInfo {
  const seconds = ({ from_ns, to_ns }: ComparedRange) => `solver --steps 900: ${Math.round((to_ns - from_ns) / 1e9)} s on quercus, 1 problem found`;
  const row = ([series, before, after, change, noise, verdict]: (typeof ROWS)[number]): DifferenceInfo => ({ series, what: series, before, after, change, noise, verdict, alike: [] });
  return {
    whole: false, verdict: "B is better: idle is 63.0 %, 41.2 % before", change: "idle +21.8 points (noise 3.1); fault_rate x 224 (noise 12.5)", action: "keep B",
    first: seconds(first), second: seconds(second), cautions: ["the command lines differ"], compared: "61 values, of which 6 differ beyond noise",
    program: ROWS.slice(0, 1).map(row), machine: ROWS.slice(1).map(row), gone: ["Threads on node 1 use memory of node 0"], new: [], kept: [],
  };
}
