//! The layout of the table, in words of 64 bits; `native/apply/table.h` has the same.

/// "ANUMAPPL".
pub const MAGIC: u64 = 0x4c50_5041_4d55_4e41;
pub const VERSION: u64 = 1;

pub const HEADER_WORDS: usize = 64;
pub const NODES: usize = 1024;
/// Modules, at most.
pub const MODULES: usize = 64;
pub const MODULE_WORDS: usize = 8;
/// Bytes of a build ID, at most.
pub const BUILD_ID_BYTES: usize = 40;
/// Objects, at most.
pub const OBJECTS: usize = 256;
pub const OBJECT_WORDS: usize = 128;
pub const CHAIN: usize = 8;
/// Fractions of an object.
pub const FRACTIONS: usize = 64;
/// Nodes that are counted one by one.
pub const COUNTED_NODES: usize = 64;
pub const NO_NODE: u16 = 0xffff;

pub const NODES_AT: usize = HEADER_WORDS;
pub const MODULES_AT: usize = NODES_AT + NODES;
pub const OBJECTS_AT: usize = MODULES_AT + MODULES * MODULE_WORDS;
/// Words of the whole file.
pub const WORDS: usize = OBJECTS_AT + OBJECTS * OBJECT_WORDS;

/// Words of the header.
pub mod header {
    pub const MAGIC: usize = 0;
    pub const VERSION: usize = 1;
    pub const TOKEN: usize = 2;
    pub const OBJECTS: usize = 3;
    pub const MODULES: usize = 4;
    pub const NODES: usize = 5;
    pub const VERBOSE: usize = 6;
    pub const PROCESSES: usize = 7;
    pub const STEPPED_ASIDE: usize = 8;
    pub const POLICIES_REFUSED: usize = 9;
    pub const MAPPINGS_EXHAUSTED: usize = 10;
    pub const OVERRIDDEN: usize = 11;
    pub const FILTERED: usize = 13;
    pub const DEEP_BINDINGS: usize = 14;
}

/// Words of a module.
pub mod module {
    pub const ID_BYTES: usize = 0;
    pub const ID: usize = 1;
    pub const STATE: usize = 6;
}

/// Words of an object.
pub mod object {
    /// Kind, policy, pages and over, a byte each, and in the upper half the module.
    pub const KIND: usize = 0;
    pub const ADDRESS: usize = 1;
    pub const BYTES: usize = 2;
    pub const SMALLEST: usize = 3;
    pub const LARGEST: usize = 4;
    pub const COUNT: usize = 5;
    pub const CHAIN_COUNT: usize = 6;
    pub const CHAIN: usize = 7;
    pub const CHAIN_MODULE: usize = 15;
    pub const NODE: usize = 23;
    pub const APPLIED: usize = 39;
    pub const APPLIED_BYTES: usize = 40;
    pub const REFUSED: usize = 41;
    pub const ERROR: usize = 42;
    pub const OTHER_SIZE: usize = 43;
    pub const TOUCHED: usize = 44;
    pub const PAGES_ON: usize = 48;
}
