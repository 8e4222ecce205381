// What the page shows, as stored in its address: time range, panels and their chart types.

export const MODES = ["lines", "stack", "multiples", "heat"] as const;
export type Mode = (typeof MODES)[number];

/** Some lines of a panel, as `metric@place`: those that are not drawn, or those that alone are. */
export interface HiddenLines {
  only: boolean;
  lines: string[];
}

/** The address keeps no more lines of a panel. */
export const MAX_NAMES = 64;

export interface View {
  /** Whether the range follows the newest sample. */
  follow: boolean;
  /** Length of the range while following, in ms. */
  spanMs: number;
  /** The range while not following, in ms since 1970. */
  from: number;
  to: number;
  /** Ids of panels: of a default one, or `m:` and metric names joined by `+`. Empty: the defaults. */
  panels: string[];
  /** The chart types that are not a panel's default. */
  modes: Record<string, Mode>;
  /** Columns and rows of the panels that are larger than one of each. */
  sizes: Record<string, [number, number]>;
  /** What the machine view is coloured by. */
  colour: string;
  /** What the cells of the nodes show: the use of memory where the source has it, or distances. */
  nodes: "use" | "distances";
  /** The node that panels show alone; null: all. */
  node: number | null;
  /** The list of processes: whether it is shown, the column that it is sorted by (`-`: reversed), its filter. */
  processes: { open: boolean; sort: string; filter: string };
  /** Lines that are switched off, or of which all others are, by panel; of many at most `MAX_NAMES`. */
  hidden: Record<string, HiddenLines>;
  /** The panels with a table. */
  tables: string[];
  /** The search in the list of metrics. */
  search: string;
  /** The theme that somebody chose; empty: that of the system. */
  theme: "" | "light" | "dark";
  /** Number of the shown source, which the server may not have. */
  source: number;
  /** Number of the second source to compare with, if any. */
  beside: number | null;
  /** Whether the two are drawn next to each other. */
  columns: boolean;
  /** The label at which the two are aligned; empty: at their starts. */
  at: string;
}

export const SPANS = [10_000, 30_000, 60_000, 300_000, 900_000, 3_600_000];

export function freshView(): View {
  return { follow: true, spanMs: 60_000, from: 0, to: 0, panels: [], modes: {}, sizes: {}, colour: "cpu", nodes: "use", node: null, processes: { open: false, sort: "", filter: "" }, hidden: {}, tables: [], search: "", theme: "", source: 0, beside: null, columns: false, at: "" };
}

/** The range of a view, as in an address. */
export function writeRange({ follow, from, to, spanMs }: View): string {
  const out = new URLSearchParams();
  if (!follow) {
    out.set("from", from.toFixed(3));
    out.set("to", to.toFixed(3));
  } else if (spanMs !== freshView().spanMs) {
    out.set("span", String(Math.round(spanMs)));
  }
  return out.toString();
}

/** The view as the fragment of an address. Default values are left out. */
export function writeView(view: View): string {
  const out = new URLSearchParams(writeRange(view));
  const fresh = freshView();
  if (view.panels.length > 0) out.set("panels", view.panels.join(","));
  const modes = Object.entries(view.modes);
  if (modes.length > 0) out.set("modes", modes.map(([id, mode]) => `${id}=${mode}`).join(","));
  const sizes = Object.entries(view.sizes);
  if (sizes.length > 0) out.set("sizes", sizes.map(([id, size]) => `${id}=${size.join("x")}`).join(","));
  if (view.colour !== fresh.colour) out.set("colour", view.colour);
  if (view.nodes !== fresh.nodes) out.set("nodes", view.nodes);
  if (view.node !== null) out.set("node", String(view.node));
  if (view.processes.open) out.set("processes", view.processes.sort || "cpu");
  if (view.processes.open && view.processes.filter) out.set("process", view.processes.filter);
  for (const [panel, { only, lines }] of Object.entries(view.hidden)) out.append(only ? "only" : "hide", [panel, ...lines].join("|"));
  if (view.tables.length > 0) out.set("tables", view.tables.join(","));
  if (view.search !== fresh.search) out.set("search", view.search);
  if (view.theme !== fresh.theme) out.set("theme", view.theme);
  if (view.source !== 0) out.set("source", String(view.source));
  if (view.beside !== null) out.set("beside", String(view.beside));
  if (view.beside !== null && view.columns) out.set("columns", "2");
  if (view.beside !== null && view.at !== "") out.set("at", view.at);
  return out.toString();
}

/** Reads a fragment; missing and invalid parts keep their defaults. */
export function readView(fragment: string): View {
  const view = freshView();
  const from = new URLSearchParams(fragment.replace(/^#/, ""));
  const number = (name: string) => {
    const text = from.get(name);
    const value = text === null || text === "" ? NaN : Number(text);
    return Number.isFinite(value) ? value : null;
  };
  const [start, end] = [number("from"), number("to")];
  if (start !== null && end !== null && end > start) {
    Object.assign(view, { follow: false, from: start, to: end, spanMs: end - start });
  }
  const span = number("span");
  if (span !== null && span >= 10 && span <= 7 * 86_400_000) view.spanMs = span;
  view.panels = (from.get("panels") ?? "").split(",").filter(Boolean).slice(0, 64);
  for (const pair of (from.get("modes") ?? "").split(",")) {
    const at = pair.lastIndexOf("=");
    const mode = MODES.find((one) => one === pair.slice(at + 1));
    if (at > 0 && mode) view.modes[pair.slice(0, at)] = mode;
  }
  for (const pair of (from.get("sizes") ?? "").split(",")) {
    const [, id, columns, rows] = /^(.+)=([1-4])x([1-4])$/.exec(pair) ?? [];
    if (id) view.sizes[id] = [Number(columns), Number(rows)];
  }
  view.colour = from.get("colour") ?? view.colour;
  if (from.get("nodes") === "distances") view.nodes = "distances";
  view.node = index(number("node"));
  const processes = from.get("processes");
  if (processes !== null) view.processes = { open: true, sort: /^-?[a-z]+$/.test(processes) ? processes : "", filter: (from.get("process") ?? "").slice(0, 100) };
  for (const name of ["hide", "only"]) {
    for (const text of from.getAll(name).slice(0, 64)) {
      const [panel, ...lines] = text.split("|");
      if (panel && lines.length > 0) view.hidden[panel] = { only: name === "only", lines: lines.slice(0, MAX_NAMES) };
    }
  }
  view.tables = (from.get("tables") ?? "").split(",").filter(Boolean).slice(0, 64);
  view.search = (from.get("search") ?? "").slice(0, 200);
  const theme = from.get("theme");
  if (theme === "light" || theme === "dark") view.theme = theme;
  view.source = index(number("source")) ?? 0;
  view.beside = index(number("beside"));
  view.columns = view.beside !== null && from.get("columns") === "2";
  if (view.beside !== null) view.at = from.get("at") ?? "";
  return view;
}

function index(value: number | null): number | null {
  return value !== null && Number.isInteger(value) && value >= 0 ? value : null;
}
