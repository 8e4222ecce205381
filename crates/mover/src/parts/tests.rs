use super::*;

const PAGE: u64 = 4096;
const START: u64 = 0x7000_0000_0000;

fn mapping(pages: u64) -> MappedRange {
    MappedRange { process: 9, range: START..START + pages * PAGE }
}

fn used(page: u64, node: u32, home: u32) -> UsedPage {
    UsedPage { process: 9, page: START + page * PAGE, node, home: Some(home), object: 0, samples: 1 }
}

fn input(used: Vec<UsedPage>) -> PartInput {
    PartInput { mappings: vec![mapping(4000)], used, names: vec!["a".to_owned()], ..PartInput::default() }
}

fn shown(parts: &[MovablePart]) -> Vec<(u64, u64, u32)> {
    let range = |part: &MovablePart| (part.ranges[0].start - START, part.ranges[0].end - START);
    let mut shown: Vec<_> =
        parts.iter().map(|part| (range(part).0 / PAGE, range(part).1 / PAGE, part.node)).collect();
    shown.sort_unstable();
    shown
}

#[test]
fn each_quarter_of_an_array_goes_to_its_users() {
    let points = (0..400).map(|at| used(at * 10, (at / 100) as u32, 0)).collect();
    let (parts, shared) = parts(&input(points), PAGE, &Recent::default());
    let found = shown(&parts);
    assert_eq!(found.len(), 3, "the first quarter is there already: {found:?}");
    for (at, (start, end, node)) in (1u64..).zip(&found) {
        assert!(start.abs_diff(at * 1000) <= 10 && end.abs_diff((at + 1) * 1000) <= 10, "{found:?}");
        assert_eq!(u64::from(*node), at);
    }
    assert!(shared.is_empty() && parts.iter().all(|part| part.samples == part.near && part.hot.len() == 100));
}

#[test]
fn what_few_samples_show_of_one_node_is_one_part() {
    // Two thirds of the pages are between samples that are far from each other.
    let points = (0..60).map(|at| used(if at < 30 { at } else { 3900 + at }, 2, 0)).collect();
    let (parts, shared) = parts(&input(points), PAGE, &Recent::default());
    let found = shown(&parts);
    assert!(found.len() == 1 && found[0].0 <= 1 && found[0].1 >= 3959 && found[0].2 == 2, "{found:?}");
    assert_eq!((parts[0].samples, shared), (60, Vec::new()));
}

#[test]
fn what_several_nodes_use_stays_and_is_named() {
    let points = (0..400).map(|at| used(at * 10, (at % 4) as u32, 0)).collect();
    let (parts, shared) = parts(&input(points), PAGE, &Recent::default());
    assert_eq!(shown(&parts), []);
    let expected = SharedRange { name: "a".to_owned(), samples: 400, nodes: (0..4).collect() };
    assert_eq!(shared, [expected]);
}

#[test]
fn memory_that_is_nearly_all_there_stays() {
    let points = (0..100).map(|at| used(at * 10, 2, if at == 50 { 0 } else { 2 })).collect();
    assert_eq!(parts(&input(points), PAGE, &Recent::default()), (Vec::new(), Vec::new()));
    let points = (0..100).map(|at| used(at * 10, 2, if at < 50 { 0 } else { 2 })).collect();
    let found = parts(&input(points), PAGE, &Recent::default()).0;
    assert_eq!(found.iter().map(|part| part.homes.clone()).next(), Some(BTreeMap::from([(0, 50), (2, 50)])));
}

#[test]
fn what_moved_just_now_stays() {
    let points: Vec<UsedPage> = (0..100).map(|at| used(at * 10, 2, 0)).collect();
    let mut recent = Recent::default();
    assert_eq!(parts(&input(points.clone()), PAGE, &recent).0.len(), 1);
    recent.moved(9, &(START + PAGE..START + 2 * PAGE));
    assert_eq!(parts(&input(points), PAGE, &recent).0.len(), 0);
}

#[test]
fn a_thread_has_its_stack_and_its_local_storage() {
    let own = OwnMemory { process: 9, thread: 5, node: 1, stack: START + 3000 * PAGE, base: None };
    let with = |base| PartInput { own: vec![OwnMemory { base, ..own.clone() }], ..input(Vec::new()) };
    let ranges = |base| parts(&with(base), PAGE, &Recent::default()).0[0].ranges.clone();
    let stack = own.stack - (16 << 10)..own.stack + (256 << 10);
    let alone = std::slice::from_ref(&stack);
    assert_eq!(ranges(None), alone);
    assert_eq!(ranges(Some(own.stack + 8192)), alone);
    let base = START + 100 * PAGE;
    assert_eq!(ranges(Some(base)), [stack.clone(), base - (16 << 10)..base + (16 << 10)]);
    assert_eq!(ranges(Some(7)), alone);
    let elsewhere = PartInput { own: vec![OwnMemory { stack: 7, ..own }], ..input(Vec::new()) };
    assert!(parts(&elsewhere, PAGE, &Recent::default()).0.is_empty());
}

#[test]
fn all_memory_goes_to_the_only_node_that_was_asked_for() {
    let elsewhere = MappedRange { process: 9, range: PAGE..5 * PAGE };
    let common = MappedRange { process: 9, range: 8 * PAGE..9 * PAGE };
    let mut input = input(vec![used(3, 0, 0), used(7, 1, 0), used(7, 1, 0)]);
    input.mappings.extend([elsewhere.clone(), common.clone()]);
    input.shared = vec![SharedMemory::new(vec![common.clone()], &BTreeMap::new())];
    let found = whole(&input, 1, &Recent::default());
    let [own, shared] = &found[..] else { panic!("{found:?}") };
    assert_eq!(own.ranges, [elsewhere.range, mapping(4000).range]);
    assert_eq!((own.samples, own.near, &own.homes), (3, 2, &BTreeMap::from([(0, 3)])));
    assert_eq!(own.hot, [START + 7 * PAGE, START + 3 * PAGE]);
    assert_eq!((shared.ranges.as_slice(), shared.samples), (std::slice::from_ref(&common.range), 0));
    let mut recent = Recent::default();
    recent.look(0);
    recent.moved(9, &common.range);
    assert_eq!(whole(&input, 1, &recent).len(), 1);
}
