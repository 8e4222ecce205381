// Saves what is visible: values and images.

import type { Panel } from "./panels/panel";
import { bitmap, svgOf } from "./drawing";
import type { Line } from "./panels/lines";
import type { Slice } from "./store";

/** Downloads a file. */
export function download(name: string, content: Blob): void {
  const url = URL.createObjectURL(content);
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  window.setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

function quoted(text: string): string {
  return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** The shown values of lines between two times, as CSV: mean, and minimum and maximum where they differ. */
export function csvOf(lines: Line[], slice: Slice, from: number, to: number): string {
  const columns = lines.flatMap((line) => {
    const track = slice.track(line.series.number);
    if (!track) return [];
    const name = `${line.series.name}${line.series.instance ? `@${line.series.instance}` : ""} (${line.quantity})`;
    const of = (values: Float64Array) => (row: number) => line.offset + line.factor * (values[row] as number);
    const mean = { name, at: of(track.mean) };
    if (track.min === track.max) return [mean];
    const [low, high] = line.factor < 0 ? [track.max, track.min] : [track.min, track.max];
    return [mean, { name: `${name} min`, at: of(low) }, { name: `${name} max`, at: of(high) }];
  });
  const out = [["time", ...columns.map((column) => quoted(column.name))].join(",")];
  for (let row = 0; row < slice.x.length; row++) {
    const time = slice.x[row] as number;
    if (time < from || time > to) continue;
    const values = columns.map(({ at }) => (Number.isNaN(at(row)) ? "" : String(Number(at(row).toPrecision(7)))));
    out.push([new Date(time).toISOString(), ...values].join(","));
  }
  return `${out.join("\n")}\n`;
}

/** Average bytes of a time and of a value in a CSV file. */
const TIME_BYTES = 21;
const VALUE_BYTES = 7;

/** The size of a file before it is written. */
export interface Extent {
  rows: number;
  series: number;
  bytes: number;
  /** Whether it contains all samples, or buckets of them. */
  whole: boolean;
}

/** The size of a range of samples, if one file holds at maxRows `values`. */
export function extent(series: number, ms: number, intervalMs: number, values: number): Extent {
  const rows = Math.max(1, Math.round(ms / Math.max(intervalMs, 0.001)));
  const maxRows = Math.max(1, Math.floor(values / Math.max(1, series)));
  const whole = rows <= maxRows;
  const cells = series * (whole ? 1 : 3);
  const written = Math.min(rows, maxRows);
  return { rows: written, series, bytes: written * (TIME_BYTES + cells * VALUE_BYTES), whole };
}

export function saveCsv(name: string, lines: Line[], slice: Slice, from: number, to: number): void {
  download(`${name}.csv`, new Blob([csvOf(lines, slice, from, to)], { type: "text/csv" }));
}

const PNG_SCALE = 2;

/** Saves the panel as a bitmap, with a line about its samples. */
export async function savePng(panel: Panel, about: string): Promise<void> {
  download(`${fileName(panel.spec.title)}.png`, await bitmap(svgOf(panel, about), PNG_SCALE));
}

export function saveSvg(panel: Panel, about: string): void {
  download(`${fileName(panel.spec.title)}.svg`, new Blob([svgOf(panel, about)], { type: "image/svg+xml" }));
}

export function fileName(title: string): string {
  return title.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "").slice(0, 60) || "panel";
}
