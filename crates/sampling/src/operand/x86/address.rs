//! Addresses of operands.

use super::instruction::{Place, Segment};
use super::state::State;

/// The address of an operand, if the registers for it are known.
pub fn address(place: &Place, state: &State) -> Option<u64> {
    if place.gathers {
        return None;
    }
    let base = match place.base {
        Some(number) => state.get(number)?,
        None => 0,
    };
    let index = match place.index {
        Some(number) => state.get(number)?.wrapping_mul(u64::from(place.scale)),
        None => 0,
    };
    in_segment(place, state, base.wrapping_add(index).wrapping_add(place.displacement))
}

/// An offset as an address of the flat memory.
pub fn in_segment(place: &Place, state: &State, offset: u64) -> Option<u64> {
    let offset = if place.narrow { offset & 0xffff_ffff } else { offset };
    let base = match place.segment {
        Segment::Flat => 0,
        Segment::Fs => state.fs_base?,
        Segment::Gs => state.gs_base?,
    };
    Some(base.wrapping_add(offset))
}
