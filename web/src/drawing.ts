// A panel as SVG: areas, axes, labels and values as on screen. A PNG is made from it.

import type { Picture } from "./panels/chart";
import { shortened } from "./panels/marks";
import type { Panel } from "./panels/panel";
import { currentTheme, loadParts, type Theme } from "./panels/palette";
import { runs, trace, type Drawn, type Pen } from "./panels/paths";
import { ticks, timeTicks } from "./steps";
import { clock, format } from "./units";

export interface Box {
  x: number;
  y: number;
  width: number;
  height: number;
}

const WIDTH = 960;
const CHART_HEIGHT = 300;
const CELL_HEIGHT = 130;
const COLUMNS = 3;
const MARGIN = { left: 70, right: 22, top: 14, bottom: 24 };
const MAX_NAMED = 64;
const NAME_SPACE = 14;
/** Height of the title and the line below it. */
const HEAD = 46;

/** The panel as it is on screen, with a line about its samples: host and time. */
export function svgOf(panel: Panel, about: string): string {
  const theme = currentTheme();
  const pictures = panel.pictures();
  const heat = pictures[0]?.picture.heat;
  const legend = heat ? scaleOf(heat.scale, theme) : legendOf(panel, theme);
  const columns = pictures.length > 1 ? COLUMNS : 1;
  const height = columns > 1 ? CELL_HEIGHT : CHART_HEIGHT;
  const parts = pictures.map(({ name, picture }, at) => {
    const box = { x: (at % columns) * (WIDTH / columns), y: HEAD + legend.height + Math.floor(at / columns) * height, width: WIDTH / columns, height };
    return chartOf(picture, name, box, theme);
  });
  const tall = HEAD + legend.height + Math.ceil(pictures.length / columns) * height + 8;
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${tall}" viewBox="0 0 ${WIDTH} ${tall}" font-family="system-ui, sans-serif" font-size="11">`
    + `<rect width="100%" height="100%" fill="${theme.panel}"/>${text(14, 21, panel.spec.title, theme.text, 'font-size="14" font-weight="600"')}${text(14, 38, about, theme.quiet)}${legend.svg}${parts.join("")}</svg>\n`;
}

/** The scale of colours of a heat map. */
function scaleOf(words: string, theme: Theme): { svg: string; height: number } {
  const parts = Array.from({ length: 20 }, (_, at) => `<rect x="${14 + at * 6}" y="${HEAD + 2}" width="6" height="10" fill="rgb(${loadParts((at + 0.5) / 20, theme.dark).join(",")})"/>`);
  return { svg: parts.join("") + text(142, HEAD + 11, words, theme.text), height: 20 };
}

/** Names, colours and values of the lines, in rows. */
function legendOf(panel: Panel, theme: Theme): { svg: string; height: number } {
  let [x, y, svg] = [14, HEAD, ""];
  for (const { line, value } of panel.values().slice(0, MAX_NAMED)) {
    const words = `${line.label}  ${format(value, line.quantity)}`;
    const wide = 30 + words.length * 6.2;
    if (x + wide > WIDTH) [x, y] = [14, y + 18];
    svg += `<rect x="${x}" y="${y + 2}" width="10" height="10" rx="2" fill="${panel.colour(line)}"/>${text(x + 15, y + 11, words, theme.text)}`;
    x += wide;
  }
  return { svg, height: y - HEAD + 20 };
}

/** One chart within a box. */
export function chartOf(picture: Picture, name: string, box: Box, theme: Theme): string {
  const right = picture.axes.length > 1 ? MARGIN.left : MARGIN.right;
  const inner = { x: box.x + MARGIN.left, y: box.y + MARGIN.top, width: box.width - MARGIN.left - right, height: box.height - MARGIN.top - MARGIN.bottom };
  const length = picture.to - picture.from || 1;
  const x = (time: number) => inner.x + ((time - picture.from) / length) * inner.width;
  const y = (axis: number) => {
    const { min, max } = picture.axes[axis] ?? { min: 0, max: 1 };
    return (value: number) => inner.y + inner.height - ((value - min) / (max - min || 1)) * inner.height;
  };
  const clip = `clip${Math.round(box.x)}-${Math.round(box.y)}`;
  const lines = picture.shown.map(({ drawn, colour, axis, line, other }) =>
    (drawn ? lineOf(picture, drawn, x, y(axis), colour, line.label) : "") + (other ? dashed(picture, other, x, y(axis), colour) : ""));
  if (picture.total) lines.push(dashed(picture, picture.total, x, y(0), theme.text));
  if (picture.heat) lines.push(`<image href="${picture.heat.image}" x="${inner.x}" y="${inner.y}" width="${inner.width}" height="${inner.height}" preserveAspectRatio="none" image-rendering="pixelated"/>`);
  return axesOf(picture, inner, x, y, theme)
    + `<clipPath id="${clip}"><rect x="${inner.x}" y="${inner.y}" width="${inner.width}" height="${inner.height}"/></clipPath><g clip-path="url(#${clip})">${lines.join("")}</g>`
    + marksOf(picture, inner, x, theme)
    + (name ? text(inner.x, box.y + 10, name, theme.quiet) : "");
}

type Place = (value: number) => number;

/** A path in SVG syntax. */
class DrawnPath implements Pen {
  text = "";
  moveTo(x: number, y: number): void {
    this.text += `M${round(x)} ${round(y)}`;
  }
  lineTo(x: number, y: number): void {
    this.text += `L${round(x)} ${round(y)}`;
  }
  closePath(): void {
    this.text += "Z";
  }
}

function lineOf(picture: Picture, drawn: Drawn, x: Place, y: Place, colour: string, name: string): string {
  const [stroke, fill] = [new DrawnPath(), new DrawnPath()];
  for (const rows of visible(picture, drawn)) trace(drawn, rows, (row) => x(picture.x[row] ?? 0), y, picture.dense, stroke, fill);
  return (fill.text ? `<path d="${fill.text}" fill="${colour}" fill-opacity="${drawn.floor ? 0.42 : 0.34}"/>` : "")
    + `<path d="${stroke.text}" fill="none" stroke="${colour}" stroke-width="${picture.dense ? 1 : 1.4}" stroke-linejoin="round"><title>${safe(name)}</title></path>`;
}

function dashed(picture: Picture, drawn: Drawn, x: Place, y: Place, colour: string): string {
  const d = visible(picture, drawn).map((rows) => `M${rows.map((row) => `${round(x(picture.x[row] ?? 0))} ${round(y(drawn.mean[row] ?? 0))}`).join("L")}`).join("");
  return `<path d="${d}" fill="none" stroke="${colour}" stroke-width="1.3" stroke-dasharray="5 4"/>`;
}

/** The runs of visible rows, with one more on each side so that lines reach the edges. */
function visible(picture: Picture, drawn: Drawn): number[][] {
  let [first, last] = [0, picture.x.length - 1];
  while (first < last && (picture.x[first + 1] ?? 0) < picture.from) first++;
  while (last > first && (picture.x[last - 1] ?? 0) > picture.to) last--;
  return runs(picture.x, drawn.mean, first, last, picture.gapMs);
}

function axesOf(picture: Picture, inner: Box, x: Place, y: (axis: number) => Place, theme: Theme): string {
  const values = picture.axes.map(({ quantity, min, max }, axis) => ticks(min, max, Math.max(2, Math.round(inner.height / 45)), quantity === "bytes" ? 2 : 10).map((value) => {
    const at = round(y(axis)(value));
    const grid = axis === 0 ? `<path d="M${inner.x} ${at}h${inner.width}" stroke="${theme.grid}"/>` : "";
    const label = value === 0 ? "0" : format(value, quantity);
    return grid + (axis === 0 ? text(inner.x - 6, at + 4, label, theme.quiet, 'text-anchor="end"') : text(inner.x + inner.width + 6, at + 4, label, theme.quiet));
  }).join(""));
  const { times, step } = timeTicks(picture.from, picture.to, Math.max(2, Math.floor(inner.width / 90)));
  const below = times.map((time) => `<path d="M${round(x(time))} ${inner.y}v${inner.height}" stroke="${theme.grid}"/>${text(round(x(time)), inner.y + inner.height + 16, clock(time, step), theme.quiet, 'text-anchor="middle"')}`);
  return values.join("") + below.join("") + namesOf(picture.heat?.names ?? [], inner, theme);
}

/** The names of the rows of a heat map, of as many as there is room for. */
function namesOf(names: string[], inner: Box, theme: Theme): string {
  const every = Math.max(1, Math.ceil((NAME_SPACE * names.length) / inner.height));
  return names.map((name, row) => (row % every === 0 ? text(inner.x - 6, inner.y + ((row + 0.5) / names.length) * inner.height + 4, name, theme.quiet, 'text-anchor="end"') : "")).join("");
}

function marksOf(picture: Picture, inner: Box, x: Place, theme: Theme): string {
  return picture.marks.filter((mark) => mark.time >= picture.from && mark.time <= picture.to).map((mark) => {
    const at = round(x(mark.time));
    const late = at > inner.x + inner.width * 0.8;
    return `<path d="M${at} ${inner.y}v${inner.height}" stroke="${theme.accent}" stroke-dasharray="3 3"/>${text(late ? at - 4 : at + 4, inner.y + 9, shortened(mark.text), theme.accent, late ? 'text-anchor="end"' : "")}`;
  }).join("");
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}

function safe(words: string): string {
  return words.replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`).replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f]/g, " ");
}

function text(x: number, y: number, words: string, colour: string, more = ""): string {
  return `<text x="${round(x)}" y="${round(y)}" fill="${colour}" ${more}>${safe(words)}</text>`;
}

/** An SVG as PNG. */
export async function bitmap(svg: string, scale: number): Promise<Blob> {
  const image = new Image();
  image.src = `data:image/svg+xml,${encodeURIComponent(svg)}`;
  await image.decode();
  const canvas = Object.assign(document.createElement("canvas"), { width: image.width * scale, height: image.height * scale });
  const context = canvas.getContext("2d");
  if (!context) throw new Error("this browser cannot create images");
  context.drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((done, failed) => canvas.toBlob((blob) => (blob ? done(blob) : failed(new Error("the picture is too large for this browser"))), "image/png"));
}
