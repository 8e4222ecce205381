//! Plans for every machine that is known by name.
#![allow(clippy::unwrap_used)]

use numakit_model::{CpuSet, Topology};
use numakit_placement::{CorePolicy, Cores, PlacementRequest, Taken, plan};
use numakit_topology::synthetic::presets;
use std::collections::BTreeSet;

fn request(policy: CorePolicy) -> PlacementRequest {
    PlacementRequest { cores: Some(Cores::All), policy, ..PlacementRequest::default() }
}

/// The position of the core of a CPU.
fn core_of(t: &Topology, cpu: u32) -> usize {
    t.cores.iter().position(|core| core.cpus.contains(cpu)).unwrap()
}

#[test]
fn a_thread_for_each_core_of_each_machine() {
    for machine in presets::all() {
        let machine = machine.unwrap();
        let t = &machine.topology;
        for policy in [CorePolicy::Compact, CorePolicy::Scatter, CorePolicy::Balanced] {
            let plan = plan(t, &request(policy), &Taken::default())
                .unwrap_or_else(|error| panic!("{}: {error}", machine.name));
            let cores: BTreeSet<usize> = plan.steps.iter().map(|step| core_of(t, step.cpu)).collect();
            assert_eq!((plan.steps.len(), cores.len()), (t.cores.len(), t.cores.len()), "{}", machine.name);
        }
    }
}

#[test]
fn as_many_processes_as_packages_share_no_package() {
    for machine in presets::all().map(Result::unwrap).filter(|machine| machine.topology.packages.len() > 1) {
        let t = &machine.topology;
        let processes = t.packages.len() as u32;
        let request = PlacementRequest { processes, ..request(CorePolicy::Compact) };
        let plan = plan(t, &request, &Taken::default()).unwrap();
        for process in 0..processes {
            let steps = plan.steps.iter().filter(|step| step.process == process);
            let cpus: CpuSet = steps.map(|step| step.cpu).collect();
            assert_eq!(
                t.packages.iter().filter(|package| package.cpus.intersects(&cpus)).count(),
                1,
                "{}",
                machine.name
            );
        }
    }
}
