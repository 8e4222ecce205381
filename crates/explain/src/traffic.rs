//! Traffic between nodes, from all operands that threads are about to use: for machines whose samples do not name the
//! instruction that waited.
//!
//! A sample gives the lines that a thread uses next. A page counts once in two seconds and thread, however often it is sampled:
//! repeats are mostly served by caches. Pages whose lines are used so often that a cache keeps them do not count at all. On
//! such machines a second of CPU time is not the same work for each thread; so all that are busy count alike.

use crate::caches::CacheSizes;
use crate::observation::{LINE, PAGE};
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};

/// Pages are counted anew after this time, in ns: what is used all the time causes more traffic than what is used once.
const WINDOW: u64 = 2_000_000_000;
/// Pages that are kept.
const MAX_PAGES: usize = 1 << 20;
const LINES_OF_PAGE: u64 = PAGE / LINE;
/// A page whose seen lines were seen this often, on average, has no others in use.
const SEEN_ALL: u32 = 2;
/// A thread with this part of the samples of the busiest one counts as much as that one: on emulated processors, threads that do
/// the same work were seen with a sixth.
const BUSY: f64 = 1.0 / 6.0;

/// From the node of a CPU to the node of memory.
pub type NodePair = (u32, u32);

/// A page as one thread uses it, on one node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct PageKey {
    process: u32,
    thread: u32,
    cpu_node: Option<u32>,
    page: u64,
}

/// A thread of a process, and where it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrafficUser {
    /// Place of the process in the list of processes: its threads share their addresses.
    pub process: u32,
    /// Place of the thread in the list of threads.
    pub thread: u32,
    /// The node of its CPU, if that is known.
    pub cpu_node: Option<u32>,
}

/// Pages in use, by thread.
#[derive(Debug, Default)]
pub struct TrafficCounter {
    pages: HashMap<PageKey, PageUse>,
    threads: BTreeMap<u32, ThreadUse>,
    beyond: u64,
}

/// What samples say of a page.
#[derive(Debug, Clone, Copy, Default)]
struct PageUse {
    home: Option<u32>,
    /// A bit for each line that was seen.
    seen: u64,
    /// Lines of all samples, with repeats.
    lines: u32,
    samples: u32,
    windows: u32,
    window: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct ThreadUse {
    samples: u64,
    /// Lines of all samples, with repeats.
    lines: u64,
}

/// An estimate of where the lines came from that threads read and wrote.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Traffic {
    /// Distinct pages that do not stay in caches, summed over windows, by node pair; threads that are busy count alike.
    pub pages: Vec<TrafficCell>,
    /// Pages whose node is not known.
    pub unknown: u64,
    /// Pages that stay in the caches.
    pub cached: u64,
}

/// One pair of nodes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct TrafficCell {
    /// The node of the CPUs.
    pub cpu_node: u32,
    /// The node of the memory.
    pub memory_node: u32,
    /// Distinct pages, summed over windows.
    pub pages: u64,
}

impl PageUse {
    /// The same page, as two threads use it.
    fn and(self, other: Self) -> Self {
        Self {
            seen: self.seen | other.seen,
            lines: self.lines.saturating_add(other.lines),
            samples: self.samples.saturating_add(other.samples),
            ..self
        }
    }

    /// Whether a cache of `cache` lines keeps the lines of the page, where samples saw `of_all` lines of all pages. It does if
    /// each is used again before as many others were used. The sample that saw a line does not say that it is used again:
    /// only other samples do.
    fn stays(&self, cache: u64, of_all: u64) -> bool {
        let distinct = self.seen.count_ones();
        let in_use = if self.lines > SEEN_ALL * distinct { u64::from(distinct) } else { LINES_OF_PAGE };
        let others = u64::from(self.lines) * u64::from(self.samples - 1) / u64::from(self.samples);
        u128::from(others) * u128::from(cache) > u128::from(of_all) * u128::from(in_use)
    }
}

impl TrafficCounter {
    /// Adds a sample: the lines that a thread is about to use at a time, and their homes.
    pub fn add(&mut self, user: TrafficUser, time: u64, lines: &[(u64, Option<u32>)]) {
        let TrafficUser { process, thread, cpu_node } = user;
        let mut pages: BTreeMap<u64, (u64, Option<u32>)> = BTreeMap::new();
        for &(line, home) in lines {
            let page = pages.entry(line / LINES_OF_PAGE).or_default();
            page.0 |= 1 << (line % LINES_OF_PAGE);
            page.1 = page.1.or(home);
        }
        let of_thread = self.threads.entry(thread).or_default();
        of_thread.samples += 1;
        let window = time / WINDOW + 1;
        for (page, (seen, home)) in pages {
            of_thread.lines += u64::from(seen.count_ones());
            let key = PageKey { process, thread, cpu_node, page };
            if self.pages.len() >= MAX_PAGES && !self.pages.contains_key(&key) {
                self.beyond += 1;
                continue;
            }
            let used = self.pages.entry(key).or_default();
            used.home = home.or(used.home);
            used.seen |= seen;
            used.lines = used.lines.saturating_add(seen.count_ones());
            used.samples = used.samples.saturating_add(1);
            used.windows += u32::from(used.window != window);
            used.window = window;
        }
    }

    /// The estimate so far, where each thread has caches of these sizes.
    pub fn traffic(&self, caches: CacheSizes) -> Traffic {
        let cache = caches.private.max(caches.last_level) / LINE;
        let all_lines: u64 = self.threads.values().map(|of_thread| of_thread.lines).sum();
        let mut together: HashMap<(u32, u64), PageUse> = HashMap::new();
        for (key, used) in &self.pages {
            let sum = together.entry((key.process, key.page)).or_default();
            *sum = sum.and(*used);
        }
        let mut by_thread: BTreeMap<u32, BTreeMap<NodePair, u64>> = BTreeMap::new();
        let mut traffic = Traffic { unknown: self.beyond, ..Traffic::default() };
        for (key, used) in &self.pages {
            let lines = self.threads.get(&key.thread).map_or(0, |of_thread| of_thread.lines);
            let pages = u64::from(used.windows);
            // A thread with few samples is like the others, as far as they use the same.
            let of_others = together.get(&(key.process, key.page));
            let stays = used.stays(cache, lines) || of_others.is_some_and(|sum| sum.stays(cache, all_lines));
            match key.cpu_node.zip(used.home) {
                _ if stays => traffic.cached += pages,
                Some(pair) => *by_thread.entry(key.thread).or_default().entry(pair).or_default() += pages,
                None => traffic.unknown += pages,
            }
        }
        traffic.pages = self.together(&by_thread);
        traffic
    }

    /// Sums pages over threads that are equally busy, so that the sum of pages stays.
    fn together(&self, by_thread: &BTreeMap<u32, BTreeMap<NodePair, u64>>) -> Vec<TrafficCell> {
        let samples = |thread: &u32| self.threads.get(thread).map_or(0, |of_thread| of_thread.samples) as f64;
        let busiest = by_thread.keys().map(samples).fold(1.0, f64::max);
        let busy = |thread: &u32| (samples(thread) / busiest / BUSY).min(1.0);
        let all_busy: f64 = by_thread.keys().map(busy).sum();
        let of = |pairs: &BTreeMap<NodePair, u64>| pairs.values().sum::<u64>() as f64;
        let all: f64 = by_thread.values().map(of).sum();
        let mut cells: BTreeMap<NodePair, f64> = BTreeMap::new();
        for (thread, pairs) in by_thread {
            let weight = busy(thread) / all_busy * all / of(pairs);
            for (pair, pages) in pairs {
                *cells.entry(*pair).or_default() += weight * *pages as f64;
            }
        }
        let cell = |((cpu_node, memory_node), pages): (NodePair, f64)| TrafficCell {
            cpu_node,
            memory_node,
            pages: pages.round() as u64,
        };
        cells.into_iter().map(cell).collect()
    }
}

impl Traffic {
    /// The share that came from other nodes; `None` without pages.
    pub fn far_share(&self) -> Option<f64> {
        let all: u64 = self.pages.iter().map(|cell| cell.pages).sum();
        let far: u64 =
            self.pages.iter().filter(|cell| cell.cpu_node != cell.memory_node).map(|cell| cell.pages).sum();
        (all > 0).then(|| far as f64 / all as f64)
    }
}

#[cfg(test)]
mod tests {
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

    /// Four lines of a stream through `pages` pages, at a place without pattern.
    fn stream(n: u64, pages: u64, home: u32) -> Vec<(u64, Option<u32>)> {
        let first = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
        (0..4).map(|line| ((first + line) % (pages * LINES_OF_PAGE), Some(home))).collect()
    }

    #[test]
    fn a_page_counts_once_a_window_and_thread() {
        let mut counter = TrafficCounter::default();
        for time in [0, 1, WINDOW - 1, WINDOW, WINDOW + 1] {
            counter.add(user(0, 0), time, &[(6400, Some(1))]);
            counter.add(user(1, 1), time, &[(6400, Some(1)), (6401, Some(1))]);
        }
        counter.add(user(0, 0), WINDOW, &[(6464, Some(0)), (6528, None)]);
        let traffic = counter.traffic(CacheSizes::default());
        assert_eq!((traffic.unknown, traffic.cached), (1, 0));
        // Both threads are busy: three pages and two are 2.5 each.
        assert_eq!(cells(&traffic), [(0, 0, 1), (0, 1, 2), (1, 1, 3)]);
        assert_eq!(Traffic::default().far_share(), None);
    }

    #[test]
    fn what_a_cache_keeps_is_no_traffic() {
        for (pages, is_far) in [(16, false), (2048, true)] {
            let mut counter = TrafficCounter::default();
            for n in 0..400 {
                // A large array of the own node, a table of constants of another one, and something of another one.
                let mut lines = stream(n, 2048, 0);
                lines.iter_mut().for_each(|(line, _)| *line += 1 << 40);
                lines.push(((1 << 30) + n % 20, Some(1)));
                lines.extend(stream(n, pages, 1));
                counter.add(user(0, 0), n * SAMPLE, &lines);
            }
            let traffic = counter.traffic(CACHES);
            let far = traffic.far_share().unwrap();
            assert!(traffic.cached > 0 && (far - if is_far { 0.5 } else { 0.0 }).abs() < 0.03, "{far}");
        }
    }

    #[test]
    fn few_samples_do_not_make_a_large_array_small() {
        let mut counter = TrafficCounter::default();
        (0..10).for_each(|n| counter.add(user(0, 0), n * SAMPLE, &stream(n, 4096, 1)));
        let traffic = counter.traffic(CACHES);
        assert_eq!((traffic.cached, traffic.far_share()), (0, Some(1.0)));
    }

    #[test]
    fn what_all_threads_use_all_the_time_is_in_the_cache_of_one_with_few_samples() {
        let mut counter = TrafficCounter::default();
        for thread in 0..50 {
            let mut lines = stream(u64::from(thread), 4096, 0);
            lines.extend((0..40).map(|line| (line * LINES_OF_PAGE, Some(1))));
            lines.iter_mut().take(4).for_each(|(line, _)| *line += 1 << 40);
            counter.add(user(thread, 0), SAMPLE, &lines);
        }
        assert_eq!(counter.traffic(CACHES).far_share(), Some(0.0));
        // Other processes have other pages at the same addresses.
        for thread in 50..100 {
            let used = TrafficUser { process: thread, ..user(thread, 0) };
            counter.add(used, SAMPLE, &[(0, Some(1))]);
        }
        assert!(counter.traffic(CACHES).far_share().unwrap() > 0.1);
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
        let far = traffic.far_share().unwrap();
        assert!((far - 1.1 / 2.1).abs() < 0.01, "{far}");
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
                counter.add(user, *time, lines);
            }
            let traffic = counter.traffic(CacheSizes { private: kib << 10, last_level: 0 });
            let windows: u64 = counter.pages.values().map(|used| u64::from(used.windows)).sum();
            let known: u64 = traffic.pages.iter().map(|cell| cell.pages).sum();
            // Each cell is rounded.
            let difference = (traffic.unknown + traffic.cached + known).abs_diff(windows);
            prop_assert!(difference <= traffic.pages.len() as u64, "{difference} {traffic:?}");
            prop_assert!(kib > 0 || traffic.cached == 0);
        }
    }
}
