use super::*;
use proptest::prelude::*;

const CACHES: CacheSizes = CacheSizes { private: 128 << 10, last_level: 256 << 10 };
const SAMPLE: u64 = 5_000_000;

fn user(thread: u32, cpu_node: u32) -> TrafficUser {
    TrafficUser { process: 0, thread, cpu_node: Some(cpu_node) }
}

fn cells(traffic: &Traffic) -> Vec<(u32, u32, u64)> {
    traffic.pages.iter().map(|cell| (cell.cpu_node, cell.memory_node, cell.pages)).collect()
}

/// A line of the object with the number of its node.
fn ahead(line: u64, home: Option<u32>) -> LineAhead {
    LineAhead { line, object: home.unwrap_or(9), home }
}

/// Four lines of a stream through `pages` pages, at a place without pattern.
fn stream(n: u64, pages: u64, home: u32) -> Vec<LineAhead> {
    let first = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
    (0..4).map(|line| ahead((first + line) % (pages * LINES_OF_PAGE), Some(home))).collect()
}

#[test]
fn a_page_counts_once_a_window_and_thread() {
    let mut counter = TrafficCounter::default();
    for time in [0, 1, WINDOW - 1, WINDOW, WINDOW + 1] {
        counter.add(user(0, 0), time, &[ahead(6400, Some(1))]);
        counter.add(user(1, 1), time, &[ahead(6400, Some(1)), ahead(6401, Some(1))]);
    }
    counter.add(user(0, 0), WINDOW, &[ahead(6464, Some(0)), ahead(6528, None)]);
    let traffic = counter.traffic(CacheSizes::default());
    assert_eq!((traffic.unknown, traffic.cached), (1, 0));
    // Both threads are busy: three pages and two are 2.5 each.
    assert_eq!(cells(&traffic), [(0, 0, 1), (0, 1, 2), (1, 1, 3)]);
    assert_eq!(Traffic::default().remote_share(), None);
}

#[test]
fn what_a_cache_keeps_is_no_traffic() {
    for (pages, is_far) in [(16, false), (2048, true)] {
        let mut counter = TrafficCounter::default();
        for n in 0..400 {
            // A large array of the own node, a table of constants of another one, and something of another one.
            let mut lines = stream(n, 2048, 0);
            lines.iter_mut().for_each(|ahead| ahead.line += 1 << 40);
            lines.push(ahead((1 << 30) + n % 20, Some(1)));
            lines.extend(stream(n, pages, 1));
            counter.add(user(0, 0), n * SAMPLE, &lines);
        }
        let traffic = counter.traffic(CACHES);
        let far = traffic.remote_share().unwrap();
        assert!(traffic.cached > 0 && (far - if is_far { 0.5 } else { 0.0 }).abs() < 0.03, "{far}");
        let (own, other) = (traffic.objects[&0].cached, traffic.objects[&1].cached);
        assert!(own.remote == 0 && other.all > 0 && other.remote == other.all, "{own:?} {other:?}");
    }
}

#[test]
fn few_samples_do_not_make_a_large_array_small() {
    let mut counter = TrafficCounter::default();
    (0..10).for_each(|n| counter.add(user(0, 0), n * SAMPLE, &stream(n, 4096, 1)));
    let traffic = counter.traffic(CACHES);
    assert_eq!((traffic.cached, traffic.remote_share()), (0, Some(1.0)));
}

#[test]
fn what_all_threads_use_all_the_time_is_in_the_cache_of_one_with_few_samples() {
    let mut counter = TrafficCounter::default();
    for thread in 0..50 {
        let mut lines = stream(u64::from(thread), 4096, 0);
        lines.extend((0..40).map(|line| ahead(line * LINES_OF_PAGE, Some(1))));
        lines.iter_mut().take(4).for_each(|ahead| ahead.line += 1 << 40);
        counter.add(user(thread, 0), SAMPLE, &lines);
    }
    assert_eq!(counter.traffic(CACHES).remote_share(), Some(0.0));
    // Other processes have other pages at the same addresses.
    for thread in 50..100 {
        let used = TrafficUser { process: thread, ..user(thread, 0) };
        counter.add(used, SAMPLE, &[ahead(0, Some(1))]);
    }
    assert!(counter.traffic(CACHES).remote_share().unwrap() > 0.1);
}

#[test]
fn busy_threads_count_alike_and_idle_ones_little() {
    let mut counter = TrafficCounter::default();
    for (thread, samples) in [(0, 300), (1, 50), (2, 5)] {
        (0..samples).for_each(|n| {
            counter.add(user(thread, thread), n, &stream(n + 1000 * u64::from(thread), 4096, 0))
        });
    }
    let traffic = counter.traffic(CACHES);
    let far = traffic.remote_share().unwrap();
    assert!((far - 1.1 / 2.1).abs() < 0.01, "{far}");
}

#[test]
fn pages_that_the_kernel_moved_count_where_they_were() {
    let mut counter = TrafficCounter::default();
    for n in 0..200 {
        // Half of the pages go to the node of the thread after two windows.
        let moves = |line: u64| (line / LINES_OF_PAGE).is_multiple_of(2);
        let home = |line: u64| u32::from(!(moves(line) && n >= 100));
        let lines: Vec<LineAhead> = (0..4)
            .map(|k| ((n % 100) * 4 + k) * LINES_OF_PAGE)
            .map(|line| LineAhead { line, object: 3, home: Some(home(line)) })
            .collect();
        counter.add(user(0, 0), n / 100 * WINDOW, &lines);
    }
    let traffic = counter.traffic(CacheSizes::default());
    assert_eq!(cells(&traffic), [(0, 0, 200), (0, 1, 600)]);
    let used = &traffic.objects[&3];
    assert_eq!(used.seen_again, PagesSeenAgain { all: 400, moved: 200 });
    // It was near on its own node only.
    assert_eq!(used.far, FarPages { all: 600, was_near: 0 });
}

#[test]
fn a_thread_that_went_away_had_its_pages_near() {
    let mut counter = TrafficCounter::default();
    for (cpu_node, first) in [(0, 0), (1, 1000)] {
        for n in 0..100 {
            let line = LineAhead { line: (first + n) * LINES_OF_PAGE, object: 3, home: Some(0) };
            counter.add(user(0, cpu_node), u64::from(cpu_node) * WINDOW, &[line]);
            // The other thread was always far.
            counter.add(user(1, 1), u64::from(cpu_node) * WINDOW, &[line]);
        }
    }
    let used = &counter.traffic(CacheSizes::default()).objects[&3];
    assert_eq!((used.far, used.seen_again.moved), (FarPages { all: 300, was_near: 100 }, 0));
}

proptest! {
    #[test]
    fn no_page_is_lost(
        samples in proptest::collection::vec(
            (0u32..4, 0u64..3 * WINDOW, proptest::option::of(0u32..3),
                proptest::collection::vec((0u64..4096, proptest::option::of(0u32..3)), 0..20)),
            0..200,
        ),
        kib in 0u64..300,
    ) {
        let mut counter = TrafficCounter::default();
        for (thread, time, node, lines) in &samples {
            let user = TrafficUser { process: thread / 2, thread: *thread, cpu_node: *node };
            let lines: Vec<LineAhead> = lines.iter().map(|(line, home)| ahead(*line, *home)).collect();
            counter.add(user, *time, &lines);
        }
        let traffic = counter.traffic(CacheSizes { private: kib << 10, last_level: 0 });
        let windows: u64 = counter.pages.values().map(|used| u64::from(used.windows)).sum();
        let known: u64 = traffic.pages.iter().map(|cell| cell.pages).sum();
        let of_objects: u64 = traffic.objects.values().flat_map(|object| &object.cells).map(|cell| cell.pages).sum();
        prop_assert!(of_objects.abs_diff(known) <= 50);
        // Each cell is rounded.
        let difference = (traffic.unknown + traffic.cached + known).abs_diff(windows);
        prop_assert!(difference <= traffic.pages.len() as u64, "{difference} {traffic:?}");
        prop_assert!(kib > 0 || traffic.cached == 0);
    }
}
