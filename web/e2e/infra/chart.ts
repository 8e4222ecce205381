// What charts show. This is the only module that reads private state of the page; everything else
// reads the document.

import type { Client } from "./browser";
import { until } from "./until";

/** A line of a chart: its visible values in shown units. */
export interface ShownLine {
  name: string;
  times: number[];
  values: number[];
  /** Which axis it belongs to. */
  scale: string;
}

export interface ShownChart {
  /** The time axis, in ms. */
  from: number;
  to: number;
  /** The cursor in ms; null without one. */
  cursor: number | null;
  lines: ShownLine[];
}

/** The charts of a panel. */
export function charts(client: Client, panel: string): Promise<ShownChart[]> {
  return client.page.evaluate((id) => {
    const board = window.numakit?.["screen"]?.["board"];
    const found = board?.list.find((one) => one.spec.id === id);
    if (!found) return [];
    const slice = found["slice"];
    return found["charts"].map((chart) => {
      const { plot } = chart;
      const { min: from = NaN, max: to = NaN } = plot.scales.x ?? {};
      const left = plot.cursor.left ?? -10;
      const inside = [...(slice?.x ?? [])].flatMap((time, row) => ((time as number) >= (from ?? 0) && (time as number) <= (to ?? 0) ? [row] : []));
      return {
        from: from ?? NaN,
        to: to ?? NaN,
        cursor: left < 0 ? null : plot.posToVal(left, "x"),
        lines: chart.lines.map((line, at) => ({
          name: line.label,
          scale: plot.series[at + 1]?.scale ?? "",
          times: inside.map((row) => slice?.x[row] ?? NaN),
          values: inside.map((row) => line.offset + line.factor * (slice?.track(line.series.number)?.mean[row] ?? NaN)),
        })),
      };
    });
  }, panel);
}

/** Waits until a panel shows all live samples that the page has received: a page that needs long to draw does it seldom. */
export async function caughtUp(client: Client, panel: string): Promise<void> {
  await until("all received samples on screen", async () => {
    const received = await client.page.evaluate(() => window.numakit?.["screen"]?.["timeline"]["grid"]?.end ?? NaN);
    return (await charts(client, panel))[0]?.to === received;
  });
}

/** Freezes what a page shows, or a part of it from one time to another, and waits for its data in more detail. */
export async function freeze(client: Client, part?: [number, number]): Promise<void> {
  const before = await client.page.evaluateHandle((part) => {
    const timeline = window.numakit?.["screen"]?.["timeline"];
    if (part) timeline?.showRange(...part);
    else document.querySelector<HTMLElement>("header.top .primary")?.click();
    return timeline?.slice;
  }, part);
  await until("frozen data", () => before.evaluate((slice) => window.numakit?.["screen"]?.["timeline"].slice !== slice));
}

/** The range on the time axis of a panel's first chart. */
export async function range(client: Client, panel: string): Promise<[number, number]> {
  const [chart] = await charts(client, panel);
  if (!chart) throw new Error(`there is no chart in '${panel}'`);
  return [chart.from, chart.to];
}

/** For each time, whether every visible chart has a vertical line in the accent colour there. */
export function drawnMarks(client: Client, panel: string, times: number[]): Promise<boolean[]> {
  return client.page.evaluate(([id, times]) => {
    const board = window.numakit?.["screen"]?.["board"];
    const found = board?.list.find((one) => one.spec.id === id);
    const accent = getComputedStyle(document.documentElement).getPropertyValue("--accent").trim();
    const wanted = [1, 3, 5].map((at) => parseInt(accent.slice(at, at + 2), 16));
    const marked = (canvas: HTMLCanvasElement, x: number, top: number, height: number) => {
      const pixels = canvas.getContext("2d")?.getImageData(Math.round(x) - 1, top, 4, height).data ?? [];
      let same = 0;
      for (let row = 0; row < height; row++) {
        const near = [0, 1, 2, 3].some((column) => wanted.every((value, part) => Math.abs((pixels[(row * 4 + column) * 4 + part] ?? -99) - value) < 40));
        if (near) same++;
      }
      return same > height * 0.3;
    };
    return times.map((time) => found !== undefined && found["charts"].every(({ plot }) =>
      marked(plot.ctx.canvas, plot.valToPos(time, "x", true), Math.round(plot.bbox.top), Math.round(plot.bbox.height))));
  }, [panel, times] as const);
}

/** Whether a panel's first chart has something drawn at a time and a value. */
export function drawnAt(client: Client, panel: string, ms: number, value: number): Promise<boolean> {
  return client.page.evaluate(([id, ms, value]) => {
    const board = window.numakit?.["screen"]?.["board"];
    const plot = board?.list.find((one) => one.spec.id === id)?.["charts"][0]?.plot;
    if (!plot) return false;
    const scale = plot.series[1]?.scale ?? "y";
    const [x, y] = [plot.valToPos(ms, "x", true), plot.valToPos(value, scale, true)];
    const pixels = plot.ctx.getImageData(Math.round(x) - 3, Math.round(y), 7, 1).data;
    return pixels.some((alpha, at) => at % 4 === 3 && alpha > 90);
  }, [panel, ms, value] as const);
}
