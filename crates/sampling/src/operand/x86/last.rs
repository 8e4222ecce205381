//! Which instructions were executed last before an address was reached.

use super::address::address;
use super::code::Code;
use super::evaluate::RSP;
use super::evidence::{Evidence, of_path};
use super::instruction::{Decoded, Flow};
use super::site::{Path, Site};
use super::state::State;
use crate::operand::AddressSpace;
use crate::operand::memory::Memory;
use std::sync::Arc;

/// Loads that compare paths.
const LOADS: u32 = 16;
/// Maximum number of words that a return may remove from the stack: arguments, and its own address.
const ARGUMENTS: u64 = 12;
/// Instructions of a called function among which a jump to another one is looked for.
const MAX_SCANNED: usize = 128;
/// Lengths of calls.
const CALLS: std::ops::RangeInclusive<u64> = 2..=8;

/// How control came to the sampled address.
pub enum Last {
    /// Along this path.
    Path(Path),
    /// By a return. It took its target from this address, if the target is still there.
    Return(Option<u64>),
    /// By a jump that accesses no memory, from an unknown place.
    Elsewhere,
    /// The code before it cannot be read.
    Unreadable,
}

/// Finds the path that was executed last.
pub fn last(target: u64, site: &Site, after: &State, code: &mut Code, space: &dyn AddressSpace) -> Last {
    if site.may_be_entry
        && let Some(path) = entered(target, after, code, space)
    {
        return Last::Path(path);
    }
    if site.after_call
        && let Some(from) = returned(target, 1, after, space)
    {
        return Last::Return(Some(from));
    }
    if let Some(path) = best(target, site, after, space) {
        return Last::Path(path);
    }
    if site.blind {
        return Last::Unreadable;
    }
    if site.after_call && site.sources.is_empty() {
        return Last::Return(returned(target, ARGUMENTS, after, space));
    }
    let through = site.indirect.iter().find(|jump| leads_to(jump, target, after, space));
    through.map_or(Last::Elsewhere, |jump| Last::Path(Arc::from([jump.clone()])))
}

/// Among the straight line and the jumps to the address, the path that the registers agree with most.
fn best(target: u64, site: &Site, after: &State, space: &dyn AddressSpace) -> Option<Path> {
    let all = || std::iter::once(&site.straight).chain(&site.sources).filter(|path| !path.is_empty());
    let mut left: Vec<(Evidence, &Path)> = Vec::new();
    for path in all() {
        let evidence = of_path(path, target, after, None);
        if evidence != Evidence::Against {
            left.push((evidence, path));
        }
    }
    if left.len() > 1 {
        let mut memory = Memory::new(space, LOADS);
        for (evidence, path) in &mut left {
            *evidence = of_path(path, target, after, Some(&mut memory));
        }
        left.retain(|(evidence, _)| *evidence != Evidence::Against);
    }
    let rank = |(evidence, path): &(Evidence, &Path)| {
        let falls = path.first().is_some_and(|i| i.end() == target);
        (*evidence, waits(path), falls)
    };
    left.into_iter().max_by_key(rank).map(|(_, path)| path.clone())
}

/// Whether the last instruction of a path, with the one it fuses with, accesses memory.
fn waits(path: &Path) -> bool {
    let mut insns = path.iter();
    let first = insns.next();
    first.is_some_and(|i| i.place.is_some())
        || (first.is_some_and(|i| matches!(i.flow, Flow::Conditional(_)))
            && insns.next().is_some_and(|i| i.fuses() && i.place.is_some()))
}

/// The call that the return address on the stack belongs to, if it leads to `target`, directly or through a jump
/// in a table of linked functions.
fn entered(target: u64, after: &State, code: &mut Code, space: &dyn AddressSpace) -> Option<Path> {
    let mut memory = Memory::new(space, 2);
    let back = memory.load(after.get(RSP)?, 8)?;
    for length in CALLS {
        let Some(call) = code.at(back.checked_sub(length)?, space) else { continue };
        if call.end() != back {
            continue;
        }
        match call.flow {
            Flow::Call(to) if to == target => return Some(Arc::from([call])),
            Flow::Call(to) => {
                if let Some(jump) = through_table(to, code, space)
                    && leads_to(&jump, target, after, space)
                {
                    return Some(Arc::from([jump, call]));
                }
                return tail_jump(to, target, after, code, space).map(|jump| Arc::from([jump]));
            }
            Flow::CallIndirect if leads_to(&call, target, after, space) => return Some(Arc::from([call])),
            _ => {}
        }
    }
    None
}

/// The jump by which a function that was called at `from` handed over to the one at `target`.
fn tail_jump(
    from: u64,
    target: u64,
    after: &State,
    code: &mut Code,
    space: &dyn AddressSpace,
) -> Option<Arc<Decoded>> {
    let mut at = from;
    if let Some(place) = through_table(from, code, space).and_then(|jump| jump.place) {
        at = Memory::new(space, 1).load(address(&place, after)?, 8)?;
    }
    for _ in 0..MAX_SCANNED {
        let insn = code.at(at, space)?;
        match insn.flow {
            Flow::Jump(to) if to == target => return Some(insn),
            Flow::JumpIndirect if leads_to(&insn, target, after, space) => return Some(insn),
            Flow::Jump(to) => {
                let jump = through_table(to, code, space);
                if let Some(jump) = jump.filter(|jump| leads_to(jump, target, after, space)) {
                    return Some(jump);
                }
            }
            _ => {}
        }
        at = insn.end();
    }
    None
}

/// The jump of an entry in a procedure linkage table.
fn through_table(at: u64, code: &mut Code, space: &dyn AddressSpace) -> Option<Arc<Decoded>> {
    let first = code.at(at, space)?;
    let jump = if first.raw.mnemonic() == iced_x86::Mnemonic::Endbr64 {
        code.at(first.end(), space)?
    } else {
        first
    };
    (jump.flow == Flow::JumpIndirect).then_some(jump)
}

/// Whether an indirect jump or call goes to `target` with these registers.
fn leads_to(jump: &Decoded, target: u64, after: &State, space: &dyn AddressSpace) -> bool {
    let before = super::undo::undo(jump, &mut after.clone(), None);
    if jump.raw.op0_kind() == iced_x86::OpKind::Register {
        return before.part(jump.raw.op0_register()) == Some(target);
    }
    let place = jump.places.iter().find(|place| !place.stack);
    let at = place.and_then(|place| address(place, &before));
    at.and_then(|at| Memory::new(space, 1).load(at, 8)) == Some(target)
}

/// Where a return found its target, if it removed fewer than `most` arguments: below the stack pointer.
fn returned(target: u64, most: u64, after: &State, space: &dyn AddressSpace) -> Option<u64> {
    let rsp = after.get(RSP)?;
    let mut memory = Memory::new(space, u32::try_from(most).ok()?);
    let mut slots = (1..=most).map(|words| rsp.wrapping_sub(8 * words));
    slots.find(|at| memory.load(*at, 8) == Some(target))
}
