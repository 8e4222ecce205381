// Writes the dashboards of panels.mjs as Grafana takes them, one file each.

import { writeFileSync } from "node:fs";
import {
  DashboardBuilder, DatasourceVariableBuilder, QueryVariableBuilder, RowBuilder, VariableRefresh,
} from "@grafana/grafana-foundation-sdk/dashboard";
import { DataqueryBuilder } from "@grafana/grafana-foundation-sdk/prometheus";
import { PanelBuilder } from "@grafana/grafana-foundation-sdk/timeseries";
import { DASHBOARDS } from "./panels.mjs";

const SOURCE = { type: "prometheus", uid: "${source}" };
const SELECTORS = {
  several: 'instance=~"$host"',
  one: 'instance="$host"',
  two: 'instance=~"$host|$other"',
};
/// Three beside each other, of the 24 columns of a page.
const WIDTH = 8;
const HEIGHT = 8;

const hosts = (name, label, isSeveral) =>
  new QueryVariableBuilder(name).label(label).datasource(SOURCE)
    .query("label_values(numakit_build_info, instance)").refresh(VariableRefresh.OnTimeRangeChanged)
    .multi(isSeveral).includeAll(isSeveral);

function panel({ title, about, unit, queries }, selector) {
  const built = new PanelBuilder().title(title).description(about).unit(unit).min(0).datasource(SOURCE).span(WIDTH).height(HEIGHT);
  for (const { query, legend } of queries) {
    const expr = query.replaceAll("HOST", selector).replaceAll("[5m]", "[$__rate_interval]");
    built.withTarget(new DataqueryBuilder().expr(expr).legendFormat(legend));
  }
  return built;
}

function dashboard({ name, title, hosts: kind, hasJob, rows }) {
  const built = new DashboardBuilder(title).uid(`numakit-${name}`).tags(["numakit"]).refresh("30s")
    .time({ from: "now-1h", to: "now" }).timezone("browser")
    .withVariable(new DatasourceVariableBuilder("source").label("Prometheus").type("prometheus"))
    .withVariable(hosts("host", "Host", kind === "several"));
  if (hasJob) {
    built.withVariable(new QueryVariableBuilder("job").label("Job").datasource(SOURCE)
      .query(`label_values(numakit_job_processes{${SELECTORS[kind]}}, job)`).refresh(VariableRefresh.OnTimeRangeChanged)
      .multi(true).includeAll(true));
  }
  if (kind === "two") built.withVariable(hosts("other", "and", false));
  for (const { title: row, panels } of rows) {
    built.withRow(new RowBuilder(row));
    for (const one of panels) built.withPanel(panel(one, SELECTORS[kind]));
  }
  return built.build();
}

for (const one of DASHBOARDS) {
  writeFileSync(new URL(`${one.name}.json`, import.meta.url), `${JSON.stringify(dashboard(one), null, 1)}\n`);
}
