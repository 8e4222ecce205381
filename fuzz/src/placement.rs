//! Requests to the planner.

use numakit_model::{CpuSet, Topology};
use numakit_placement::lists::KnownNumbers;
use numakit_placement::{CorePolicy, NumberList, PlacementRequest, Taken, plan};
use std::sync::LazyLock;

/// Two boards of two packages, a node without CPUs, a device, CPUs that are offline or not allowed.
const MACHINE: &str = "board:2 package:2 node:2 l3:2 core:2 pu:2 node:1(cpuless) network@node2 \
                       offline=63 allowed=0-59 dist=10/12/32/100";

static TOPOLOGY: LazyLock<Option<Topology>> =
    LazyLock::new(|| numakit_topology::synthetic::parse(MACHINE).ok());

/// A list of CPUs: a parsed list prints and parses to the same, and selects known CPUs.
pub fn list(input: &[u8]) -> bool {
    let text = String::from_utf8_lossy(input);
    let Ok(words) = text.parse::<NumberList>() else { return false };
    assert_eq!(words.to_string().parse::<NumberList>().as_ref(), Ok(&words));
    let (there, offline) = (CpuSet::range(0, 62), CpuSet::range(63, 63));
    let allowed = CpuSet::range(4, 59);
    let known =
        KnownNumbers { what: "CPU", there: &there, offline: &offline, allowed: &allowed, limit: "the mask" };
    if let Ok(set) = words.within(&known) {
        assert!(!set.is_empty() && set.is_subset(&allowed));
    }
    if let Ok(set) = words.anywhere(&known) {
        assert!(!set.is_empty() && set.is_subset(&there.or(&offline)));
    }
    true
}

/// A request as JSON, or a policy: a plan stays within the mask and has no CPU twice.
pub fn request(input: &[u8]) -> bool {
    let text = String::from_utf8_lossy(input);
    let request = match serde_json::from_str::<PlacementRequest>(&text) {
        Ok(request) => request,
        Err(_) => match text.parse::<CorePolicy>() {
            Ok(policy) => PlacementRequest { policy, ..PlacementRequest::default() },
            Err(_) => return false,
        },
    };
    let Some(topology) = &*TOPOLOGY else { return false };
    let Ok(plan) = plan(topology, &request, &Taken::default()) else { return false };
    let cpus = plan.cpus();
    assert_eq!(cpus.len(), plan.steps.len());
    assert!(cpus.is_subset(&topology.allowed) && cpus.is_subset(&plan.held));
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_can_be_planned_for() {
        let topology =
            TOPOLOGY.as_ref().map(|topology| plan(topology, &PlacementRequest::default(), &Taken::default()));
        assert!(topology.is_some_and(|plan| plan.is_ok()));
    }
}
