//! Which pages threads use, by thread and page, in bounded memory: for moving either to the other.

use crate::observation::{LINE, PAGE};
use crate::traffic::LineAhead;
use numakit_sampling::Sample;
use std::collections::{BTreeMap, HashMap};

/// Maximum number of uses that are kept.
const MAX_USES: usize = 1 << 20;

/// A thread that was sampled.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UsingThread {
    /// Its process.
    pub process: u32,
    /// The thread.
    pub thread: u32,
    /// Its samples: how busy it was.
    pub samples: u64,
    /// Its samples by CPU, if the method tells the CPU.
    pub cpus: BTreeMap<u32, u64>,
    /// The stack pointer at its last sample.
    pub stack: u64,
    /// The base of its thread-local storage, if that is known.
    pub thread_base: Option<u64>,
}

impl UsingThread {
    /// The CPU that has most of its samples.
    pub fn cpu(&self) -> Option<u32> {
        self.cpus.iter().max_by_key(|(_, count)| **count).map(|(cpu, _)| *cpu)
    }
}

/// A page as a thread uses it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemoryUse {
    /// Place of the thread among the sampled ones.
    pub thread: u32,
    /// The address of the page.
    pub page: u64,
    /// The node of the thread's CPU, if that is known.
    pub cpu_node: Option<u32>,
    /// The node of the page, if that is known.
    pub home: Option<u32>,
    /// Place of the object in the list of objects.
    pub object: u32,
}

/// What threads used.
#[derive(Debug, Default)]
pub struct MemoryUses {
    /// The threads, by their places.
    pub threads: BTreeMap<u32, UsingThread>,
    /// Numbers of samples.
    pub uses: HashMap<MemoryUse, u64>,
    /// Samples that named no memory.
    pub others: u64,
    /// Samples of memory that were dropped, as there were `MAX_USES` uses already.
    pub refused: u64,
}

impl MemoryUses {
    /// Samples of pages whose node is known, and those of them whose thread was on another node.
    pub fn remote(&self) -> (u64, u64) {
        let (mut all, mut remote) = (0, 0);
        for (used, count) in &self.uses {
            if let (Some(home), Some(node)) = (used.home, used.cpu_node) {
                all += count;
                remote += if home == node { 0 } else { *count };
            }
        }
        (all, remote)
    }

    /// Counts a sample of a thread; `thread_base` is where its thread-local storage is.
    pub(crate) fn sampled(&mut self, place: u32, sample: &Sample, thread_base: Option<u64>) {
        let known = self.threads.entry(place).or_default();
        (known.process, known.thread) = (sample.process, sample.thread);
        known.samples += 1;
        sample.cpu.into_iter().for_each(|cpu| *known.cpus.entry(cpu).or_default() += 1);
        known.stack = sample.registers.stack_pointer();
        known.thread_base = thread_base.or(known.thread_base);
    }

    /// Counts each page of the lines of a sample once, with the nodes of pages as far as they are known.
    pub(crate) fn add(
        &mut self,
        (thread, cpu_node): (u32, Option<u32>),
        lines: &[LineAhead],
        known: &HashMap<u64, u32>,
    ) {
        self.others += u64::from(lines.is_empty());
        let mut last = None;
        for ahead in lines {
            let number = ahead.line * LINE / PAGE;
            if last.replace(number) == Some(number) {
                continue;
            }
            let home = known.get(&number).copied();
            let used = MemoryUse { thread, page: number * PAGE, cpu_node, home, object: ahead.object };
            if self.uses.len() < MAX_USES || self.uses.contains_key(&used) {
                *self.uses.entry(used).or_default() += 1;
            } else {
                self.refused += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_counts_each_page_once_and_remote_ones_are_told() {
        let mut uses = MemoryUses::default();
        let line = |line| LineAhead { line, object: 3, home: None };
        let lines = [line(64), line(65), line(128), line(192)];
        uses.add((7, Some(1)), &lines, &HashMap::from([(1, 1), (2, 0)]));
        uses.add((7, Some(1)), &lines[..1], &HashMap::from([(1, 1)]));
        uses.add((8, None), &[], &HashMap::new());
        let at = |page, home| MemoryUse { thread: 7, page, cpu_node: Some(1), home, object: 3 };
        let expected = [(at(4096, Some(1)), 2), (at(8192, Some(0)), 1), (at(12288, None), 1)];
        assert_eq!(uses.uses, expected.into());
        assert_eq!((uses.remote(), uses.others, uses.refused), ((3, 1), 1, 0));
    }

    #[test]
    fn a_thread_keeps_what_only_some_samples_tell() {
        let mut uses = MemoryUses::default();
        let sample = |cpu| Sample { process: 5, thread: 6, cpu, ..Sample::default() };
        uses.sampled(0, &sample(Some(2)), Some(0x7000));
        uses.sampled(0, &sample(None), None);
        let thread = &uses.threads[&0];
        assert_eq!((thread.samples, thread.thread_base), (2, Some(0x7000)));
        assert_eq!(thread.cpus, BTreeMap::from([(2, 1)]));
        assert_eq!(thread.cpu(), Some(2));
    }
}
