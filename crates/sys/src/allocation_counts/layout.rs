//! The layout of the memory file, in words of 64 bits; `native/count/layout.h` has the same.

/// "UMACOUNT".
pub const MAGIC: u64 = 0x544e_554f_4341_4d55;
/// The version of the layout.
pub const VERSION: u64 = 1;

pub const HEADER_WORDS: usize = 64;
pub const PROCESSES: usize = 1024;
pub const PROCESS_WORDS: usize = 16;
pub const SHARDS: usize = 64;
pub const SHARD_HEAD: usize = 16;
pub const SIZES: usize = 256;
pub const SHARD_WORDS: usize = SHARD_HEAD + 2 * SIZES;
pub const LIVES: usize = 64;
pub const SITES: usize = 4096;
pub const SITE_WORDS: usize = 32;
pub const SITE_HEAD: usize = 9;
pub const FRAMES: usize = SITE_WORDS - SITE_HEAD;
pub const MODULES: usize = 1024;
pub const MODULE_WORDS: usize = 32;
pub const MODULE_HEAD: usize = 5;

pub const PROCESSES_AT: usize = HEADER_WORDS;
pub const SHARDS_AT: usize = PROCESSES_AT + PROCESSES * PROCESS_WORDS;
pub const BY_TIME_AT: usize = SHARDS_AT + SHARDS * SHARD_WORDS;
pub const BY_BYTES_AT: usize = BY_TIME_AT + 2 * LIVES;
pub const SITES_AT: usize = BY_BYTES_AT + 2 * LIVES;
pub const MODULES_AT: usize = SITES_AT + SITES * SITE_WORDS;
/// Words of the whole file.
pub const WORDS: usize = MODULES_AT + MODULES * MODULE_WORDS;

/// Words of the header.
pub mod header {
    pub const MAGIC: usize = 0;
    pub const VERSION: usize = 1;
    pub const TOKEN: usize = 2;
    pub const EVERY: usize = 3;
    pub const NS_PER_TICK: usize = 4;
    pub const HAS_CHAINS: usize = 5;
    pub const PROCESSES: usize = 6;
    pub const THREADS: usize = 7;
    pub const LOST_LIVES: usize = 9;
    pub const LOST_SITES: usize = 10;
    pub const PAIR_TICKS: usize = 11;
    pub const NO_UNWINDER: usize = 12;
    pub const NO_USABLE: usize = 13;
    pub const OWN_FAULTS: usize = 14;
    pub const OUTSIDE_TICKS: usize = 15;
}
