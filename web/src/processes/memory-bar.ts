// The memory of a process as a bar: a part for each node, as long as its share.

import { h } from "../elements";
import { lineColour } from "../panels/palette";
import { format } from "../units";

export class MemoryBar {
  private readonly bar = h("i");
  readonly element = h("span", { class: "memory-bar" }, this.bar);
  private shown = "";

  /** `memory`: position and bytes of each node; `largest`: the memory that fills the bar. */
  show(memory: [number, number][], nodes: number[], largest: number, dark: boolean): void {
    const total = memory.reduce((sum, [, bytes]) => sum + bytes, 0);
    const colours = Math.max(0, ...nodes) + 1;
    let at = 0;
    const stops = memory.map(([position, bytes]) => {
      const from = at;
      at += (100 * bytes) / (total || 1);
      return `${lineColour(nodes[position] ?? position, colours, dark)} ${from.toFixed(1)}% ${at.toFixed(1)}%`;
    });
    const width = `${Math.max(total > 0 ? 2 : 0, Math.round((100 * total) / (largest || 1)))}%`;
    const text = width + stops.join();
    if (text === this.shown) return;
    this.shown = text;
    this.bar.style.width = width;
    this.bar.style.background = stops.length > 0 ? `linear-gradient(to right, ${stops.join(", ")})` : "none";
  }
}

/** The nodes with most memory, in words. */
export function memoryText(memory: [number, number][], nodes: number[]): string {
  const largest = [...memory].sort(([, a], [, b]) => b - a);
  const words = largest.slice(0, 6).map(([position, bytes]) => `node ${nodes[position] ?? position}: ${format(bytes, "bytes")}`);
  return words.join(", ") + (largest.length > 6 ? `, and ${largest.length - 6} more nodes` : "");
}
