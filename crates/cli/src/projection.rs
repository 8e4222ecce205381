//! Machines that a result is projected on.

use anyhow::bail;
use numakit_explain::projection::ProjectedMachine;
use numakit_model::Topology;
use numakit_placement::{CorePolicy, Cores, PlacementRequest, PlanError, Taken, plan};
use numakit_topology::synthetic::presets;
use std::cmp::Reverse;

/// The machine of a description, a file or a name.
pub fn machine(description: &str) -> anyhow::Result<ProjectedMachine> {
    let topology = match numakit_topology::synthetic::load_or_find(description) {
        Ok(topology) => topology,
        Err(error) => bail!("--as: {error}"),
    };
    // A machine without a plan for a thread has none for more.
    if let Err(error) = nodes(&topology, 1) {
        bail!("--as: {error}");
    }
    let (name, planned) = (description.to_owned(), topology.clone());
    let nodes = Box::new(move |threads| nodes(&planned, threads).unwrap_or_default());
    Ok(ProjectedMachine { name, topology, nodes })
}

/// The machine of several nodes that is offered to those who have one of one node: the newest of the same family of processors
/// if there is one. `None` on a machine of several nodes.
pub fn offered(here: &Topology, processor: &str) -> Option<&'static str> {
    let memories =
        |topology: &Topology| topology.nodes.iter().filter(|node| node.memory_kb != Some(0)).count();
    if memories(here) > 1 {
        return None;
    }
    let is_of_family = |name: &str| name.split(' ').next().is_some_and(|family| processor.contains(family));
    let known = presets::all().flatten().filter(|preset| memories(&preset.topology) > 1);
    // The first of equals: names with a setting of the firmware come after those without.
    known.min_by_key(|preset| Reverse((is_of_family(preset.name), preset.year))).map(|preset| preset.name)
}

/// The nodes of a number of threads, or of as many as there are cores.
fn nodes(topology: &Topology, threads: usize) -> Result<Vec<u32>, PlanError> {
    let threads = threads.clamp(1, topology.cores.len().max(1));
    let count = u32::try_from(threads).unwrap_or(u32::MAX);
    let request = PlacementRequest {
        cores: Some(Cores::Count(count)),
        policy: CorePolicy::Balanced,
        ..PlacementRequest::default()
    };
    let plan = plan(topology, &request, &Taken::default())?;
    Ok(plan.steps.iter().map(|step| step.node).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_spread_over_the_nodes() {
        let machine = machine("node:4 core:2 pu:1").unwrap();
        let nodes = |threads| (machine.nodes)(threads);
        assert_eq!((nodes(4), nodes(5).len()), (vec![0, 1, 2, 3], 5));
        assert_eq!(nodes(80), [0, 0, 1, 1, 2, 2, 3, 3]);
    }

    #[test]
    fn a_machine_of_one_node_is_offered_the_newest_of_its_family() {
        let here = numakit_topology::synthetic::parse("node:1 core:2").unwrap();
        let offered = |processor: &str| super::offered(&here, processor).unwrap();
        assert!(offered("AMD EPYC 9V74 80-Core Processor").starts_with("EPYC "));
        assert!(offered("Intel(R) Xeon(R) Gold 6148 CPU").starts_with("Xeon "));
        for name in ["AMD EPYC 9V74", "Intel(R) Xeon(R)", "no processor that is known"] {
            assert!(machine(offered(name)).unwrap().topology.nodes.len() > 1, "{name}");
        }
        let there = numakit_topology::synthetic::parse("node:2 core:2").unwrap();
        assert_eq!(super::offered(&there, "AMD EPYC"), None);
    }

    #[test]
    fn machines_have_names() {
        assert_eq!(machine("2x AMD EPYC 9755").unwrap().topology.cores.len(), 256);
    }

    #[test]
    fn what_is_no_machine_is_an_error_of_the_option() {
        let error = machine("node:x").unwrap_err().to_string();
        assert!(error.starts_with("--as: "), "{error}");
        let error = machine("EPYC 9755").unwrap_err().to_string();
        assert!(
            error.starts_with("--as: there is no machine 'EPYC 9755'; did you mean 'EPYC 9755 x2'?"),
            "{error}"
        );
    }
}
