use crate::account::ThreadTimes;
use crate::caches::CacheSizes;
use crate::code::{CodeName, CodeNames};
use crate::observation::LINE;
use crate::{Explanation, Observation, ObservedAccess, Surveyed, Waited};
use numakit_sampling::operand::{AccessKind, RecoveryRule};

const MS: u64 = 1_000_000;

struct Names;

impl CodeNames for Names {
    fn name(&mut self, _: u32, instruction: u64) -> CodeName {
        CodeName {
            function: Some(format!("f{}", instruction / 0x100)),
            module: "app".to_owned(),
            file: Some("app.c".to_owned()),
            line: Some((instruction % 0x100) as u32),
        }
    }
}

/// One sample each 5 ms of a thread whose CPU is on node `thread`, at ever new lines of the object `home`.
fn reading(thread: u32, count: u64, home: Option<u32>, instruction: u64) -> Vec<Observation> {
    let one = |n: u64| Observation {
        thread,
        process: 0,
        time: n * 5 * MS,
        weight: 5 * MS,
        cpu_node: Some(thread),
        instruction,
        chain: 0,
        waited: Waited::Memory(ObservedAccess {
            address: (u64::from(home.unwrap_or(9)) << 40) + (n * 977 + u64::from(thread)) * 64 * LINE,
            size: 8,
            kind: AccessKind::Load,
            rule: RecoveryRule::Direct,
            object: home.unwrap_or(9),
            home,
            part: crate::observation::MemoryPart::Heap,
            shared: None,
        }),
    };
    (0..count).map(one).collect()
}

fn computing(thread: u32, count: u64) -> Vec<Observation> {
    let mut all = reading(thread, count, None, 0x350);
    all.iter_mut().for_each(|at| at.waited = Waited::Computing);
    all
}

fn known() -> Surveyed {
    Surveyed {
        times: ThreadTimes::between(4000 * MS, 2000 * MS, 400 * MS, 100 * MS, 77),
        caches: CacheSizes { private: 2 << 20, last_level: 16 << 20 },
        is_precise: true,
        has_nodes: true,
        traffic: None,
        sizes: std::collections::HashMap::new(),
    }
}

#[test]
fn shares_of_all_threads_add_up() {
    let all = [
        reading(0, 100, Some(0), 0x101),
        reading(1, 60, Some(0), 0x102),
        reading(1, 20, None, 0x201),
        computing(0, 220),
    ]
    .concat();
    let found = Explanation::new(&all, known(), &mut Names);
    let time = found.time.unwrap();
    let parts = [time.computing, time.cached, time.local, time.remote, time.unknown, time.contended];
    let expected = [0.275, 0.0, 0.125, 0.075, 0.025, 0.0];
    parts
        .iter()
        .zip(expected)
        .for_each(|(part, expected)| assert!((part - expected).abs() < 1e-9, "{time:?}"));
    assert_eq!((time.kernel, time.runnable, time.asleep), (0.1, 0.025, 0.375));
    assert!((parts.iter().sum::<f64>() + time.kernel + time.runnable + time.asleep - 1.0).abs() < 1e-9);
    let far = found.remote_share.unwrap();
    assert_eq!(far.share, 0.375);
    assert!(far.low < 0.375 && far.high > 0.375);
    let pairs: Vec<_> = found.nodes.iter().map(|n| (n.cpu_node, n.memory_node, n.time / MS)).collect();
    assert_eq!(pairs, [(0, 0, 500), (1, 0, 300)]);
}

#[test]
fn functions_and_lines_come_by_memory_time() {
    let all = [reading(0, 10, Some(0), 0x101), reading(1, 60, Some(0), 0x202), computing(0, 500)].concat();
    let found = Explanation::new(&all, known(), &mut Names);
    let functions: Vec<_> = found
        .functions
        .iter()
        .map(|f| (f.name.function.as_deref().unwrap(), f.time.local / MS, f.time.remote / MS))
        .collect();
    assert_eq!(functions, [("f2", 0, 300), ("f1", 50, 0), ("f3", 0, 0)]);
    assert_eq!(found.source_lines[0].name.line, Some(2));
    assert_eq!((found.samples.total, found.samples.memory, found.samples.recovered), (570, 70, 70));
    assert_eq!(found.samples.by_rule["direct"], 70);
}

#[test]
fn without_precise_samples_no_time_is_given() {
    let all = reading(1, 100, Some(0), 0x101);
    let found = Explanation::new(&all, Surveyed { is_precise: false, ..known() }, &mut Names);
    assert_eq!((found.time, found.remote_share), (None, None));
    let one_node = Explanation::new(&all, Surveyed { has_nodes: false, ..known() }, &mut Names);
    assert!(one_node.time.is_some() && one_node.remote_share.is_none());
}

#[test]
fn nothing_sampled_is_no_share() {
    let found = Explanation::new(&[], known(), &mut Names);
    assert_eq!((found.remote_share, found.samples.total), (None, 0));
    assert_eq!(found.time.unwrap().computing, 0.0);
}
