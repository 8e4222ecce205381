//! The memory that an evaluation reads and writes: the observed process's, below the evaluation's own stores.

use super::instruction::{Place, Segment};
use super::state::State;
use crate::AddressSpace;

/// Own stores that an evaluation remembers.
const STORES: usize = 64;

struct Stored {
    address: u64,
    bytes: usize,
    value: Option<u64>,
}

/// The memory of one evaluation. Nothing is written to the observed process.
pub struct Memory<'a> {
    space: &'a dyn AddressSpace,
    stores: Vec<Stored>,
    /// Reads that are left.
    budget: u32,
    /// A value of memory was used.
    pub used: bool,
}

impl<'a> Memory<'a> {
    pub fn new(space: &'a dyn AddressSpace, budget: u32) -> Self {
        Self { space, stores: Vec::new(), budget, used: false }
    }

    /// The number at an address.
    pub fn load(&mut self, address: u64, bytes: usize) -> Option<u64> {
        for stored in self.stores.iter().rev() {
            let distance = address.wrapping_sub(stored.address);
            let overlaps =
                distance < stored.bytes as u64 || stored.address.wrapping_sub(address) < bytes as u64;
            if overlaps {
                let inside = distance.saturating_add(bytes as u64) <= stored.bytes as u64;
                let shifted = stored.value.map(|v| v >> (8 * distance.min(7)));
                return if inside { shifted.map(|v| super::state::truncate(v, bytes)) } else { None };
            }
        }
        self.budget = self.budget.checked_sub(1)?;
        let mut buffer = [0; 8];
        if bytes == 0 || !self.space.read(address, buffer.get_mut(..bytes)?) {
            return None;
        }
        self.used = true;
        Some(u64::from_le_bytes(buffer))
    }

    /// Remembers a store; an unknown value hides what was there.
    pub fn store(&mut self, address: u64, bytes: usize, value: Option<u64>) {
        if self.stores.len() < STORES {
            self.stores.push(Stored { address, bytes: bytes.min(8), value });
        }
    }

    /// Whether there is memory at an address.
    pub fn is_mapped(&self, address: u64) -> bool {
        self.space.read(address, &mut [0])
    }
}

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
