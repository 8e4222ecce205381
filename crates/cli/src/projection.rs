//! Machines that a result is projected on.

use anyhow::bail;
use numakit_explain::projection::ProjectedMachine;
use numakit_model::Topology;
use numakit_placement::{CorePolicy, Cores, PlacementRequest, PlanError, Taken, plan};

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
