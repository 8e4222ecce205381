// Files from what is on screen: values, pictures, drawings.

import type { Panel } from "./panels/panel";
import { currentTheme } from "./panels/palette";
import { runs } from "./panels/paths";
import type { Slice } from "./store";
import type { Line } from "./panels/lines";
import { clock, format } from "./units";

function save(name: string, content: Blob): void {
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

/** Shown values of lines between two times, as CSV: mean, and minimum and maximum where they differ. */
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

export function saveCsv(name: string, lines: Line[], slice: Slice, from: number, to: number): void {
  save(`${name}.csv`, new Blob([csvOf(lines, slice, from, to)], { type: "text/csv" }));
}

/** The panel's charts with title and legend, as PNG. */
export function savePng(panel: Panel): void {
  const canvases = panel.canvases();
  const ratio = devicePixelRatio;
  const width = Math.max(...canvases.map((canvas) => canvas.width));
  const head = 48 * ratio;
  const height = head + canvases.reduce((sum, canvas) => sum + canvas.height, 0);
  const out = Object.assign(document.createElement("canvas"), { width, height });
  const context = out.getContext("2d");
  if (!context) return;
  const theme = currentTheme();
  context.fillStyle = theme.panel;
  context.fillRect(0, 0, width, height);
  context.fillStyle = theme.text;
  context.font = `600 ${13 * ratio}px system-ui, sans-serif`;
  context.fillText(panel.spec.title, 12 * ratio, 18 * ratio);
  context.font = `${11 * ratio}px system-ui, sans-serif`;
  let x = 12 * ratio;
  for (const line of panel.spec.lines.slice(0, 40)) {
    context.fillStyle = panel.colour(line);
    context.fillRect(x, 28 * ratio, 10 * ratio, 10 * ratio);
    context.fillStyle = theme.text;
    context.fillText(line.label, x + 14 * ratio, 37 * ratio);
    x += context.measureText(line.label).width + 28 * ratio;
  }
  let y = head;
  for (const canvas of canvases) {
    context.drawImage(canvas, 0, y);
    y += canvas.height;
  }
  out.toBlob((blob) => blob && save(`${fileName(panel.spec.title)}.png`, blob), "image/png");
}

/** The panel as a drawing of lines. */
export function svgOf(panel: Panel): string {
  const { slice, range } = panel.current();
  const [width, height, left, top] = [900, 320, 70, 40];
  const theme = currentTheme();
  const shown = panel.spec.lines.filter((_, at) => !panel.hidden.has(at));
  let most = 1e-9;
  const lines = shown.flatMap((line) => {
    const track = slice?.track(line.series.number);
    if (!track || !slice) return [];
    const mean = track.mean.map((value) => line.offset + line.factor * value);
    mean.forEach((value, row) => {
      const time = slice.x[row] as number;
      if (time >= range[0] && time <= range[1] && value > most) most = value;
    });
    return [{ line, mean }];
  });
  const x = (time: number) => (left + ((time - range[0]) / (range[1] - range[0])) * (width - left - 10)).toFixed(1);
  const y = (value: number) => (height - 24 - (value / most) * (height - 24 - top)).toFixed(1);
  const safe = (text: string) => text.replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);
  const paths = lines.flatMap(({ line, mean }) => {
    const inside = mean.map((value, row) => ((slice?.x[row] ?? 0) >= range[0] && (slice?.x[row] ?? 0) <= range[1] ? value : NaN));
    const parts = runs(slice?.x ?? [], inside, 0, inside.length - 1, (slice?.stepMs ?? 1) * 2.6);
    const d = parts.map((rows) => `M${rows.map((row) => `${x(slice?.x[row] ?? 0)} ${y(inside[row] ?? 0)}`).join("L")}`).join("");
    return [`<path d="${d}" fill="none" stroke="${panel.colour(line)}" stroke-width="1.4"><title>${safe(line.label)}</title></path>`];
  });
  const names = shown.slice(0, 12).map((line, at) => `<text x="${left + at * 90}" y="32" fill="${panel.colour(line)}">${safe(line.label)}</text>`);
  const quantity = shown[0]?.quantity ?? "count";
  const axis = [0, 0.5, 1].map((share) => `<text x="${left - 6}" y="${y(most * share)}" text-anchor="end" fill="${theme.quiet}">${safe(format(most * share, quantity))}</text>`);
  const times = `<text x="${left}" y="${height - 6}" fill="${theme.quiet}">${clock(range[0])}</text><text x="${width - 10}" y="${height - 6}" text-anchor="end" fill="${theme.quiet}">${clock(range[1])}</text>`;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="system-ui, sans-serif" font-size="11"><rect width="100%" height="100%" fill="${theme.panel}"/><text x="${left}" y="16" font-size="13" font-weight="600" fill="${theme.text}">${safe(panel.spec.title)}</text>${names.join("")}${axis.join("")}${times}${paths.join("")}</svg>\n`;
}

export function saveSvg(panel: Panel): void {
  save(`${fileName(panel.spec.title)}.svg`, new Blob([svgOf(panel)], { type: "image/svg+xml" }));
}

export function fileName(title: string): string {
  return title.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "").slice(0, 60) || "panel";
}
