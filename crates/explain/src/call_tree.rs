//! Call chains as a tree: chains of one program begin alike, and each is a number.

use std::collections::HashMap;

/// Nodes of all chains together; chains that do not fit end at the functions that are known.
const MAX_NODES: usize = 1 << 18;

/// The chain of which nothing is known.
pub const NO_CHAIN: u32 = 0;

/// A call within a chain.
#[derive(Debug, Clone, Copy)]
struct CallNode {
    /// The node of the calling function; [`NO_CHAIN`] for a process, which nothing calls.
    parent: u32,
    /// The address, or the place of the process.
    address: u64,
}

/// All chains of an observation.
#[derive(Debug)]
pub struct CallTree {
    nodes: Vec<CallNode>,
    places: HashMap<(u32, u64), u32>,
    limit: usize,
}

impl Default for CallTree {
    fn default() -> Self {
        Self::with_limit(MAX_NODES)
    }
}

impl CallTree {
    /// Makes a tree with at most this many nodes.
    pub fn with_limit(limit: usize) -> Self {
        Self { nodes: vec![CallNode { parent: NO_CHAIN, address: 0 }], places: HashMap::new(), limit }
    }

    /// Adds a chain of a process, and returns its number. The process is named by its place in the list of processes;
    /// addresses are innermost first.
    pub fn number(&mut self, process: u32, chain: &[u64]) -> u32 {
        let outermost_first = chain.iter().rev().copied();
        let mut at = NO_CHAIN;
        for address in std::iter::once(u64::from(process)).chain(outermost_first) {
            let next = match self.places.get(&(at, address)) {
                Some(known) => *known,
                None if self.nodes.len() >= self.limit => break,
                None => self.add(at, address),
            };
            at = next;
        }
        at
    }

    fn add(&mut self, parent: u32, address: u64) -> u32 {
        let number = u32::try_from(self.nodes.len()).unwrap_or(NO_CHAIN);
        self.nodes.push(CallNode { parent, address });
        self.places.insert((parent, address), number);
        number
    }

    /// The chain without its innermost address: where its innermost function was called.
    pub fn caller(&self, number: u32) -> u32 {
        self.nodes.get(number as usize).map_or(NO_CHAIN, |node| node.parent)
    }

    /// The place of the chain's process, and the chain's addresses, innermost first; `None` if nothing is known of it.
    pub fn chain(&self, number: u32) -> Option<(u32, Vec<u64>)> {
        let mut chain = Vec::new();
        let mut node = self.nodes.get(number as usize).filter(|_| number != NO_CHAIN)?;
        while node.parent != NO_CHAIN {
            chain.push(node.address);
            node = self.nodes.get(node.parent as usize)?;
        }
        Some((u32::try_from(node.address).ok()?, chain))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_number_is_its_chain(chains in proptest::collection::vec((0u32..3, proptest::collection::vec(1u64..5, 0..6)), 1..40)) {
            let mut tree = CallTree::default();
            let numbers: Vec<u32> = chains.iter().map(|(process, chain)| tree.number(*process, chain)).collect();
            for ((expected, number), again) in chains.iter().zip(&numbers).zip(&chains) {
                prop_assert_eq!(tree.chain(*number), Some(expected.clone()));
                prop_assert_eq!(tree.number(again.0, &again.1), *number);
                let callers = expected.1.get(1..).map(|rest| tree.number(expected.0, rest));
                prop_assert!(callers.is_none_or(|callers| tree.caller(*number) == callers));
            }
        }
    }

    #[test]
    fn a_full_tree_knows_the_outer_functions() {
        let mut tree = CallTree::with_limit(4);
        let known = tree.number(0, &[0x30, 0x20]);
        assert_eq!(tree.number(0, &[0x99, 0x88, 0x20]), tree.number(0, &[0x20]));
        assert_eq!(tree.chain(known), Some((0, vec![0x30, 0x20])));
        assert_eq!(tree.number(7, &[0x30]), NO_CHAIN);
        assert_eq!((tree.chain(NO_CHAIN), tree.chain(77)), (None, None));
    }
}
