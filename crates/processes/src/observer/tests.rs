use super::*;
use crate::numa_maps::Use;
use numakit_sys::SysRoot;
use numakit_testing::processes::{MadeProcess, four_nodes};

const ALL: WatchTargets = WatchTargets {
    walk: walk::WalkRequest { memory: true, huge_pages: true },
    threads: threads::ThreadFields { cpu_time: true, scheduling: true },
    allocators: false,
    limit: false,
};

fn observer(root: &SysRoot, pid: u32) -> Observer {
    let mut observer = Observer::new(WalkedMachine::of(root, &four_nodes(), true), ALL, &[pid]);
    observer.scan();
    assert!(observer.walk(&|| true));
    observer
}

fn set(root: &SysRoot, process: &MadeProcess) {
    root.change(|files| process.put(files));
}

#[test]
fn memory_of_the_whole_tree_is_added_up_by_node_and_use() {
    let mut parent =
        MadeProcess::new(10, 1, 0).maps("heap anon=9", &[(0, 10), (2, 5)]).maps("stack", &[(0, 1)]);
    parent.children = vec![11];
    let child = MadeProcess::new(11, 10, 2)
        .maps("anon=3", &[(3, 7)])
        .maps("file=/a\\040huge", &[(1, 2)])
        .maps("file=/x huge", &[(1, 1)]);
    let unrelated = MadeProcess::new(12, 1, 0).maps("heap", &[(0, 1000)]);
    let observer = observer(&MadeProcess::machine(&[&parent, &child, &unrelated]), 10);
    let walked = observer.walked.clone().unwrap();
    let findings = walked.findings;
    assert_eq!((findings.denied, findings.huge_pages, observer.processes()), (None, 4 << 20, 2));
    let on = |node: usize, usage: Use| walked.memory.0[node][usage as usize];
    assert_eq!((on(0, Use::Heap), on(2, Use::Heap), on(0, Use::Stack)), (40960, 20480, 4096));
    assert_eq!((on(3, Use::Anonymous), on(1, Use::File), on(1, Use::Huge)), (28672, 8192, 2 << 20));
    assert_eq!(walked.memory.total(), 25 * 4096 + (2 << 20));
}

#[test]
fn cpu_time_goes_to_the_node_of_each_thread_and_to_near_and_far_memory() {
    let mut process = MadeProcess::new(10, 1, 0).maps("heap", &[(0, 30), (1, 10)]);
    process.threads = vec![(10, 0, 5000, -1), (13, 2, 7000, -1), (14, 7, 0, 3)];
    let root = MadeProcess::machine(&[&process]);
    let mut observer = observer(&root, 10);
    assert_eq!(observer.activity.cpu_time, [0; 4]);
    assert_eq!(observer.activity.threads, [1, 1, 0, 1]);
    process.threads = vec![(10, 0, 6000, -1), (13, 2, 9000, -1), (14, 7, 400, 3), (15, 6, 100, -1)];
    set(&root, &process);
    observer.scan();
    assert_eq!(observer.activity.cpu_time, [1000, 2000, 0, 500]);
    // The home is node 0: 13 and 15 are elsewhere, and 14 is on its preferred node.
    assert_eq!((observer.activity.threads.clone(), observer.activity.away), (vec![1, 1, 0, 2], 2));
    assert_eq!(observer.activity.switches, [1 + 2, 5, 6]);
}

#[test]
fn members_stay_when_their_parent_exits_and_counts_never_decrease() {
    let mut parent = MadeProcess::new(10, 1, 0);
    (parent.children, parent.counts[0]) = (vec![11], 100);
    let mut child = MadeProcess::new(11, 10, 0);
    (child.children, child.counts[0]) = (vec![12], 20);
    let mut grandchild = MadeProcess::new(12, 11, 0);
    grandchild.counts[0] = 3;
    let root = MadeProcess::machine(&[&parent, &child, &grandchild]);
    let mut observer = observer(&root, 10);
    assert_eq!((observer.processes(), observer.counts()[0]), (3, 123));
    // The child exits with an unknown final count; the grandchild gets another parent.
    root.change(|files| _ = files.remove("/proc/11"));
    parent.children.clear();
    set(&root, &parent);
    grandchild.parent = 1;
    grandchild.counts[0] = 5;
    set(&root, &grandchild);
    observer.scan();
    assert_eq!((observer.processes(), observer.counts()[0]), (2, 125));
    // Now the parent's counts of children include it, with more than the last scan showed.
    parent.counts[1] = 24;
    set(&root, &parent);
    observer.scan();
    assert_eq!(observer.counts()[0], 129);
    root.change(|files| _ = files.remove("/proc/10").remove("/proc/12"));
    observer.scan();
    assert!(observer.walk(&|| true));
    assert_eq!((observer.processes(), observer.counts()[0]), (0, 129));
    assert_eq!(observer.walked.unwrap().memory.total(), 0);
}

#[test]
fn a_reused_pid_is_not_a_member() {
    let process = MadeProcess::new(10, 1, 0);
    let root = MadeProcess::machine(&[&process]);
    let mut observer = observer(&root, 10);
    set(&root, &MadeProcess { start: 77, ..process });
    observer.scan();
    assert_eq!(observer.processes(), 0);
}

#[test]
fn without_lists_of_children_they_are_searched() {
    let (parent, child) = (MadeProcess::new(20, 1, 0), MadeProcess::new(11, 20, 0));
    let (grandchild, unrelated) = (MadeProcess::new(15, 11, 0), MadeProcess::new(16, 1, 0));
    let root = MadeProcess::machine(&[&parent, &child, &grandchild, &unrelated]);
    root.change(|files| {
        [20, 11, 15, 16].iter().for_each(|p| _ = files.remove(&format!("/proc/{p}/task/{p}/children")))
    });
    assert_eq!(observer(&root, 20).processes(), 3);
}

#[test]
fn zombies_have_no_threads_and_no_memory() {
    let mut parent = MadeProcess::new(10, 1, 0);
    parent.children = vec![11];
    let zombie = MadeProcess { state: 'Z', ..MadeProcess::new(11, 10, 2).maps("heap", &[(1, 5)]) };
    let observer = observer(&MadeProcess::machine(&[&parent, &zombie]), 10);
    assert_eq!((observer.processes(), observer.activity.threads.clone()), (1, vec![1, 0, 0, 0]));
    assert_eq!(observer.walked.unwrap().memory.total(), 0);
}

#[test]
fn a_walk_continues_where_it_was_interrupted() {
    let mut process = MadeProcess::new(10, 1, 0);
    for _ in 0..1000 {
        process = process.maps("anon=1", &[(0, 1)]);
    }
    let root = MadeProcess::machine(&[&process]);
    let mut observer = observer(&root, 10);
    let mut parts = 1;
    while !observer.walk(&|| false) {
        parts += 1;
        observer.scan();
    }
    assert!(parts > 5);
    assert_eq!(observer.walked.unwrap().memory.total(), 1000 * 4096);
}
