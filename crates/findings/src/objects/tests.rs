use super::*;
use numakit_explain::code::{CodeName, CodeTime, PlaceTimes};
use numakit_explain::contended::Sharing;
use numakit_explain::memory_policies::{BoundBy, MemoryBinding};
use numakit_explain::object_use::NodeShare;
use numakit_explain::objects::{AllocatingThread, BlockOrigins, ObjectKind};
use numakit_explain::python::ScriptShares;
use numakit_explain::runtime::{MallocLibrary, ProgramRuntime};
use numakit_explain::share::ShareEstimate;
use numakit_explain::walk::MemoryWalk;
use numakit_explain::{NodeTime, OpenLoops};
use numakit_model::measured::LatencyMatrix;
use numakit_model::thresholds::REMOTE;
use numakit_model::topology::{Distances, Topology};
use numakit_model::{CpuSet, MeasuredMemory};
use numakit_sampling::operand::{AccessKind, MemoryAccess, RecoveryRule};
use numakit_sys::huge_pages::Setting;

/// An object of 1 GiB that half of the time of all threads waits for, and that is all at remote nodes.
fn far(home: &[(u32, f64)], from: &[u32], partition: f64) -> ObjectUse {
    let pairs = from.iter().flat_map(|cpu_node| {
        home.iter().map(|(memory_node, share)| NodeTime {
            cpu_node: *cpu_node,
            memory_node: *memory_node,
            time: (share * 1000.0) as u64,
        })
    });
    ObjectUse {
        samples: 500,
        time: PlaceTimes { local: 250, remote: 750, ..PlaceTimes::default() },
        pairs: pairs.collect(),
        remote: Some(ShareEstimate { share: 0.75, low: 0.7, high: 0.8 }),
        home: home.iter().map(|(node, share)| NodeShare { node: *node, share: *share }).collect(),
        partition: Some(partition),
        threads: from.len(),
        ..ObjectUse::default()
    }
}

fn near() -> ObjectUse {
    let remote = Some(ShareEstimate { share: 0.02, low: 0.0, high: 0.04 });
    let time = PlaceTimes { local: 1000, ..PlaceTimes::default() };
    ObjectUse { remote, time, ..far(&[(0, 1.0)], &[0], 0.0) }
}

fn object(kind: ObjectKind) -> SampledObject {
    let blocks = BlockOrigins::default();
    SampledObject {
        pid: 7,
        processes: vec![7],
        kind,
        pieces: 1,
        size: 1 << 30,
        blocks,
        name: "table".to_owned(),
    }
}

fn explained(used: &ObjectUse, object: SampledObject) -> ExplainedObject {
    let facts = ObjectFacts {
        used: used.clone(),
        of_cpu_time: Some(0.5),
        kernel: Some(0.1),
        huge_pages: Some(0.0),
        runtime: ProgramRuntime::OpenMp,
        malloc: Some(MallocLibrary::C),
        ..ObjectFacts::default()
    };
    ExplainedObject {
        object,
        home: used.home.clone(),
        used_from: used.used_from(),
        nodes: used.pairs.clone(),
        time_share: 0.9,
        remote: used.remote,
        in_cache: 0.0,
        contended: 0.0,
        hint_faults: None,
        first_touch: Vec::new(),
        members: None,
        used_by: Vec::new(),
        python_use: ScriptShares::default(),
        python_allocation: ScriptShares::default(),
        facts,
    }
}

/// Two nodes, twice as far from each other.
fn machine() -> Topology {
    let distances = Distances::new(vec![0, 1], vec![vec![10, 20], vec![20, 10]]).unwrap();
    Topology { distances: Some(distances), ..Topology::default() }
}

/// A program that was started, or runs already.
fn app(is_attached: bool) -> JudgedProgram<'static> {
    JudgedProgram { command: "./app", is_attached, open_loops: None }
}

/// The finding about an object, which the test may change before.
fn judged(used: &ObjectUse, kind: ObjectKind, change: impl FnOnce(&mut ExplainedObject)) -> Option<Finding> {
    let mut explained = explained(used, object(kind));
    change(&mut explained);
    judge((0, &explained), app(false), &RemoteCosts::of(&machine()))
}

fn rule(used: &ObjectUse, kind: ObjectKind) -> &'static str {
    judged(used, kind, |_| {}).map_or("none", |finding| finding.rule)
}

fn command(finding: &Finding) -> Option<&str> {
    finding.remedy.commands.first().map(String::as_str)
}

fn worth(finding: &Finding) -> &Worth {
    finding.remedy.worth.as_ref().unwrap()
}

const ALL: [u32; 2] = [0, 1];

/// At the threshold of reports and pages: below it there is a verdict in neither, above it in both.
#[test]
fn remote_memory_is_a_problem_where_it_is_one_in_a_report() {
    let used = |low: f64| {
        let remote = Some(ShareEstimate { share: low + 0.05, low, high: low + 0.1 });
        ObjectUse { remote, ..far(&[(0, 1.0)], &ALL, 0.9) }
    };
    assert_eq!(rule(&used(REMOTE - 0.02), ObjectKind::Allocated), "none");
    assert_eq!(rule(&used(REMOTE + 0.02), ObjectKind::Allocated), "first-touch");
}

#[test]
fn what_is_far_has_a_cause() {
    use ObjectKind::{Allocated, File, Stack, ThreadLocal};
    let one = [(0, 1.0)];
    let spread = [(0, 0.5), (1, 0.5)];
    assert_eq!(rule(&far(&one, &ALL, 0.9), Allocated), "first-touch");
    assert_eq!(rule(&far(&one, &ALL, 0.1), Allocated), "shared-by-all");
    assert_eq!(rule(&far(&one, &[1], 0.1), Allocated), "other-node");
    assert_eq!(rule(&far(&spread, &ALL, 0.9), Allocated), "spread");
    assert_eq!(rule(&far(&spread, &ALL, 0.0), Allocated), "spread");
    assert_eq!(rule(&far(&one, &ALL, 0.9), ThreadLocal), "thread-local");
    assert_eq!(rule(&far(&one, &ALL, 0.9), Stack), "thread-local");
    assert_eq!(rule(&far(&one, &ALL, 0.1), File), "page-cache");
    // Each node has its part of what all use; of what each uses in parts, every page has a better place.
    assert_eq!(rule(&far(&spread, &ALL, 0.1), File), "spread");
    assert_eq!(rule(&far(&spread, &ALL, 0.9), File), "page-cache");
    assert_eq!(rule(&far(&[(0, 0.8), (1, 0.2)], &ALL, 0.1), File), "page-cache");
    assert_eq!(rule(&far(&[(0, 0.5), (2, 0.5)], &ALL, 0.1), File), "page-cache");
    let wandered = ObjectUse { wandered: 0.8, ..far(&one, &[1], 0.1) };
    assert_eq!(rule(&wandered, Allocated), "thread-moved");
    for (roams, expected) in [(true, Some("numa run ./app")), (false, None)] {
        let moved = ObjectUse { moved: Some(0.5), roams, ..far(&spread, &ALL, 0.1) };
        let finding = judged(&moved, Allocated, |_| {}).unwrap();
        assert_eq!((finding.rule, command(&finding)), ("pages-moved", expected));
    }
    let huge = judged(&far(&spread, &ALL, 0.9), Allocated, |e| e.facts.huge_pages = Some(0.9));
    assert_eq!(huge.unwrap().rule, "spread");
}

/// Loops that hand out iterations to any thread lose what their threads touched first.
#[test]
fn what_dynamic_loops_use_gets_adaptive_loops() {
    let tried = |home: &[(u32, f64)], open_loops, partition| {
        let explained = explained(&far(home, &ALL, partition), object(ObjectKind::Allocated));
        let program = JudgedProgram { open_loops, ..app(false) };
        let finding = judge((0, &explained), program, &RemoteCosts::of(&machine())).unwrap();
        (finding.rule, command(&finding).map(str::to_owned))
    };
    let even = [(0, 0.5), (1, 0.5)];
    let adaptive = Some("numa run --loops adaptive ./app".to_owned());
    assert_eq!(tried(&even, Some(OpenLoops::Even), 0.1), ("spread", adaptive));
    assert_eq!(tried(&even, None, 0.1), ("spread", None));
    // Threads use parts of their own, and one node has nearly all.
    assert_eq!(tried(&even, Some(OpenLoops::Even), 0.9), ("spread", None));
    assert_eq!(tried(&[(0, 0.8), (1, 0.2)], Some(OpenLoops::Even), 0.1), ("spread", None));
}

#[test]
fn what_a_policy_or_a_cpuset_binds_is_not_blamed_on_the_first_touch() {
    let used = far(&[(0, 1.0)], &ALL, 0.9);
    for (nodes, by, kind, expected) in [
        ("0", BoundBy::Policy, ObjectKind::Allocated, "bound-memory"),
        ("0", BoundBy::Cpuset, ObjectKind::ThreadLocal, "bound-memory"),
        // It is on the node that its threads prefer, and on one of those that have them all.
        ("1", BoundBy::Policy, ObjectKind::Allocated, "first-touch"),
        ("0-1", BoundBy::Policy, ObjectKind::Allocated, "first-touch"),
        // The page cache was filled by others.
        ("0", BoundBy::Policy, ObjectKind::File, "page-cache"),
    ] {
        let bound = MemoryBinding { nodes: CpuSet::parse_list(nodes).unwrap(), by };
        let finding = judged(&used, kind, |e| e.facts.bound = Some(bound)).unwrap();
        assert_eq!(finding.rule, expected, "{nodes} {by:?}");
        if expected == "bound-memory" {
            let is_policy = by == BoundBy::Policy;
            assert_eq!(command(&finding), is_policy.then_some("numa run --nodes 0 ./app"), "{finding:?}");
            assert_eq!(finding.remedy.words.contains("cpuset.mems"), !is_policy, "{finding:?}");
        }
    }
}

#[test]
fn pages_of_a_file_are_moved_to_its_users() {
    let used = far(&[(0, 1.0)], &ALL, 0.9);
    let object = SampledObject { name: "/models/a b.gguf".to_owned(), ..object(ObjectKind::File) };
    for (again, expected) in [
        (app(false), "numa file spread --by-use '/models/a b.gguf' -- ./app"),
        (app(true), "numa file spread --by-use '/models/a b.gguf' --pid 7"),
    ] {
        let explained = explained(&used, object.clone());
        let finding = judge((0, &explained), again, &RemoteCosts::default()).unwrap();
        assert_eq!(command(&finding), Some(expected));
    }
    let finding = judged(&used, ObjectKind::File, |_| {}).unwrap();
    assert_eq!((command(&finding), finding.remedy.expect.as_deref()), (None, None), "without its path");
}

#[test]
fn what_is_spread_and_used_from_one_node_goes_there() {
    let spread = [(0, 0.5), (1, 0.5)];
    let finding = judged(&far(&spread, &[1], 0.0), ObjectKind::SharedMemory, |_| {}).unwrap();
    assert_eq!((finding.rule, command(&finding)), ("spread-away", Some("numa run --nodes 1 ./app")));
    assert_eq!(finding.says, "it is on nodes 0 and 1, and only threads of node 1 use it");
    assert_eq!(rule(&far(&spread, &ALL, 0.0), ObjectKind::SharedMemory), "spread");
    // Its node had no room for all of it.
    assert_eq!(rule(&far(&[(0, 0.2), (1, 0.8)], &[1], 0.0), ObjectKind::SharedMemory), "spread");
    assert_eq!(rule(&far(&[(0, 1.0)], &[1], 0.0), ObjectKind::SharedMemory), "other-node");
}

#[test]
fn parts_smaller_than_huge_pages_are_said() {
    let used = ObjectUse { threads: 1024, ..far(&[(0, 0.5), (1, 0.5)], &ALL, 0.9) };
    let finding = judged(&used, ObjectKind::Allocated, |e| e.facts.huge_pages = Some(0.9)).unwrap();
    assert_eq!(finding.rule, "huge-pages-across-parts");
    assert_eq!(command(&finding).unwrap(), "numa run --thp off ./app");
}

#[test]
fn nothing_is_said_of_what_is_near_small_or_uncertain() {
    assert_eq!(rule(&near(), ObjectKind::Allocated), "none");
    let used = far(&[(0, 1.0)], &ALL, 0.9);
    assert!(judged(&used, ObjectKind::Allocated, |e| e.time_share = 0.01).is_none());
    let few = ObjectUse { samples: 10, ..used.clone() };
    assert_eq!(rule(&few, ObjectKind::Allocated), "none");
    let uncertain = ShareEstimate { share: 0.75, low: 0.2, high: 1.0 };
    assert_eq!(rule(&ObjectUse { remote: Some(uncertain), ..used }, ObjectKind::Allocated), "none");
}

#[test]
fn it_is_worth_the_difference_of_the_distances_at_most() {
    let used = far(&[(0, 1.0)], &ALL, 0.9);
    let finding = judged(&used, ObjectKind::Allocated, |_| {}).unwrap();
    // Half of all time, of which three quarters are remote and could take half as long.
    let at_most = 0.5 * 0.75 * 0.5;
    assert!((worth(&finding).at_most.unwrap() - at_most).abs() < 1e-9, "{finding:?}");
    let Some(cost) = finding.cost.percent() else { panic!("{finding:?}") };
    assert!((cost - 100.0 * at_most).abs() < 1e-6, "it costs what the remedy is worth: {finding:?}");
    assert!(finding.remedy.words.contains("#pragma omp parallel for"), "{finding:?}");
    let untold = judged(&used, ObjectKind::Allocated, |e| e.facts.of_cpu_time = None).unwrap();
    assert_eq!((worth(&untold).at_most, untold.cost.percent()), (None, None));
}

#[test]
fn contended_lines_cost_their_time_and_their_fields_are_named() {
    let time = PlaceTimes { contended: 900, local: 100, ..PlaceTimes::default() };
    let used = ObjectUse { time, ..near() };
    let fields = ["table[0].hits", "table[1].hits", "a", "b", "c"].map(str::to_owned);
    let change = |sharing: Sharing, count: usize| {
        let change = |e: &mut ExplainedObject| {
            (e.facts.sharing, e.facts.fields) = (Some(sharing), fields[..count].to_vec());
        };
        let finding = judged(&used, ObjectKind::Variable, change).unwrap();
        assert_eq!((finding.rule, worth(&finding).at_most), ("contended-lines", Some(0.45)));
        finding.remedy.words
    };
    assert!(change(Sharing::False, 0).contains("alignas(64)"));
    assert!(change(Sharing::False, 2).starts_with("Pad or align table[0].hits and table[1].hits so"));
    assert!(
        change(Sharing::False, 5).starts_with("Pad or align table[0].hits, table[1].hits, a and 2 more so")
    );
    assert!(change(Sharing::Lock, 1).ends_with("the threads share table[0].hits"));
    let says = |pids: &[u32]| {
        let change = |e: &mut ExplainedObject| e.facts.line_processes = pids.to_vec();
        judged(&used, ObjectKind::SharedMemory, change).unwrap().says
    };
    assert_eq!(says(&[11]), "several threads change the same lines of it");
    assert_eq!(says(&[11, 12]), "threads of the processes 11 and 12 change the same lines of it");
}

#[test]
fn what_was_measured_comes_before_the_distances_of_the_firmware() {
    let used = far(&[(0, 1.0)], &ALL, 0.9);
    let explained = explained(&used, object(ObjectKind::Allocated));
    let worth = |topology: &Topology| {
        worth(&judge((0, &explained), app(false), &RemoteCosts::of(topology)).unwrap()).clone()
    };
    let mut machine = machine();
    assert_eq!(
        worth(&machine).why,
        "remote memory takes 2.0 times as long, by the distances of the firmware"
    );
    let ns = |far| vec![vec![Some(80.0), Some(120.0)], vec![far, Some(80.0)]];
    let latency = |far| LatencyMatrix { from: vec![0, 1], to: vec![0, 1], ns: ns(far) };
    let measured = |far| Some(MeasuredMemory { latency: latency(far), ..MeasuredMemory::default() });
    machine.measured = measured(Some(120.0));
    let found = worth(&machine);
    assert!((found.at_most.unwrap() - 0.5 * 0.75 / 3.0).abs() < 1e-9, "{found:?}");
    assert_eq!(
        found.why,
        "remote memory takes 1.5 times as long, as measured here: a load takes 120 ns instead of 80 ns"
    );
    machine.measured = measured(None);
    assert!(worth(&machine).why.ends_with("by the distances of the firmware"), "a pair was not measured");
    (machine.measured, machine.distances) = (None, None);
    assert_eq!(worth(&machine).at_most, None);
}

/// A walk of instructions that are next executed at a distance, that jump if it is large, or follow a chain.
fn walk(distance: u64, rule: RecoveryRule) -> MemoryWalk {
    walked(|n| if distance > 1 << 20 { distance * (n + 1) } else { distance }, rule)
}

fn walked(distance: impl Fn(u64) -> u64, rule: RecoveryRule) -> MemoryWalk {
    let mut walk = MemoryWalk::default();
    for n in 0..20 {
        let (instruction, address, distance) = (0x40, 0x10_0000 + n * 0x9000, distance(n));
        let next =
            MemoryAccess { instruction, address: address + distance, size: 8, kind: AccessKind::Load, rule };
        walk.look(instruction, address, rule, &[next]);
    }
    walk
}

#[test]
fn layout_is_judged_on_one_node_too() {
    let near = ObjectUse { remote: None, ..near() };
    for (walk, expected) in [
        (walk(0, RecoveryRule::Direct), "waiting-for-threads"),
        (walk(0, RecoveryRule::Chain), "chain"),
        (walk(5 << 20, RecoveryRule::Direct), "random-on-small-pages"),
        (walk(46_336, RecoveryRule::Direct), "large-steps"),
        (walk(96, RecoveryRule::Direct), "part-of-each-line"),
        (walk(8, RecoveryRule::Direct), "none"),
    ] {
        assert!(judged(&near, ObjectKind::Allocated, |_| {}).is_none());
        let rule = |of_cpu_time, huge_pages| {
            let change = |e: &mut ExplainedObject| {
                let walk = Some(walk.clone());
                e.facts = ObjectFacts { walk, of_cpu_time, huge_pages, ..e.facts.clone() };
            };
            judged(&near, ObjectKind::Allocated, change).map_or("none", |finding| finding.rule)
        };
        assert_eq!(rule(Some(0.5), Some(0.0)), expected);
        // What takes little time is not worth another layout.
        assert_eq!(rule(Some(0.01), Some(0.0)), "none");
    }
}

#[test]
fn accesses_without_order_are_judged_on_huge_pages_too() {
    let near = ObjectUse { remote: None, ..near() };
    let rule = |walk: MemoryWalk| {
        let change = |e: &mut ExplainedObject| {
            (e.facts.walk, e.facts.of_cpu_time, e.facts.huge_pages) = (Some(walk), Some(0.5), Some(1.0));
        };
        judged(&near, ObjectKind::Allocated, change).map_or("none", |finding| finding.rule)
    };
    assert_eq!(rule(walk(5 << 20, RecoveryRule::Direct)), "random");
    let of_python = |e: &mut ExplainedObject| {
        e.facts.walk = Some(walk(5 << 20, RecoveryRule::Direct));
        (e.facts.runtime, e.facts.huge_pages) = (ProgramRuntime::Python, Some(1.0));
    };
    let python = judged(&near, ObjectKind::Allocated, of_python).unwrap();
    assert!(python.remedy.words.contains("numpy.sort"), "{python:?}");
    assert_eq!(rule(walk(46_336, RecoveryRule::Direct)), "large-steps");
    assert_eq!(rule(walk(8, RecoveryRule::Direct)), "none");
}

#[test]
fn large_steps_are_cured_by_other_loops() {
    let line = CodeName {
        function: Some("sum".to_owned()),
        module: "app".to_owned(),
        file: Some("/src/app.c".to_owned()),
        line: Some(7),
    };
    let used_by = vec![CodeTime { name: line, time: PlaceTimes::default() }];
    let near = ObjectUse { remote: None, used_by, ..near() };
    let finding = |distance| {
        let change = |e: &mut ExplainedObject| e.facts.walk = Some(walk(distance, RecoveryRule::Direct));
        judged(&near, ObjectKind::Allocated, change).unwrap()
    };
    let column = finding(46_336);
    assert!(column.says.contains("steps of 46336 bytes"), "{column:?}");
    assert!(column.remedy.words.starts_with("Swap the loops around sum (/src/app.c:7), so"), "{column:?}");
    assert_eq!(worth(&column).at_most, Some(0.5));
    // Rows of less than a page are rows all the same, and structures are not.
    assert!(finding(2048).remedy.words.starts_with("Swap the loops"));
    assert!(finding(96).remedy.words.starts_with("Keep the fields"));
}

#[test]
fn changes_of_the_layout_have_a_bound_and_commands_say_what_they_do() {
    let near = ObjectUse { remote: None, ..near() };
    let finding = |walk: &MemoryWalk| {
        let change = |e: &mut ExplainedObject| {
            (e.facts.walk, e.facts.of_cpu_time) = (Some(walk.clone()), Some(0.8));
        };
        judged(&near, ObjectKind::Allocated, change).unwrap()
    };
    for (walk, at_most, expect) in [
        // Without its source, the pages of a chain can be changed.
        (walk(0, RecoveryRule::Chain), Some(0.8), Some("gives huge pages to what malloc allocates")),
        // The command reaches other memory too.
        (walk(5 << 20, RecoveryRule::Direct), Some(0.544), Some("gives huge pages to what malloc allocates")),
        // What is used of it may fit the caches, and its page faults go too.
        (walk(96, RecoveryRule::Direct), Some(0.9), None),
        (walk(0, RecoveryRule::Direct), None, None),
    ] {
        let finding = finding(&walk);
        let found = worth(&finding).at_most.map(|share| (share * 1000.0).round() / 1000.0);
        assert_eq!((found, finding.remedy.expect.as_deref()), (at_most, expect), "{finding:?}");
    }
    let used = far(&[(0, 1.0)], &ALL, 0.9);
    let remedy = judged(&used, ObjectKind::Allocated, |_| {}).unwrap().remedy;
    assert!(remedy.expect.as_deref().unwrap().contains("makes nothing local"), "{remedy:?}");
}

/// Each kind of memory has a switch of its own: that of the C library's malloc reaches no other.
#[test]
fn huge_pages_come_by_the_switch_of_the_memory() {
    let near = ObjectUse { remote: None, ..near() };
    let tried = |kind, runtime, malloc| {
        let change = |e: &mut ExplainedObject| {
            e.facts.walk = Some(walk(5 << 20, RecoveryRule::Direct));
            (e.facts.runtime, e.facts.malloc) = (runtime, malloc);
        };
        judged(&near, kind, change).unwrap().remedy.commands.concat()
    };
    let (c, threads) = (Some(MallocLibrary::C), ProgramRuntime::Threads);
    assert_eq!(tried(ObjectKind::Allocated, threads, c), "numa run --thp on ./app");
    assert_eq!(
        tried(ObjectKind::Allocated, threads, Some(MallocLibrary::Jemalloc)),
        "MALLOC_CONF=thp:always ./app"
    );
    // Without a log of allocations, its own marks tell memory of malloc.
    assert_eq!(tried(ObjectKind::Mapping, threads, c), "numa run --thp on ./app");
    let java = tried(ObjectKind::Mapping, ProgramRuntime::Java, None);
    assert_eq!(java, "JDK_JAVA_OPTIONS=-XX:+UseTransparentHugePages ./app");
    let shared = tried(ObjectKind::SharedMemory, threads, c);
    let command = |file: &str| format!("{} ./app", super::remedy::always(file));
    assert_eq!(shared, command("/sys/kernel/mm/transparent_hugepage/shmem_enabled"));
    // The machine's switch reaches what the program maps itself, unless it is on.
    let with = |setting| {
        let change = |e: &mut ExplainedObject| {
            e.facts.walk = Some(walk(5 << 20, RecoveryRule::Direct));
            (e.facts.malloc, e.facts.huge_page_setting) = (None, Some(setting));
        };
        judged(&near, ObjectKind::Mapped, change).unwrap().remedy.commands.concat()
    };
    assert_eq!(with(Setting::Always), "");
    let command = format!("{} ./app", super::remedy::always("/sys/kernel/mm/transparent_hugepage/enabled"));
    assert_eq!(with(Setting::Advised), command);
    // What the program maps itself, variables, and memory of an allocator without a switch.
    for kind in [ObjectKind::Mapped, ObjectKind::Variable, ObjectKind::Mapping] {
        assert_eq!(tried(kind, threads, None), "");
    }
    assert_eq!(tried(ObjectKind::Allocated, threads, Some(MallocLibrary::Tcmalloc)), "");
}

/// Blocks that threads of one node allocated at addresses that threads of another one may have had before.
fn blocks(on: u32, earlier: Option<u32>, are_small: bool) -> BlockOrigins {
    let mut blocks = BlockOrigins::default();
    blocks.are_small = are_small;
    for thread in 20..24 {
        blocks.add(AllocatingThread { thread, node: on }, 1 << 20, earlier);
    }
    blocks
}

#[test]
fn memory_that_the_allocator_hands_to_another_node_is_told_from_what_others_initialised() {
    let judged = |blocks: BlockOrigins, home: &[(u32, f64)], from: &[u32]| {
        let used = far(home, from, 0.1);
        let object = SampledObject { blocks, ..object(ObjectKind::Allocated) };
        judge((0, &explained(&used, object)), app(false), &RemoteCosts::default()).unwrap()
    };
    let rule = |blocks, home: &[(u32, f64)], from: &[u32]| judged(blocks, home, from).rule;
    let (one, other) = ([(0, 1.0)], [(1, 1.0)]);
    assert_eq!(rule(blocks(1, Some(0), false), &one, &[1]), "reused-across-nodes");
    let finding = judged(blocks(1, Some(0), false), &one, &[1]);
    assert!(finding.says.starts_with("threads of node 1 allocated it, in memory that threads of node 0 had"));
    let change = &finding.remedy.words;
    assert!(change.contains("MALLOC_ARENA_MAX") && change.contains("jemalloc"), "{change}");
    // Nobody had the addresses before, or threads of the same node, or its pages are elsewhere.
    assert_eq!(rule(blocks(1, None, false), &one, &[1]), "other-node");
    assert_eq!(rule(blocks(1, Some(1), false), &one, &[1]), "other-node");
    assert_eq!(rule(blocks(1, Some(0), false), &[(2, 1.0)], &[1]), "other-node");
    // Threads use it that did not allocate it.
    assert_eq!(rule(blocks(0, Some(1), false), &other, &[2]), "other-node");
    // Small blocks are written where they are allocated.
    assert_eq!(rule(blocks(1, None, true), &one, &[1]), "reused-across-nodes");
    assert_eq!(rule(blocks(0, None, true), &one, &[1]), "other-node");
}
