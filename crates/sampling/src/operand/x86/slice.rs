//! The registers before an instruction of a path, computed from those after the path.

use super::address::address;
use super::evaluate::Evaluation;
use super::instruction::{Decoded, Place};
use super::state::State;
use super::undo::undo;
use crate::operand::memory::Memory;
use std::sync::Arc;

/// The state of the registers before `path[last]`, if the address of `place` is known by it. First all instructions are
/// undone, from the last to the first; then they are executed, from the first on.
pub fn state_for(
    place: &Place,
    path: &[Arc<Decoded>],
    last: usize,
    after: &State,
    mut memory: Option<&mut Memory<'_>>,
) -> Option<State> {
    let mut points: Vec<State> = Vec::with_capacity(path.len() + 1);
    let mut state = *after;
    for (depth, insn) in path.iter().enumerate() {
        let before = undo(insn, &mut state, memory.as_deref_mut());
        points.push(before);
        state = before;
        if depth == last && address(place, &before).is_some() {
            return Some(before);
        }
    }
    let needed = place.registers();
    for (depth, insn) in path.iter().enumerate().rev() {
        if depth == last {
            break;
        }
        Evaluation { state: &mut state, memory: memory.as_deref_mut(), vectors: None }.step(insn);
        state.merge(points.get(depth.checked_sub(1)?)?);
        if depth == last + 1 && needed.is_within(state.known) {
            return Some(state);
        }
    }
    None
}

/// The state before `path[last]`, whatever is known.
pub fn state_before(path: &[Arc<Decoded>], last: usize, after: &State) -> State {
    let mut state = *after;
    for insn in path.iter().take(last + 1) {
        state = undo(insn, &mut state, None);
    }
    state
}
