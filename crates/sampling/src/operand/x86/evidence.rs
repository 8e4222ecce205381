//! Whether the registers agree with a path having been executed last.

use super::evaluate::Evaluation;
use super::flags::{STATUS, fulfils};
use super::instruction::{Decoded, Flow};
use super::state::State;
use super::undo::undo;
use crate::operand::memory::Memory;
use std::sync::Arc;

/// What the registers say about a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Evidence {
    /// The path was not executed last.
    Against,
    /// The registers say nothing about it.
    None,
    /// The registers agree by a value or a condition.
    Agrees,
    /// Several values agree.
    Strong,
}

/// Judges the path whose last instruction led to `target`.
pub fn of_path(
    path: &[Arc<Decoded>],
    target: u64,
    after: &State,
    mut memory: Option<&mut Memory<'_>>,
) -> Evidence {
    let mut points = 0;
    let mut state = *after;
    for insn in path.iter().take(4) {
        if let Flow::Conditional(to) = insn.flow {
            let led_to = if points_to(path, insn) { target } else { insn.end() };
            if to != insn.end()
                && let Some(holds) = state.flags.and_then(|flags| fulfils(flags, insn.raw.condition_code()))
            {
                if holds != (led_to == to) {
                    return Evidence::Against;
                }
                points += 1;
            }
        }
        let before = undo(insn, &mut state, None);
        match compare(insn, &before, &state, memory.as_deref_mut()) {
            Some(false) => return Evidence::Against,
            Some(true) => points += 2,
            None => {}
        }
        state = before;
    }
    match points {
        0 => Evidence::None,
        1 | 2 => Evidence::Agrees,
        _ => Evidence::Strong,
    }
}

/// Whether the path ends with this instruction.
fn points_to(path: &[Arc<Decoded>], insn: &Arc<Decoded>) -> bool {
    path.first().is_some_and(|first| Arc::ptr_eq(first, insn))
}

/// Executes the instruction again and compares its results with the registers after it; `None` if no result can be compared.
fn compare(insn: &Decoded, before: &State, after: &State, memory: Option<&mut Memory<'_>>) -> Option<bool> {
    if insn.string || !matches!(insn.flow, Flow::Next) {
        return None;
    }
    let mut again = *before;
    Evaluation { state: &mut again, memory, vectors: None }.step(insn);
    let mut compared = false;
    for number in (0..16).filter(|&number| insn.written.has(number) && !before.known.has(number)) {
        if let Some((new, old)) = again.get(number).zip(after.get(number)) {
            if new != old {
                return Some(false);
            }
            compared = true;
        }
    }
    if insn.writes_flags
        && let Some((new, old)) = again.flags.zip(after.flags)
    {
        if (new ^ old) & STATUS != 0 {
            return Some(false);
        }
        compared = true;
    }
    compared.then_some(true)
}
