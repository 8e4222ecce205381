//! Whatever is asked of whatever machine: a plan gives no CPU twice, leaves nothing that it may
//! use, takes nothing that is taken, and gives what was asked; or there is an error in words.
#![allow(clippy::unwrap_used)]

use numakit_model::plan::{Mode, Plan};
use numakit_model::topology::CoreKind;
use numakit_model::{CpuSet, Topology};
use numakit_placement::{CorePolicy, Cores, Level, MemoryRequest, PlacementRequest, PlanError, Taken, plan};
use numakit_skips::rounds;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use std::cell::Cell;

fn machine() -> impl Strategy<Value = Topology> {
    let parts = (1u32..3, 1u32..4, 1u32..3, 1u32..3, 1u32..5, 1u32..3);
    let numbering = prop::sample::select(vec!["sequential", "interleaved", "roundrobin"]);
    let odd = (any::<bool>(), any::<bool>(), 0u32..3);
    (parts, numbering, odd, prop::collection::vec(any::<bool>(), 300)).prop_map(
        |((boards, packages, nodes, caches, cores, pus), numbering, (distances, kinds, far), allowed)| {
            let far = if far == 0 { String::new() } else { format!("node:{far}(cpuless)") };
            let text = format!(
                "board:{boards} package:{packages} node:{nodes} l3:{caches} core:{cores} pu:{pus} {far} \
                 numbering={numbering} network@node0 network@node0"
            );
            let mut topology = numakit_topology::synthetic::parse(&text).unwrap();
            if !distances {
                topology.distances = None;
            }
            // One in four CPUs is outside the mask in half of the cases.
            let out = |cpu: &u32| allowed[0] && !allowed[*cpu as usize % 300] && allowed[*cpu as usize % 7];
            topology.allowed = topology.online.iter().filter(|cpu| !out(cpu)).collect();
            if kinds {
                let half = topology.online.len() as u32 / 2;
                let (slow, fast) = topology.online.iter().partition::<Vec<u32>, _>(|cpu| *cpu < half);
                topology.kinds = [slow, fast]
                    .map(|cpus| CoreKind { name: "kind".into(), cpus: cpus.into_iter().collect() })
                    .to_vec();
            }
            topology
        },
    )
}

fn request() -> impl Strategy<Value = PlacementRequest> {
    // Most requests are such that many machines can meet them; the others are large or odd.
    let cores = prop_oneof![
        4 => Just(None),
        4 => (1u32..9).prop_map(|n| Some(Cores::Count(n))),
        1 => (0u32..40).prop_map(|n| Some(Cores::Count(n))),
        2 => Just(Some(Cores::Auto)),
        2 => Just(Some(Cores::All)),
        1 => Just(Some(Cores::Count(u32::MAX)))
    ];
    let policy = prop_oneof![
        Just(CorePolicy::Compact),
        Just(CorePolicy::Scatter),
        Just(CorePolicy::Balanced),
        (1u64..200).prop_map(|gib| CorePolicy::Memory(gib << 30)),
        Just(CorePolicy::Near("network0".into())),
        Just(CorePolicy::Near("network{rank}".into())),
        prop::sample::select(Level::ALL.to_vec()).prop_map(|(level, ..)| CorePolicy::Spread(level)),
    ];
    let mode =
        prop::sample::select(vec![Mode::Local, Mode::Bind, Mode::Prefer, Mode::Interleave, Mode::Weighted]);
    let list = || {
        let some = prop::sample::select(vec!["0-3", "!1", "+0-2", "all", "0-30:2", "2", "9"]);
        prop::option::weighted(0.1, some.prop_map(|list| list.parse().unwrap()))
    };
    let processes = prop_oneof![6 => Just(1u32), 4 => 1u32..4, 2 => 0u32..12, 1 => Just(u32::MAX)];
    let threads = prop_oneof![6 => 1u32..4, 3 => 0u32..12, 1 => Just(u32::MAX)];
    let threads = prop::option::weighted(0.4, threads);
    let few = || prop_oneof![6 => Just(1u32), 2 => 0u32..4];
    let numbers = (processes, threads, few(), few());
    (cores, numbers, policy, mode, (list(), list(), list())).prop_map(
        |(cores, (processes, threads, threads_per_core, stride), policy, mode, (cpus, nodes, exclude))| {
            PlacementRequest {
                cores,
                processes,
                threads,
                threads_per_core,
                stride,
                policy,
                memory: MemoryRequest { mode, nodes: None },
                cpus,
                nodes,
                exclude,
            }
        },
    )
}

fn taken() -> impl Strategy<Value = Taken> {
    let cpus = || prop::collection::vec(0u32..100, 0..6);
    (cpus(), cpus(), cpus(), cpus()).prop_map(|(isolated, held, busy, explicit)| Taken {
        isolated: isolated.into_iter().collect(),
        registered: held.into_iter().map(|cpu| (CpuSet::range(cpu, cpu), "namd of alice".into())).collect(),
        busy: busy.into_iter().map(|cpu| (cpu, 97)).collect(),
        explicit: explicit.into_iter().collect(),
    })
}

/// All PUs of cores of which one is in the set.
fn whole(topology: &Topology, set: &CpuSet) -> CpuSet {
    let cores = topology.cores.iter().filter(|core| core.cpus.intersects(set));
    cores.fold(CpuSet::new(), |all, core| all.or(&core.cpus))
}

/// The number of cases.
fn cases() -> u32 {
    rounds(200, 2000) as u32
}

/// Checks cases; returns how many of them the check was about.
fn check_all(check: impl Fn(&Topology, &PlacementRequest, Taken) -> Result<bool, TestCaseError>) -> u32 {
    let config = ProptestConfig { cases: cases(), source_file: Some(file!()), ..ProptestConfig::default() };
    let count = Cell::new(0);
    let all = (machine(), request(), taken());
    let result = TestRunner::new(config).run(&all, |(topology, request, taken)| {
        count.set(count.get() + u32::from(check(&topology, &request, taken)?));
        Ok(())
    });
    result.unwrap_or_else(|error| panic!("{error}"));
    count.get()
}

#[test]
fn plans_keep_their_promises() {
    let planned = check_all(|topology, request, taken| match plan(topology, request, &taken) {
        Ok(plan) => keeps_its_promises(topology, request, &taken, &plan).map(|()| true),
        Err(error) => {
            let text = error.to_string();
            prop_assert!(!text.is_empty() && !text.contains("defect"), "{}", text);
            Ok(false)
        }
    });
    assert!(planned > cases() / 10, "{planned} of {} were planned", cases());
}

fn keeps_its_promises(
    topology: &Topology,
    request: &PlacementRequest,
    taken: &Taken,
    plan: &Plan,
) -> Result<(), TestCaseError> {
    let cpus = plan.cpus();
    prop_assert_eq!(cpus.len(), plan.steps.len(), "a CPU twice");
    prop_assert!(cpus.is_subset(&topology.allowed), "outside the mask");
    prop_assert_eq!(&plan.held, &whole(topology, &cpus));
    let held: CpuSet = taken.registered.iter().flat_map(|(cpus, _)| cpus.iter()).collect();
    let busy: CpuSet = taken.busy.iter().map(|(cpu, _)| *cpu).collect();
    prop_assert!(!plan.held.intersects(&held), "held by others");
    prop_assert!(!plan.held.intersects(&taken.explicit));
    prop_assert!(request.cores == Some(Cores::All) || !plan.held.intersects(&busy));
    let plain = request.cpus.as_ref().is_some_and(|list| list.is_plain());
    prop_assert!(plain || !plan.held.intersects(&taken.isolated));

    let processes: Vec<_> = plan.processes().collect();
    prop_assert_eq!(processes.len() as u32, request.processes);
    for (rank, steps) in processes.iter().enumerate() {
        prop_assert_eq!(steps.len(), processes[0].len());
        for (at, step) in steps.iter().enumerate() {
            prop_assert_eq!((step.process, step.thread), (rank as u32, at as u32));
            prop_assert!(topology.node(step.node).unwrap().cpus.contains(step.cpu));
            prop_assert!(!step.because.is_empty() && !step.memory.nodes.is_empty());
            prop_assert!(step.memory.nodes.is_subset(&topology.node_ids()));
        }
    }
    if let Some(threads) = request.threads {
        prop_assert_eq!(processes[0].len() as u32, threads);
    }
    let cores = topology.cores.iter().filter(|core| core.cpus.intersects(&cpus)).count() as u32;
    if let Some(Cores::Count(count)) = request.cores {
        prop_assert_eq!(cores, count);
    }
    let full = plan.steps.len() as u32 / request.processes / request.threads_per_core * request.processes;
    prop_assert!(cores >= full && plan.steps.len() as u32 <= cores * request.threads_per_core);
    Ok(())
}

#[test]
fn what_is_refused_for_others_passes_without_them() {
    let refused = check_all(|topology, request, taken| {
        let Err(error @ PlanError::TooFew(_)) = plan(topology, request, &taken) else { return Ok(false) };
        let alone = Taken { registered: Vec::new(), busy: Vec::new(), ..taken };
        let later = plan(topology, request, &alone);
        let lacking = matches!(later, Err(PlanError::TooFew(_)));
        prop_assert_eq!(error.is_temporary(), !lacking, "{}", error);
        Ok(true)
    });
    assert!(refused > cases() / 20, "{refused} of {} were refused", cases());
}
