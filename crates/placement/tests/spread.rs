//! Over which parts of a machine threads and processes are spread.
#![allow(clippy::unwrap_used)]

use numakit_model::measured::MeasuredNode;
use numakit_model::{CpuSet, MeasuredMemory, Plan, Topology};
use numakit_placement::{PlacementRequest, Taken, explained, plan};

fn machine(text: &str) -> Topology {
    numakit_topology::synthetic::parse(text).unwrap()
}

/// `cores=6 policy=scatter`: fields of a request.
fn request(words: &str) -> PlacementRequest {
    let field = |word: &str| {
        let (key, value) = word.split_once('=').unwrap();
        let numbers = ["processes", "threads", "threads_per_core", "stride"];
        let number = value.parse::<u32>().ok().filter(|_| numbers.contains(&key));
        (key.to_owned(), number.map_or_else(|| value.into(), serde_json::Value::from))
    };
    serde_json::from_value(words.split(' ').map(field).collect()).unwrap()
}

fn planned(t: &Topology, words: &str) -> Plan {
    plan(t, &request(words), &Taken::default()).unwrap()
}

/// CPUs by process.
fn cpus(t: &Topology, words: &str) -> Vec<Vec<u32>> {
    planned(t, words).processes().map(|steps| steps.iter().map(|step| step.cpu).collect()).collect()
}

/// By N: how many of these sets have N of the CPUs of the plan.
fn filled(sets: impl Iterator<Item = CpuSet>, plan: &Plan) -> Vec<usize> {
    let mut counts = Vec::new();
    for count in sets.map(|set| set.and(&plan.cpus()).len()) {
        counts.resize(counts.len().max(count + 1), 0);
        counts[count] += 1;
    }
    counts
}

const PAIRS: &str = "package:2 node:2 l3:2 l2:2 core:2";

#[test]
fn each_cache_gets_one_before_any_gets_two() {
    let t = machine(PAIRS);
    let l2 = |words: &str| filled(t.caches_of_level(2).map(|c| c.cpus.clone()), &planned(&t, words));
    let l3 = |words: &str| filled(t.caches_of_level(3).map(|c| c.cpus.clone()), &planned(&t, words));
    assert_eq!(cpus(&t, "cores=8 policy=spread:l2"), [[0, 2, 4, 6, 8, 10, 12, 14]]);
    assert_eq!(l2("cores=8 policy=spread:l2"), [8, 8]);
    assert_eq!(l2("cores=16 policy=spread:l2"), [0, 16]);
    assert_eq!(l2("cores=20 policy=spread:l2"), [0, 12, 4]);
    assert_eq!(l2("cores=32 policy=spread:l2"), [0, 0, 16]);
    assert_eq!(l3("cores=8 policy=spread:l3"), [0, 8]);
    assert_eq!(l3("cores=10 policy=spread:l3"), [0, 6, 2]);
    // Near each other otherwise: those with two are on one node.
    let two = planned(&t, "cores=10 policy=spread:l3");
    assert_eq!(filled(t.nodes.iter().map(|node| node.cpus.clone()), &two), [0, 0, 3, 0, 1]);
    assert_eq!(cpus(&t, "cores=4 policy=spread:node"), [[0, 8, 16, 24]]);
    assert_eq!(cpus(&t, "cores=4 policy=spread:package"), [[0, 1, 16, 17]]);
}

#[test]
fn processes_are_spread_with_their_threads_together() {
    let t = machine(PAIRS);
    assert_eq!(cpus(&t, "processes=4 threads=2 policy=spread:l3"), [[0, 1], [4, 5], [8, 9], [12, 13]]);
    assert_eq!(cpus(&t, "processes=4 threads=2 policy=spread:node"), [[0, 1], [8, 9], [16, 17], [24, 25]]);
    // An L2 cache is too small for a process: its threads are spread.
    assert_eq!(
        cpus(&t, "processes=4 threads=4 policy=spread:l2"),
        [[0, 2, 4, 6], [8, 10, 12, 14], [16, 18, 20, 22], [24, 26, 28, 30]]
    );
    // With the stride, a process has caches of its own and its threads too.
    assert_eq!(
        cpus(&t, "processes=4 threads=2 stride=2 policy=spread:node"),
        [[0, 2], [8, 10], [16, 18], [24, 26]]
    );
}

#[test]
fn taken_cores_are_not_used() {
    let t = machine(PAIRS);
    let taken =
        Taken { registered: vec![("0-1,4".parse().unwrap(), "namd of alice".into())], ..Taken::default() };
    let plan = plan(&t, &request("cores=8 policy=spread:l2 nodes=0-1"), &taken).unwrap();
    // One cache of node 0 is not free at all, so that another one has two.
    assert_eq!(plan.cpus().to_string(), "2-3,5-6,8,10,12,14");
}

#[test]
fn balanced_spreads_over_the_caches_of_a_node() {
    let t = machine("package:2 node:1 l3:2 l2:2 core:2");
    assert_eq!(cpus(&t, "cores=2 policy=balanced"), [[0, 8]]);
    assert_eq!(cpus(&t, "cores=4 policy=balanced"), [[0, 4, 8, 12]]);
    assert_eq!(cpus(&t, "cores=8 policy=balanced"), [[0, 2, 4, 6, 8, 10, 12, 14]]);
    assert_eq!(cpus(&t, "cores=12 policy=balanced"), [[0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14]]);
    assert_eq!(cpus(&t, "processes=4 threads=2 policy=balanced"), [[0, 1], [4, 5], [8, 9], [12, 13]]);
}

#[test]
fn the_explanation_counts_the_parts() {
    let t = machine(PAIRS);
    let (_, reasons) = explained(&t, &request("cores=10 policy=spread:l3"), &Taken::default()).unwrap();
    assert!(
        reasons.contains(&"spread over 8 of 8 L3 caches, at most 2 of the cores on each".into()),
        "{reasons:?}"
    );
}

#[test]
fn a_level_that_is_not_there_is_refused_with_those_that_are() {
    let error = plan(&machine(PAIRS), &request("cores=2 policy=spread:unit"), &Taken::default()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "this machine shows no units to spread over; take spread:l2 or spread:l3 or spread:node or spread:package"
    );
}

#[test]
fn threads_that_share_cores_while_others_are_free_are_warned_of() {
    let t = machine("package:2 node:1 core:4 pu:2 numbering=interleaved");
    let warnings = |words: &str| planned(&t, words).warnings;
    assert_eq!(
        warnings("cores=2 threads_per_core=2"),
        [
            "threads share cores while 6 other cores are free: -c 4 --threads-per-core 1 gives each its own core"
        ]
    );
    assert_eq!(
        warnings("processes=2 threads=2 threads_per_core=2"),
        ["threads share cores while 6 other cores are free: --threads-per-core 1 gives each its own core"]
    );
    assert_eq!(
        warnings("cores=7 threads_per_core=2"),
        ["threads share cores while 1 other core is free: -c 8 uses these too"]
    );
    assert_eq!(warnings("cores=8 threads_per_core=2"), Vec::<String>::new());
    assert_eq!(warnings("cores=8"), Vec::<String>::new());
}

#[test]
fn cpus_of_several_nodes_are_warned_of() {
    let mut t = machine("package:1 node:8 core:2");
    t.nodes.iter_mut().for_each(|node| node.cpus = CpuSet::range(0, 15));
    let plan = planned(&t, "cores=4");
    assert_eq!(
        plan.warnings,
        [
            "nodes 0-7 all list CPUs 0-3: which memory is local to them is unknown, and they belong to the first \
             of these nodes"
        ]
    );
    assert_eq!(plan.nodes().to_string(), "0");
}

#[test]
fn each_process_is_near_a_device_of_its_own() {
    let devices = "accelerator@node3 accelerator@node2 accelerator@node1 accelerator@node0 display@node0";
    let t = machine(&format!("package:2 node:2 core:4 {devices}"));
    let near = |words: &str| cpus(&t, &format!("{words} policy=near:gpu{{rank}}"));
    assert_eq!(near("processes=4 threads=2"), [[12, 13], [8, 9], [4, 5], [0, 1]]);
    assert_eq!(near("processes=2 threads=4"), [[12, 13, 14, 15], [8, 9, 10, 11]]);
    // One alone has the first.
    assert_eq!(near("cores=2"), [[12, 13]]);
    let (plan, _) =
        explained(&t, &request("processes=2 threads=2 policy=near:gpu{rank}"), &Taken::default()).unwrap();
    assert_eq!(plan.steps[0].because, "node 3 is at distance 10 from gpu0 on node 3");
    assert_eq!(plan.steps[2].because, "node 2 is at distance 10 from gpu1 on node 2");
    let error = plan_error(&t, "processes=5 threads=2 policy=near:gpu{rank}");
    assert!(error.starts_with("there is no device 'gpu4'; devices are pci 0000:01:00.0"), "{error}");
}

fn plan_error(t: &Topology, words: &str) -> String {
    plan(t, &request(words), &Taken::default()).unwrap_err().to_string()
}

#[test]
fn a_process_without_room_near_its_device_displaces_no_other() {
    let devices = "accelerator@node0 accelerator@node0 accelerator@node1";
    let t = machine(&format!("package:2 node:1 core:4 {devices}"));
    // Two processes of three threads at node 0: the second goes where the third leaves room.
    let given = cpus(&t, "processes=2 threads=3 policy=near:gpu{rank}");
    assert_eq!((given[0].as_slice(), given[1][0]), ([0, 1, 2].as_slice(), 3));
    let t = machine(&format!("package:3 node:1 core:4 {devices}"));
    let given = cpus(&t, "processes=3 threads=3 policy=near:gpu{rank}");
    assert_eq!((given[0].as_slice(), given[2].as_slice()), ([0, 1, 2].as_slice(), [4, 5, 6].as_slice()));
    assert_eq!(given[1][0], 3);
}

#[test]
fn weights_of_the_kernel_are_explained() {
    let mut t = machine("package:2 node:1 core:2");
    let explained = |t: &Topology| {
        let (_, reasons) = explained(t, &request("cores=2 memory=weighted:0-1"), &Taken::default()).unwrap();
        reasons.into_iter().find(|reason| reason.contains("weights"))
    };
    assert_eq!(explained(&t), None);
    (t.nodes[0].interleave_weight, t.nodes[1].interleave_weight, t.weights_auto) =
        (Some(5), Some(2), Some(true));
    assert_eq!(
        explained(&t).unwrap(),
        "pages in a row by the kernel's weights, which it sets automatically from the bandwidth of the nodes: 5 on node \
         0, 2 on node 1"
    );
    let measure = |t: &mut Topology, peaks: [f64; 2]| {
        let node = |(node, peak)| MeasuredNode { node, bandwidth: Some(peak), ..MeasuredNode::default() };
        let nodes = (0..).zip(peaks).map(node).collect();
        t.measured = Some(MeasuredMemory { nodes, ..MeasuredMemory::default() });
    };
    measure(&mut t, [60e9, 20e9]);
    let reason = explained(&t).unwrap();
    assert!(
        reason.ends_with("; by the measured bandwidths they would be 3 on node 0, 1 on node 1 ('numa bench weights' says how to set them)"),
        "{reason}"
    );
    measure(&mut t, [50e9, 20e9]);
    t.nodes[0].interleave_weight = Some(46);
    t.nodes[1].interleave_weight = Some(18);
    let reason = explained(&t).unwrap();
    assert!(reason.ends_with("on node 1; the measured bandwidths lead to the same weights"), "{reason}");
    (t.measured, t.nodes[1].interleave_weight) = (None, Some(2));
    (t.nodes[0].interleave_weight, t.weights_auto) = (Some(2), Some(false));
    assert_eq!(
        explained(&t).unwrap(),
        "the kernel's weights are 2 for all nodes, which were set manually: that is plain interleaving"
    );
}
