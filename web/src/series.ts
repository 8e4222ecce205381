// The series of a source by number and by name, and the search in them.

import { memoryNodes } from "./topology";
import { shownFormula, shownMetric, type Quantity } from "./units";
import type { AbsentInfo, SourceInfo } from "./wire";

/** One series: a metric or formula of one instance. Its number is its index in the source's list. */
export interface Series {
  number: number;
  /** The metric's name. */
  name: string;
  /** `node0`, or empty for the whole machine. */
  instance: string;
  quantity: Quantity;
  factor: number;
  /** Whether it is a counter, so that its rate can be summed to a total. */
  counted: boolean;
}

/** A metric or formula with all its series. */
export interface Entry {
  name: string;
  /** The sensor, or `formulas`. */
  group: string;
  help: string;
  detail: string;
  quantity: Quantity;
  series: Series[];
}

/** The result of a search. */
export interface Found {
  /** Matching metrics. If words of the query name instances: with those series, else with null. */
  entries: { entry: Entry; series: Series[] | null }[];
  absent: AbsentInfo[];
}

export const FORMULAS = "formulas";

/** Derived metrics that compare a node with others. With one node they would say 100 % local, or nothing remote. */
const OF_SEVERAL_NODES = new Set([
  "locality", "local", "remote_allocations", "remote_allocation_share", "miss", "foreign", "interleaved_share", "overflow_share", "spill_share",
  "hint_locality", "hint_remote_share", "hint_local", "remote_share", "local_share", "load_remote_share", "resctrl_remote_share", "remote_bandwidth",
  "use_locality", "remote_time_share", "page_locality", "remote_pages_share",
]);

/** All series of a source, numbered as the server numbers them. */
export class Catalog {
  readonly series: Series[] = [];
  readonly entries: Entry[] = [];
  private readonly oneNode: boolean;
  private readonly byName = new Map<string, Entry>();
  private readonly words: string[] = [];
  private readonly bySeries = new Map<string, Series>();
  private readonly kindsByEntry = new Map<Entry, Set<string>>();

  constructor(readonly source: SourceInfo) {
    this.oneNode = memoryNodes(source.topology) === 1;
    for (const metric of source.metrics) {
      const shown = shownMetric(metric, source.page_size);
      const detail = `${metric.unit}, ${metric.kind}, from ${metric.source}`;
      this.add(metric.name, metric.sensor, metric.help, detail, metric.instances, { ...shown, counted: metric.kind === "counter" });
    }
    for (const formula of source.formulas) {
      const shown = shownFormula(formula.unit);
      this.add(formula.name, FORMULAS, formula.help, `${formula.unit}, computed`, formula.instances, { ...shown, counted: false });
    }
  }

  private add(
    name: string,
    group: string,
    help: string,
    detail: string,
    instances: string[],
    shown: { quantity: Quantity; factor: number; counted: boolean },
  ): void {
    const entry: Entry = { name, group, help, detail, quantity: shown.quantity, series: [] };
    for (const instance of instances) {
      const series = { number: this.series.length, name, instance: instance.replace(/^@/, ""), ...shown };
      this.series.push(series);
      entry.series.push(series);
      this.bySeries.set(`${name}@${series.instance}`, series);
    }
    this.entries.push(entry);
    this.byName.set(name, entry);
    this.words.push(`${name} ${help}`.toLowerCase());
  }

  /** Why a metric cannot be told on this machine; null if it can. */
  untold(name: string): string | null {
    return this.oneNode && OF_SEVERAL_NODES.has(name) ? "Cannot tell: this machine has one memory node." : null;
  }

  entry(name: string): Entry | undefined {
    return this.byName.get(name);
  }

  /** The series of a metric and an instance. */
  at(name: string, instance: string): Series | undefined {
    return this.bySeries.get(`${name}@${instance}`);
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

  /**
   * Entries that contain all words of the query in their name, description or instances. Matches by
   * name come first.
   */
  search(query: string): Found {
    const words = query.toLowerCase().split(/[\s@]+/).filter(Boolean);
    const named: Found["entries"] = [];
    const described: Found["entries"] = [];
    this.entries.forEach((entry, at) => {
      const text = this.words[at] ?? "";
      const places = words.filter((word) => !text.includes(word));
      const series = places.length === 0 ? null : entry.series.filter((one) => places.every((word) => matches(one.instance, word)));
      if (series?.length === 0) return;
      const name = entry.name.toLowerCase();
      (words.every((word) => name.includes(word) || places.includes(word)) ? named : described).push({ entry, series });
    });
    const absent = this.source.absent.filter((one) => words.every((word) => `${one.name} ${one.missing}`.toLowerCase().includes(word)));
    return { entries: named.concat(described), absent };
  }

  /** The kinds of instances that are measured, in the order of the source. */
  kinds(): string[] {
    return [...new Set(this.entries.flatMap((entry) => [...this.kindsOf(entry)]))];
  }

  /** The kinds of instances of a metric. */
  kindsOf(entry: Entry): Set<string> {
    let kinds = this.kindsByEntry.get(entry);
    if (!kinds) this.kindsByEntry.set(entry, (kinds = new Set(entry.series.map((one) => /^[a-z]+/i.exec(one.instance)?.[0] ?? "machine"))));
    return kinds;
  }

  quantities(): Quantity[] {
    return [...new Set(this.entries.map((entry) => entry.quantity))];
  }
}

/** `node3` does not match `node31`; `node` matches all nodes. */
function matches(instance: string, word: string): boolean {
  return /\d$/.test(word) ? instance === word || instance.endsWith(`.${word}`) : instance !== "" && instance.includes(word);
}

/** The display name of an instance: `node 0`, `CPU 3`, `machine`. */
export function place(instance: string): string {
  if (instance === "") return "machine";
  const match = /^([a-z]+)(\d.*)$/.exec(instance);
  if (!match) return instance;
  const word = match[1] === "cpu" ? "CPU" : match[1];
  return `${word} ${match[2]}`;
}

/** The number in an instance such as `node3`; -1 if it is of another kind. */
export function numberOf(instance: string, kind: string): number {
  const rest = instance.startsWith(kind) ? instance.slice(kind.length) : "";
  return /^\d+$/.test(rest) ? Number(rest) : -1;
}
