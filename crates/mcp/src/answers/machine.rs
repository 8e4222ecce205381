//! Machines and plans for them.

use super::{bounded, value};
use crate::arguments::Arguments;
use crate::directory::SharedDirectory;
use crate::error::ToolError;
use numakit_model::Topology;
use numakit_placement::launchers::{self, LauncherOptions};
use numakit_placement::{PlacementRequest, Taken, explained};
use numakit_sys::SysRoot;
use numakit_topology::synthetic;
use serde_json::{Value, json};

/// A machine with more nodes is described in short: the distances alone would be thousands of numbers.
const MAX_NODES: usize = 32;
/// As many nodes in short, and steps of a plan.
const MAX_ENTRIES: usize = 512;

fn machine(directory: &SharedDirectory, arguments: &Arguments) -> Result<Topology, ToolError> {
    match (arguments.text("recording"), arguments.text("synthetic")) {
        (Some(_), Some(_)) => Err(ToolError::TwoMachines),
        (Some(name), None) => {
            let topology = directory.recording(name)?.header().topology.clone();
            topology.ok_or_else(|| ToolError::NoMachine(name.to_owned()))
        }
        // A file would be outside of what may be opened.
        (None, Some(text)) => Ok(synthetic::parse(text)?),
        (None, None) => Ok(numakit_topology::read(&SysRoot::host())?),
    }
}

pub(crate) fn topology(directory: &SharedDirectory, arguments: &Arguments) -> Result<Value, ToolError> {
    let topology = machine(directory, arguments)?;
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

pub(crate) fn plan(directory: &SharedDirectory, arguments: &Arguments) -> Result<Value, ToolError> {
    let topology = machine(directory, arguments)?;
    let asked = arguments.object(&["cores", "processes", "threads", "policy", "memory"]);
    let request: PlacementRequest =
        serde_json::from_value(Value::Object(asked)).map_err(ToolError::Request)?;
    let (plan, reasons) = explained(&topology, &request, &Taken::default())?;
    let mut answer = json!({"request": value(&request), "reasons": reasons, "plan": value(&plan)});
    let steps = answer["plan"]["steps"].as_array_mut().map(std::mem::take).unwrap_or_default();
    answer["plan"]["steps"] = bounded(steps, MAX_ENTRIES);
    if let Some(name) = arguments.text("launcher") {
        let command = arguments.texts("command").into_iter().map(str::to_owned).collect();
        let options = LauncherOptions { host: None, command };
        let lines = launchers::emit(name, &topology, &plan, &options)?;
        answer["launcher"] = json!({"lines": lines.text, "hints": lines.hints, "warnings": lines.warnings});
    }
    Ok(answer)
}
