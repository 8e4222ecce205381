use super::*;
use proptest::prelude::*;

/// Four nodes of two cores.
fn cores() -> Vec<FreeCore> {
    (0..8).map(|cpu| FreeCore { cpu, cpus: CpuSet::range(cpu, cpu), node: cpu / 2 }).collect()
}

fn thread(number: u32, cpu: u32, homes: &[(u32, u64)]) -> BusyThread {
    BusyThread {
        process: 10,
        thread: number,
        name: "worker".to_owned(),
        cpu: Some(cpu),
        node: Some(cpu / 2),
        mask: CpuSet::range(0, 7),
        bound: CpuSet::range(0, 7),
        starts_others: false,
        samples: 100,
        homes: homes.iter().copied().collect(),
        shared: BTreeMap::new(),
    }
}

fn cpus(decisions: &[ThreadDecision]) -> Vec<Option<u32>> {
    decisions.iter().map(|decision| decision.cpu).collect()
}

#[test]
fn a_thread_that_is_alone_near_its_pages_stays() {
    let decisions = plan(&[thread(1, 5, &[(2, 90), (0, 10)])], &cores(), true);
    assert_eq!((cpus(&decisions), decisions[0].reason), (vec![Some(5)], ThreadReason::Stays));
    assert!(decisions[0].changes, "it is bound to its core");
    let bound = BusyThread { bound: CpuSet::range(5, 5), ..thread(1, 5, &[]) };
    assert!(!plan(&[bound], &cores(), true)[0].changes);
}

#[test]
fn few_threads_go_to_their_pages_and_many_let_their_pages_come() {
    let two = [thread(1, 0, &[(3, 50)]), thread(2, 2, &[(3, 50)])];
    let decisions = plan(&two, &cores(), true);
    assert_eq!(cpus(&decisions), [Some(6), Some(7)]);
    assert!(decisions.iter().all(|decision| decision.reason == ThreadReason::NearItsPages));
    let four: Vec<BusyThread> = (0..4).map(|at| thread(at, 2 * at, &[(3, 50)])).collect();
    assert_eq!(cpus(&plan(&four, &cores(), true)), [Some(0), Some(2), Some(4), Some(6)]);
    // Where pages may not move, as many go as fit.
    let decisions = plan(&four, &cores(), false);
    assert_eq!(decisions.iter().filter(|decision| decision.node == Some(3)).count(), 2, "{decisions:?}");
}

#[test]
fn few_samples_of_pages_move_no_thread() {
    assert_eq!(cpus(&plan(&[thread(1, 0, &[(3, 7)])], &cores(), true)), [Some(0)]);
    assert_eq!(cpus(&plan(&[thread(1, 0, &[(3, 50), (1, 50)])], &cores(), true)), [Some(0)]);
}

#[test]
fn of_two_threads_on_a_core_the_busier_one_stays() {
    let busy = BusyThread { samples: 300, ..thread(2, 4, &[]) };
    let decisions = plan(&[thread(1, 4, &[]), busy], &cores(), true);
    assert_eq!(cpus(&decisions), [Some(5), Some(4)]);
    assert_eq!(decisions[0].reason, ThreadReason::CoreWasShared);
}

#[test]
fn threads_that_share_pages_are_put_together() {
    let mut threads: Vec<BusyThread> = (0..4).map(|at| thread(at, 20, &[])).collect();
    for (one, other) in [(0, 2), (2, 0), (1, 3), (3, 1)] {
        threads[one].shared.insert(other, 40);
    }
    let nodes: Vec<Option<u32>> = plan(&threads, &cores(), true).iter().map(|of| of.node).collect();
    assert!(nodes[0] == nodes[2] && nodes[1] == nodes[3] && nodes[0] != nodes[1], "{nodes:?}");
}

#[test]
fn without_a_free_core_a_thread_is_left() {
    let narrow = BusyThread { mask: CpuSet::range(3, 3), ..thread(1, 3, &[(0, 80)]) };
    let decisions = plan(&[narrow.clone(), BusyThread { samples: 50, ..narrow }], &cores(), true);
    assert_eq!(cpus(&decisions), [Some(3), None]);
    assert_eq!((decisions[1].reason, decisions[1].changes), (ThreadReason::NoCore, false));
    assert_eq!(cpus(&plan(&[thread(1, 3, &[])], &[], true)), [None]);
}

#[test]
fn more_threads_than_cores_are_left_to_the_scheduler() {
    let threads: Vec<BusyThread> = (0..3).map(|at| thread(at, 3, &[(0, 80)])).collect();
    let decisions = plan(&threads, &cores()[..2], true);
    assert_eq!(cpus(&decisions), [None; 3]);
    assert!(
        decisions.iter().all(|of| of.reason == ThreadReason::MoreThreads && !of.changes),
        "{decisions:?}"
    );
}

proptest! {
    #[test]
    fn no_core_twice_and_none_outside_of_masks(
        threads in proptest::collection::vec(
            (0u32..10, 0u8.., 1u64..500, proptest::collection::btree_map(0u32..5, 0u64..100, 0..4)), 0..12),
        free in 0u8..,
        pages_follow: bool,
    ) {
        let cpus_of = |bits: u8| (0..8).filter(|cpu| bits >> cpu & 1 == 1).collect::<CpuSet>();
        let threads: Vec<BusyThread> = (0..).zip(threads).map(|(number, (cpu, mask, samples, homes))| BusyThread {
            samples,
            mask: cpus_of(mask),
            shared: BTreeMap::from([((number as usize + 1) % 12, samples / 2)]),
            homes,
            ..thread(number, cpu, &[])
        }).collect();
        let free: Vec<FreeCore> = cores().into_iter().filter(|core| cpus_of(free).contains(core.cpu)).collect();
        let decisions = plan(&threads, &free, pages_follow);
        prop_assert_eq!(decisions.len(), threads.len());
        let mut seen = CpuSet::new();
        for (decision, thread) in decisions.iter().zip(&threads) {
            let Some(cpu) = decision.cpu else { continue };
            prop_assert!(thread.mask.contains(cpu) && free.iter().any(|core| core.cpu == cpu));
            prop_assert!(!seen.contains(cpu));
            seen.insert(cpu);
        }
    }
}

#[test]
fn what_starts_others_is_not_bound_and_takes_no_core() {
    let parent = BusyThread { starts_others: true, ..thread(1, 0, &[(3, 50)]) };
    let mut threads = vec![parent];
    threads.extend((2..=9).map(|at| thread(at, at - 2, &[])));
    let decisions = plan(&threads, &cores(), true);
    assert_eq!((decisions[0].cpu, decisions[0].reason), (None, ThreadReason::StartsOthers));
    assert!(!decisions[0].changes);
    assert_eq!(cpus(&decisions[1..]), (0..8).map(Some).collect::<Vec<_>>());
}
