// What charts of every kind do with their plot.

import type uPlot from "uplot";

export abstract class PlotView {
  abstract readonly plot: uPlot;

  constructor(protected readonly host: HTMLElement) {}

  /** Moves the cursor without emitting an event. */
  pointAt(ms: number | null): void {
    const left = ms === null ? -10 : this.plot.valToPos(ms, "x");
    this.plot.setCursor({ left, top: ms === null ? -10 : 10 }, false);
  }

  /** Fits the size of its container. */
  fit(): void {
    const { clientWidth: width, clientHeight: height } = this.host;
    if (width > 0 && (width !== this.plot.width || height !== this.plot.height)) this.plot.setSize({ width, height });
  }

  destroy(): void {
    this.plot.destroy();
    this.host.replaceChildren();
  }
}
