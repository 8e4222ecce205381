use super::*;

/// The next of a sequence of numbers that look random.
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

type Uses = BTreeMap<PageUse, u64>;

/// Samples of random pages of a range, each by the node that `of` gives, with pages on node 0.
fn sampled(uses: &mut Uses, seed: u64, pages: Range<u64>, count: u64, of: impl Fn(u64, u64) -> u32) {
    let mut state = seed;
    for _ in 0..count {
        let page = pages.start + random(&mut state) % (pages.end - pages.start);
        let node = of(page, random(&mut state));
        *uses.entry(PageUse { page, node, home: Some(0) }).or_default() += 1;
    }
}

fn shown(plan: &UsePlan) -> Vec<(Range<u64>, RangeTarget)> {
    plan.ranges.iter().map(|range| (range.pages.clone(), range.target.clone())).collect()
}

/// How many pages of a range are planned for the node that `of` gives.
fn right(plan: &UsePlan, pages: Range<u64>, of: impl Fn(u64) -> Option<u32>) -> u64 {
    pages.filter(|page| plan.node(*page, 1) == of(*page)).count() as u64
}

#[test]
fn quarters_go_to_their_readers_and_what_all_read_is_shared() {
    use RangeTarget::{Node, Shared};
    let mut uses = Uses::new();
    sampled(&mut uses, 1, 0..4000, 400, |page, _| (page / 1000) as u32);
    sampled(&mut uses, 2, 4000..6000, 200, |_, random| (random % 4) as u32);
    let plan = UsePlan::new(&uses, 6000);
    let targets: Vec<RangeTarget> = plan.ranges.iter().map(|range| range.target.clone()).collect();
    assert_eq!(targets, [Node(0), Node(1), Node(2), Node(3), Shared(vec![0, 1, 2, 3])], "{plan:?}");
    for (at, range) in plan.ranges.iter().enumerate() {
        assert!(range.pages.start.abs_diff(at as u64 * 1000) < 60, "{range:?}");
    }
    assert_eq!((plan.ranges[0].pages.start, plan.ranges[4].pages.end), (0, 6000));
    assert_eq!(plan.nodes(), [0, 1, 2, 3]);
    let far = plan.far(&uses);
    assert_eq!((far.samples, far.placed), (600, 600));
    assert!(far.before > 400 && (far.after - 150.0).abs() < 20.0, "{far:?}");
}

#[test]
fn stripes_of_many_matrices_are_found() {
    // 60 matrices of 160 pages, each divided among four nodes, with 12 samples for each part.
    let of = |page: u64| (page % 160 / 40) as u32;
    let mut uses = Uses::new();
    sampled(&mut uses, 3, 0..9600, 60 * 4 * 12, |page, _| of(page));
    let plan = UsePlan::new(&uses, 9600);
    let right = right(&plan, 0..9600, |page| Some(of(page)));
    assert!(right > 8600, "{right} of 9600 pages in {} ranges", plan.ranges.len());
    assert!(plan.far(&uses).after < 0.05 * plan.far(&uses).before as f64, "{:?}", plan.far(&uses));
}

#[test]
fn samples_of_other_nodes_do_not_divide_a_range() {
    let mut uses = Uses::new();
    sampled(&mut uses, 4, 0..10_000, 500, |_, random| if random % 10 == 0 { 3 } else { 1 });
    assert_eq!(shown(&UsePlan::new(&uses, 10_000)), [(0..10_000, RangeTarget::Node(1))]);
}

#[test]
fn a_range_that_two_nodes_read_is_shared_by_these() {
    let mut uses = Uses::new();
    sampled(
        &mut uses,
        5,
        0..1000,
        300,
        |_, random| if random % 20 == 0 { 3 } else { (random % 2 * 2) as u32 },
    );
    assert_eq!(shown(&UsePlan::new(&uses, 1000)), [(0..1000, RangeTarget::Shared(vec![0, 2]))]);
}

#[test]
fn what_nobody_uses_stays() {
    use RangeTarget::{Node, Unclear, Unused};
    let mut uses = Uses::new();
    sampled(&mut uses, 6, 10_000..12_000, 100, |_, _| 2);
    let plan = UsePlan::new(&uses, 50_000);
    let targets: Vec<RangeTarget> = plan.ranges.iter().map(|range| range.target.clone()).collect();
    assert_eq!(targets, [Unused, Node(2), Unused], "{plan:?}");
    assert!(plan.ranges[1].pages.start.abs_diff(10_000) < 100, "{plan:?}");
    assert!(plan.ranges[1].pages.end.abs_diff(12_000) < 100, "{plan:?}");
    assert_eq!((plan.node(0, 1), plan.node(11_000, 1), plan.node(99_999, 1)), (None, Some(2), None));
    assert_eq!(shown(&UsePlan::new(&Uses::new(), 7)), [(0..7, Unused)]);
    assert_eq!(shown(&UsePlan::new(&Uses::new(), 0)), []);
    let few = Uses::from([(PageUse { page: 2, node: 1, home: None }, 3)]);
    assert_eq!(shown(&UsePlan::new(&few, 5)), [(0..5, Unclear)]);
    assert_eq!(UsePlan::new(&few, 5).far(&few), FarSamples { samples: 3, ..FarSamples::default() });
}

#[test]
fn pages_of_a_block_have_the_node_of_its_middle() {
    let range = |pages, target| PlannedRange { pages, target, samples: BTreeMap::new() };
    let shared = RangeTarget::Shared(vec![1, 3]);
    let plan = UsePlan { ranges: vec![range(0..20, RangeTarget::Node(2)), range(20..64, shared)] };
    let nodes = |block| (0..64).step_by(8).map(|page| plan.node(page, block).unwrap()).collect::<Vec<u32>>();
    assert_eq!(nodes(1), [2, 2, 2, 1, 1, 1, 1, 1]);
    assert_eq!(nodes(16), [2, 2, 3, 3, 1, 1, 3, 3]);
}

#[test]
fn pages_beyond_the_end_do_not_count() {
    let used = |page| (PageUse { page, node: 1, home: Some(1) }, 9);
    let plan = UsePlan::new(&Uses::from([used(3), used(12)]), 10);
    assert_eq!(plan.ranges.iter().map(|range| range.samples.values().sum::<u64>()).sum::<u64>(), 9);
    assert_eq!(plan.ranges.last().unwrap().pages.end, 10);
}

#[test]
fn chance_divides_little_of_what_all_read() {
    for seed in 10..15 {
        let mut uses = Uses::new();
        sampled(&mut uses, seed, 0..50_000, 5000, |_, random| (random % 4) as u32);
        let plan = UsePlan::new(&uses, 50_000);
        let of_one = plan.ranges.iter().filter(|range| matches!(range.target, RangeTarget::Node(_)));
        let pages: u64 = of_one.map(|range| range.pages.end - range.pages.start).sum();
        assert!(pages < 500, "{pages} of 50000 pages, {} ranges", plan.ranges.len());
        assert!(plan.far(&uses).after > 0.72 * 5000.0, "{:?}", plan.far(&uses));
    }
}
