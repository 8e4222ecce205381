// Memory of a page while it receives buckets.

import { Client } from "./browser";
import { atEnd } from "./ending";
import { Flood } from "./flood";
import { charts } from "./chart";
import { until } from "./until";

export interface Kept {
  /** MiB after a tenth of the frames and after all of them, without garbage. */
  early: number;
  late: number;
  /** Frames that the page received. */
  taken: number;
  seconds: number;
}

/** Streams that number of frames into a page, which must then be responsive and up to date. */
export async function stream(frames: number): Promise<Kept> {
  const flood = atEnd(await Flood.start());
  const one = await Client.open(flood.url, { ready: false });
  try {
    await one.page.evaluate(() => {
      const page = window.numakit;
      if (!page) return;
      const take = page.frame.bind(page);
      const counted = Object.assign(window, { taken: 0 });
      page.frame = (frame) => {
        counted.taken++;
        take(frame);
      };
    });
    const taken = () => one.page.evaluate(() => (window as unknown as { taken: number }).taken);
    const cdp = await one.cdp();
    const kept = async () => {
      await until("all frames taken", async () => (await taken()) === flood.sent, 120_000);
      await until("the newest on screen", async () => Math.abs(((await charts(one, "faults"))[0]?.to ?? 0) - flood.newest) < 1);
      await cdp.send("HeapProfiler.collectGarbage");
      const usage = (await cdp.send("Runtime.getHeapUsage")) as { usedSize: number; backingStorageSize?: number };
      return (usage.usedSize + (usage.backingStorageSize ?? 0)) / 2 ** 20;
    };
    const begin = performance.now();
    await flood.send(frames / 10);
    const early = await kept();
    await flood.send(frames - flood.sent);
    const late = await kept();
    const result = { early, late, taken: await taken(), seconds: (performance.now() - begin) / 1000 };
    await one.close();
    return result;
  } finally {
    await one.context.close();
    await flood.close();
  }
}
