// Sends frames as fast as the page takes them: `node dist-bench/heap.js [FRAMES]`. Prints the heap
// size after a tenth of the frames and after all of them.

import { closeBrowser } from "../e2e/infra/browser";
import { stream } from "../e2e/infra/heap";
import { print } from "./stopwatch";

const frames = Number(process.argv[2] ?? 3_600_000);
const { early, late, taken, seconds } = await stream(frames);
print({ frames: taken, heap_early_mib: early, heap_late_mib: late, heap_growth: late / early, frames_per_second: taken / seconds });
await closeBrowser();
process.exit(0);
