//! What processes did with their memory, by the log of allocations.

use super::{LARGE, Processes, root_of};
use crate::identity::parent_of_same_program;
use crate::process_objects::{AllocationSite, ProcessObjects, PushedCalls};
use numakit_sys::SysRoot;
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
    /// Begins the objects of a process, if there are none of it yet: with those of the process that forked it, since the
    /// log may say later that it did.
    pub(super) fn begin_objects(&mut self, pid: u32) {
        if self.objects.contains_key(&pid) {
            return;
        }
        // What executed a program has nothing of the process before.
        let parent = match self.news.contains_key(&pid) {
            true => None,
            false => parent_of_same_program(&SysRoot::host(), pid),
        };
        let is_logged = |parent: &u32| self.objects.get(parent).is_some_and(ProcessObjects::is_logged);
        match parent.filter(is_logged) {
            Some(parent) => self.inherit(pid, parent),
            None => _ = self.objects.insert(pid, ProcessObjects::new(root_of(pid))),
        }
    }

    /// Gives a forked process the objects of its parent, as far as they are known.
    fn inherit(&mut self, pid: u32, parent: u32) {
        if let Some(objects) = self.objects.get(&parent).cloned() {
            self.objects.insert(pid, objects);
        }
        if let Some(sites) = self.sites.get(&parent).copied() {
            self.sites.insert(pid, sites);
        }
    }

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
                // Its first sample may come before, and begins its objects; those of an ended process are older.
                let is_known = self.objects.get(&pid).is_some_and(|objects| objects.read() > record.time);
                if !is_known {
                    self.inherit(pid, parent);
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
                self.begin_objects(pid);
                let Some(process) = self.open.get(&pid).and_then(Option::as_ref) else { return };
                let Some(objects) = self.objects.get_mut(&pid) else { return };
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
    use numakit_sampling::process::{MemoryKind, parse_mappings};
    use numakit_sys::allocation_log::LOG_SLOT_WORDS;
    use numakit_sys::proc::{TaskDir, tree};
    use numakit_testing::until;
    use std::process::{Child, Command, Stdio};

    fn words_of(process: u32, kind: u64, time: u64) -> [u64; LOG_SLOT_WORDS] {
        let pid = u64::from(process);
        let mut words = [0; LOG_SLOT_WORDS];
        words[1] = pid | pid << 32;
        words[2] = time;
        words[6] = kind << 32;
        words
    }

    /// A record of this process: of kind 1 it begins, of kind 5 it allocates a block.
    fn record(kind: u64, time: u64, block: &[u8]) -> AllocationRecord {
        let mut words = words_of(std::process::id(), kind, time);
        if kind == 5 {
            (words[3], words[4]) = (block.as_ptr() as u64, block.len() as u64);
            // By `malloc`, which this function called.
            words[6] |= 1 << 40 | 1 << 48;
            words[10] = record as *const () as u64 + 4;
        }
        AllocationRecord::parse(&words).unwrap()
    }

    /// A shell, and the part of it that it has forked and that waits for input.
    fn forking() -> (Child, u32) {
        let mut shell = Command::new("sh");
        let shell = shell.args(["-c", "(read word; :); :"]).stdin(Stdio::piped()).spawn().unwrap();
        let root = SysRoot::host();
        let forked = || tree::family(&root, shell.id()).into_iter().find(|pid| *pid != shell.id());
        until!(forked().is_some());
        let forked = forked().unwrap();
        (shell, forked)
    }

    /// The log says later than the first sample that a process was forked.
    #[test]
    fn a_forked_process_begins_with_the_objects_of_its_parent() {
        let (mut shell, forked) = forking();
        let mappings = parse_mappings(&TaskDir::of(&SysRoot::host(), shell.id()).text("maps").unwrap());
        let heap = mappings.iter().find(|mapping| mapping.kind == MemoryKind::Heap).unwrap().range.clone();
        let code = mappings.iter().find(|mapping| mapping.executable).unwrap().range.start;
        let mut processes = Processes::new(&Topology::default()).without_variables();
        processes.place(shell.id());
        let mut words = words_of(shell.id(), 5, 100);
        (words[3], words[4]) = (heap.start, heap.end - heap.start);
        words[6] |= 1 << 40 | 1 << 48;
        words[10] = code + 4;
        processes.log(&AllocationRecord::parse(&words_of(shell.id(), 1, 50)).unwrap());
        processes.observed(shell.id());
        processes.log(&AllocationRecord::parse(&words).unwrap());
        let of = |processes: &mut Processes, pid| {
            let found = processes.object_at(pid, heap.start + 64, u64::MAX >> 1).unwrap();
            (processes.object_name(pid, found).unwrap(), processes.identity(pid, found), found)
        };
        let parent = of(&mut processes, shell.id());
        assert!(parent.0.starts_with("malloc in ") && parent.1.is_some(), "{parent:?}");
        let first = of(&mut processes, forked);
        assert_eq!((&first.0, &first.1), (&parent.0, &parent.1));
        let mut told = words_of(forked, 2, 200);
        told[5] = u64::from(shell.id());
        processes.log(&AllocationRecord::parse(&told).unwrap());
        assert_eq!(of(&mut processes, forked), first);
        shell.kill().unwrap();
        shell.wait().unwrap();
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
