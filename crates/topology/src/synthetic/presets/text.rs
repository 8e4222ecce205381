//! Reads the text of a preset.

use super::{Preset, PresetError};
use crate::synthetic::facts::Facts;
use crate::synthetic::{build, grammar};
use numakit_model::{CpuSet, Topology};

/// The lines as keys and values. Lines that begin with `#` are remarks.
fn lines(text: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| line.split_once(' ').map_or((line, ""), |(key, value)| (key, value.trim())))
}

/// The name, then the other names.
pub fn names(text: &'static str) -> impl Iterator<Item = &'static str> {
    lines(text).filter(|(key, _)| matches!(*key, "name" | "also")).map(|(_, value)| value)
}

pub fn preset(file: &'static str, text: &'static str) -> Result<Preset, PresetError> {
    let fail = |problem: String| PresetError { file, problem };
    let mut preset =
        Preset { name: "", also: Vec::new(), year: 0, sources: Vec::new(), topology: Topology::default() };
    let (mut description, mut facts) = ("", Facts::default());
    for (key, value) in lines(text) {
        let mut is_known = true;
        match key {
            "name" => preset.name = value,
            "also" => preset.also.push(value),
            "year" => is_known = value.parse().map(|year| preset.year = year).is_ok(),
            "source" => preset.sources.push(value),
            "machine" => description = value,
            _ => is_known = fact(&mut facts, key, value).is_some(),
        }
        if !is_known {
            return Err(fail(format!("'{key} {value}' is not understood; correct the line")));
        }
    }
    if preset.name.is_empty() || preset.sources.is_empty() {
        return Err(fail("there is no name or no source; add a line with it".to_owned()));
    }
    preset.topology = topology(description, facts).map_err(|error| fail(error.to_string()))?;
    preset.topology.origin = format!("machine {}", preset.name);
    preset.topology.notes.push(format!("from {}", preset.sources.join(", ")));
    preset.topology.notes.extend(unstated(&preset.topology));
    Ok(preset)
}

fn fact(facts: &mut Facts, key: &str, value: &str) -> Option<()> {
    match key {
        "nodes" => facts.node_numbers = CpuSet::parse_list(value).ok()?.iter().collect(),
        "cpus" => facts.cpus.push(CpuSet::parse_list(value).ok()?),
        "memory" => {
            let (node, size) = value.split_once(' ')?;
            facts.memory_kb.push((node.parse().ok()?, grammar::size(size.trim())? / 1024));
        }
        "distance" => {
            let row: Result<Vec<u32>, _> = value.split_whitespace().map(str::parse).collect();
            facts.distances.push(row.ok()?);
        }
        _ => return None,
    }
    Some(())
}

fn topology(description: &str, facts: Facts) -> Result<Topology, crate::DescriptionError> {
    let mut machine = grammar::parse(description)?;
    machine.facts = Some(facts);
    build::build(&machine, description)
}

/// What the sources do not state, of the values that plans and reports use.
fn unstated(t: &Topology) -> Option<String> {
    let lacks = [
        ("the memory of nodes", t.nodes.iter().any(|node| node.memory_kb.is_none())),
        ("distances", t.nodes.len() > 1 && t.distances.is_none()),
        ("sizes of caches", t.caches.iter().any(|cache| cache.size.is_none())),
    ];
    let lacks: Vec<&str> = lacks.iter().filter(|(_, lacks)| *lacks).map(|(what, _)| *what).collect();
    (!lacks.is_empty()).then(|| format!("not stated there, so unknown here: {}", lacks.join(", ")))
}
