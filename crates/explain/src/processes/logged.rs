//! What processes did with their memory, by the log of allocations.

use super::{LARGE, Processes, root_of};
use crate::process_objects::{AllocationSite, ProcessObjects, PushedCalls};
use numakit_sys::allocation_log::{AllocationEvent, AllocationRecord};

/// A program that a process executed, and what it has allocated.
#[derive(Debug, Default)]
pub(super) struct RecentProgram {
    /// When it began, and the program of the process before it, in ns.
    pub(super) began: u64,
    before: u64,
    /// Whether the news that it is executed has come: until then its records are kept.
    is_told: bool,
    pub(super) records: Vec<AllocationRecord>,
}

/// Records of a program that are kept, at most.
const MAX_RECENT: usize = 4096;

impl RecentProgram {
    /// Takes the news that the process executed a program at this time: this one, or one before it.
    pub(super) fn hear(&mut self, time: u64) {
        self.is_told |= self.before < time && time < self.began;
    }

    fn keep(&mut self, record: &AllocationRecord) {
        if !self.is_told && self.records.len() < MAX_RECENT {
            self.records.push(record.clone());
        }
    }
}

impl Processes {
    /// What a process did with its memory. Records of a program may come before the news that it is executed.
    pub fn log(&mut self, record: &AllocationRecord) {
        let pid = record.process;
        self.order.note(record);
        match record.event {
            AllocationEvent::ProcessBegan { sites, .. } => {
                let before = self.recent.get(&pid).map_or(0, |program| program.began);
                let mut program = RecentProgram { began: record.time, before, ..RecentProgram::default() };
                self.news.get(&pid).into_iter().for_each(|time| program.hear(*time));
                self.recent.insert(pid, program);
                match sites {
                    Some(sites) => self.sites.insert(pid, sites),
                    None => self.sites.remove(&pid),
                };
            }
            AllocationEvent::ProcessForked { parent } => {
                if let Some(objects) = self.objects.get(&parent).cloned() {
                    self.objects.insert(pid, objects);
                }
                if let Some(sites) = self.sites.get(&parent).copied() {
                    self.sites.insert(pid, sites);
                }
            }
            _ => {
                self.recent.get_mut(&pid).into_iter().for_each(|program| program.keep(record));
                let bytes = record.event.allocated_bytes();
                let is_large = bytes >= LARGE;
                let call = record.call.as_ref().filter(|_| bytes > 0);
                // The thread goes on, and to find its chain may take a while.
                let look = call.and_then(|_| self.look_at_allocating(record));
                let chain = call.and_then(|call| self.allocation_chain(pid, call, is_large));
                let script = chain.as_ref().and_then(|chain| self.allocating_script(pid, &chain.told, look));
                let parts = chain.as_ref().and_then(|chain| Some((chain, chain.told.split_first()?)));
                let callers: Vec<u64> = script
                    .into_iter()
                    .chain(parts.iter().flat_map(|(_, (_, callers))| *callers).copied())
                    .collect();
                let site = parts.map(|(chain, (after, _))| AllocationSite {
                    after: *after,
                    callers: is_large.then_some(&callers[..]),
                    pushed: PushedCalls { chain: &chain.pushed, deciding: chain.deciding },
                });
                let Some(process) = self.open.get(&pid).and_then(Option::as_ref) else { return };
                let objects = self.objects.entry(pid).or_insert_with(|| ProcessObjects::new(root_of(pid)));
                objects.update(process.mappings(), process.refreshed());
                let node = record.cpu.and_then(|cpu| self.node_of_cpu.get(&cpu).copied());
                objects.log(record, site, self.threshold, node);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collector::ObservedProcesses;
    use numakit_model::topology::Topology;
    use numakit_sys::allocation_log::LOG_SLOT_WORDS;

    /// A record of this process: of kind 1 it begins, of kind 5 it allocates a block.
    fn record(kind: u64, time: u64, block: &[u8]) -> AllocationRecord {
        let pid = u64::from(std::process::id());
        let mut words = [0; LOG_SLOT_WORDS];
        words[1] = pid | pid << 32;
        words[2] = time;
        words[6] = kind << 32;
        if kind == 5 {
            (words[3], words[4]) = (block.as_ptr() as u64, block.len() as u64);
            // By `malloc`, which this function called.
            words[6] |= 1 << 40 | 1 << 48;
            words[10] = record as *const () as u64 + 4;
        }
        AllocationRecord::parse(&words).unwrap()
    }

    #[test]
    fn late_news_of_executed_programs_take_no_block_of_the_latest_one() {
        let (pid, block) = (std::process::id(), vec![0u8; 1 << 21]);
        let mut processes = Processes::new(&Topology::default()).without_variables();
        processes.place(pid);
        let named = |processes: &mut Processes| {
            let found = processes.object_at(pid, block.as_ptr() as u64, u64::MAX >> 1);
            found.and_then(|found| processes.object_name(pid, found)).unwrap_or_default()
        };
        // A program executes another one, which takes its time until it allocates.
        processes.log(&record(1, 100, &block));
        processes.log(&record(1, 200, &block));
        processes.log(&record(5, 1_000_000_000, &block));
        for (news, is_there) in [(50, true), (150, true), (120, true), (2_000_000_000, false)] {
            processes.executed(pid, news);
            let name = named(&mut processes);
            assert_eq!(name.starts_with("malloc in "), is_there, "after news of {news}: {name}");
        }
        // News that come before the program has said anything are those of the next one.
        processes.log(&record(1, 2_000_000_001, &block));
        processes.log(&record(5, 2_000_000_002, &block));
        assert!(named(&mut processes).starts_with("malloc in "));
        assert!(processes.recent[&pid].records.is_empty(), "nothing is kept for news that have come");
    }
}
