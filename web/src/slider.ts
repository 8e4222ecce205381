// The whole history as a small chart, with the visible range as a window that can be moved and resized.

import { h } from "./elements";
import { currentTheme } from "./panels/palette";
import type { Mark } from "./panels/marks";
import type { Slice } from "./store";
import { clock, day, moment, span, timesOf, zoneName } from "./units";

export interface SliderEvents {
  show(from: number, to: number): void;
  zoom(factor: number, around: number): void;
}

type Grip = "move" | "from" | "to" | "new";

export class Slider {
  readonly element: HTMLElement;
  private readonly canvas = h("canvas", {});
  private readonly window = h("div", { class: "window", tabindex: "0", role: "slider", "aria-label": "Time range" },
    h("i", { class: "grip from" }), h("i", { class: "grip to" }));
  private readonly left = h("span", { class: "edge left" });
  private readonly right = h("span", { class: "edge right" });
  private limits: [number, number] = [0, 1];
  private range: [number, number] = [0, 1];
  private drag: { grip: Grip; at: number; range: [number, number] } | null = null;

  private painted: { slice: Slice; marks: Mark[]; series: number[]; low: number; high: number } | null = null;
  private width = 1;
  /** Paints what was shown last. */
  private again: () => void = () => undefined;

  constructor(private readonly events: SliderEvents) {
    this.element = h("section", { class: "slider", "aria-label": "History" }, this.canvas, this.window, this.left, this.right);
    new ResizeObserver(() => {
      this.width = this.element.clientWidth;
      this.repaint();
      this.again();
    }).observe(this.element);
    this.element.addEventListener("pointerdown", (event) => this.begin(event));
    this.element.addEventListener("pointermove", (event) => this.move(event));
    for (const name of ["pointerup", "pointercancel"] as const) this.element.addEventListener(name, () => (this.drag = null));
    this.element.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.events.zoom(Math.exp(event.deltaY * 0.0025), this.timeAt(event.clientX));
    }, { passive: false });
  }

  /** Draws a slice of the whole history, the visible range, and the labels. */
  show(slice: Slice, series: number[], limits: [number, number], range: [number, number], marks: Mark[]): void {
    this.limits = limits;
    this.range = range;
    this.place();
    if (this.paintedAlready(slice, series, marks)) return;
    this.again = () => this.paint(slice, series, marks);
    this.again();
  }

  /** Paints in any case when it is shown next: the theme changed. */
  repaint(): void {
    this.painted = null;
  }

  /** Whether painting again would move nothing by half a pixel: it costs milliseconds, and the range moves ten times a second. */
  private paintedAlready(slice: Slice, series: number[], marks: Mark[]): boolean {
    const [low, high] = this.limits;
    const half = (high - low) / (2 * Math.max(1, this.width));
    const { painted } = this;
    const same = painted?.slice === slice && painted.marks === marks && painted.series === series && Math.abs(painted.low - low) < half && Math.abs(painted.high - high) < half;
    if (!same) this.painted = { slice, marks, series, low, high };
    return same;
  }

  private place(): void {
    const [low, high] = this.limits;
    const share = (time: number) => Math.max(0, Math.min(1, (time - low) / (high - low || 1)));
    const [from, to] = [share(this.range[0]), share(this.range[1])];
    this.window.style.left = `${from * 100}%`;
    this.window.style.width = `max(6px, ${(to - from) * 100}%)`;
    this.left.textContent = `${day(low)} ${clock(low)}`;
    this.right.textContent = day(low) === day(high) ? `${clock(high)} ${zoneName()}` : moment(high);
    const text = `${timesOf(...this.range)}, ${span(this.range[1] - this.range[0])}`;
    this.window.title = text;
    this.window.setAttribute("aria-valuetext", text);
    this.window.setAttribute("aria-valuenow", String(Math.round(from * 100)));
  }

  private paint(slice: Slice, series: number[], marks: Mark[]): void {
    const ratio = devicePixelRatio || 1;
    const [width, height] = [this.element.clientWidth * ratio, this.element.clientHeight * ratio];
    if (this.canvas.width !== width || this.canvas.height !== height) Object.assign(this.canvas, { width, height });
    const context = this.canvas.getContext("2d");
    if (!context) return;
    context.clearRect(0, 0, width, height);
    const [low, high] = this.limits;
    const theme = currentTheme();
    const x = (time: number) => ((time - low) / (high - low || 1)) * width;
    const tracks = series.map((number) => slice.track(number)).filter((track) => track !== undefined);
    const top = Math.max(1e-9, ...tracks.map((track) => usualTop(track.max)));
    context.fillStyle = theme.quiet;
    const wide = Math.max(1, x(low + slice.stepMs) - 0.2);
    for (let row = 0; row < slice.x.length; row++) {
      const at = x((slice.x[row] as number) - slice.stepMs / 2);
      for (const part of ["max", "mean"] as const) {
        const most = Math.max(...tracks.map((track) => track[part][row] || 0));
        const tall = Math.min(1, most / top) * height * 0.92;
        context.globalAlpha = part === "max" ? 0.3 : 0.45;
        if (tall > 0) context.fillRect(at, height - tall, wide, tall);
      }
    }
    context.globalAlpha = 1;
    context.fillStyle = theme.accent;
    for (const mark of marks) context.fillRect(Math.round(x(mark.time)), 0, ratio, height);
  }

  private timeAt(clientX: number): number {
    const box = this.element.getBoundingClientRect();
    const [low, high] = this.limits;
    return low + ((clientX - box.left) / box.width) * (high - low);
  }

  private begin(event: PointerEvent): void {
    const target = event.target as HTMLElement;
    const grip: Grip = target.classList.contains("from") ? "from" : target.classList.contains("to") ? "to" : this.window.contains(target) ? "move" : "new";
    const at = this.timeAt(event.clientX);
    if (grip === "new") {
      const half = (this.range[1] - this.range[0]) / 2;
      this.events.show(at - half, at + half);
      this.drag = { grip: "move", at, range: [at - half, at + half] };
    } else this.drag = { grip, at, range: [...this.range] };
    this.element.setPointerCapture(event.pointerId);
  }

  private move(event: PointerEvent): void {
    if (!this.drag) return;
    const by = this.timeAt(event.clientX) - this.drag.at;
    const [from, to] = this.drag.range;
    const { grip } = this.drag;
    const range: [number, number] = [grip === "to" ? from : from + by, grip === "from" ? to : to + by];
    if (range[1] - range[0] > 1) this.events.show(...range);
  }
}

/** A height that shows all but the rarest spikes in full. */
function usualTop(values: Float64Array): number {
  const measured = values.filter((value) => value > 0).sort();
  return (measured[Math.floor(measured.length * 0.97)] ?? 0) * 1.5;
}
