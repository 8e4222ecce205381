//! Who touched the pages of each object first, from page faults.

use crate::call_tree::NO_CHAIN;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

/// Touchers that are kept of all objects together; beyond, faults count for no chain.
const MAX_TOUCHERS: usize = 1 << 14;

/// By what a first touch is known, the most certain first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TouchEvidence {
    /// Page faults with their addresses.
    PageFaults,
    /// Page faults that samples of the thread counted, at the address that it was about to write then.
    SampledFaults,
    /// No fault was seen. The object's pages are on the node of the thread that allocated it.
    Homes,
}

impl TouchEvidence {
    /// The minimum number of faults at an object before anything is said about it: faults that samples count may belong to
    /// other memory.
    fn min_faults(self) -> u64 {
        match self {
            Self::PageFaults | Self::Homes => 1,
            Self::SampledFaults => 8,
        }
    }
}

/// A thread that touched a page first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FaultingThread {
    /// The kernel's number of the thread.
    pub thread: u32,
    /// The node of its CPU at that time; `None` if that is not known.
    pub node: Option<u32>,
    /// Its call chain, by its number in the tree of calls.
    pub chain: u32,
}

/// A part of the page faults of an object.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FirstTouch {
    /// The thread that touched it.
    pub by: FaultingThread,
    /// Its part of the object's page faults.
    pub share: f64,
}

/// Page faults by object and thread.
#[derive(Debug)]
pub struct FirstTouches {
    /// What kind of faults they are.
    pub evidence: TouchEvidence,
    faults: HashMap<(u32, FaultingThread), u64>,
}

impl FirstTouches {
    /// Makes an empty collection, for faults of this kind.
    pub fn new(evidence: TouchEvidence) -> Self {
        Self { evidence, faults: HashMap::new() }
    }

    /// Adds faults of a thread at an object, by its place in the list of objects.
    pub fn add(&mut self, object: u32, mut by: FaultingThread, faults: u64) {
        if faults == 0 {
            return;
        }
        if self.faults.len() >= MAX_TOUCHERS && !self.faults.contains_key(&(object, by)) {
            by.chain = NO_CHAIN;
        }
        if self.faults.len() < 2 * MAX_TOUCHERS || self.faults.contains_key(&(object, by)) {
            *self.faults.entry((object, by)).or_default() += faults;
        }
    }

    /// The first touches of each object, at most this many, that of most pages first.
    pub fn by_object(&self, most: usize) -> BTreeMap<u32, Vec<FirstTouch>> {
        let mut objects: BTreeMap<u32, Vec<(FaultingThread, u64)>> = BTreeMap::new();
        for ((object, by), faults) in &self.faults {
            objects.entry(*object).or_default().push((*by, *faults));
        }
        let ranked = |mut of: Vec<(FaultingThread, u64)>| {
            let all: u64 = of.iter().map(|(_, faults)| faults).sum();
            of.sort_by_key(|(by, faults)| (Reverse(*faults), *by));
            let touch = |(by, faults)| FirstTouch { by, share: faults as f64 / all as f64 };
            of.into_iter().take(most).map(touch).collect()
        };
        let is_enough = |of: &Vec<(FaultingThread, u64)>| {
            of.iter().map(|(_, faults)| faults).sum::<u64>() >= self.evidence.min_faults()
        };
        objects.into_iter().filter(|(_, of)| is_enough(of)).map(|(object, of)| (object, ranked(of))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_thread_with_most_pages_is_first() {
        let mut touches = FirstTouches::new(TouchEvidence::PageFaults);
        let by = |thread| FaultingThread { thread, node: Some(0), chain: 5 };
        for n in 0..100 {
            touches.add(3, by(if n < 80 { 7 } else { 8 }), 1);
        }
        touches.add(4, FaultingThread { node: None, ..by(9) }, 61);
        let all = touches.by_object(5);
        let expected = |thread, share| FirstTouch { by: by(thread), share };
        assert_eq!(all[&3], [expected(7, 0.8), expected(8, 0.2)]);
        assert_eq!((all[&4].len(), all[&4][0].by.node, touches.by_object(1)[&3].len()), (1, None, 1));
    }

    #[test]
    fn few_faults_of_samples_say_nothing() {
        let mut touches = FirstTouches::new(TouchEvidence::SampledFaults);
        let by = FaultingThread { thread: 7, node: Some(0), chain: 5 };
        touches.add(1, by, 7);
        touches.add(2, by, 5);
        touches.add(2, FaultingThread { thread: 8, ..by }, 3);
        assert_eq!(touches.by_object(3).keys().copied().collect::<Vec<_>>(), [2]);
    }

    #[test]
    fn chains_without_limit_take_limited_memory() {
        let mut touches = FirstTouches::new(TouchEvidence::PageFaults);
        for chain in 1..=3 * MAX_TOUCHERS as u32 {
            touches.add(0, FaultingThread { thread: 1, node: None, chain }, 1);
        }
        assert_eq!(touches.faults.len(), MAX_TOUCHERS + 1);
        let all = touches.by_object(1);
        assert_eq!((all[&0][0].by.chain, all[&0][0].share > 0.6), (NO_CHAIN, true));
    }
}
