// Values saved by the page.

import { readFile } from "node:fs/promises";
import type { Panel } from "./panel";

export interface Saved {
  /** Names of the columns without the time. */
  names: string[];
  /** ms since 1970. */
  times: number[];
  /** One per name, as long as `times`; NaN if nothing was measured. */
  columns: number[][];
}

/** The visible values of a panel. */
export async function onScreen(panel: Panel): Promise<Saved> {
  const { path } = await panel.save("Visible data, CSV");
  return readCsv(path);
}

export async function readCsv(path: string): Promise<Saved> {
  const [head = "", ...lines] = (await readFile(path, "utf8")).trimEnd().split("\n");
  const names = head.split(",").slice(1);
  const rows = lines.map((line) => line.split(","));
  const column = (at: number) => rows.map((row) => (row[at + 1] ? Number(row[at + 1]) : NaN));
  return { names, times: rows.map(([time]) => Date.parse(time ?? "")), columns: names.map((_, at) => column(at)) };
}
