// The machine as the page draws it, read from the JSON of `numa topo --json`.

export interface CoreView {
  cpus: number[];
}

export interface NodeView {
  id: number;
  cpus: number[];
  cores: CoreView[];
  memoryBytes: number | null;
}

export interface PackageView {
  name: string;
  nodes: NodeView[];
}

export interface Machine {
  packages: PackageView[];
  nodes: NodeView[];
  /** `distances[from][to]`, by position; empty if unknown. */
  distances: number[][];
}

/** The numbers in a list such as `0-3,8`; anything that is not a number is ignored. */
export function cpuList(text: string): number[] {
  const out: number[] = [];
  for (const part of text.split(",")) {
    const match = /^(\d+)(?:-(\d+))?$/.exec(part.trim());
    if (!match) continue;
    const first = Number(match[1]);
    const last = Math.min(Number(match[2] ?? match[1]), first + 65_535);
    for (let cpu = first; cpu <= last; cpu++) out.push(cpu);
  }
  return out;
}

interface Document {
  nodes?: { os_index: number; cpus: string; memory_kb?: number | null }[];
  packages?: { os_index: number | null; cpus: string }[];
  core_list?: { cpus: string }[];
  distances?: number[][] | null;
}

/** Reads the JSON; null if there is none or it has no node. */
export function readMachine(document: unknown): Machine | null {
  if (typeof document !== "object" || document === null) return null;
  const from = document as Document;
  if (!Array.isArray(from.nodes) || from.nodes.length === 0) return null;
  const cores = (from.core_list ?? []).map((core) => ({ cpus: cpuList(core.cpus) }));
  const nodes = from.nodes.map((node): NodeView => {
    const cpus = cpuList(node.cpus ?? "");
    const own = new Set(cpus);
    return {
      id: node.os_index,
      cpus,
      cores: cores.filter((core) => core.cpus.some((cpu) => own.has(cpu))),
      memoryBytes: node.memory_kb === null || node.memory_kb === undefined ? null : node.memory_kb * 1024,
    };
  });
  return { nodes, packages: byPackage(from, nodes), distances: from.distances ?? [] };
}

/** The number of nodes with memory; null if the topology is unknown. */
export function memoryNodes(document: unknown): number | null {
  const nodes = (document as Document | null)?.nodes;
  return Array.isArray(nodes) && nodes.length > 0 ? nodes.filter((node) => node.memory_kb !== 0).length : null;
}

/** Nodes without CPUs or without a package come last, in a group of their own. */
function byPackage(from: Document, nodes: NodeView[]): PackageView[] {
  const left = new Set(nodes);
  const packages: PackageView[] = [];
  for (const [at, one] of (from.packages ?? []).entries()) {
    const cpus = new Set(cpuList(one.cpus));
    const own = [...left].filter((node) => node.cpus.some((cpu) => cpus.has(cpu)));
    own.forEach((node) => left.delete(node));
    if (own.length > 0) packages.push({ name: `package ${one.os_index ?? at}`, nodes: own });
  }
  if (left.size > 0) packages.push({ name: packages.length > 0 ? "memory only" : "machine", nodes: [...left] });
  return packages;
}

export interface Cell {
  x: number;
  y: number;
  size: number;
}

/** Arranges `count` squares in rows in a box, as large as possible, filled from the left. */
export function squares(count: number, width: number, height: number, gap: number, largest: number): Cell[] {
  if (count <= 0 || width <= 0 || height <= 0) return [];
  let best = { columns: count, size: 0 };
  for (let columns = 1; columns <= count; columns++) {
    const rows = Math.ceil(count / columns);
    const size = Math.min((width - gap * (columns - 1)) / columns, (height - gap * (rows - 1)) / rows, largest);
    if (size > best.size - 1e-9) best = { columns: Math.ceil(count / rows), size };
  }
  const size = Math.max(best.size, 0.5);
  return Array.from({ length: count }, (_, at) => ({
    x: (at % best.columns) * (size + gap),
    y: Math.floor(at / best.columns) * (size + gap),
    size,
  }));
}
