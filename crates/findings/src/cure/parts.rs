//! The parts of an object that belong to threads.

use numakit_cure::{FRACTIONS, ObjectPart, PartsOver};
use numakit_explain::CureFacts;
use numakit_explain::part_use::PartUse;
use numakit_model::thresholds::{FEW, SURE};
use std::collections::{BTreeMap, BTreeSet};

/// How often each thread was seen in a piece of an object.
type Seen = BTreeMap<u32, u64>;

/// Parts, and how sure they are.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct FoundParts {
    /// What is divided.
    pub(super) over: PartsOver,
    /// The parts in ascending order.
    pub(super) parts: Vec<ObjectPart>,
    /// The share of the samples in them that are of the thread which has the part.
    pub(super) sure: f64,
}

impl FoundParts {
    /// Of what is divided: each block, or the blocks in their order, whichever is more one thread's.
    pub(super) fn of(facts: &CureFacts) -> Self {
        let each = Self::over(PartsOver::Block, facts.each.0.iter().collect());
        if facts.count < 2 {
            return each;
        }
        // Of few blocks, each begins at a fraction of its own.
        let pieces = facts.count.min(FRACTIONS.into());
        let begin = |piece: u64| facts.blocks.0.get((piece * u64::from(FRACTIONS) / pieces) as usize);
        let blocks = Self::over(PartsOver::Blocks, (0..pieces).filter_map(begin).collect());
        if blocks.sure > each.sure { blocks } else { each }
    }

    /// Everything to the thread that uses most of it; `None` if nobody was seen.
    pub(super) fn of_one(facts: &CureFacts) -> Option<Self> {
        let (thread, own) = most(&facts.each.threads())?;
        let samples = facts.each.samples();
        let sure = own as f64 / samples.max(1) as f64;
        let parts = vec![ObjectPart { from: 0, to: FRACTIONS, thread, samples, sure }];
        Some(Self { over: PartsOver::Block, parts, sure })
    }

    /// Whether the parts are those of threads.
    pub(super) fn are_sure(&self) -> bool {
        !self.parts.is_empty() && self.sure >= SURE
    }

    fn over(over: PartsOver, pieces: Vec<&Seen>) -> Self {
        let count = pieces.len().max(1) as u64;
        let begin = |piece: usize| (piece as u64 * u64::from(FRACTIONS) / count) as u32;
        let mut parts: Vec<(ObjectPart, u64)> = Vec::new();
        for (at, (thread, seen)) in owners(&pieces).into_iter().zip(&pieces).enumerate() {
            let Some(thread) = thread else { continue };
            let (from, to) = (begin(at), begin(at + 1));
            let (own, all) = (seen.get(&thread).copied().unwrap_or(0), seen.values().sum::<u64>());
            match parts.last_mut() {
                Some((last, of_thread)) if last.to == from && last.thread == thread => {
                    (last.to, last.samples, *of_thread) = (to, last.samples + all, *of_thread + own);
                }
                _ => parts.push((ObjectPart { from, to, thread, samples: all, sure: 0.0 }, own)),
            }
        }
        let ratio = |own: u64, all: u64| own as f64 / all.max(1) as f64;
        let (all, own) = parts.iter().fold((0, 0), |(all, own), (part, of)| (all + part.samples, own + of));
        let rated = |(part, own): (ObjectPart, u64)| ObjectPart { sure: ratio(own, part.samples), ..part };
        Self { over, parts: parts.into_iter().map(rated).collect(), sure: ratio(own, all) }
    }
}

/// The parts of another object, with the samples of this one: how far they agree.
pub(super) fn are_of(each: &PartUse, division: &[ObjectPart]) -> FoundParts {
    let counted = |part: &ObjectPart| {
        let of_part = (part.from..part.to).filter_map(|at| each.0.get(at as usize));
        let (all, own) = of_part.fold((0, 0), |(all, own), seen| {
            (all + seen.values().sum::<u64>(), own + seen.get(&part.thread).copied().unwrap_or(0))
        });
        (ObjectPart { samples: all, sure: own as f64 / all.max(1) as f64, ..*part }, own)
    };
    let counted: Vec<(ObjectPart, u64)> = division.iter().map(counted).collect();
    let own: u64 = counted.iter().map(|(_, own)| own).sum();
    // What is in no part of the other object does not agree.
    let sure = own as f64 / each.samples().max(1) as f64;
    FoundParts { over: PartsOver::Block, parts: counted.into_iter().map(|(part, _)| part).collect(), sure }
}

/// The thread with most samples.
fn most(seen: &Seen) -> Option<(u32, u64)> {
    let most = seen.iter().max_by_key(|(thread, samples)| (**samples, u32::MAX - **thread))?;
    Some((*most.0, *most.1))
}

/// The threads to which pieces belong: those with which fewest samples are of others, where a change from one thread to the next
/// costs as much as [`FEW`] samples. Pieces without a sample next to a change belong to nobody.
fn owners(pieces: &[&Seen]) -> Vec<Option<u32>> {
    let threads: BTreeSet<u32> = pieces.iter().flat_map(|seen| seen.keys()).copied().collect();
    // The least cost up to each piece for each thread, and the thread of the piece before.
    let mut steps: Vec<BTreeMap<u32, (u64, u32)>> = Vec::new();
    for seen in pieces {
        let all: u64 = seen.values().sum();
        let before = steps.last();
        let best = before.and_then(|costs| costs.iter().min_by_key(|(_, (cost, _))| *cost));
        let best = best.map(|(thread, (cost, _))| (cost + FEW, *thread));
        let step = |thread: &u32| {
            let own = all - seen.get(thread).copied().unwrap_or(0);
            let stay =
                before.and_then(|costs| costs.get(thread)).map_or((0, *thread), |(cost, _)| (*cost, *thread));
            let (cost, from) = best.filter(|(cost, _)| *cost < stay.0).unwrap_or(stay);
            (*thread, (cost + own, from))
        };
        steps.push(threads.iter().map(step).collect());
    }
    let last = steps.last().and_then(|costs| costs.iter().min_by_key(|(_, (cost, _))| *cost));
    let mut thread = last.map(|(thread, _)| *thread);
    let mut owners = vec![None; pieces.len()];
    for (owner, costs) in owners.iter_mut().zip(&steps).rev() {
        *owner = thread;
        thread = thread.and_then(|thread| Some(costs.get(&thread)?.1));
    }
    let is_empty: Vec<bool> = pieces.iter().map(|seen| seen.is_empty()).collect();
    without_ends(&mut owners, &is_empty);
    owners
}

/// Takes empty pieces at the ends of each run from their thread.
fn without_ends(owners: &mut [Option<u32>], is_empty: &[bool]) {
    let runs: Vec<usize> = (1..owners.len()).filter(|at| owners[*at] != owners[*at - 1]).collect();
    let begins = std::iter::once(0).chain(runs.iter().copied());
    let ends = runs.iter().copied().chain([owners.len()]);
    for (begin, end) in begins.zip(ends).collect::<Vec<_>>() {
        let first = (begin..end).take_while(|at| is_empty[*at]).count();
        let last = (begin + first..end).rev().take_while(|at| is_empty[*at]).count();
        owners[begin..begin + first].fill(None);
        owners[end - last..end].fill(None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use numakit_explain::Unidentified;

    fn seen(threads: &[(u32, u64)]) -> Seen {
        threads.iter().copied().collect()
    }

    fn facts(each: impl Fn(u32) -> Seen, blocks: impl Fn(u32) -> Seen, count: u64) -> CureFacts {
        let [each, blocks] = [(0..FRACTIONS).map(each).collect(), (0..FRACTIONS).map(blocks).collect()];
        let identities = Err(Unidentified::Unnamed);
        CureFacts { identities, each: PartUse(each), blocks: PartUse(blocks), count }
    }

    fn ranges(found: &FoundParts) -> Vec<(u32, u32, u32)> {
        found.parts.iter().map(|part| (part.from, part.to, part.thread)).collect()
    }

    #[test]
    fn neighbours_of_one_thread_are_one_part_and_strays_change_nothing() {
        let stray = |at: u32| match at {
            20 => seen(&[(3, 2)]),
            31 => seen(&[(0, 5), (1, 4)]),
            32 => seen(&[(0, 4), (1, 5)]),
            at => seen(&[(at / 32, 10), (2, 1)]),
        };
        let found = FoundParts::of(&facts(stray, |_| Seen::new(), 1));
        assert_eq!((ranges(&found), found.over), (vec![(0, 32, 0), (32, 64, 1)], PartsOver::Block));
        assert!(found.are_sure() && found.sure < 0.95, "{found:?}");
        let part = found.parts[0];
        assert_eq!((part.samples, (part.sure * 341.0).round()), (30 * 11 + 2 + 9, 305.0));
    }

    #[test]
    fn what_nobody_uses_at_a_border_has_no_part() {
        let each = |at: u32| match at {
            0 | 30..34 | 62.. => Seen::new(),
            at if at % 3 == 1 => Seen::new(),
            at => seen(&[(at / 32, 4)]),
        };
        let found = FoundParts::of(&facts(each, |_| Seen::new(), 1));
        assert_eq!(ranges(&found), [(2, 30, 0), (35, 61, 1)]);
        assert_eq!(found.sure, 1.0);
    }

    #[test]
    fn one_sample_in_each_fraction_is_enough_for_large_parts() {
        let found = FoundParts::of(&facts(|at| seen(&[(at / 8, 1)]), |_| Seen::new(), 1));
        assert_eq!(ranges(&found).len(), 8);
    }

    #[test]
    fn blocks_of_one_thread_each_are_parts_of_the_order_of_blocks() {
        let mixed = |_| seen(&[(0, 2), (1, 2), (2, 2), (3, 2)]);
        let own = |at: u32| if at.is_multiple_of(16) { seen(&[(at / 16, 128)]) } else { Seen::new() };
        let found = FoundParts::of(&facts(mixed, own, 4));
        assert_eq!(found.over, PartsOver::Blocks);
        assert_eq!(ranges(&found), [(0, 16, 0), (16, 32, 1), (32, 48, 2), (48, 64, 3)]);
        // Of blocks that threads divide, each is divided.
        let divided = facts(|at| seen(&[(at / 16, 9)]), |_| seen(&[(0, 9), (1, 9)]), 100);
        assert_eq!(FoundParts::of(&divided).over, PartsOver::Block);
    }

    #[test]
    fn mixed_use_is_not_sure() {
        let mixed = facts(|_| seen(&[(0, 5), (1, 5), (2, 6)]), |_| Seen::new(), 1);
        let found = FoundParts::of(&mixed);
        assert!(!found.are_sure(), "{found:?}");
        let one = FoundParts::of_one(&mixed).unwrap();
        assert_eq!((ranges(&one), one.parts[0].sure), (vec![(0, 64, 2)], 0.375));
        let nobody = facts(|_| Seen::new(), |_| Seen::new(), 1);
        assert!(FoundParts::of_one(&nobody).is_none() && !FoundParts::of(&nobody).are_sure());
    }
}
