//! The register file of a card.

use numakit_sys::window::Window;
use std::fmt::Debug;

/// Size of a window in bytes.
pub const LENGTH: usize = 0x4000;
/// Word 0 of every card.
pub const IDENTITY: u32 = 0x0700_1b47;
/// Bits 4-15: position of the first card.
pub const FIRST: usize = 0x10a4;
/// Bits 0-11: position of the next card, [`LAST`] after the last one; bits 12-14: the link of
/// HyperTransport that cards are at.
pub const NEXT: usize = 0x10a8;
/// There is no next card.
pub const LAST: u32 = 0xfff;
/// The command register.
pub const CONTROL: usize = 0x3058;
/// Command: stop the counters.
pub const STOP: u32 = 1;
/// Command: start the counters.
pub const RUN: u32 = 5;
/// Simulated cards only: the last executed command (bits 0-7), and the number of commands.
pub const STATUS: usize = 0x305c;
/// The first counter; words of 64 bits follow.
#[cfg(test)]
pub const FIRST_COUNTER: usize = 0x3100;
/// Bytes from the first counter to the end of the last.
#[cfg(test)]
pub const COUNTERS_LENGTH: usize = 0x590;
/// Width of a counter.
pub const BITS: u8 = 48;

/// Access to a card or its test double. All accesses have 32 bits.
pub trait Registers: Debug + Send {
    /// The register at this offset; `None` if it cannot be read.
    fn read32(&self, offset: usize) -> Option<u32>;

    /// Writes a register.
    fn write32(&self, offset: usize, value: u32);

    /// Whether it executes commands; a card in a file does not.
    fn takes_commands(&self) -> bool;
}

impl Registers for Window {
    fn read32(&self, offset: usize) -> Option<u32> {
        Self::read32(self, offset)
    }

    fn write32(&self, offset: usize, value: u32) {
        Self::write32(self, offset, value);
    }

    fn takes_commands(&self) -> bool {
        self.is_writable()
    }
}
