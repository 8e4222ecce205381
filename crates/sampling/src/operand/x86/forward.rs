//! Executes forward from the sampled registers: to the next execution of an instruction, or around a loop.

use super::address::address;
use super::code::Code;
use super::evaluate::{Evaluation, RSP};
use super::flags::fulfils;
use super::instruction::{Decoded, Flow, Place};
use super::parts::{Model, Part};
use super::state::{RegisterSet, State};
use super::vectors::KnownVectors;
use crate::operand::memory::Memory;
use crate::operand::{AccessKind, AddressSpace, MemoryAccess, Reach, RecoveryRule};
use iced_x86::Register;

/// Maximum depth of calls that are followed.
const MAX_CALLS: usize = 32;
/// Maximum number of instructions that are executed to find the next execution of one of them.
const MAX_TO_NEXT: usize = 200;
/// Loads on that way.
const LOADS_TO_NEXT: u32 = 40;

/// A thread that is executed.
struct Walk<'c, 'a> {
    code: &'c mut Code,
    space: &'a dyn AddressSpace,
    memory: Memory<'a>,
    state: State,
    vectors: KnownVectors,
    ip: u64,
    returns: Vec<u64>,
    /// Whether a backward branch with unknown flags is followed once. Otherwise execution stops there.
    guesses: bool,
    /// Backward branches that were followed without known flags.
    guessed: Vec<u64>,
}

impl<'a> Walk<'_, 'a> {
    /// Executes one instruction. Returns whether it is known which one follows.
    fn step(&mut self, insn: &Decoded) -> bool {
        let target = self.indirect(insn);
        let popped = match insn.flow {
            Flow::Return => self.state.get(RSP).and_then(|at| self.memory.load(at, 8)),
            _ => None,
        };
        let taken = match insn.flow {
            Flow::Conditional(to) => self.takes(insn, to),
            _ => Some(true),
        };
        Evaluation {
            state: &mut self.state,
            memory: Some(&mut self.memory),
            vectors: Some(&mut self.vectors),
        }
        .step(insn);
        let next = match insn.flow {
            Flow::Next => Some(insn.end()),
            Flow::Conditional(to) => taken.map(|taken| if taken { to } else { insn.end() }),
            Flow::Jump(to) => Some(to),
            Flow::JumpIndirect => target,
            Flow::Call(to) => self.call(insn, Some(to)),
            Flow::CallIndirect => self.call(insn, target),
            Flow::Return => self.returns.pop().or(popped),
            Flow::Kernel | Flow::Stop => None,
        };
        self.ip = next.unwrap_or_default();
        next.is_some()
    }

    fn call(&mut self, insn: &Decoded, target: Option<u64>) -> Option<u64> {
        if self.returns.len() >= MAX_CALLS {
            return None;
        }
        self.returns.push(insn.end());
        target
    }

    fn takes(&mut self, insn: &Decoded, to: u64) -> Option<bool> {
        let counter = match insn.raw.mnemonic() {
            iced_x86::Mnemonic::Jrcxz => Some(self.state.part(Register::RCX)),
            iced_x86::Mnemonic::Jecxz => Some(self.state.part(Register::ECX)),
            _ => None,
        };
        let known = match counter {
            Some(counter) => counter.map(|c| c == 0),
            None => self.state.flags.and_then(|flags| fulfils(flags, insn.raw.condition_code())),
        };
        if known.is_some() || !self.guesses {
            return known;
        }
        let back = to <= insn.address() && !self.guessed.contains(&insn.address());
        if back {
            self.guessed.push(insn.address());
        }
        Some(back)
    }

    /// The target of an indirect jump or call.
    fn indirect(&mut self, insn: &Decoded) -> Option<u64> {
        if !matches!(insn.flow, Flow::JumpIndirect | Flow::CallIndirect) {
            return None;
        }
        match insn.raw.op0_kind() {
            iced_x86::OpKind::Register => self.state.part(insn.raw.op0_register()),
            _ => {
                let at = address(insn.places.iter().find(|p| !p.stack)?, &self.state)?;
                self.memory.load(at, 8)
            }
        }
    }
}

/// The address that the instruction at `address` accesses when it is executed next.
pub fn next_execution(
    waiting: &Decoded,
    place: &Place,
    start: u64,
    state: &State,
    code: &mut Code,
    space: &dyn AddressSpace,
) -> Option<(u64, RecoveryRule)> {
    let memory = Memory::new(space, LOADS_TO_NEXT);
    let mut walk = Walk {
        code,
        space,
        memory,
        state: *state,
        vectors: KnownVectors::default(),
        ip: start,
        returns: Vec::new(),
        guesses: false,
        guessed: Vec::new(),
    };
    let chained = place.base.filter(|&base| waiting.written.has(base));
    let link = chained.and_then(|base| state.get(base));
    for _ in 0..MAX_TO_NEXT {
        if walk.ip == waiting.address() {
            let found = address(place, &walk.state)?;
            let is_link = chained.is_some_and(|base| link.is_some() && walk.state.get(base) == link);
            return Some((found, if is_link { RecoveryRule::Chain } else { RecoveryRule::Next }));
        }
        let insn = walk.code.at(walk.ip, space)?;
        if !walk.step(&insn) {
            return None;
        }
    }
    None
}

/// The operands with known addresses from `start` on, as far as `reach` allows; returns how many instructions were executed.
/// An operand whose base is a link that was followed on the way has the rule `Chain`.
pub fn ahead(
    start: u64,
    state: &State,
    reach: Reach,
    code: &mut Code,
    space: &dyn AddressSpace,
    found: &mut Vec<MemoryAccess>,
) -> u32 {
    let memory = Memory::in_lines(space, reach.reads);
    let mut walk = Walk {
        code,
        space,
        memory,
        state: *state,
        vectors: KnownVectors::default(),
        ip: start,
        returns: Vec::new(),
        guesses: true,
        guessed: Vec::new(),
    };
    let (mut executed, mut left) = (0, reach.executions);
    let mut links = RegisterSet::default();
    let (mut at, mut block) = (start, walk.code.block(start, walk.space));
    loop {
        // Most loops are one block, which is then at hand.
        if walk.ip != at {
            (at, block) = (walk.ip, walk.code.block(walk.ip, walk.space));
        }
        for insn in &*block {
            for place in &insn.places {
                let Some(address) = address(place, &walk.state) else { continue };
                let is_link = place.base.is_some_and(|base| links.has(base));
                let rule = if is_link { RecoveryRule::Chain } else { RecoveryRule::Direct };
                let rule = rule_of(insn, place, rule);
                let instruction = insn.address();
                found.push(MemoryAccess { instruction, address, size: place.size, kind: place.kind, rule });
            }
            executed += 1;
            links = links.without(insn.written);
            if let Some(register) = link(insn) {
                links = links.with(register);
            }
            left -= u32::from(reach.of == Some(insn.address()));
            if !walk.step(insn) || executed >= reach.instructions || left == 0 || walk.memory.is_spent() {
                return executed;
            }
        }
        if block.is_empty() {
            return executed;
        }
    }
}

/// The register that follows a link: the instruction loads it from the address that it holds, as in `p = p->next`.
fn link(insn: &Decoded) -> Option<u8> {
    let (Model::Move, [Part::Register(to), Part::Memory(8), ..]) = (insn.model, insn.parts) else {
        return None;
    };
    (to.size == 8 && insn.explicit?.base == Some(to.number)).then_some(to.number)
}

/// The rule by which tables count an exact address.
pub fn rule_of(insn: &Decoded, place: &Place, found: RecoveryRule) -> RecoveryRule {
    if place.kind == AccessKind::Prefetch {
        RecoveryRule::Prefetch
    } else if place.segment != super::instruction::Segment::Flat {
        RecoveryRule::ThreadLocal
    } else if place.stack {
        RecoveryRule::Stack
    } else if insn.string {
        RecoveryRule::String
    } else {
        found
    }
}
