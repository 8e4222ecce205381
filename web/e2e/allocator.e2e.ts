// The panel of a program's allocator: shown with values for a program that has libnumalloc, and not for others.

import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { test } from "node:test";
import { Client } from "./infra/browser";
import { Numa, program } from "./infra/numa";
import { Panel } from "./infra/panel";
import { until } from "./infra/until";

/** Allocates 8 MiB, and 88 more once there is a file 'grow', as long as the process of its first argument runs. */
const STEPS = "import os, sys, time\nblocks = []\nwhile os.path.exists('/proc/' + sys.argv[1]):\n    if len(blocks) < (12 if os.path.exists('grow') else 1):\n        blocks.append(bytearray(b'x' * (8 << 20)))\n    time.sleep(0.1)";

/** numa, which observes the program, with or without the library, and a page. */
async function opened(alloc: string): Promise<{ numa: Numa; client: Client; panel: Panel }> {
  const run = `exec "$0" run -c 1 --busy off --alloc ${alloc} -- python3 -c "$1" $PPID`;
  const command = ["sh", "-c", run, program(), STEPS];
  const numa = await Numa.start({ args: ["-i", "100ms"], command });
  const client = await Client.open(numa.controller);
  return { numa, client, panel: new Panel(client, "allocator") };
}

/** What the legend has for the first node, in MiB; 0 without a value. */
async function mebibytes(panel: Panel): Promise<number> {
  const [number, unit] = ((await panel.legend())[0]?.value ?? "").split(/\s/);
  return unit?.startsWith("M") ? Number(number) : 0;
}

test("the local bytes of each node are drawn for a program with the library", async () => {
  const { numa, panel } = await opened("numa");
  await until("the panel", () => panel.element.isVisible());
  assert.match((await panel.element.textContent()) ?? "", /Allocator: local bytes per node/);
  const early = await until("memory", async () => (await mebibytes(panel)) || null);
  await writeFile(numa.file("grow"), "");
  const late = await until("all memory", async () => { const now = await mebibytes(panel); return now >= 96 && now; });
  assert.ok(early < 80 && late < 160, `${early}, then ${late}`);
});

test("there is no such panel for a program without the library", async () => {
  const { numa, client, panel } = await opened("none");
  const observed = new Panel(client, "tasks");
  await writeFile(numa.file("grow"), "");
  await until("the memory of the program", async () => (await mebibytes(observed)) >= 96);
  assert.equal(await panel.element.isVisible(), false);
});
