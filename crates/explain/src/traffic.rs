//! Traffic between nodes, from all operands that threads are about to use: for machines whose samples do not name the
//! instruction that waited.
//!
//! A sample gives the lines that a thread uses next. A page counts once in two seconds and thread, however often it is sampled:
//! repeats are mostly served by caches. Pages whose lines are used so often that a cache keeps them do not count at all. On
//! such machines a second of CPU time is not the same work for each thread; so all that are busy count alike.

use crate::caches::CacheSizes;
use crate::observation::{LINE, PAGE};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// A page counts again after this time, in ns: memory that is used all the time causes more traffic than memory that is used
/// once.
const WINDOW: u64 = 2_000_000_000;
/// Pages that are kept.
const MAX_PAGES: usize = 1 << 20;
const LINES_OF_PAGE: u64 = PAGE / LINE;
/// Once each seen line of a page was seen this often, on average, the page's other lines are taken to be unused.
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
    /// The node of the page. Use from before the kernel moved the page counts at the old node.
    home: Option<u32>,
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

/// Pages by object and pair of nodes.
type PagesByObject = BTreeMap<(u32, NodePair), u64>;

/// Pages in use, by thread.
#[derive(Debug, Default)]
pub struct TrafficCounter {
    pages: HashMap<PageKey, PageUse>,
    threads: BTreeMap<u32, ThreadUse>,
    /// Samples that saw each object.
    samples: BTreeMap<u32, u64>,
    /// A thread and an object, by their places, and a node on which the thread used the object from a CPU of the same node.
    near: HashSet<(u32, u32, u32)>,
    beyond: u64,
}

/// A line that a thread is about to use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineAhead {
    /// The address, divided by the size of a line.
    pub line: u64,
    /// Place of its object in the list of objects.
    pub object: u32,
    /// The node of its page.
    pub home: Option<u32>,
}

impl LineAhead {
    /// Where the line begins.
    pub fn address(&self) -> u64 {
        self.line * LINE
    }
}

/// What samples say of a page.
#[derive(Debug, Clone, Copy, Default)]
struct PageUse {
    object: u32,
    /// A bit for each line that was seen.
    seen: u64,
    /// Lines of all samples, with repeats.
    lines: u32,
    samples: u32,
    windows: u32,
    window: u64,
    /// Whether the thread used the object on this node before, from a CPU of the same node.
    was_near: bool,
}

#[derive(Debug, Clone, Copy, Default)]
struct ThreadUse {
    samples: u64,
    /// Lines of all samples, with repeats.
    lines: u64,
}

/// An estimate of where the lines came from that threads read and wrote.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Traffic {
    /// Distinct pages that do not stay in caches, summed over windows, by node pair; threads that are busy count alike.
    pub pages: Vec<TrafficCell>,
    /// Pages whose node is not known.
    pub unknown: u64,
    /// Pages that stay in the caches.
    pub cached: u64,
    /// The pages of each object, by the object's place in the list of objects.
    #[serde(skip)]
    pub objects: BTreeMap<u32, ObjectPages>,
}

/// The pages of one object that do not stay in caches.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ObjectPages {
    /// Place of the process in the list of processes.
    pub process: u32,
    /// By pair of nodes.
    pub cells: Vec<TrafficCell>,
    /// The address of each page, with each node that uses it.
    pub users: Vec<(u64, u32)>,
    /// The node of each page, by its number.
    pub homes: BTreeMap<u64, u32>,
    /// Threads that use them, each with its nodes.
    pub threads: BTreeSet<(u32, u32)>,
    /// Samples that saw the object.
    pub samples: u64,
    /// Pages that several samples saw, and those of them that were on several nodes in turn.
    pub seen_again: PagesSeenAgain,
    /// Pages at other nodes, summed over windows; among them those of memory that their thread used near before.
    pub far: FarPages,
    /// Its pages that do stay in caches.
    pub cached: CachedPages,
}

/// Pages that stay in caches, once for each thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CachedPages {
    /// All of them.
    pub all: u64,
    /// Those at other nodes than their threads.
    pub remote: u64,
}

/// Pages that several samples saw.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PagesSeenAgain {
    /// All of them.
    pub all: u64,
    /// Those that were on several nodes in turn.
    pub moved: u64,
}

/// Pages at other nodes than their threads, summed over windows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FarPages {
    /// All of them.
    pub all: u64,
    /// Those of memory that the thread used near before.
    pub was_near: u64,
}

/// A page as all threads use it.
#[derive(Debug, Clone, Copy, Default)]
struct SharedPage {
    used: PageUse,
    home: Option<u32>,
    has_moved: bool,
}

/// One pair of nodes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct TrafficCell {
    /// The node of the CPUs.
    pub cpu_node: u32,
    /// The node of the memory.
    pub memory_node: u32,
    /// Distinct pages, summed over windows.
    pub pages: u64,
}

impl SharedPage {
    fn add(&mut self, home: Option<u32>, used: PageUse) {
        self.has_moved |= home.zip(self.home).is_some_and(|(one, other)| one != other);
        self.home = home.or(self.home);
        self.used = self.used.and(used);
    }
}

impl PageUse {
    /// Adds up how two threads use the same page.
    fn and(self, other: Self) -> Self {
        Self {
            seen: self.seen | other.seen,
            lines: self.lines.saturating_add(other.lines),
            samples: self.samples.saturating_add(other.samples),
            ..other
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
    /// Adds a sample: the lines that a thread is about to use at a time.
    pub fn add(&mut self, user: TrafficUser, time: u64, lines: &[LineAhead]) {
        let TrafficUser { process, thread, cpu_node } = user;
        let mut pages: BTreeMap<u64, (u64, LineAhead)> = BTreeMap::new();
        for ahead in lines {
            let (seen, first) = pages.entry(ahead.line / LINES_OF_PAGE).or_insert((0, *ahead));
            *seen |= 1 << (ahead.line % LINES_OF_PAGE);
            first.home = first.home.or(ahead.home);
        }
        let of_thread = self.threads.entry(thread).or_default();
        of_thread.samples += 1;
        let window = time / WINDOW + 1;
        let seen: BTreeSet<u32> = lines.iter().map(|ahead| ahead.object).collect();
        seen.into_iter().for_each(|object| *self.samples.entry(object).or_default() += 1);
        for (page, (seen, LineAhead { object, home, .. })) in pages {
            of_thread.lines += u64::from(seen.count_ones());
            let key = PageKey { process, thread, cpu_node, page, home };
            if self.pages.len() >= MAX_PAGES && !self.pages.contains_key(&key) {
                self.beyond += 1;
                continue;
            }
            if home.is_some() && home == cpu_node {
                self.near.extend(home.map(|home| (object, thread, home)));
            }
            let was_near = home.is_some_and(|home| self.near.contains(&(object, thread, home)));
            let used = self.pages.entry(key).or_default();
            used.object = object;
            used.was_near |= was_near;
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
        let mut together: HashMap<(u32, u64), SharedPage> = HashMap::new();
        for (key, used) in &self.pages {
            together.entry((key.process, key.page)).or_default().add(key.home, *used);
        }
        let mut by_thread: BTreeMap<u32, PagesByObject> = BTreeMap::new();
        let mut traffic = Traffic { unknown: self.beyond, ..Traffic::default() };
        for (key, used) in &self.pages {
            let lines = self.threads.get(&key.thread).map_or(0, |of_thread| of_thread.lines);
            let pages = u64::from(used.windows);
            // A thread with few samples is taken to use a page as the other threads do that use it.
            let of_others = together.get(&(key.process, key.page));
            let stays =
                used.stays(cache, lines) || of_others.is_some_and(|page| page.used.stays(cache, all_lines));
            let pair = key.cpu_node.zip(key.home);
            match pair {
                _ if stays => {
                    traffic.cached += pages;
                    if let Some((cpu_node, memory_node)) = pair {
                        let of_object = traffic.objects.entry(used.object).or_default();
                        of_object.process = key.process;
                        of_object.cached.all += 1;
                        of_object.cached.remote += u64::from(cpu_node != memory_node);
                    }
                }
                Some(pair) => {
                    traffic.objects.entry(used.object).or_default().add(key, used, pair);
                    let of_thread = by_thread.entry(key.thread).or_default();
                    *of_thread.entry((used.object, pair)).or_default() += pages;
                }
                None => traffic.unknown += pages,
            }
        }
        for page in together.values().filter(|page| page.used.samples > 1) {
            if let Some(of_object) = traffic.objects.get_mut(&page.used.object) {
                of_object.seen_again.all += 1;
                of_object.seen_again.moved += u64::from(page.has_moved);
            }
        }
        let cells = self.together(&by_thread);
        let mut pairs: BTreeMap<NodePair, f64> = BTreeMap::new();
        for ((object, pair), pages) in cells {
            *pairs.entry(pair).or_default() += pages;
            let of_object = traffic.objects.entry(object).or_default();
            of_object.cells.push(TrafficCell::new(pair, pages));
        }
        for (object, of_object) in &mut traffic.objects {
            of_object.samples = self.samples.get(object).copied().unwrap_or(0);
        }
        traffic.pages = pairs.into_iter().map(|(pair, pages)| TrafficCell::new(pair, pages)).collect();
        traffic
    }

    /// Sums pages over threads that are equally busy, so that the sum of pages stays.
    fn together(&self, by_thread: &BTreeMap<u32, PagesByObject>) -> BTreeMap<(u32, NodePair), f64> {
        let samples = |thread: &u32| self.threads.get(thread).map_or(0, |of_thread| of_thread.samples) as f64;
        let busiest = by_thread.keys().map(samples).fold(1.0, f64::max);
        let busy = |thread: &u32| (samples(thread) / busiest / BUSY).min(1.0);
        let all_busy: f64 = by_thread.keys().map(busy).sum();
        let of = |pages: &PagesByObject| pages.values().sum::<u64>() as f64;
        let all: f64 = by_thread.values().map(of).sum();
        let mut cells: BTreeMap<(u32, NodePair), f64> = BTreeMap::new();
        for (thread, of_thread) in by_thread {
            let weight = busy(thread) / all_busy * all / of(of_thread);
            for (cell, pages) in of_thread {
                *cells.entry(*cell).or_default() += weight * *pages as f64;
            }
        }
        cells
    }
}

impl ObjectPages {
    fn add(&mut self, key: &PageKey, used: &PageUse, (cpu_node, memory_node): NodePair) {
        self.process = key.process;
        self.users.push((key.page * PAGE, cpu_node));
        self.homes.insert(key.page, memory_node);
        self.threads.insert((key.thread, cpu_node));
        if cpu_node != memory_node {
            self.far.all += u64::from(used.windows);
            self.far.was_near += if used.was_near { u64::from(used.windows) } else { 0 };
        }
    }
}

impl TrafficCell {
    fn new((cpu_node, memory_node): NodePair, pages: f64) -> Self {
        Self { cpu_node, memory_node, pages: pages.round() as u64 }
    }
}

impl Traffic {
    /// The share that came from other nodes; `None` without pages.
    pub fn remote_share(&self) -> Option<f64> {
        let all: u64 = self.pages.iter().map(|cell| cell.pages).sum();
        let far: u64 =
            self.pages.iter().filter(|cell| cell.cpu_node != cell.memory_node).map(|cell| cell.pages).sum();
        (all > 0).then(|| far as f64 / all as f64)
    }
}

#[cfg(test)]
mod tests;
