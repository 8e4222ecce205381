// The texts that charts have on their canvas: labels of axes.

import type { BrowserContextOptions, Page } from "playwright-core";
import { Client } from "./browser";

/** A text as it was drawn last, in CSS pixels of its canvas. */
export interface DrawnText {
  text: string;
  x: number;
  y: number;
  /** From its left to its right edge. */
  left: number;
  right: number;
  colour: string;
}

declare global {
  interface HTMLCanvasElement {
    drawnTexts?: DrawnText[];
  }
}

/** Notes the texts of each drawing. */
function watch(): void {
  const { fillText, clearRect } = CanvasRenderingContext2D.prototype;
  CanvasRenderingContext2D.prototype.clearRect = function (...box) {
    this.canvas.drawnTexts = [];
    clearRect.apply(this, box);
  };
  CanvasRenderingContext2D.prototype.fillText = function (text, x, y, ...more) {
    const ratio = devicePixelRatio;
    const width = this.measureText(text).width;
    const left = this.textAlign === "center" ? x - width / 2 : this.textAlign === "right" ? x - width : x;
    (this.canvas.drawnTexts ??= []).push({ text, x: x / ratio, y: y / ratio, left: left / ratio, right: (left + width) / ratio, colour: String(this.fillStyle) });
    fillText.call(this, text, x, y, ...more);
  };
}

/** Opens an address and notes all texts on canvases. */
export function openWatched(url: string, options: BrowserContextOptions = {}): Promise<Client> {
  return Client.open(url, { ...options, script: watch });
}

/** The texts on the first chart of a panel, and its size. */
export function textsOf(page: Page, panel: string): Promise<{ texts: DrawnText[]; width: number; height: number }> {
  return page.evaluate((id) => {
    const canvas = document.querySelector<HTMLCanvasElement>(`[data-panel="${id}"] canvas`);
    return { texts: canvas?.drawnTexts ?? [], width: canvas?.clientWidth ?? 0, height: canvas?.clientHeight ?? 0 };
  }, panel);
}
