// What a source has: its series by number and by name, and the search in them.

import { shownFormula, shownMetric, type Quantity } from "./units";
import type { SourceInfo } from "./wire";

/** One series: a metric or formula at one place. Its number is its place in the source's list. */
export interface Series {
  number: number;
  /** The metric's name. */
  name: string;
  /** `node0`, or empty for the whole machine. */
  instance: string;
  quantity: Quantity;
  factor: number;
}

/** A metric or formula with all its series. */
export interface Entry {
  name: string;
  /** The sensor, or `formula`. */
  group: string;
  help: string;
  detail: string;
  quantity: Quantity;
  series: Series[];
}

export interface Found {
  entries: Entry[];
  /** How many there are beyond those given. */
  more: number;
}

export const FORMULAS = "formulas";

/** All series of a source, numbered as the server numbers them. */
export class Catalog {
  readonly series: Series[] = [];
  readonly entries: Entry[] = [];
  private readonly byName = new Map<string, Entry>();
  private readonly words: string[] = [];

  constructor(readonly source: SourceInfo) {
    for (const metric of source.metrics) {
      const shown = shownMetric(metric, source.page_size);
      const detail = `${metric.unit}, ${metric.kind}, from ${metric.source}`;
      this.add(metric.name, metric.sensor, metric.help, detail, metric.instances, shown);
    }
    for (const formula of source.formulas) {
      const shown = shownFormula(formula.unit);
      this.add(formula.name, FORMULAS, formula.help, `${formula.unit}, computed`, formula.instances, shown);
    }
  }

  private add(
    name: string,
    group: string,
    help: string,
    detail: string,
    instances: string[],
    shown: { quantity: Quantity; factor: number },
  ): void {
    const entry: Entry = { name, group, help, detail, quantity: shown.quantity, series: [] };
    for (const instance of instances) {
      const series = { number: this.series.length, name, instance: instance.replace(/^@/, ""), ...shown };
      this.series.push(series);
      entry.series.push(series);
    }
    this.entries.push(entry);
    this.byName.set(name, entry);
    this.words.push(`${name} ${help}`.toLowerCase());
  }

  entry(name: string): Entry | undefined {
    return this.byName.get(name);
  }

  /** The series of a metric at a place. */
  at(name: string, instance: string): Series | undefined {
    return this.byName.get(name)?.series.find((s) => s.instance === instance);
  }

  /** Groups in the order of the source, each with its entries. */
  groups(): Map<string, Entry[]> {
    const groups = new Map<string, Entry[]>();
    for (const entry of this.entries) {
      const list = groups.get(entry.group);
      if (list) list.push(entry);
      else groups.set(entry.group, [entry]);
    }
    return groups;
  }

  /** Entries that hold all the words of the query in name or description; those by name first. */
  search(query: string, most: number): Found {
    const words = query.toLowerCase().split(/\s+/).filter(Boolean);
    const named: Entry[] = [];
    const described: Entry[] = [];
    this.entries.forEach((entry, at) => {
      const text = this.words[at] ?? "";
      if (!words.every((word) => text.includes(word))) return;
      const name = entry.name.toLowerCase();
      (words.every((word) => name.includes(word)) ? named : described).push(entry);
    });
    const all = named.concat(described);
    return { entries: all.slice(0, most), more: Math.max(0, all.length - most) };
  }
}

/** How a series is called beside others of the same metric: `node 0`, `CPU 3`, `machine`. */
export function place(instance: string): string {
  if (instance === "") return "machine";
  const match = /^([a-z]+)(\d.*)$/.exec(instance);
  if (!match) return instance;
  const word = match[1] === "cpu" ? "CPU" : match[1];
  return `${word} ${match[2]}`;
}

/** The number in an instance such as `node3`; -1 where it is of another kind. */
export function numberOf(instance: string, kind: string): number {
  const rest = instance.startsWith(kind) ? instance.slice(kind.length) : "";
  return /^\d+$/.test(rest) ? Number(rest) : -1;
}
