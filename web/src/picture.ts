// One picture of the whole page: what was found, all panels, machine and nodes, with host, command and time.

import { bitmap, svgOf } from "./drawing";
import { currentTheme } from "./panels/palette";
import type { Panel } from "./panels/panel";

const COLUMN = 960;
const SIDE = 600;
const GAP = 16;
const HEAD_LINE = 20;
/** What the style sheet sets and a picture without it needs. */
const STYLES = ["fill", "stroke", "stroke-width", "opacity", "font-size", "font-weight", "text-anchor"] as const;

/** What a picture is made of. */
export interface PagePicture {
  /** Lines above all else, the first one large. */
  head: string[];
  panels: readonly Panel[];
  /** Drawings next to the panels, with their titles. */
  drawings: { title: string; drawing: SVGSVGElement }[];
}

interface Part {
  svg: string;
  width: number;
  height: number;
}

/** The verdict and the findings that the page shows, in words. */
export function findingsOn(page: ParentNode): string[] {
  const strip = page.querySelector('section[aria-label="Findings"]');
  const words = (element: Element | null | undefined) => element?.textContent?.replace(/\s+/g, " ").trim() ?? "";
  if (!strip) return [];
  const verdict = [words(strip.querySelector(".verdict")), words(strip.querySelector(".cost"))].filter(Boolean).join(" · ");
  return [verdict, ...[...strip.querySelectorAll(".finding .says")].map(words)].filter(Boolean).slice(0, 6);
}

/** The machine and the nodes, as far as the page shows them. */
export function drawingsOn(page: ParentNode): PagePicture["drawings"] {
  return [...page.querySelectorAll<HTMLElement>(".side")].flatMap((side) => {
    const drawing = side.querySelector<SVGSVGElement>("svg.drawing");
    return drawing ? [{ title: side.getAttribute("aria-label") ?? "", drawing }] : [];
  });
}

/** The picture as SVG. */
export function pageSvg({ head, panels, drawings }: PagePicture): string {
  const theme = currentTheme();
  const text = (x: number, y: number, words: string, size: number, colour: string) =>
    `<text x="${x}" y="${y}" fill="${colour}" font-size="${size}"${size > 13 ? ' font-weight="600"' : ""}>${escaped(words)}</text>`;
  const top = GAP + 8 + head.length * HEAD_LINE;
  const parts = panels.filter(({ spec }) => spec.lines.length > 0).map((panel, at): Part => sized(unique(svgOf(panel, ""), at)));
  const columns = parts.length > 1 ? 2 : 1;
  const ends = Array.from({ length: columns }, () => top);
  const body = parts.map((part) => {
    const column = ends.indexOf(Math.min(...ends));
    const y = ends[column] ?? top;
    ends[column] = y + part.height + GAP;
    return placed(part, GAP + column * (COLUMN + GAP), y);
  });
  const left = GAP + columns * (COLUMN + GAP);
  let y = top;
  for (const { title, drawing } of drawings) {
    const part = scaled(drawing, SIDE);
    body.push(text(left, y + 14, title, 14, theme.text), placed(part, left, y + 24));
    y += part.height + 24 + GAP;
  }
  const width = left + (drawings.length > 0 ? SIDE + GAP : 0);
  const height = Math.max(y, ...ends);
  const lines = head.map((words, at) => text(GAP, GAP + 12 + at * HEAD_LINE, words, at === 0 ? 16 : 12, at === 0 ? theme.text : theme.quiet));
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="system-ui, sans-serif"><rect width="100%" height="100%" fill="${theme.panel}"/>${lines.join("")}${body.join("")}</svg>\n`;
}

/** The picture as PNG. */
export function pagePng(picture: PagePicture): Promise<Blob> {
  return bitmap(pageSvg(picture), 1.5);
}

/** Puts a PNG into the clipboard. */
export async function copyPng(picture: PagePicture): Promise<void> {
  if (typeof ClipboardItem === "undefined" || !navigator.clipboard) throw new Error("the browser gives the clipboard to pages at https:// and at localhost only; save the picture as a file");
  await navigator.clipboard.write([new ClipboardItem({ "image/png": pagePng(picture) })]);
}

/** Names in one picture are shared by all its parts. */
function unique(svg: string, part: number): string {
  return svg.replace(/(id="|url\(#)clip/g, `$1part${part}-clip`);
}

function sized(svg: string): Part {
  const [, width = "0", height = "0"] = /^<svg [^>]*?width="(\d+)" height="(\d+)"/.exec(svg) ?? [];
  return { svg, width: Number(width), height: Number(height) };
}

function placed({ svg }: Part, x: number, y: number): string {
  return svg.replace("<svg ", `<svg x="${x}" y="${y}" `);
}

/** A drawing of the page with its colours, which come from the style sheet. */
function scaled(drawing: SVGSVGElement, width: number): Part {
  const copy = drawing.cloneNode(true) as SVGSVGElement;
  const from = [drawing, ...drawing.querySelectorAll<SVGElement>("*")];
  const to = [copy, ...copy.querySelectorAll<SVGElement>("*")];
  from.forEach((element, at) => {
    const style = getComputedStyle(element);
    for (const name of STYLES) to[at]?.setAttribute(name, style.getPropertyValue(name));
    to[at]?.removeAttribute("style");
    to[at]?.removeAttribute("class");
  });
  const { width: wide, height: tall } = drawing.viewBox.baseVal;
  const height = Math.round((tall / (wide || 1)) * width);
  for (const [name, value] of [["width", width], ["height", height]] as const) copy.setAttribute(name, String(value));
  return { svg: new XMLSerializer().serializeToString(copy), width, height };
}

function escaped(words: string): string {
  return words.replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`).replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f]/g, " ");
}
