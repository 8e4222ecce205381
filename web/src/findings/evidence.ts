// Which panels show the numbers of a finding.

import type { PanelSpec } from "../panels/lines";
import type { Catalog, Series } from "../series";
import type { FindingInfo } from "../wire-findings";

/** More panels would hide each other. */
const MAX_PANELS = 3;

/** The panels with its series: those that are open already, or new ones. Empty: the source does not have the series. */
export function panelIds(finding: FindingInfo, catalog: Catalog, open: readonly PanelSpec[]): string[] {
  const ids = finding.evidence.map(({ series }) => panelId(series, catalog, open)).filter((id) => id !== null);
  return [...new Set(ids)].slice(0, MAX_PANELS);
}

function panelId(name: string, catalog: Catalog, open: readonly PanelSpec[]): string | null {
  const series = seriesOf(name, catalog);
  if (series.length === 0) return null;
  const numbers = new Set(series.map(({ number }) => number));
  const shown = open.find(({ lines }) => lines.some((line) => numbers.has(line.series.number)));
  return shown?.id ?? `m:${name}`;
}

/** `far_share@node2` is one series; `far_share` is that of the machine, or all if there is none. */
function seriesOf(name: string, catalog: Catalog): Series[] {
  const at = name.lastIndexOf("@");
  if (at > 0) {
    const one = catalog.at(name.slice(0, at), name.slice(at + 1));
    return one ? [one] : [];
  }
  const machine = catalog.at(name, "");
  return machine ? [machine] : (catalog.entry(name)?.series ?? []);
}
