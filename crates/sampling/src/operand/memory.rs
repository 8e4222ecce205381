//! The memory that an evaluation reads and writes: the observed process's, below the evaluation's own stores.

use crate::operand::AddressSpace;

/// Maximum number of an evaluation's own stores that it remembers.
const STORES: usize = 64;
/// Bytes that are read at once, and the number of such pieces that are remembered.
const LINE: usize = 64;
const LINES: usize = 8;

struct Stored {
    address: u64,
    bytes: usize,
    value: Option<u64>,
}

/// The memory of one evaluation. Nothing is written to the observed process.
pub(crate) struct Memory<'a> {
    space: &'a dyn AddressSpace,
    stores: Vec<Stored>,
    /// The pieces that were read last.
    lines: Vec<(u64, [u8; LINE])>,
    /// The piece that is replaced next.
    next: usize,
    in_lines: bool,
    /// Reads that are left.
    budget: u32,
    /// A value of memory was used.
    pub used: bool,
}

impl<'a> Memory<'a> {
    pub fn new(space: &'a dyn AddressSpace, budget: u32) -> Self {
        Self { space, stores: Vec::new(), lines: Vec::new(), next: 0, in_lines: false, budget, used: false }
    }

    /// Memory for an evaluation that reads a lot: it reads whole lines, so that neighbouring words cost nothing more.
    pub fn in_lines(space: &'a dyn AddressSpace, budget: u32) -> Self {
        Self { in_lines: true, ..Self::new(space, budget) }
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
        if bytes == 0 || bytes > 8 {
            return None;
        }
        let value = self.read(address, bytes)?;
        self.used = true;
        Some(value)
    }

    /// The number at an address of the process, by way of the line that it is in.
    fn read(&mut self, address: u64, bytes: usize) -> Option<u64> {
        let (start, offset) = (address & !(LINE as u64 - 1), (address % LINE as u64) as usize);
        let mut buffer = [0; 8];
        if self.in_lines && offset + bytes <= LINE {
            if let Some((_, line)) = self.lines.iter().find(|(known, _)| *known == start) {
                buffer[..bytes].copy_from_slice(&line[offset..offset + bytes]);
                return Some(u64::from_le_bytes(buffer));
            }
            self.budget = self.budget.checked_sub(1)?;
            let mut line = [0; LINE];
            if self.space.read(start, &mut line) {
                buffer[..bytes].copy_from_slice(&line[offset..offset + bytes]);
                self.remember(start, line);
                return Some(u64::from_le_bytes(buffer));
            }
        } else {
            self.budget = self.budget.checked_sub(1)?;
        }
        self.space.read(address, &mut buffer[..bytes]).then(|| u64::from_le_bytes(buffer))
    }

    fn remember(&mut self, start: u64, line: [u8; LINE]) {
        match self.lines.get_mut(self.next) {
            Some(place) => *place = (start, line),
            None => self.lines.push((start, line)),
        }
        self.next = (self.next + 1) % LINES;
    }

    /// Remembers a store. If the value is unknown, later loads from the address are unknown too.
    pub fn store(&mut self, address: u64, bytes: usize, value: Option<u64>) {
        if self.stores.len() < STORES {
            self.stores.push(Stored { address, bytes: bytes.min(8), value });
        }
    }

    /// The number at an address that the instruction also writes. Where few reads are left, none is spent on it, as such a
    /// value hardly ever leads to an address: it is known only if it was read or stored before.
    pub fn load_updated(&mut self, address: u64, bytes: usize) -> Option<u64> {
        let budget = self.budget;
        if self.in_lines {
            self.budget = 0;
        }
        let value = self.load(address, bytes);
        self.budget = budget;
        value
    }

    /// Whether no reads are left.
    pub fn is_spent(&self) -> bool {
        self.budget == 0
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
