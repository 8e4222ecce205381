//! The rules, in their order, for one sample.

use super::address::{address, in_segment};
use super::code::Code;
use super::forward::{next_execution, rule_of};
use super::instruction::{Decoded, Flow, Place, Segment};
use super::last::{Last, last};
use super::site::{Path, Site};
use super::slice::{state_before, state_for};
use super::state::State;
use crate::operand::memory::Memory;
use crate::operand::{AccessKind, AddressSpace, MemoryAccess, Operand, RecoveryRule};
use std::sync::Arc;

/// Maximum number of loads in one slice.
const LOADS: u32 = 24;

/// What a sample is recovered with.
pub struct Recovery<'c, 'a> {
    pub code: &'c mut Code,
    pub space: &'a dyn AddressSpace,
    /// The sampled registers.
    pub sampled: State,
    pub ip: u64,
}

impl Recovery<'_, '_> {
    /// The operand of the instruction right before the sample.
    pub fn behind(&mut self, site: &Site) -> Operand {
        if let Some(operand) = self.repeating(site) {
            return operand;
        }
        match last(self.ip, site, &self.sampled, self.code, self.space) {
            Last::Path(path) => {
                let after = self.sampled;
                self.of_path(&path, 0, &after)
            }
            Last::Return(from) => self.of_return(from),
            Last::Elsewhere => Operand::Computing,
            Last::Unreadable => Operand::Unknown { instruction: self.ip, kind: None },
        }
    }

    /// The operand of the instruction before the one right before the sample.
    pub fn one_further(
        &mut self,
        site: &Site,
        sites: &mut dyn FnMut(u64, &mut Code) -> Arc<Site>,
    ) -> Operand {
        if let Some(operand) = self.repeating(site) {
            return operand;
        }
        let unknown = Operand::Unknown { instruction: self.ip, kind: None };
        let Last::Path(path) = last(self.ip, site, &self.sampled, self.code, self.space) else {
            return unknown;
        };
        let skipped = if fused(&path, 0).is_some() { 2 } else { 1 };
        if path.len() > skipped {
            let after = self.sampled;
            return self.of_path(&path, skipped, &after);
        }
        // The path begins with the skipped instruction: so the last path to that instruction is looked for.
        let Some(first) = path.last() else { return unknown };
        let target = first.address();
        let before = state_before(&path, path.len() - 1, &self.sampled);
        let site = sites(target, self.code);
        match last(target, &site, &before, self.code, self.space) {
            Last::Path(path) => self.of_path(&path, 0, &before),
            Last::Return(_) | Last::Elsewhere | Last::Unreadable => unknown,
        }
    }

    /// The operand of a return. It is named after the instruction to which it led, since the address of the return itself is
    /// unknown.
    fn of_return(&self, from: Option<u64>) -> Operand {
        let (instruction, kind, rule) = (self.ip, AccessKind::Load, RecoveryRule::Stack);
        match from {
            Some(address) => Operand::Memory(MemoryAccess { instruction, address, size: 8, kind, rule }),
            None => Operand::Unknown { instruction, kind: Some(kind) },
        }
    }

    /// The sample stands at a string instruction that has not ended.
    fn repeating(&self, site: &Site) -> Option<Operand> {
        let insn = site.at.as_ref().filter(|insn| insn.repeats())?;
        let rcx = self.sampled.get(1)?;
        if rcx == 0 {
            return None;
        }
        let place = insn.place?;
        Some(memory(insn, &place, address(&place, &self.sampled)?, RecoveryRule::String))
    }

    /// The operand of `path[index]`; `after` holds after the whole path.
    fn of_path(&mut self, path: &Path, index: usize, after: &State) -> Operand {
        let fused = fused(path, index);
        let index = fused.unwrap_or(index);
        let index = stored_before(path, index).unwrap_or(index);
        let Some(insn) = path.get(index) else { return Operand::Computing };
        let Some(place) = insn.place else { return Operand::Computing };
        let exact = if fused.is_some() { Some(RecoveryRule::Fused) } else { None };
        self.by_slice(insn, &place, path, index, after, exact)
            .or_else(|| self.by_next(insn, &place))
            .or_else(|| self.by_link(insn, &place))
            .unwrap_or_else(|| self.by_object(insn, &place, path, index, after))
    }

    /// Direct, fused, slice, and slice with loads.
    fn by_slice(
        &mut self,
        insn: &Arc<Decoded>,
        place: &Place,
        path: &[Arc<Decoded>],
        index: usize,
        after: &State,
        exact: Option<RecoveryRule>,
    ) -> Option<Operand> {
        if place.gathers {
            return None;
        }
        if place.segment != Segment::Flat && address_base(place, after).is_none() {
            let mut flat = *place;
            flat.segment = Segment::Flat;
            let state = state_for(&flat, path, index, after, None)?;
            let offset = address(&flat, &state)?;
            return Some(Operand::ThreadLocal { instruction: insn.address(), offset, kind: place.kind });
        }
        let registers = place.registers();
        let kept = !path.iter().take(index + 1).any(|i| i.written.meets(registers));
        let plain = if kept || insn.string { RecoveryRule::Direct } else { RecoveryRule::Slice };
        if let Some(at) = state_for(place, path, index, after, None).and_then(|s| address(place, &s)) {
            return Some(memory(insn, place, at, exact.unwrap_or(plain)));
        }
        let mut loads = Memory::new(self.space, LOADS);
        let state = state_for(place, path, index, after, Some(&mut loads))?;
        let rule = if loads.used { RecoveryRule::SliceLoad } else { RecoveryRule::Slice };
        Some(memory(insn, place, address(place, &state)?, exact.unwrap_or(rule)))
    }

    /// The instruction's next execution.
    fn by_next(&mut self, insn: &Decoded, place: &Place) -> Option<Operand> {
        if place.gathers || place.stack {
            return None;
        }
        let (at, rule) = next_execution(insn, place, self.ip, &self.sampled, self.code, self.space)?;
        Some(Operand::Memory(access(insn, place, at, rule)))
    }

    /// The new value of a pointer that the instruction overwrote, where it leads to memory and the instruction
    /// stands in a loop.
    fn by_link(&mut self, insn: &Decoded, place: &Place) -> Option<Operand> {
        let base =
            place.base.filter(|&base| insn.written.has(base) && place.index.is_none() && !place.stack)?;
        let loops = self.ip <= insn.address() || self.loops_over(insn);
        let at = address(place, &self.sampled)?;
        (loops && self.sampled.get(base)? != 0 && Memory::new(self.space, 1).is_mapped(at))
            .then(|| Operand::Memory(access(insn, place, at, RecoveryRule::Chain)))
    }

    /// Whether a jump behind the instruction leads to an address before it.
    fn loops_over(&mut self, insn: &Decoded) -> bool {
        let mut at = insn.end();
        for _ in 0..64 {
            let Some(next) = self.code.at(at, self.space) else { return false };
            match next.flow {
                Flow::Conditional(to) | Flow::Jump(to)
                    if to <= insn.address() && insn.address() - to < 512 =>
                {
                    return true;
                }
                Flow::Return | Flow::Stop | Flow::JumpIndirect => return false,
                Flow::Jump(to) => at = to,
                _ => at = next.end(),
            }
        }
        false
    }

    /// The object that the base points to, if the base is known.
    fn by_object(
        &mut self,
        insn: &Decoded,
        place: &Place,
        path: &[Arc<Decoded>],
        index: usize,
        after: &State,
    ) -> Operand {
        let unknown = Operand::Unknown { instruction: insn.address(), kind: Some(place.kind) };
        let mut part = *place;
        part.index = None;
        part.gathers = false;
        let mut loads = Memory::new(self.space, LOADS);
        let mut found =
            state_for(&part, path, index, after, Some(&mut loads)).and_then(|s| address(&part, &s));
        if place.index.is_some()
            && place.base.is_some()
            && found.is_none_or(|at| !loads.is_mapped(at))
            && place.scale == 1
        {
            part.base = place.index;
            found = state_for(&part, path, index, after, Some(&mut loads)).and_then(|s| address(&part, &s));
        }
        match found {
            Some(base) if loads.is_mapped(base) => {
                Operand::Object { instruction: insn.address(), base, kind: place.kind }
            }
            _ => unknown,
        }
    }
}

/// The place of the compare that retired together with the jump at `index`.
fn fused(path: &[Arc<Decoded>], index: usize) -> Option<usize> {
    let jump = path.get(index)?;
    let compare = path.get(index + 1)?;
    (matches!(jump.flow, Flow::Conditional(_)) && compare.fuses()).then_some(index + 1)
}

/// The store that a barrier at `index` waits for: the last one before it that is not to the stack. A barrier has nothing of
/// its own to wait for. Compilers write it as `mfence`, or as an atomic instruction that changes nothing on the stack.
fn stored_before(path: &[Arc<Decoded>], index: usize) -> Option<usize> {
    path.get(index).filter(|insn| insn.is_barrier())?;
    let writes =
        |place: &Place| matches!(place.kind, AccessKind::Store | AccessKind::Update | AccessKind::Atomic);
    let is_store =
        |insn: &Arc<Decoded>| insn.place.is_some_and(|place| writes(&place) && !place.is_on_stack());
    path.iter().skip(index + 1).position(is_store).map(|at| index + 1 + at)
}

fn address_base(place: &Place, state: &State) -> Option<u64> {
    in_segment(place, state, 0)
}

fn access(insn: &Decoded, place: &Place, at: u64, rule: RecoveryRule) -> MemoryAccess {
    MemoryAccess { instruction: insn.address(), address: at, size: place.size, kind: place.kind, rule }
}

fn memory(insn: &Decoded, place: &Place, at: u64, found: RecoveryRule) -> Operand {
    Operand::Memory(access(insn, place, at, rule_of(insn, place, found)))
}
