//! The layout of the memory file, in words of 64 bits; `native/explain/shared_ring.h` has the same.

pub const HEADER_WORDS: usize = 512;
pub const ENTRY_WORDS: usize = 8;
/// Words of a slot. The first is its sequence.
pub const SLOT_WORDS: usize = 96;
/// Maximum number of observed processes that have an entry of their own.
pub const ENTRIES: usize = 512;

/// The bit in a slot's sequence that says that the slot is being written.
#[cfg(test)]
pub const WRITING: u64 = 1 << 63;
/// The bit in a process's identity that says that the process ends.
pub const ENDS: u64 = 1 << 32;

/// Words of the header.
pub mod header {
    pub const FILTERS: usize = 6;
    pub const HEAD: usize = 8;
    pub const TAIL: usize = 16;
    pub const BEAT: usize = 17;
    pub const LOST: usize = 24;
    pub const THREADS: usize = 25;
    pub const WITHOUT_TIMER: usize = 26;
    pub const PROCESSES: usize = 27;
    pub const WITHOUT_ENTRY: usize = 28;
    /// The counter of blocks in the log whose end nobody will see.
    pub const WITHOUT_END: usize = 30;
    pub const WANTED: usize = 32;
}

/// Words of an entry.
pub mod entry {
    pub const IDENTITY: usize = 0;
    pub const THREADS: usize = 1;
    pub const WITHOUT_TIMER: usize = 2;
    pub const SAMPLES: usize = 3;
    pub const LOST: usize = 4;
    pub const CHAIN: usize = 5;
    pub const STATE: usize = 6;
    pub const SINCE: usize = 7;
}
