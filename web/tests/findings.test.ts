import assert from "node:assert/strict";
import { test } from "node:test";
import { foundIn } from "../dev/findings";
import { sourceInfo } from "../dev/machine";
import { Asking, LIVE_PAUSE_MS, SETTLED_MS } from "../src/findings/asking";
import { panelIds } from "../src/findings/evidence";
import { actionWords, costOf, costWords, foldedOf, isCommand, lineOf, rangeOf, stateOf, whenOf } from "../src/findings/words";
import { defaultPanels } from "../src/panels/lines";
import { Catalog } from "../src/series";
import type { FindingInfo } from "../src/wire-findings";

/** A clock that moves on demand, and an asker whose requests are noted. */
function asker() {
  let [now, last] = [0, 0];
  const timers = new Map<number, { at: number; run: () => void }>();
  const sent: [number, number][] = [];
  let open = true;
  const asking = new Asking((from, to) => (open ? sent.push([from, to]) : null), {
    now: () => now,
    start: (run, ms) => {
      timers.set(++last, { at: now + ms, run });
      return last;
    },
    stop: (timer) => void timers.delete(timer),
  });
  const pass = (ms: number) => {
    const end = now + ms;
    for (;;) {
      const [next] = [...timers].filter(([, { at }]) => at <= end).sort((a, b) => a[1].at - b[1].at);
      if (!next) break;
      timers.delete(next[0]);
      now = Math.max(now, next[1].at);
      next[1].run();
    }
    now = end;
  };
  return { asking, sent, pass, connect: (on: boolean) => (open = on) };
}

test("findings of a range are requested once it has settled", () => {
  const { asking, sent, pass } = asker();
  for (let at = 0; at < 10; at++) {
    asking.want(at, at + 100, false);
    pass(SETTLED_MS / 2);
  }
  assert.deepEqual(sent, []);
  // Drawings of the same range do not delay it.
  for (let at = 0; at < 10; at++) {
    asking.want(9, 109, false);
    pass(SETTLED_MS / 9);
  }
  assert.deepEqual(sent, [[9, 109]]);
  asking.ended(1);
  asking.want(9, 109, false);
  pass(60_000);
  assert.equal(sent.length, 1, "the range is still the same");
});

test("while the range moves with live data there is a request every two seconds, and never two at once", () => {
  const { asking, sent, pass } = asker();
  const draw = (seconds: number) => {
    for (let at = 0; at < seconds * 10; at++) {
      asking.want(at, at + 100, true);
      pass(100);
    }
  };
  draw(1);
  assert.equal(sent.length, 1);
  draw(10);
  assert.equal(sent.length, 1, "the first one was not answered");
  assert.ok(!asking.ended(99), "an answer to another request");
  assert.ok(asking.ended(1));
  draw(1);
  assert.equal(sent.length, 2);
  asking.ended(2);
  draw((2 * LIVE_PAUSE_MS) / 1000 - 1);
  assert.equal(sent.length, 3);
});

test("a range that moved while a request was answered is requested next, also after the connection was lost", () => {
  const { asking, sent, pass, connect } = asker();
  asking.want(0, 10, false);
  pass(SETTLED_MS);
  asking.want(5, 10, false);
  pass(10 * SETTLED_MS);
  assert.deepEqual(sent, [[0, 10]]);
  asking.ended(1);
  pass(SETTLED_MS);
  assert.deepEqual(sent, [[0, 10], [5, 10]]);
  connect(false);
  asking.restart();
  pass(SETTLED_MS);
  connect(true);
  asking.restart();
  pass(SETTLED_MS);
  assert.deepEqual(sent, [[0, 10], [5, 10], [5, 10]]);
});

const SECOND = 1e9;
const found = foundIn({ nodes: 4 }, 100 * SECOND, 160 * SECOND);
const [far, faults, threads] = found.problems as [FindingInfo, FindingInfo, FindingInfo];

test("the strip tells a problem of the program, one of others, none, and too little to tell", () => {
  const fine = foundIn({ nodes: 4, fine: true }, 0, SECOND);
  assert.deepEqual([found, fine, { ...found, verdict: fine.verdict }, { ...fine, verdict: "This range is too short to tell anything" }].map(stateOf), ["bad", "good", "aside", "unknown"]);
});

test("a line has the cost, the time within the range, and what the verdict does not say", () => {
  assert.deepEqual([far, faults, threads, { ...faults, cost: "little" }].map(costOf), ["18.6 %", "6.1 %", "cost unknown", "6.10 %"]);
  assert.deepEqual([costWords(far.cost), costWords("none; not known: remote memory")], ["costs 18.6 % of the CPU time (15.2 % to 22.1 %)", "cost: none; not known: remote memory"]);
  assert.match(whenOf(far, found), /^since \d\d:\d\d:\d\d$/);
  assert.match(whenOf(faults, found), /^\d\d:\d\d:\d\d to \d\d:\d\d:\d\d$/);
  assert.equal(whenOf(threads, found), "all the time");
  assert.equal(lineOf(far, found), "31.4 % of the time at memory is remote");
  assert.equal(lineOf(faults, found), faults.says);
  assert.deepEqual(foldedOf(found), ["2 more", "2 cannot be told"]);
  assert.deepEqual(foldedOf({ ...found, problems: [], remarks: [far], untold: [] }), ["1 remark"]);
});

test("an action is a command only if a finding has it", () => {
  assert.ok(isCommand(found.action, found));
  assert.ok(!isCommand("numa record COMMAND tells about one program", found));
  assert.deepEqual(["nothing", "numa record COMMAND tells about one program"].map(actionWords), ["nothing to do", "numa record COMMAND tells about one program"]);
});

test("a finding is shown with some time around it, within the range that was judged", () => {
  assert.deepEqual(rangeOf(threads, found), [100_000, 160_000]);
  const [from, to] = rangeOf(faults, found);
  assert.ok(from > 100_000 && from < 106_000 && to > 136_000 && to < 160_000);
  const moment = { ...faults, since_ns: 120 * SECOND, until_ns: 120 * SECOND };
  assert.deepEqual(rangeOf(moment, found), [119_500, 120_500]);
});

test("evidence is shown by open panels, else by new ones; unknown series by none", () => {
  const catalog = new Catalog(sourceInfo(4, 0));
  const open = defaultPanels(catalog);
  assert.deepEqual(panelIds(far, catalog, open), ["locality", "links"]);
  assert.deepEqual(panelIds(far, catalog, []), ["m:locality@node1", "m:link_util"]);
  const of = (...series: string[]) => ({ ...far, evidence: series.map((one) => ({ series: one, inputs: [], says: "" })) });
  assert.deepEqual(panelIds(of("no.such", "idle@node9", "vmstat.nr_written"), catalog, open), ["m:vmstat.nr_written"]);
  assert.equal(panelIds(of("vmstat.pgfree", "vmstat.nr_written", "vmstat.nr_dirtied", "vmstat.compact_stall"), catalog, open).length, 3);
});

test("a number that is no series of the source is shown by what it is computed from", () => {
  const catalog = new Catalog(sourceInfo(4, 0));
  const [far] = foundIn({ nodes: 4, port: 0 }, 0, 60e9).problems;
  const of = (series: string, inputs: string[]): FindingInfo => ({ ...(far as FindingInfo), evidence: [{ series, inputs, says: "" }] });
  const ids = (series: string, inputs: string[]) => panelIds(of(series, inputs), catalog, defaultPanels(catalog));
  assert.deepEqual(ids("interrupts@cpu3", ["cpu.idle@cpu3", "cpu.nothing@cpu3"]), ["m:cpu.idle@cpu3"]);
  assert.deepEqual(ids("card_wait@card1", ["cpu.idle@cpu0", "cpu.idle@cpu1", "cpu.idle@cpu2", "cpu.idle@cpu3", "cpu.idle@cpu4"]), ["m:cpu.idle@cpu0+cpu.idle@cpu1+cpu.idle@cpu2+cpu.idle@cpu3"]);
  assert.deepEqual(ids("locality@node1", ["cpu.idle@cpu0"]), ["locality"], "its own series is better");
  assert.deepEqual(ids("card_wait@card1", []), []);
});

test("the range of a finding has samples enough to see it", () => {
  const [far] = foundIn({ nodes: 4, port: 0 }, 0, 60e9).problems;
  const found = foundIn({ nodes: 4, port: 0 }, 0, 60e9);
  const short = { ...(far as FindingInfo), since_ns: 30e9, until_ns: 30e9 };
  const length = ([from, to]: [number, number]) => Math.round(to - from);
  assert.equal(length(rangeOf(short, found)), 1000);
  assert.equal(length(rangeOf(short, found, 1e9)), 10_000);
});
