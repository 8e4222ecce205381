use super::*;
use crate::code::CodeName;
use crate::observation::{LINE, MemoryPart, Waited};
use crate::traffic::{FarPages, PagesSeenAgain};
use numakit_sampling::operand::{AccessKind, RecoveryRule};

struct Names;

impl CodeNames for Names {
    fn name(&mut self, _: u32, _: u64) -> CodeName {
        CodeName { function: Some("sum".to_owned()), module: "app".to_owned(), ..CodeName::default() }
    }
}

/// A load at a time, in ms, of object 3 at a page, by a thread on a node.
fn load(thread: u32, time: u64, cpu_node: u32, page: u64, home: u32) -> (Observation, TimePlace) {
    let address = page * PAGE + time % 64 * LINE;
    let access = ObservedAccess {
        address,
        size: 8,
        kind: AccessKind::Load,
        rule: RecoveryRule::Direct,
        object: 3,
        home: Some(home),
        part: MemoryPart::Heap,
        shared: None,
    };
    let (cpu, waited) = (Some(cpu_node), Waited::Memory(access));
    let time = time * 1_000_000;
    let at = Observation {
        thread,
        process: 0,
        time,
        weight: 5,
        cpu_node: cpu,
        instruction: 0x40,
        waited,
        chain: 0,
    };
    (at, if cpu_node == home { TimePlace::Local } else { TimePlace::Remote })
}

fn uses(all: &[(Observation, TimePlace)]) -> Vec<ObjectUse> {
    let placed: Vec<Placed<'_>> = all.iter().map(|(at, place)| (at, *place)).collect();
    by_time(&placed, true, &mut Names)
}

#[test]
fn four_nodes_use_parts_of_what_one_has() {
    let all: Vec<_> =
        (0..800).map(|n| load(n as u32 % 4, n * 5, n as u32 % 4, n % 4 * 1000 + n, 0)).collect();
    let used = &uses(&all)[0];
    assert_eq!((used.object, used.samples, used.threads, used.home.len()), (3, 800, 4, 1));
    let remote = used.remote.unwrap();
    assert!((remote.share - 0.75).abs() < 1e-9 && remote.low > 0.6, "{remote:?}");
    assert_eq!(used.used_from().iter().map(|part| part.share).collect::<Vec<_>>(), [0.25; 4]);
    assert_eq!(used.pairs[1], NodeTime { cpu_node: 1, memory_node: 0, time: 1000 });
    assert!(used.partition.unwrap() > 0.5, "{:?}", used.partition);
    assert_eq!((used.moved, used.wandered, used.used_by.len()), (None, 0.0, 1));
}

#[test]
fn a_thread_that_went_away_is_told_from_pages_that_did() {
    let thread: Vec<_> = (0..100).map(|n| load(0, n * 5, u32::from(n >= 20), n, 0)).collect();
    let used = &uses(&thread)[0];
    assert_eq!((used.wandered, used.moved, used.roams), (1.0, None, true));
    let pages: Vec<_> = (0..100).map(|n| load(0, n * 5, 0, n % 50, u32::from(n >= 50))).collect();
    let used = &uses(&pages)[0];
    assert_eq!((used.wandered, used.moved, used.roams), (0.0, Some(1.0), false));
    assert_eq!(used.home, [NodeShare { node: 1, share: 1.0 }]);
}

#[test]
fn without_time_pages_count() {
    let cell = |cpu_node, pages| TrafficCell { cpu_node, memory_node: 0, pages };
    let pages = ObjectPages {
        cells: vec![cell(0, 100), cell(1, 300)],
        users: (0..400).map(|n| (n * PAGE, u32::from(n >= 100))).collect(),
        homes: (0..400).map(|n| (n, 0)).collect(),
        samples: 200,
        threads: BTreeSet::from([(0, 0), (1, 0), (1, 1)]),
        seen_again: PagesSeenAgain { all: 20, moved: 5 },
        far: FarPages { all: 300, was_near: 60 },
        ..ObjectPages::default()
    };
    let used = &by_pages(&BTreeMap::from([(3, pages)]))[0];
    let remote = used.remote.unwrap();
    assert_eq!((used.object, used.outside(), used.time.total(), remote.share), (3, 400, 0, 0.75));
    assert!(remote.low < 0.7 && remote.high > 0.8 && used.partition.unwrap() > 0.9, "{used:?}");
    assert_eq!(used.home, [NodeShare { node: 0, share: 1.0 }]);
    assert_eq!((used.moved, used.wandered, used.threads, used.roams), (Some(0.25), 0.2, 2, true));
}

#[test]
fn one_node_has_no_remote_part() {
    let all = [load(0, 5, 0, 1, 0)];
    let placed: Vec<Placed<'_>> = all.iter().map(|(at, place)| (at, *place)).collect();
    assert_eq!(by_time(&placed, false, &mut Names)[0].remote, None);
}
