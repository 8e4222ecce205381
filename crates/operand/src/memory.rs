//! The memory that an evaluation reads and writes: the observed process's, below the evaluation's own stores.

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
                return if inside { shifted.map(|v| truncate(v, bytes)) } else { None };
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

/// The lowest bytes of a value.
pub fn truncate(value: u64, bytes: usize) -> u64 {
    match bytes {
        0 => 0,
        1..8 => value & ((1 << (8 * bytes)) - 1),
        _ => value,
    }
}

/// The lowest bytes of a value as a signed number.
pub fn extend(value: u64, bytes: usize) -> u64 {
    match bytes {
        1 => i64::from(value as u8 as i8) as u64,
        2 => i64::from(value as u16 as i16) as u64,
        4 => i64::from(value as u32 as i32) as u64,
        _ => value,
    }
}
