// Which node's memory the threads of each node used, over the visible range. Samples of instructions say it: the
// time that threads waited, or on emulated processors, where time cannot be told, the pages that they used.

import type { Catalog, Series } from "../series";
import { statistics } from "../store";
import type { Machine } from "../topology";
import { format, totalOf, type Quantity } from "../units";
import type { Visible } from "./side-view";

export type UseKind = "time" | "pages";

const METRICS: [UseKind, string][] = [["time", "access.memory"], ["pages", "access.pages"]];
/** Independent observations of memory by the CPUs of a node. */
const OBSERVATIONS = "access.clusters";

/** What the threads of one node used. */
export interface RowTotals {
  near: number;
  far: number;
  /** NaN if they were not counted. */
  observations: number;
}

/** Sums over a range of time, in seconds or pages. What was not measured is NaN. */
export interface Totals {
  quantity: Quantity;
  all: number;
  highest: number;
  /** By position of the CPUs' node, then of the memory's. */
  cells: number[][];
  rows: RowTotals[];
}

export class MemoryUse {
  private readonly pairs: (Series | undefined)[][];
  private readonly observations: (Series | undefined)[];
  private known: { of: Visible; totals: Totals } | null = null;

  private constructor(
    readonly kind: UseKind,
    metric: string,
    private readonly machine: Machine,
    catalog: Catalog,
  ) {
    this.pairs = machine.nodes.map((cpus) => machine.nodes.map((memory) => catalog.at(metric, `pair${cpus.id}.${memory.id}`)));
    this.observations = machine.nodes.map((cpus) => (kind === "time" ? catalog.at(OBSERVATIONS, `node${cpus.id}`) : undefined));
  }

  /** Null if the source does not have it. */
  static of(machine: Machine, catalog: Catalog): MemoryUse | null {
    const [kind, metric] = METRICS.find(([, name]) => catalog.entry(name)?.series.length) ?? [];
    return kind && metric ? new MemoryUse(kind, metric, machine, catalog) : null;
  }

  series(): number[] {
    return [...this.pairs.flat(), ...this.observations].flatMap((series) => (series ? [series.number] : []));
  }

  /** The sums over the visible range; the cursor does not change them. */
  over(visible: Visible): Totals {
    const { known } = this;
    if (known && known.of.slice === visible.slice && known.of.from === visible.from && known.of.to === visible.to) return known.totals;
    const totals = this.sum(visible);
    this.known = { of: visible, totals };
    return totals;
  }

  private sum(visible: Visible): Totals {
    const sumOf = (series: Series | undefined) => (series ? total(series, visible) : NaN);
    const cells = this.pairs.map((row) => row.map(sumOf));
    const rows = cells.map((row, at) => {
      const near = row[at] ?? NaN;
      const far = measured(row.filter((_, column) => column !== at));
      return { near, far, observations: sumOf(this.observations[at]) };
    });
    const first = this.pairs.flat().find((series) => series !== undefined);
    const quantity = (first && totalOf(first)?.quantity) ?? "count";
    return { quantity, all: measured(cells.flat()), highest: Math.max(0, ...cells.flat().filter(Number.isFinite)), cells, rows };
  }

  /** A cell in words, with the 95 % interval of its share of the row where observations were counted. */
  describe(totals: Totals, row: number, column: number): string {
    const [cpus, memory] = [this.machine.nodes[row]?.id, this.machine.nodes[column]?.id];
    const value = totals.cells[row]?.[column] ?? NaN;
    const who = `threads on node ${cpus}`;
    if (!Number.isFinite(value)) return `${who}, memory of node ${memory}: not measured in this range`;
    const amount = format(value, totals.quantity);
    const what = this.kind === "time" ? `${who} waited ${amount} for memory of node ${memory}` : `${who} used ${amount} pages of node ${memory}`;
    const { near, far, observations } = totals.rows[row] ?? { near: NaN, far: NaN, observations: NaN };
    const whole = measured([near, far]);
    if (!(whole > 0)) return what;
    const share = value / whole;
    const [low, high] = interval(share, observations);
    const between = Number.isFinite(low) ? `, between ${percent(low)} and ${percent(high)}` : "";
    return `${what}: ${percent(share)} of their ${this.kind === "time" ? "time at memory" : "pages"}${between}`;
  }
}

/** The 95 % interval of a share of independent observations. Where all or none were seen, 3 / n is its bound. */
export function interval(share: number, observations: number): [number, number] {
  if (!(observations >= 1)) return [NaN, NaN];
  const spread = share * (1 - share);
  const half = spread > 0 ? 1.96 * Math.sqrt(spread / observations) : 3 / observations;
  return [Math.max(0, share - half), Math.min(1, share + half)];
}

/** A share as a whole number of percent; small ones are not shown as none. */
export function wholePercent(share: number): string {
  if (!Number.isFinite(share)) return "–";
  return share > 0 && share < 0.005 ? "<1" : String(Math.round(100 * share));
}

function percent(share: number): string {
  return `${wholePercent(share)} %`;
}

/** The sum of the values that were measured; NaN if none was. */
function measured(values: number[]): number {
  const known = values.filter(Number.isFinite);
  return known.length > 0 ? known.reduce((sum, value) => sum + value, 0) : NaN;
}

function total(series: Series, { slice, from, to }: Visible): number {
  const track = slice.track(series.number);
  const shown = totalOf(series);
  if (!track || !shown) return NaN;
  const { rows, sum } = statistics(slice, track, from, to);
  return rows > 0 ? sum * shown.factor : NaN;
}
