//! What the code around an address says about how control came there. It depends on the code alone, so it is
//! found once for each address.

use super::alignment::starts_before;
use super::code::{Code, PAGE};
use super::instruction::{Decoded, Flow, Place};
use super::jumps::NEAR;
use crate::operand::AddressSpace;
use std::sync::Arc;

/// Instructions that a path goes back.
const DEPTH: usize = 24;
/// Jumps to an address that are considered.
const MAX_SOURCES: usize = 12;
/// Different expressions of jumps through memory.
const MAX_EXPRESSIONS: usize = 4;

/// Instructions that were executed one after the other, the last one first.
pub type Path = Arc<[Arc<Decoded>]>;

/// How control may have come to an address.
#[derive(Debug, Clone)]
pub struct Site {
    /// The instruction there.
    pub at: Option<Arc<Decoded>>,
    /// The instructions before it in a straight line; empty if control cannot come from there.
    pub straight: Path,
    /// Whether no instruction before it can be decoded.
    pub blind: bool,
    /// Whether a call stands before it, so that a return may lead there.
    pub after_call: bool,
    /// The address may be the start of a function.
    pub may_be_entry: bool,
    /// The paths that end with a jump to it.
    pub sources: Vec<Path>,
    /// Jumps through memory nearby.
    pub indirect: Vec<Arc<Decoded>>,
}

impl Site {
    pub fn new(address: u64, code: &mut Code, space: &dyn AddressSpace) -> Self {
        let straight = path(address, code, space);
        let blind = straight.is_empty();
        let first = straight.first();
        let after_call = first.is_some_and(|i| matches!(i.flow, Flow::Call(_) | Flow::CallIndirect));
        let falls = first.is_some_and(|i| !i.ends_path());
        let padding = first.is_none_or(|i| i.raw.mnemonic() == iced_x86::Mnemonic::Nop);
        let at = code.at(address, space);
        let marked = at.as_ref().is_some_and(|i| i.raw.mnemonic() == iced_x86::Mnemonic::Endbr64);
        let sources =
            sources(address, code, space).into_iter().map(|jump| source(jump, code, space)).collect();
        Self {
            at,
            may_be_entry: !falls || padding || marked || address.is_multiple_of(16),
            straight: if falls && !after_call { straight } else { Arc::from([]) },
            blind,
            after_call,
            sources,
            indirect: indirect(address, code, space),
        }
    }
}

/// The jumps to an address from nearby.
fn sources(address: u64, code: &mut Code, space: &dyn AddressSpace) -> Vec<Arc<Decoded>> {
    let mut found = Vec::new();
    for page in pages(address) {
        let jumps = code.jumps(page, space);
        for from in jumps.to(address) {
            found.extend(code.at(from, space));
        }
    }
    found.sort_by_key(|jump| jump.address().abs_diff(address));
    found.truncate(MAX_SOURCES);
    found
}

fn is_label(address: u64, code: &mut Code, space: &dyn AddressSpace) -> bool {
    pages(address).any(|page| code.jumps(page, space).to(address).next().is_some())
}

fn pages(address: u64) -> impl Iterator<Item = u64> {
    let own = address & !(PAGE - 1);
    (0..=2 * NEAR).filter_map(move |n| (own + n * PAGE).checked_sub(NEAR * PAGE))
}

/// A jump with what was executed before it.
fn source(jump: Arc<Decoded>, code: &mut Code, space: &dyn AddressSpace) -> Path {
    let address = jump.address();
    let mut all = vec![jump];
    if !is_label(address, code, space) {
        let before = path(address, code, space);
        let falls = before.first().is_some_and(|i| falls_through(i));
        all.extend(before.iter().filter(|_| falls).cloned());
    }
    Arc::from(all)
}

fn falls_through(insn: &Decoded) -> bool {
    !insn.ends_path() && !matches!(insn.flow, Flow::Call(_) | Flow::CallIndirect)
}

/// The instructions before an address, back to a label, a call or the end of another path. The first one is returned
/// whatever it is.
fn path(address: u64, code: &mut Code, space: &dyn AddressSpace) -> Path {
    let mut found: Vec<Arc<Decoded>> = Vec::new();
    let mut end = address;
    'more: while found.len() < DEPTH {
        let starts = starts_before(end, code, space);
        if starts.is_empty() {
            break;
        }
        for start in starts {
            let Some(insn) = code.at(start, space) else { break 'more };
            if insn.end() != end || (!found.is_empty() && !falls_through(&insn)) {
                break 'more;
            }
            let stops = !falls_through(&insn) || insn.flow == Flow::Kernel;
            found.push(insn);
            end = start;
            if stops || found.len() >= DEPTH || is_label(start, code, space) {
                break 'more;
            }
        }
    }
    Arc::from(found)
}

/// Jumps through memory nearby, one of each expression.
fn indirect(address: u64, code: &mut Code, space: &dyn AddressSpace) -> Vec<Arc<Decoded>> {
    let mut found: Vec<Arc<Decoded>> = Vec::new();
    for page in pages(address) {
        let jumps = code.jumps(page, space);
        for from in &jumps.through_memory {
            let Some(jump) = code.at(*from, space) else { continue };
            let same = |a: &Place, b: &Place| a.is_same_expression(b);
            let known = found.iter().any(|f| f.place.zip(jump.place).is_some_and(|(a, b)| same(&a, &b)));
            if !known
                && found.len() < MAX_EXPRESSIONS
                && jump.place.is_some_and(|p| p.base.is_some() || p.index.is_some())
            {
                found.push(jump);
            }
        }
    }
    found
}
