// Which memory the threads of each node use: time or pages over the visible range, and distances.

import assert from "node:assert/strict";
import { join } from "node:path";
import { Client } from "./infra/browser";
import { temporary } from "./infra/ending";
import { Numa } from "./infra/numa";
import { Panel } from "./infra/panel";
import { writePairs } from "./infra/recording";
import { thorough } from "./infra/thorough";
import { becomes, until } from "./infra/until";

const NODES = [0, 2, 4, 6];
/** A quarter of all in each cell of the first column, or on the diagonal. */
const FAR = NODES.map(() => ["25", "0", "0", "0"]);
const NEAR = NODES.map((_, row) => NODES.map((__, column) => (row === column ? "25" : "0")));
const DISTANCES = NODES.map((_, row) => NODES.map((__, column) => (row === column ? "10" : "21")));

const CASES = {
  time: {
    button: "Memory time", panel: "far", other: "remote-pages",
    // Four nodes of half a CPU each, for nine seconds: 90 samples.
    whole: /^% of 18(\.0)? s at memory; rows: CPUs, columns: memory$/,
    title: /^threads on node 4 waited 4\.50 s for memory of node 0: 100 % of their time at memory, between 9[67] % and 100 %$/,
  },
  pages: {
    button: "Pages in use", panel: "remote-pages", other: "far",
    whole: /^% of 10\.8k pages; rows: CPUs, columns: memory$/,
    title: /^threads on node 4 used 2\.70k pages of node 0: 100 % of their pages$/,
  },
};

for (const [kind, why] of [["time", null], ["pages", "time says the same"]] as const) {
  const { button, panel, other, whole, title } = CASES[kind];
  let numa: Numa;
  let one: Client;
  let started: number;
  const view = () => one.page.getByRole("region", { name: "Nodes", exact: true });
  const cells = async () => {
    const drawn = await view().locator("svg text.cell").allTextContents();
    return NODES.map((_, row) => drawn.slice(row * NODES.length, (row + 1) * NODES.length));
  };
  const heard = async () => {
    const all = await view().locator("table td").allTextContents();
    return NODES.map((_, row) => all.slice(row * NODES.length, (row + 1) * NODES.length));
  };
  const show = (from: number, to: number, more = "") => one.visit(`${numa.origin}/#from=${started + from}&to=${started + to}${more}`);
  const pressed = () => view().locator('button[aria-pressed="true"]').allTextContents();

  thorough(`a recording with ${kind}: its cells are shares of the visible range`, why, async () => {
    const path = join(await temporary("pairs"), "pairs.arrows");
    started = await writePairs(path, kind);
    numa = await Numa.start({ verb: "show", args: [path] });
    one = await Client.open(numa.controller);
    await show(550, 9550);
    await becomes("all memory on node 0", cells, FAR);
    assert.deepEqual(await heard(), FAR);
    assert.deepEqual(await pressed(), [button]);
    assert.match((await view().locator("footer span").first().textContent()) ?? "", whole);
    const titles = await view().locator("rect:not(.bar-back) > title").allTextContents();
    assert.match(titles[2 * NODES.length] ?? "", title);
    await show(10_550, 19_550);
    await becomes("each node uses its own memory", cells, NEAR);
  });

  thorough(`a recording with ${kind}: the panel over time has the far share of each node, and its kind only`, why, async () => {
    await show(550, 9550);
    const legend = await until("the panel", async () => {
      const legend = await new Panel(one, panel).legend();
      return legend.length > 0 ? legend : null;
    });
    assert.deepEqual(legend.map((line) => line.name), NODES.map((node) => `node ${node}`));
    assert.equal(await new Panel(one, other).count, 0);
  });

  thorough(`a recording with ${kind}: distances are a click away, and the address keeps the choice`, why, async () => {
    await show(550, 9550);
    await becomes("use", cells, FAR);
    await view().getByRole("button", { name: "Distances" }).click();
    await becomes("distances", cells, DISTANCES);
    assert.deepEqual([await heard(), await pressed()], [DISTANCES, ["Distances"]]);
    await until("the address", async () => one.page.url().includes("nodes=distances"));
    await one.visit(one.page.url());
    await becomes("distances again", cells, DISTANCES);
    await view().getByRole("button", { name: button }).click();
    await becomes("use again", cells, FAR);
    await until("the address", async () => !one.page.url().includes("nodes="));
  });

  thorough(`a recording with ${kind}: without samples in the range it says so, and shows no zeros`, why, async () => {
    await show(-60_000, -50_000);
    await until("no use", async () => /^no .* in this range$/.test((await view().locator("footer span").first().textContent()) ?? ""));
    assert.deepEqual(await cells(), NODES.map(() => NODES.map(() => "–")));
  });
}
