//! Small blocks. Some samples hit a block whose allocation site is known. They show which instructions access the blocks of
//! which site, and so to which sites the blocks of all other samples belong.

use super::{Collector, FoundAs};
use crate::call_tree::{CallTree, NO_CHAIN};
use crate::observation::{Observation, Waited};
use crate::walk::MemoryWalk;
use std::collections::{HashMap, HashSet};

/// An instruction or chain with fewer samples of known blocks tells nothing.
const MIN_KNOWN: u32 = 3;
/// The part of these samples that must be of one site.
const MIN_SITE_SHARE: f64 = 0.9;
/// Instructions and chains that are kept.
const MAX_KEPT: usize = 1 << 16;

/// Counts of samples by the place of their object.
type Counts = HashMap<u32, u32>;

/// What samples of known blocks have shown so far.
#[derive(Debug, Default)]
pub struct BlockEvidence {
    /// Places of objects that are an allocator's memory, in which the block of an address is not known; and of objects that
    /// are the blocks of a site.
    heaps: HashSet<u32>,
    blocks: HashSet<u32>,
    /// Samples of known blocks, by process and address of the instruction.
    by_instruction: HashMap<(u32, u64), Counts>,
    /// Samples of known blocks, by call chain, and by the chain that calls its innermost function.
    by_chain: HashMap<u32, Counts>,
    /// How instructions walk through a heap, by the place of the process, the place of the heap, and the address of the
    /// instruction.
    walks: HashMap<(u32, u32, u64), MemoryWalk>,
}

impl BlockEvidence {
    /// Notes as what the object at a place was found.
    pub fn note(&mut self, place: u32, found: FoundAs) {
        match found {
            FoundAs::Object => return,
            FoundAs::Heap => &mut self.heaps,
            FoundAs::Block => &mut self.blocks,
        }
        .insert(place);
    }

    /// Adds a sample.
    pub fn add(&mut self, at: &Observation, calls: &CallTree) {
        let Some(access) = at.access().filter(|access| self.blocks.contains(&access.object)) else { return };
        let key = (at.process, at.instruction);
        if self.by_instruction.len() < MAX_KEPT || self.by_instruction.contains_key(&key) {
            *self.by_instruction.entry(key).or_default().entry(access.object).or_default() += 1;
        }
        for chain in chains(at.chain, calls) {
            if self.by_chain.len() < MAX_KEPT || self.by_chain.contains_key(&chain) {
                *self.by_chain.entry(chain).or_default().entry(access.object).or_default() += 1;
            }
        }
    }

    /// The walk of an instruction through a heap. The process and the heap are named by their places; `None` for objects
    /// that are no heaps.
    pub fn walk(&mut self, process: u32, place: u32, instruction: u64) -> Option<&mut MemoryWalk> {
        let key = (process, place, instruction);
        let has_room = self.walks.len() < MAX_KEPT || self.walks.contains_key(&key);
        (self.heaps.contains(&place) && has_room).then(|| self.walks.entry(key).or_default())
    }

    /// The site whose blocks an instruction accesses, as the place of its object: if nearly all its samples of known blocks
    /// are of one site. Code that serves several sites, such as a comparison, is judged by the function that calls it; an
    /// instruction of which too little is known is taken to do what the rest of its function does.
    fn site(&self, process: u32, instruction: u64, chain: u32, calls: &CallTree) -> Option<u32> {
        let of_instruction = self.by_instruction.get(&(process, instruction)).and_then(dominant);
        let of_chain = || chains(chain, calls).find_map(|chain| self.by_chain.get(&chain).and_then(dominant));
        of_instruction.or_else(of_chain)
    }
}

/// The chain itself, and the chain that calls its innermost function.
fn chains(chain: u32, calls: &CallTree) -> impl Iterator<Item = u32> {
    [chain, calls.caller(chain)].into_iter().filter(|chain| *chain != NO_CHAIN)
}

/// The place that has nearly all of the counts; `None` if no place has, or if there are too few.
fn dominant(counts: &Counts) -> Option<u32> {
    let all: u32 = counts.values().sum();
    let (place, count) = counts.iter().max_by_key(|(place, count)| (**count, **place))?;
    (all >= MIN_KNOWN && f64::from(*count) >= MIN_SITE_SHARE * f64::from(all)).then_some(*place)
}

impl Collector {
    /// Gives each sample of a heap to the site whose blocks its instruction accesses. A sample stays where it is if that
    /// site is not known.
    pub fn attribute_blocks(&mut self) {
        let Self { blocks, observations, walks, calls, .. } = self;
        for at in observations.iter_mut() {
            let (process, instruction, chain) = (at.process, at.instruction, at.chain);
            let Waited::Memory(access) = &mut at.waited else { continue };
            if blocks.heaps.contains(&access.object)
                && let Some(site) = blocks.site(process, instruction, chain, calls)
            {
                access.object = site;
            }
        }
        for ((process, heap, instruction), walk) in std::mem::take(&mut blocks.walks) {
            let object = blocks.site(process, instruction, NO_CHAIN, calls);
            match object {
                Some(object) => walks.entry(object).or_default().add(&walk),
                None => _ = blocks.walks.insert((process, heap, instruction), walk),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::{MemoryPart, ObservedAccess};
    use numakit_sampling::Landing;
    use numakit_sampling::operand::{AccessKind, RecoveryRule};

    const HEAP: u32 = 0;
    const LIST: u32 = 1;
    const TREE: u32 = 2;

    fn at(object: u32, instruction: u64, chain: u32) -> Observation {
        let (kind, rule, part) = (AccessKind::Load, RecoveryRule::Direct, MemoryPart::Heap);
        let access =
            ObservedAccess { address: 64, size: 8, kind, rule, object, home: None, part, shared: None };
        let waited = Waited::Memory(access);
        Observation { thread: 0, process: 0, time: 0, weight: 5, cpu_node: None, instruction, waited, chain }
    }

    #[test]
    fn instructions_say_whose_blocks_the_others_are() {
        let mut collector = Collector::new(Landing::Behind);
        // Each is called by another one.
        let mut chain = |number: u64| collector.calls.number(0, &[number, 0x100 + number]);
        let [first, second, third, fourth, other] = [1, 2, 3, 4, 9].map(&mut chain);
        let beside_third = collector.calls.number(0, &[7, 0x103]);
        collector.blocks.note(HEAP, FoundAs::Heap);
        collector.blocks.note(LIST, FoundAs::Block);
        collector.blocks.note(TREE, FoundAs::Block);
        let known = [
            (LIST, 0x10, first, 3),
            (TREE, 0x20, second, 2),
            (LIST, 0x30, third, 4),
            (TREE, 0x30, fourth, 4),
        ];
        for (object, instruction, chain, count) in known {
            (0..count).for_each(|_| collector.observations.push(at(object, instruction, chain)));
        }
        let all = collector.observations.clone();
        all.iter().for_each(|at| collector.blocks.add(at, &collector.calls));
        // One of a site; too few known; of two sites, distinguished by the callers and not; of a function that is known.
        let heap = [
            (0x10, other),
            (0x20, second),
            (0x30, third),
            (0x30, fourth),
            (0x30, other),
            (0x40, NO_CHAIN),
            (0x40, beside_third),
        ];
        collector.observations = heap.map(|(instruction, chain)| at(HEAP, instruction, chain)).to_vec();
        let looks = |walk: &mut MemoryWalk| walk.look(0x10, 64, RecoveryRule::Chain, &[]);
        collector.blocks.walk(0, HEAP, 0x10).into_iter().for_each(looks);
        collector.blocks.walk(0, HEAP, 0x40).into_iter().for_each(looks);
        assert!(collector.blocks.walk(0, LIST, 0x10).is_none());
        collector.attribute_blocks();
        let objects: Vec<u32> =
            collector.observations.iter().filter_map(|at| Some(at.access()?.object)).collect();
        assert_eq!(objects, [LIST, HEAP, LIST, TREE, HEAP, HEAP, LIST]);
        let walks: Vec<_> = collector.walks.iter().map(|(object, walk)| (*object, walk.chained)).collect();
        assert_eq!(walks, [(LIST, 1)]);
        // What is known does not come from what was concluded.
        collector.attribute_blocks();
        assert_eq!((collector.walks[&LIST].chained, collector.blocks.walks.len()), (1, 1));
    }
}
