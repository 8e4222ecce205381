//! What a sample says about memory, and what is needed to find it.

/// What can be read of the observed process. Reads may fail at any time.
pub trait AddressSpace {
    /// Copies data from an address, as it is now or as it was copied with the sample. Returns whether all bytes were there.
    fn read(&self, address: u64, into: &mut [u8]) -> bool;
    /// Copies executable bytes from an address on, as many as there are.
    fn code(&self, address: u64, into: &mut [u8]) -> usize;
    /// Whether the code at an address may be rewritten without notice, as by a compiler at run time. Such code is
    /// compared with what the decoder keeps of it, which costs a call of `code` for each sample.
    fn changes(&self, address: u64) -> bool {
        let _ = address;
        false
    }
}

/// Where the samples of a machine land, as calibrated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Landing {
    /// Right behind the instruction that waited.
    Behind,
    /// One instruction further than that. A compare and its jump count as one instruction.
    OneFurther,
    /// At the start of a block, whichever instruction waited.
    BlockStart,
    /// Nowhere in particular.
    Other,
}

/// How an address was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RecoveryRule {
    /// The address registers still hold.
    Direct,
    /// A compare or test that retired together with its jump.
    Fused,
    /// The registers were computed again from others.
    Slice,
    /// The registers were computed again from other registers, with values that were read from memory again.
    SliceLoad,
    /// The address of the instruction's next execution.
    Next,
    /// The next link of a chain: the address is the value that was loaded.
    Chain,
    /// The base holds, the index does not.
    Object,
    /// A string instruction, whose pointers have passed the operand.
    String,
    /// A prefetch.
    Prefetch,
    /// Relative to fs or gs.
    ThreadLocal,
    /// Implied by push, pop, call, return, enter or leave.
    Stack,
}

impl RecoveryRule {
    /// All rules, in the order of tables.
    pub const ALL: [Self; 11] = [
        Self::Direct,
        Self::Fused,
        Self::Slice,
        Self::SliceLoad,
        Self::Next,
        Self::Chain,
        Self::Object,
        Self::String,
        Self::Prefetch,
        Self::ThreadLocal,
        Self::Stack,
    ];

    /// The word for it in tables and result files.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Fused => "fused",
            Self::Slice => "slice",
            Self::SliceLoad => "slice+load",
            Self::Next => "next",
            Self::Chain => "chain",
            Self::Object => "object",
            Self::String => "string",
            Self::Prefetch => "prefetch",
            Self::ThreadLocal => "thread-local",
            Self::Stack => "stack",
        }
    }

    /// Whether the rule finds the accessed address. Other rules find only the object: by another execution of the same
    /// instruction, or by the base.
    pub const fn is_exact(self) -> bool {
        !matches!(self, Self::Next | Self::Chain | Self::Object)
    }
}

/// What an instruction does to memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AccessKind {
    /// It reads.
    Load,
    /// It reads a number with which it computes in floating point. No address comes of that, so that it is read ahead; where it
    /// is in the caches, computing takes longer.
    Operand,
    /// It writes.
    Store,
    /// It reads and writes the same place.
    Update,
    /// It reads and writes the same place, in one step for all CPUs.
    Atomic,
    /// It asks for a line.
    Prefetch,
}

/// One access to memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MemoryAccess {
    /// The address of the instruction.
    pub instruction: u64,
    /// The first byte accessed.
    pub address: u64,
    /// Number of bytes; 0 if it varies.
    pub size: u32,
    /// What was done.
    pub kind: AccessKind,
    /// How the address was found.
    pub rule: RecoveryRule,
}

/// How far a thread's next instructions are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reach {
    /// Number of instructions.
    pub instructions: u32,
    /// Number of reads of the process's memory: of lines, or of what is not within one.
    pub reads: u32,
    /// The instruction after whose executions nothing more is followed, and the number of these. Without one, only the other
    /// limits count.
    pub of: Option<u64>,
    /// At least 1.
    pub executions: u32,
}

impl Reach {
    /// Enough to tell a stream from accesses without pattern, and no more, since an emulated processor takes milliseconds
    /// for a thousand instructions.
    pub const NEAR: Self = Self { instructions: 100, reads: 4, of: None, executions: 1 };

    /// To the next two executions of an instruction, through a few calls: hash tables compute a hash, divide, and follow some
    /// pointers before they come back.
    pub const fn to_next(of: u64) -> Self {
        Self { instructions: 600, reads: 48, of: Some(of), executions: 2 }
    }
}

/// What a thread does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ahead<'a> {
    /// The accesses whose addresses are known, in their order. On x86, an access behind a link that was followed on the way
    /// has the rule `Chain`; its address is known all the same.
    pub accesses: &'a [MemoryAccess],
    /// Number of instructions in which these accesses were found.
    pub instructions: u32,
}

/// What the interrupted thread waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operand {
    /// The instruction accesses no memory.
    Computing,
    /// An access whose address is known, or by `Next` and `Chain` that of a later execution.
    Memory(MemoryAccess),
    /// An access to an object of which an address is known, but not where in the object the access was: an index was
    /// overwritten, or there are several addresses, as in gathers.
    Object {
        /// The address of the instruction.
        instruction: u64,
        /// An address of the object.
        base: u64,
        /// What was done.
        kind: AccessKind,
    },
    /// An access relative to fs or gs, without the address of the thread's block.
    ThreadLocal {
        /// The address of the instruction.
        instruction: u64,
        /// The distance from the block.
        offset: u64,
        /// What was done.
        kind: AccessKind,
    },
    /// The instruction accesses memory at an unknown address, or, without a kind, is itself unknown.
    Unknown {
        /// The address of the instruction, or that of the sample.
        instruction: u64,
        /// What was done.
        kind: Option<AccessKind>,
    },
}
