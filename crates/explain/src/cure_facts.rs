//! What a cure needs to know of an object and of the program.

use crate::part_use::PartUse;
use numakit_cure::{CuredIdentity, CuredThreads, ProgramFile};

/// Why another process cannot find an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unidentified {
    /// It has no place in a file: the heap, an anonymous mapping, a stack.
    Unnamed,
    /// The file that has it, or whose code allocated it, cannot be read, or the code was compiled while the program ran.
    NoFile,
    /// The file has no build ID.
    NoBuildId,
    /// The calls that allocated it are those of other objects, as far as they are certain.
    Ambiguous,
    /// Too many pieces of code allocated it.
    ManyCalls,
}

/// What is known of an object.
#[derive(Debug, Clone, PartialEq)]
pub struct CureFacts {
    /// How it is found again: in several ways if several chains of calls allocated it.
    pub identities: Result<Vec<CuredIdentity>, Unidentified>,
    /// The threads that use each fraction of each of its blocks.
    pub each: PartUse,
    /// The threads that use its blocks, in the order of their allocation.
    pub blocks: PartUse,
    /// The number of its blocks in the process that has most of them.
    pub count: u64,
}

/// What is known of the observed program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CureProgram {
    /// Its own file.
    pub file: ProgramFile,
    /// Its threads.
    pub threads: CuredThreads,
}
