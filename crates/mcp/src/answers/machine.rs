//! Machines and plans for them.

use super::{bounded, value};
use crate::directory::SharedDirectory;
use crate::error::ToolError;
use numakit_model::Topology;
use numakit_placement::launchers::{self, LauncherOptions};
use numakit_placement::{PlacementRequest, RequestError, Taken, explained};
use numakit_sys::SysRoot;
use numakit_topology::synthetic;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::str::FromStr;

/// A machine with more nodes is described in short: the distances alone would be thousands of numbers.
const MAX_NODES: usize = 32;
/// As many nodes in short, and steps of a plan.
const MAX_ENTRIES: usize = 512;

/// Which machine.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Machine {
    /// the machine of this recording, instead of the one that runs numa
    recording: Option<String>,
    /// a described machine instead, as in 'package:2 node:2(mem=32G) core:4 pu:2'
    synthetic: Option<String>,
}

/// What is placed. The machine is here again: serde cannot refuse unknown arguments of a structure in another one.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Planning {
    /// the machine of this recording, instead of the one that runs numa
    recording: Option<String>,
    /// a described machine instead, as in 'package:2 node:2(mem=32G) core:4 pu:2'
    synthetic: Option<String>,
    /// a number, 'auto' or 'all'
    cores: Option<String>,
    /// number of processes, such as MPI ranks; 1 by default
    processes: Option<u32>,
    /// threads of each process
    threads: Option<u32>,
    /// compact, scatter, balanced, spread:LEVEL, memory:SIZE or near:DEVICE
    policy: Option<String>,
    /// local, bind, prefer, interleave or weighted
    memory: Option<String>,
    /// write lines for it: openmp, openmpi5, slurm, docker, ...
    launcher: Option<String>,
    /// the program and its arguments, for these lines
    command: Option<Vec<String>>,
}

fn machine(directory: &SharedDirectory, asked: &Machine) -> Result<Topology, ToolError> {
    match (&asked.recording, &asked.synthetic) {
        (Some(_), Some(_)) => Err(ToolError::TwoMachines),
        (Some(name), None) => {
            let topology = directory.recording(name)?.header().topology.clone();
            topology.ok_or_else(|| ToolError::NoMachine(name.clone()))
        }
        // A file would be outside of what may be opened.
        (None, Some(text)) => Ok(synthetic::parse(text)?),
        (None, None) => Ok(numakit_topology::read(&SysRoot::host())?),
    }
}

pub(crate) fn topology(directory: &SharedDirectory, asked: &Machine) -> Result<Value, ToolError> {
    let topology = machine(directory, asked)?;
    let nodes = topology.nodes.iter().map(
        |node| json!({"node": node.os_index, "cpus": node.cpus.to_string(), "memory_kb": node.memory_kb}),
    );
    let mut answer = json!({
        "nodes": topology.nodes.len(),
        "packages": topology.packages.len(),
        "cores": topology.cores.len(),
        "cpus": topology.online.len(),
        "memory_kb": topology.memory_kb(),
        "memory_of_nodes": bounded(nodes.collect(), MAX_ENTRIES),
    });
    match topology.nodes.len() > MAX_NODES {
        true => answer["note"] = "caches and distances are left out: 'numa topo --json' has them".into(),
        false => answer["machine"] = value(&topology),
    }
    Ok(answer)
}

/// What a word means, if it is given.
fn parsed<T: FromStr<Err = RequestError>>(word: Option<String>) -> Result<Option<T>, RequestError> {
    word.map(|word| word.parse()).transpose()
}

pub(crate) fn plan(directory: &SharedDirectory, asked: Planning) -> Result<Value, ToolError> {
    let topology = machine(directory, &Machine { recording: asked.recording, synthetic: asked.synthetic })?;
    let request = PlacementRequest {
        cores: parsed(asked.cores)?,
        processes: asked.processes.unwrap_or(1),
        threads: asked.threads,
        policy: parsed(asked.policy)?.unwrap_or_default(),
        memory: parsed(asked.memory)?.unwrap_or_default(),
        ..PlacementRequest::default()
    };
    let (plan, reasons) = explained(&topology, &request, &Taken::default())?;
    let mut answer = json!({"request": value(&request), "reasons": reasons, "plan": value(&plan)});
    if !topology.notes.is_empty() {
        // Such as the numbers that the CPUs of a description were given.
        answer["notes"] = value(&topology.notes);
    }
    let steps = answer["plan"]["steps"].as_array_mut().map(std::mem::take).unwrap_or_default();
    answer["plan"]["steps"] = bounded(steps, MAX_ENTRIES);
    if let Some(name) = asked.launcher {
        let options = LauncherOptions { host: None, command: asked.command.unwrap_or_default() };
        let lines = launchers::emit(&name, &topology, &plan, &options)?;
        answer["launcher"] = json!({"lines": lines.text, "hints": lines.hints, "warnings": lines.warnings});
    }
    Ok(answer)
}
