//! Who touched the pages of each object first, from page faults.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

/// Chains that are kept of all objects together; beyond, faults count for the thread and the instruction alone.
const MAX_CHAINS: usize = 1 << 14;
/// Frames of a chain that are kept.
const MAX_FRAMES: usize = 8;

/// One thread with one call chain.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Toucher {
    object: u32,
    thread: u32,
    node: Option<u32>,
    chain: Vec<u64>,
}

/// A part of the page faults of an object.
#[derive(Debug, Clone, PartialEq)]
pub struct FirstTouch {
    /// The kernel's number of the thread.
    pub thread: u32,
    /// The node of its CPU at that time; `None` if that is not known.
    pub node: Option<u32>,
    /// Its part of the object's page faults.
    pub share: f64,
    /// Addresses of code, innermost first. All but the first are those to which functions return.
    pub chain: Vec<u64>,
}

/// Page faults by object, thread and call chain.
#[derive(Debug, Default)]
pub struct FirstTouches(HashMap<Toucher, u64>);

impl FirstTouches {
    /// Adds a fault of a thread at an object, by its place in the list of objects.
    pub fn add(&mut self, object: u32, thread: u32, node: Option<u32>, mut chain: Vec<u64>) {
        chain.truncate(MAX_FRAMES);
        let mut toucher = Toucher { object, thread, node, chain };
        if self.0.len() >= MAX_CHAINS && !self.0.contains_key(&toucher) {
            toucher.chain.truncate(1);
        }
        if self.0.len() < 2 * MAX_CHAINS || self.0.contains_key(&toucher) {
            *self.0.entry(toucher).or_default() += 1;
        }
    }

    /// The first touches of each object, at most this many, that of most pages first.
    pub fn by_object(&self, most: usize) -> BTreeMap<u32, Vec<FirstTouch>> {
        let mut objects: BTreeMap<u32, Vec<(&Toucher, u64)>> = BTreeMap::new();
        for (toucher, faults) in &self.0 {
            objects.entry(toucher.object).or_default().push((toucher, *faults));
        }
        let ranked = |mut of: Vec<(&Toucher, u64)>| {
            let all: u64 = of.iter().map(|(_, faults)| faults).sum();
            of.sort_by(|a, b| (Reverse(a.1), a.0).cmp(&(Reverse(b.1), b.0)));
            let touch = |(toucher, faults): (&Toucher, u64)| FirstTouch {
                thread: toucher.thread,
                node: toucher.node,
                share: faults as f64 / all as f64,
                chain: toucher.chain.clone(),
            };
            of.into_iter().take(most).map(touch).collect()
        };
        objects.into_iter().map(|(object, of)| (object, ranked(of))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_thread_with_most_pages_is_first() {
        let mut touches = FirstTouches::default();
        for n in 0..100 {
            touches.add(3, if n < 80 { 7 } else { 8 }, Some(0), vec![0x40, 0x50]);
        }
        touches.add(4, 9, None, vec![0x40]);
        let all = touches.by_object(5);
        let expected = |thread, share| FirstTouch { thread, node: Some(0), share, chain: vec![0x40, 0x50] };
        assert_eq!(all[&3], [expected(7, 0.8), expected(8, 0.2)]);
        assert_eq!((all[&4].len(), all[&4][0].node, touches.by_object(1)[&3].len()), (1, None, 1));
    }

    #[test]
    fn chains_without_limit_take_limited_memory() {
        let mut touches = FirstTouches::default();
        for n in 0..3 * MAX_CHAINS as u64 {
            touches.add(0, 1, None, vec![0x40, n]);
        }
        assert_eq!(touches.0.len(), MAX_CHAINS + 1);
        let all = touches.by_object(1);
        assert_eq!((all[&0][0].chain.as_slice(), all[&0][0].share > 0.6), (&[0x40][..], true));
    }
}
