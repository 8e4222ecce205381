// What a panel draws: its lines, their series and names.

import { place, numberOf, type Catalog, type Entry, type Series } from "../series";
import { memoryNodes } from "../topology";
import type { Quantity } from "../units";

/** One line of a chart. Shown value = offset + factor * raw value. */
export interface Line {
  series: Series;
  label: string;
  quantity: Quantity;
  offset: number;
  factor: number;
  /** Number of its colour: that of the node, if it belongs to one; -1 for the whole machine. */
  slot: number;
}

export interface PanelSpec {
  id: string;
  title: string;
  help: string;
  lines: Line[];
  /** Whether the sum of the lines is meaningful. */
  adds: boolean;
  /** Whether low values are bad, as of locality. */
  lowIsBad?: boolean;
  /** Whether there are no lines because this machine has one node: `help` says so. */
  untold?: boolean;
  /** Whether it is only shown when one of its lines has had a value. */
  whenFound?: boolean;
}

/** The series of a default panel: the first name that the source has. */
interface Wanted {
  names: string[];
  label?: string;
  /** Shows 100 minus the value. */
  rest?: boolean;
}

interface Default {
  id: string;
  title: string;
  help: string;
  /** Shows every series of nodes, packages or links; otherwise the one of the machine. */
  spread: boolean;
  adds?: boolean;
  lowIsBad?: boolean;
  whenFound?: boolean;
  wanted: Wanted[];
}

const DEFAULTS: Default[] = [
  {
    id: "locality", title: "Locality", spread: true, lowIsBad: true,
    help: "Share of page allocations that are local: made by a CPU of the memory's node.",
    wanted: [{ names: ["locality"] }],
  },
  {
    id: "far", title: "Remote memory time", spread: true,
    help: "Of the time that threads on a node's CPUs wait for memory, the share at memory of other nodes.",
    wanted: [{ names: ["remote_time_share"] }],
  },
  {
    id: "remote-pages", title: "Remote pages in use", spread: true,
    help: "Of the pages that threads on a node's CPUs use, the share on other nodes. Emulated processors do not tell time.",
    wanted: [{ names: ["remote_pages_share"] }],
  },
  {
    id: "memory", title: "Memory in use", spread: true, adds: true,
    help: "Used memory of each node, including the page cache.",
    wanted: [{ names: ["node.MemUsed", "node.MemFree", "node.nr_free_pages", "free"] }],
  },
  {
    id: "cpu", title: "CPU busy", spread: true,
    help: "Busy CPU time of each node.",
    wanted: [{ names: ["idle"], rest: true }],
  },
  {
    id: "faults", title: "Faults and migrations", spread: false,
    help: "Page faults, NUMA hinting faults, and migrated pages.",
    wanted: [
      { names: ["fault_rate", "vmstat.pgfault"], label: "faults" },
      { names: ["hint", "vmstat.numa_hint_faults"], label: "hint faults" },
      { names: ["moved", "vmstat.pgmigrate_success"], label: "migrations" },
      { names: ["major", "vmstat.pgmajfault"], label: "major faults" },
    ],
  },
  {
    id: "remote", title: "Remote allocations", spread: true, adds: true,
    help: "Page allocations on each node by CPUs of other nodes.",
    wanted: [{ names: ["remote_allocations", "node.other_node", "vmstat.numa_other"] }],
  },
  {
    id: "pressure", title: "Pressure", spread: false,
    help: "Share of time in which at least one thread was stalled (PSI).",
    wanted: [
      { names: ["stall", "pressure.memory_some"], label: "memory" },
      { names: ["stall_cpu", "pressure.cpu_some"], label: "CPU" },
      { names: ["stall_io", "pressure.io_some"], label: "I/O" },
    ],
  },
  {
    id: "links", title: "Links", spread: true,
    help: "Utilisation of the links to other packages, including protocol overhead.",
    wanted: [{ names: ["link_util", "link_out"] }],
  },
  {
    id: "controllers", title: "Memory controllers", spread: true,
    help: "Utilisation of the memory: of the measured peak, if 'numa bench all' was run on the machine.",
    wanted: [{ names: ["dram_util", "dram_bandwidth"] }],
  },
  {
    id: "tasks", title: "Observed processes", spread: true, adds: true,
    help: "Resident memory of the observed processes on each node.",
    wanted: [{ names: ["task.resident"] }],
  },
  {
    id: "allocator", title: "Allocator: local bytes per node", spread: true, adds: true, whenFound: true,
    help: "Memory that libnumalloc has for blocks of a node, in use or free, and that is on this node.",
    wanted: [{ names: ["task.alloc_local", "task.alloc_in_use"] }],
  },
  {
    id: "sampler", title: "Sampler", spread: false,
    help: "CPU time that sampling takes, and the delay of its wake-ups.",
    wanted: [
      { names: ["sampler_share"], label: "sampler thread" },
      { names: ["process_share"], label: "whole process" },
      { names: ["self.wakeup"], label: "wake-up delay" },
    ],
  },
];

const MAX_LINES = 512;
const LOW_IS_BAD = new Set(["locality", "local", "local_share", "use_locality", "page_locality", "hint_locality", "hint_local", "idle", "cpu.idle", "free", "node.MemFree"]);

/** The default panels that this source has data for. What one node leaves nothing to tell for is left to the findings. */
export function defaultPanels(catalog: Catalog): PanelSpec[] {
  return DEFAULTS.map((d) => defaultPanel(catalog, d)).filter((spec) => spec.lines.length > 0);
}

function defaultPanel(catalog: Catalog, wanted: Default): PanelSpec {
  const lines: Line[] = [];
  let untold: string | null = null;
  wanted.wanted.forEach((item) => {
    const entry = item.names.map((name) => catalog.entry(name)).find((e) => e && e.series.length > 0);
    if (!entry) return;
    untold ??= catalog.untold(entry.name);
    if (untold) return;
    const parts = entry.series.filter((s) => s.instance !== "");
    const chosen = wanted.spread && parts.length > 0 ? nodesFirst(parts) : entry.series.filter((s) => s.instance === "");
    for (const series of chosen.slice(0, MAX_LINES)) {
      const label = item.label ?? entry.name;
      lines.push(lineOf(series, wanted.spread && series.instance ? place(series.instance) : label, lines.length, item.rest));
    }
  });
  return { id: wanted.id, title: wanted.title, help: untold ?? wanted.help, lines, adds: wanted.adds === true, lowIsBad: wanted.lowIsBad === true, untold: untold !== null, whenFound: wanted.whenFound === true };
}

/** A formula may have nodes and packages; a panel shows one kind. */
function nodesFirst(series: Series[]): Series[] {
  const nodes = series.filter((s) => s.instance.startsWith("node"));
  return nodes.length > 0 ? nodes : series;
}

/** On one node, a value of the machine and that of its node are the same line. */
function distinct(series: Series[], catalog: Catalog): Series[] {
  const nodes = series.filter((s) => s.instance.startsWith("node"));
  const isSame = memoryNodes(catalog.source.topology) === 1 && nodes.length === 1 && series.some((s) => s.instance === "");
  return isSame ? series.filter((s) => s !== nodes[0]) : series;
}

function lineOf(series: Series, label: string, at: number, rest = false): Line {
  const node = numberOf(series.instance, "node");
  return {
    series,
    label,
    quantity: series.quantity,
    offset: rest ? 100 : 0,
    factor: rest ? -series.factor : series.factor,
    slot: node >= 0 ? node : at,
  };
}

/** A panel of metrics by name, as the metric list opens them: `m:node.MemFree+node.AnonPages`. */
export function panelOf(catalog: Catalog, id: string): PanelSpec | null {
  const preset = DEFAULTS.find((d) => d.id === id);
  if (preset) {
    const spec = defaultPanel(catalog, preset);
    return spec.lines.length > 0 || spec.untold ? spec : null;
  }
  if (!id.startsWith("m:")) return null;
  const parts = id.slice(2).split("+").map((name) => partOf(catalog, name)).filter((part) => part !== null);
  if (parts.length === 0) return null;
  const title = parts.map((part) => part.title).join(", ");
  const told = parts.filter(({ entry }) => !catalog.untold(entry.name));
  if (told.length === 0) return { id, title, help: catalog.untold(parts[0]?.entry.name ?? "") ?? "", lines: [], adds: false, untold: true };
  const several = new Set(parts.map(({ entry }) => entry)).size > 1;
  const lines: Line[] = [];
  for (const { entry, series } of told) {
    for (const one of distinct(series, catalog).slice(0, MAX_LINES)) {
      const where = one.instance ? place(one.instance) : "";
      lines.push(lineOf(one, several || where === "" ? `${shortName(entry.name)} ${where}`.trim() : where, lines.length));
    }
  }
  const quantities = new Set(lines.map((line) => line.quantity));
  return {
    id,
    title,
    help: [...new Set(parts.map(({ entry }) => catalog.untold(entry.name) ?? entry.help))].join(" "),
    lines,
    lowIsBad: told.every(({ entry }) => LOW_IS_BAD.has(entry.name)),
    adds: lines.length > 1 && quantities.size === 1 && !quantities.has("percent"),
  };
}

/** A metric with all its series, or one of them: `node.MemFree@node3`. */
function partOf(catalog: Catalog, name: string): { entry: Entry; series: Series[]; title: string } | null {
  const whole = catalog.entry(name);
  if (whole) return { entry: whole, series: whole.series, title: name };
  const at = name.lastIndexOf("@");
  const entry = catalog.entry(name.slice(0, at));
  const series = at > 0 && catalog.at(name.slice(0, at), name.slice(at + 1));
  return entry && series ? { entry, series: [series], title: `${entry.name}, ${place(series.instance)}` } : null;
}

/** A panel for which the source has no data. It says why. */
export function missingPanel(catalog: Catalog, id: string): PanelSpec {
  const preset = DEFAULTS.find((d) => d.id === id);
  const names = preset ? preset.wanted.flatMap((wanted) => wanted.names) : id.replace(/^m:/, "").split("+").map((name) => name.replace(/@.*$/, ""));
  const absent = catalog.source.absent.find((one) => names.some((name) => name === one.name || name.startsWith(`${one.name}.`) || one.name.startsWith(`${name}.`)));
  const why = absent ? `Unavailable: ${absent.missing}. ${absent.seen}.${absent.fix ? ` Fix: ${absent.fix}` : ""}` : "This source does not have this metric.";
  return { id, title: preset?.title ?? names.join(", "), help: why, lines: [], adds: false };
}

function shortName(name: string): string {
  return name.slice(name.indexOf(".") + 1);
}
