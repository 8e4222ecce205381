//! The layout of the memory file, in words of 64 bits; `native/mpi/layout.h` has the same.

/// "MPICALLS".
pub const MAGIC: u64 = 0x534c_4c41_4349_504d;
/// The version of the layout.
pub const VERSION: u64 = 2;

pub const HEADER_WORDS: usize = 512;
pub const SEGMENTS: usize = 1024;
pub const RANKS: usize = 1024;
pub const COMMUNICATORS: usize = 128;
pub const COMMUNICATOR_WORDS: usize = 16;
pub const COMMUNICATOR_NAME: usize = 6;
pub const CELLS: usize = 1024;
pub const CELL_WORDS: usize = 8;
pub const PAIR_WORDS: usize = 4;
pub const MASK_WORDS: usize = 128;
pub const TEXT_WORDS: usize = 10;
pub const OBSTACLE_WORDS: usize = 20;
/// Operations that the library has.
pub const SERVED: usize = 4;
pub const ARENA_WORDS: usize = 1 << 22;

/// Words of the part of a process.
pub mod process {
    use super::{
        CELL_WORDS, CELLS, COMMUNICATOR_WORDS, COMMUNICATORS, MASK_WORDS, PAIR_WORDS, RANKS, SERVED,
        TEXT_WORDS,
    };
    pub const STATE: usize = 0;
    pub const PID: usize = 1;
    pub const JOB: usize = 2;
    pub const RANK: usize = 3;
    pub const SIZE: usize = 4;
    pub const ABI: usize = 5;
    pub const THREAD_LEVEL: usize = 6;
    pub const BEGIN_TICKS: usize = 7;
    pub const END_TICKS: usize = 8;
    pub const CPU_NS: usize = 9;
    pub const COPY: usize = 10;
    pub const COPY_ERROR: usize = 11;
    pub const FULL_CELLS: usize = 13;
    pub const COLLECTIVES: usize = 14;
    pub const TEAMS: usize = 15;
    pub const SERVED_AT: usize = 16;
    pub const OBSTACLE: usize = SERVED_AT + SERVED;
    pub const LIBRARY: usize = 372;
    pub const MASK: usize = LIBRARY + TEXT_WORDS + 2;
    pub const COMMUNICATORS_AT: usize = MASK + MASK_WORDS;
    pub const CELLS_AT: usize = COMMUNICATORS_AT + COMMUNICATORS * COMMUNICATOR_WORDS;
    pub const PAIRS_AT: usize = CELLS_AT + CELLS * CELL_WORDS;
    pub const WORDS: usize = PAIRS_AT + RANKS * PAIR_WORDS;
}

pub const PROCESSES_AT: usize = HEADER_WORDS + 2 * SEGMENTS;
/// Words of the whole file.
pub const WORDS: usize = PROCESSES_AT + RANKS * process::WORDS + ARENA_WORDS;

/// Words of the header.
pub mod header {
    pub const MAGIC: usize = 0;
    pub const VERSION: usize = 1;
    pub const TOKEN: usize = 2;
    pub const NS_PER_TICK: usize = 3;
    pub const RANKS: usize = 4;
}
