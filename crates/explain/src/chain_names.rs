//! Call chains in names.

use crate::call_tree::CallTree;
use crate::code::{CodeName, CodeNames};
use std::collections::HashMap;

/// Names the functions of call chains, and looks each address up only once.
pub struct ChainNames<'a> {
    calls: &'a CallTree,
    names: &'a mut dyn CodeNames,
    known: HashMap<(u32, u64), CodeName>,
}

impl<'a> ChainNames<'a> {
    /// Names the chains of this tree by means of `names`.
    pub fn new(calls: &'a CallTree, names: &'a mut dyn CodeNames) -> Self {
        Self { calls, names, known: HashMap::new() }
    }

    /// The functions of a chain with their lines, innermost first; empty if it is not known.
    pub fn of(&mut self, chain: u32) -> Vec<CodeName> {
        let Some((process, addresses)) = self.calls.chain(chain) else { return Vec::new() };
        // All addresses but the innermost are return addresses, right behind a call: the byte before belongs to the call.
        let at = |(nth, address): (usize, u64)| address.saturating_sub(u64::from(nth > 0));
        addresses.into_iter().enumerate().map(at).map(|address| self.name(process, address)).collect()
    }

    fn name(&mut self, process: u32, address: u64) -> CodeName {
        let Self { names, known, .. } = self;
        known.entry((process, address)).or_insert_with(|| names.name(process, address)).clone()
    }
}
