//! Which arguments of a function reach a call that it makes: a function that only passes a size on, as allocation wrappers
//! do, is distinguished from one that decides about the size.
//!
//! The code between the start of the function and the call is followed forward with sets of arguments instead of values.
//! Nothing is executed, and loops are not repeated. A value that is not understood belongs to nobody, so that in doubt a
//! function counts as one that decides.

mod state;

use crate::operand::AddressSpace;
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, OpKind, Register};
use state::State;
use std::collections::HashMap;
use std::ops::Range;

/// Bytes of a function that are followed.
const MAX_BYTES: u64 = 256 << 10;
/// The registers of the first arguments, in the order of the arguments.
const ARGUMENT_REGISTERS: [Register; 6] =
    [Register::RDI, Register::RSI, Register::RDX, Register::RCX, Register::R8, Register::R9];

/// Arguments of a function, by position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Arguments(u8);

impl Arguments {
    /// The arguments at these positions, of which the first is 0. Those from the seventh on are not known.
    pub const fn at(positions: &[u8]) -> Self {
        let (mut bits, mut next) = (0, 0);
        while next < positions.len() {
            if (positions[next] as usize) < ARGUMENT_REGISTERS.len() {
                bits |= 1 << positions[next];
            }
            next += 1;
        }
        Self(bits)
    }

    fn registers(self) -> impl Iterator<Item = Register> {
        let has = move |(at, _): &(usize, Register)| self.0 & (1 << at) != 0;
        ARGUMENT_REGISTERS.into_iter().enumerate().filter(has).map(|(_, register)| register)
    }

    fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Where arguments of a call come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArgumentOrigin {
    /// These arguments of the calling function, and constants.
    PassedOn(Arguments),
    /// Constants alone.
    Constant,
    /// The calling function decides, or multiplies them by a constant; or its code cannot be followed.
    Decided,
}

/// Where the `wanted` arguments of a call in a function come from. `call` is the address behind the call, or behind a jump to
/// another function.
pub fn origin(function: u64, call: u64, wanted: Arguments, space: &dyn AddressSpace) -> ArgumentOrigin {
    state_at(function, call, space).map_or(ArgumentOrigin::Decided, |state| state.origin(wanted))
}

/// What is known where a function calls; `None` if its code cannot be followed until there.
fn state_at(function: u64, call: u64, space: &dyn AddressSpace) -> Option<State> {
    let code = code(function..call, space)?;
    let mut decoder = Decoder::with_ip(64, &code, function, DecoderOptions::NONE);
    let mut factory = InstructionInfoFactory::new();
    let mut joins: HashMap<u64, State> = HashMap::new();
    let mut reached = Some(State::at_entry());
    while decoder.can_decode() {
        if let Some(other) = joins.remove(&decoder.ip()) {
            reached = Some(reached.map_or(other.clone(), |state: State| state.join(&other)));
        }
        let instruction = decoder.decode();
        if instruction.is_invalid() {
            return None;
        }
        let Some(mut state) = reached.take() else { continue };
        if instruction.next_ip() == call {
            return Some(state);
        }
        let to = branch(&instruction).filter(|to| *to > instruction.ip());
        match instruction.flow_control() {
            FlowControl::ConditionalBranch => {
                to.into_iter().for_each(|to| note(&mut joins, to, &state));
                reached = Some(state);
            }
            FlowControl::UnconditionalBranch => to.into_iter().for_each(|to| note(&mut joins, to, &state)),
            FlowControl::Return | FlowControl::IndirectBranch | FlowControl::Exception => {}
            _ => {
                state.execute(&instruction, &mut factory);
                reached = Some(state);
            }
        }
    }
    None
}

fn note(joins: &mut HashMap<u64, State>, to: u64, state: &State) {
    let joined = joins.get(&to).map_or(state.clone(), |other| other.join(state));
    joins.insert(to, joined);
}

/// The function that the call before an address calls, if that is known without registers. A stub of the linker leads to
/// the function for which it stands.
pub fn called(after: u64, space: &dyn AddressSpace) -> Option<u64> {
    /// The longest of the calls whose target is in the code, and the two lengths.
    const NEAR: u64 = 5;
    const INDIRECT: u64 = 6;
    let call = |bytes: u64| {
        let start = after.checked_sub(bytes)?;
        one(start, space).filter(|found| found.next_ip() == after)
    };
    let near = call(NEAR).filter(|found| found.flow_control() == FlowControl::Call);
    if let Some(near) = near {
        return Some(behind_stubs(near.near_branch_target(), space));
    }
    let indirect = call(INDIRECT).filter(|found| found.flow_control() == FlowControl::IndirectCall)?;
    stated(&indirect, space)
}

/// The address behind the jump by which a function leads on to another one, as compilers end a function whose last act is
/// a call. The jump's target is accepted by `is_target`.
pub fn tail_jump(
    function: Range<u64>,
    is_target: &dyn Fn(u64) -> bool,
    space: &dyn AddressSpace,
) -> Option<u64> {
    let code = code(function.clone(), space)?;
    let mut decoder = Decoder::with_ip(64, &code, function.start, DecoderOptions::NONE);
    let jump = decoder.iter().find(|instruction| {
        let to = match instruction.flow_control() {
            FlowControl::UnconditionalBranch => branch(instruction).map(|to| behind_stubs(to, space)),
            FlowControl::IndirectBranch => stated(instruction, space),
            _ => None,
        };
        to.is_some_and(|to| !function.contains(&to) && is_target(to))
    })?;
    Some(jump.next_ip())
}

/// Where stubs of the linker lead: each is a jump to an address in a table.
fn behind_stubs(function: u64, space: &dyn AddressSpace) -> u64 {
    let first = one(function, space);
    let jump = match first {
        Some(first) if first.mnemonic() == iced_x86::Mnemonic::Endbr64 => one(first.next_ip(), space),
        first => first,
    };
    let jump = jump.filter(|jump| jump.flow_control() == FlowControl::IndirectBranch);
    jump.and_then(|jump| stated(&jump, space)).unwrap_or(function)
}

/// The address in the table that an indirect call or jump names.
fn stated(instruction: &Instruction, space: &dyn AddressSpace) -> Option<u64> {
    let mut word = [0; 8];
    let is_in_table = instruction.op0_kind() == OpKind::Memory && instruction.is_ip_rel_memory_operand();
    let is_known = is_in_table && space.read(instruction.ip_rel_memory_address(), &mut word);
    is_known.then(|| u64::from_le_bytes(word)).filter(|to| *to != 0)
}

fn branch(instruction: &Instruction) -> Option<u64> {
    let is_near = matches!(instruction.op0_kind(), OpKind::NearBranch64 | OpKind::NearBranch32);
    is_near.then(|| instruction.near_branch_target())
}

fn one(at: u64, space: &dyn AddressSpace) -> Option<Instruction> {
    let mut bytes = [0; 15];
    let count = space.code(at, &mut bytes);
    let mut decoder = Decoder::with_ip(64, &bytes[..count], at, DecoderOptions::NONE);
    let found = decoder.can_decode().then(|| decoder.decode())?;
    (!found.is_invalid()).then_some(found)
}

fn code(range: Range<u64>, space: &dyn AddressSpace) -> Option<Vec<u8>> {
    let length = range.end.checked_sub(range.start).filter(|length| (1..=MAX_BYTES).contains(length))?;
    let mut bytes = vec![0; usize::try_from(length).ok()?];
    let count = space.code(range.start, &mut bytes);
    (count == bytes.len()).then_some(bytes)
}

#[cfg(test)]
mod tests;
