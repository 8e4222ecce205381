//! The machines in the guide. `UPDATE=1` writes them.
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
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/topology.md");
    let page = std::fs::read_to_string(path).unwrap();
    let (head, rest) = page.split_once("<!-- machines -->\n").unwrap();
    let (_, tail) = rest.split_once("<!-- /machines -->").unwrap();
    let rows: String = presets::all().map(|machine| row(&machine.unwrap())).collect();
    let expected = format!(
        "{head}<!-- machines -->\n| name | year | packages | nodes | cores | CPUs | facts from |\n\
         |---|---|---|---|---|---|---|\n{rows}<!-- /machines -->{tail}"
    );
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(path, &expected).unwrap();
    } else {
        assert!(page == expected, "docs/guide/topology.md is stale; run again with UPDATE=1");
    }
}
