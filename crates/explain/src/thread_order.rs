//! The numbers of threads: their order of creation in their process. The first thread has the number 0.

use crate::threads::TICK;
use numakit_sys::allocation_log::{AllocationEvent, AllocationRecord};
use std::collections::{BTreeMap, HashMap, HashSet};

/// Threads of a process that are known by their records.
const MAX_THREADS: usize = 1 << 16;

/// Which threads processes have created.
#[derive(Debug, Default)]
pub struct ThreadOrder {
    /// The threads that wrote when they began, with that time in ns, by process.
    began: HashMap<u32, BTreeMap<u32, u64>>,
    /// The start times of threads that the kernel listed, in ticks, by process and thread.
    started: HashMap<u32, BTreeMap<u32, u64>>,
}

impl ThreadOrder {
    /// Notes what the log of allocations says of threads. A process with a new address space has none of the threads before.
    pub fn note(&mut self, record: &AllocationRecord) {
        match record.event {
            AllocationEvent::ProcessBegan { .. } => _ = self.began.remove(&record.process),
            AllocationEvent::ThreadBegan { .. } => {
                let threads = self.began.entry(record.process).or_default();
                if threads.len() < MAX_THREADS {
                    threads.insert(record.thread, record.time);
                }
            }
            _ => {}
        }
    }

    /// The kernel lists a thread, with its start time in ticks.
    pub fn listed(&mut self, (process, thread): (u32, u32), start: u64) {
        self.started.entry(process).or_default().insert(thread, start);
    }

    /// The numbers of a process's threads. Where threads write when they begin, these are all that the program has created, also
    /// those that have ended, and no thread that the kernel or a library made behind its back; else those that the kernel listed.
    pub fn numbers(&self, process: u32) -> HashMap<u32, u32> {
        let none = BTreeMap::new();
        let started = self.started.get(&process).unwrap_or(&none);
        let began = self.began.get(&process).unwrap_or(&none);
        let threads: HashSet<u32> = match began.is_empty() {
            true => started.keys().copied().collect(),
            false => began.keys().copied().collect(),
        };
        let mut order: Vec<u32> =
            threads.into_iter().chain([process]).collect::<HashSet<u32>>().into_iter().collect();
        // The kernel gives ascending numbers, and begins again at the lowest.
        order.sort_unstable_by_key(|thread| (*thread < process, *thread));
        let is_in_order = order.iter().filter_map(|thread| started.get(thread)).is_sorted();
        if !is_in_order {
            let ticks = |thread: &u32| {
                let began = began.get(thread).map_or(u64::MAX, |time| time / TICK);
                started.get(thread).copied().unwrap_or(began)
            };
            order.sort_by_key(|thread| (*thread != process, ticks(thread)));
        }
        order.into_iter().zip(0..).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_order(order: &ThreadOrder, process: u32) -> Vec<u32> {
        let mut all: Vec<(u32, u32)> =
            order.numbers(process).into_iter().map(|(thread, number)| (number, thread)).collect();
        all.sort_unstable();
        all.into_iter().map(|(_, thread)| thread).collect()
    }

    const BEGAN: AllocationEvent = AllocationEvent::ThreadBegan { stack: None, base: 64, function: None };

    fn record(thread: u32, time: u64, event: AllocationEvent) -> AllocationRecord {
        AllocationRecord { process: 100, thread, cpu: None, time, event, call: None }
    }

    #[test]
    fn threads_that_begin_late_keep_their_order_of_creation() {
        let mut order = ThreadOrder::default();
        for (thread, time) in [(100, 5), (103, 20), (101, 40), (102, 60)] {
            order.note(&record(thread, time, BEGAN));
        }
        // The kernel has made one that the program did not create.
        [(100, 1), (104, 2)].iter().for_each(|(thread, start)| order.listed((100, *thread), *start));
        assert_eq!(in_order(&order, 100), [100, 101, 102, 103]);
        order.note(&record(100, 90, AllocationEvent::ProcessBegan { parent: 1, sites: None }));
        assert_eq!(
            in_order(&order, 100),
            [100, 104],
            "without records the kernel's list is all that is known"
        );
        assert_eq!(in_order(&order, 7), [7]);
    }

    #[test]
    fn numbers_that_began_again_at_the_lowest_come_later() {
        let mut order = ThreadOrder::default();
        for (thread, start) in [(900, 10), (999, 11), (301, 12), (302, 12)] {
            order.listed((900, thread), start);
        }
        assert_eq!(in_order(&order, 900), [900, 999, 301, 302]);
        // They went round more than once.
        order.listed((900, 950), 40);
        order.listed((900, 303), 30);
        assert_eq!(in_order(&order, 900), [900, 999, 301, 302, 303, 950]);
    }
}
