//! The calls that allocated the blocks of each object, as they are on the stack: by these another process finds the object.

use crate::objects::ObjectId;
use numakit_cure::CuredIdentity;
use std::collections::HashMap;

/// Objects and chains of calls that are kept.
const MAX_KEPT: usize = 1 << 14;

/// The call of an allocating function, as it is on the stack.
#[derive(Debug, Clone, Copy)]
pub struct PushedCalls<'a> {
    /// The addresses that calls have pushed, from the direct caller of the function on, as far as they are certain.
    pub chain: &'a [u64],
    /// How many of them lead to the code that decides to allocate. If there are fewer, the others are not certain.
    pub deciding: usize,
}

/// Blocks of one object that were allocated by the same calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlocksOfCalls {
    /// The function.
    pub by: &'static str,
    /// The shortest chain of return addresses that tells them from blocks of other objects.
    pub chain: Vec<u64>,
    /// How many there were.
    pub count: u64,
    /// The size of the smallest one.
    pub smallest: u64,
    /// The size of the largest one.
    pub largest: u64,
    /// Whether the chain, or the sizes of the blocks, tell them from those of all other objects.
    pub is_told: bool,
}

#[derive(Debug, Clone, Copy)]
struct Counted {
    deciding: usize,
    count: u64,
    smallest: u64,
    largest: u64,
}

/// The calls of all objects.
#[derive(Debug, Clone, Default)]
pub struct AllocationCalls(HashMap<(ObjectId, &'static str, Box<[u64]>), Counted>);

impl AllocationCalls {
    /// Adds blocks of an object. Where the object is only a part of the blocks of its site, the calls beyond the one that decides
    /// matter too.
    pub fn add(
        &mut self,
        object: ObjectId,
        by: &'static str,
        (calls, is_part): (PushedCalls<'_>, bool),
        (size, count): (u64, u64),
    ) {
        let most =
            if is_part { CuredIdentity::MAX_CHAIN } else { calls.deciding.min(CuredIdentity::MAX_CHAIN) };
        let chain = &calls.chain[..calls.chain.len().min(most)];
        let key = (object, by, Box::from(chain));
        if self.0.len() >= MAX_KEPT && !self.0.contains_key(&key) {
            return;
        }
        let deciding = calls.deciding;
        let known =
            self.0.entry(key).or_insert(Counted { deciding, count: 0, smallest: size, largest: size });
        known.count = known.count.saturating_add(count);
        (known.smallest, known.largest) = (known.smallest.min(size), known.largest.max(size));
    }

    /// The blocks of an object, by the chains that tell them from others.
    pub fn of(&self, object: ObjectId) -> Vec<BlocksOfCalls> {
        let mut found: Vec<BlocksOfCalls> = Vec::new();
        for ((_, by, chain), counted) in self.0.iter().filter(|((of, ..), _)| *of == object) {
            let (length, is_told) = self.told(object, by, chain, counted);
            let chain = chain[..length].to_vec();
            match found.iter_mut().find(|known| (known.by, &known.chain) == (*by, &chain)) {
                Some(known) => {
                    known.count = known.count.saturating_add(counted.count);
                    known.smallest = known.smallest.min(counted.smallest);
                    known.largest = known.largest.max(counted.largest);
                    known.is_told &= is_told;
                }
                None => {
                    let Counted { count, smallest, largest, .. } = *counted;
                    found.push(BlocksOfCalls { by, chain, count, smallest, largest, is_told });
                }
            }
        }
        found.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.chain.cmp(&b.chain)));
        found
    }

    /// How many calls of a chain tell the blocks of an object from those of others, and whether they do. Where no chain does, blocks
    /// of other sizes are told by these.
    fn told(&self, object: ObjectId, by: &str, chain: &[u64], own: &Counted) -> (usize, bool) {
        let others = || self.0.iter().filter(|((of, other, _), _)| *of != object && *other == by);
        // What calls a chain that ends is not known: it may be the same.
        let is_shared = |length: usize, is_alike: &dyn Fn(&Counted) -> bool| {
            others().any(|((.., other), counted)| {
                let known = length.min(other.len());
                is_alike(counted) && other[..known] == chain[..known]
            })
        };
        let least = own.deciding.clamp(1, chain.len().max(1)).min(chain.len());
        let sizes = |other: &Counted| own.smallest <= other.largest && other.smallest <= own.largest;
        let by_chain = (least..=chain.len()).find(|length| !is_shared(*length, &|_| true));
        let by_size = || (least..=chain.len()).find(|length| !is_shared(*length, &sizes));
        match by_chain.or_else(by_size) {
            Some(length) => (length, length > 0),
            None => (chain.len(), false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::{ObjectOrigin, ObjectTimeline};

    /// Some objects.
    fn objects() -> Vec<ObjectId> {
        let mut timeline = ObjectTimeline::new(10);
        let origin = |site| ObjectOrigin::SmallBlocks { site };
        (0..4).filter_map(|site| timeline.name(&origin(site))).collect()
    }

    fn add(calls: &mut AllocationCalls, object: ObjectId, chain: &[u64], deciding: usize, size: u64) {
        let is_part = chain.len() > deciding;
        calls.add(object, "malloc", (PushedCalls { chain, deciding }, is_part), (size, 1));
    }

    fn chains(calls: &AllocationCalls, object: ObjectId) -> Vec<(Vec<u64>, u64, bool)> {
        calls.of(object).into_iter().map(|blocks| (blocks.chain, blocks.count, blocks.is_told)).collect()
    }

    #[test]
    fn a_chain_is_as_long_as_it_must_be_and_reaches_what_decides() {
        let (mut calls, objects) = (AllocationCalls::default(), objects());
        // Both are allocated through one function; a third one directly.
        add(&mut calls, objects[0], &[10, 20], 2, 100);
        add(&mut calls, objects[1], &[10, 30], 2, 100);
        add(&mut calls, objects[2], &[40], 1, 100);
        add(&mut calls, objects[2], &[40], 1, 300);
        assert_eq!(chains(&calls, objects[0]), [(vec![10, 20], 1, true)]);
        assert_eq!(chains(&calls, objects[1]), [(vec![10, 30], 1, true)]);
        assert_eq!(chains(&calls, objects[2]), [(vec![40], 2, true)]);
        let blocks = &calls.of(objects[2])[0];
        assert_eq!((blocks.smallest, blocks.largest), (100, 300));
        assert_eq!(chains(&calls, objects[3]), []);
    }

    #[test]
    fn objects_of_one_site_are_told_by_their_callers_or_sizes_or_not_at_all() {
        let (mut calls, objects) = (AllocationCalls::default(), objects());
        add(&mut calls, objects[0], &[10, 20, 50, 60], 1, 100);
        add(&mut calls, objects[1], &[10, 20, 55, 60], 1, 100);
        assert_eq!(chains(&calls, objects[0]), [(vec![10, 20, 50], 1, true)]);
        // What is certain of this one's calls is the begin of the others'.
        add(&mut calls, objects[2], &[10, 20], 1, 100);
        assert_eq!(chains(&calls, objects[2]), [(vec![10, 20], 1, false)]);
        assert_eq!(chains(&calls, objects[0]), [(vec![10, 20, 50, 60], 1, false)]);
        add(&mut calls, objects[3], &[10, 20], 1, 7000);
        assert_eq!(chains(&calls, objects[3]), [(vec![10], 1, true)], "by its size");
    }
}
