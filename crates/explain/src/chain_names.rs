//! Call chains in names.

use crate::call_tree::CallTree;
use crate::code::{CodeName, CodeNames};
use std::collections::HashMap;

/// Names the functions of chains; each address once.
pub struct ChainNames<'a> {
    calls: &'a CallTree,
    names: &'a mut dyn CodeNames,
    known: HashMap<(u32, u64), CodeName>,
}

impl<'a> ChainNames<'a> {
    /// Of the chains of a tree.
    pub fn new(calls: &'a CallTree, names: &'a mut dyn CodeNames) -> Self {
        Self { calls, names, known: HashMap::new() }
    }

    /// The functions of a chain with their lines, innermost first; empty if it is not known.
    pub fn of(&mut self, chain: u32) -> Vec<CodeName> {
        let Some((process, addresses)) = self.calls.chain(chain) else { return Vec::new() };
        // All but the first are behind calls.
        let at = |(nth, address): (usize, u64)| address.saturating_sub(u64::from(nth > 0));
        addresses.into_iter().enumerate().map(at).map(|address| self.name(process, address)).collect()
    }

    fn name(&mut self, process: u32, address: u64) -> CodeName {
        let Self { names, known, .. } = self;
        known.entry((process, address)).or_insert_with(|| names.name(process, address)).clone()
    }
}
