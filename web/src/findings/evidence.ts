// Which panels show a number that somebody names: that of a finding, or of a comparison.

import type { PanelSpec } from "../panels/lines";
import type { Catalog, Series } from "../series";
import type { EvidenceInfo, FindingInfo } from "../wire-findings";

/** More panels would hide each other. */
const MAX_PANELS = 3;
/** More metrics in one panel would hide each other. */
const MAX_INPUTS = 4;

/** The panels with its series: those that are open already, or new ones. Empty: the source does not have the series. */
export function panelIds(finding: FindingInfo, catalog: Catalog, open: readonly PanelSpec[]): string[] {
  const ids = finding.evidence.map((one) => panelId(one.series, catalog, open) ?? ofInputs(one, catalog)).filter((id) => id !== null);
  return [...new Set(ids)].slice(0, MAX_PANELS);
}

/** The panel with a series, as `remote_time_share@node2`: one that is open already, or a new one; null if the source does not have it. */
export function panelId(name: string, catalog: Catalog, open: readonly PanelSpec[]): string | null {
  const series = seriesOf(name, catalog);
  if (series.length === 0) return null;
  const numbers = new Set(series.map(({ number }) => number));
  const shown = open.find(({ lines }) => lines.some((line) => numbers.has(line.series.number)));
  return shown?.id ?? `m:${name}`;
}

/** A number that is no series of the source is shown by the metrics that it is computed from. */
function ofInputs({ inputs }: EvidenceInfo, catalog: Catalog): string | null {
  const there = inputs.filter((name) => seriesOf(name, catalog).length > 0).slice(0, MAX_INPUTS);
  return there.length > 0 ? `m:${there.join("+")}` : null;
}

/** `remote_time_share@node2` is one series; `remote_time_share` is that of the machine, or all if there is none. */
function seriesOf(name: string, catalog: Catalog): Series[] {
  const at = name.lastIndexOf("@");
  if (at > 0) {
    const one = catalog.at(name.slice(0, at), name.slice(at + 1));
    return one ? [one] : [];
  }
  const machine = catalog.at(name, "");
  return machine ? [machine] : (catalog.entry(name)?.series ?? []);
}
