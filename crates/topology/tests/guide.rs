//! The machines in the guide.
#![allow(clippy::unwrap_used)]

use numakit_topology::synthetic::presets::{self, Preset};

fn row(machine: &Preset) -> String {
    let t = &machine.topology;
    let names: Vec<String> = std::iter::once(machine.name)
        .chain(machine.also.iter().copied())
        .map(|name| format!("`{name}`"))
        .collect();
    let source = |source: &&str| match source.starts_with("http") && !source.contains(' ') {
        true => format!("<{source}>"),
        false => (*source).to_owned(),
    };
    let sources: Vec<String> = machine.sources.iter().map(source).collect();
    let (packages, nodes, cores, cpus) = (t.packages.len(), t.nodes.len(), t.cores.len(), t.online.len());
    let (names, sources) = (names.join(", "), sources.join("; "));
    format!("| {names} | {} | {packages} | {nodes} | {cores} | {cpus} | {sources} |\n", machine.year)
}

#[test]
fn the_guide_lists_the_machines() {
    let rows: String = presets::all().map(|machine| row(&machine.unwrap())).collect();
    let title =
        "| name | year | packages | nodes | cores | CPUs | facts from |\n|---|---|---|---|---|---|---|\n";
    numakit_testing::guide::check_part("docs/guide/topology.md", "machines", &format!("{title}{rows}"));
}
