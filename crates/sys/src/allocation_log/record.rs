//! A record as the library wrote it. The observed program can write there as well: nothing in it is trusted.

use super::BlockSites;
use crate::shared_ring::layout::SLOT_WORDS;

/// Maximum of return addresses of a call chain.
pub const CALL_FRAMES: usize = 16;
/// Maximum of bytes of a stack piece.
pub const PIECE_BYTES: usize = 560;

const FRAMES_AT: usize = 10;
const PIECE_AT: usize = FRAMES_AT + CALL_FRAMES;
/// The kernel's limits.
const MAX_TASK: u64 = 1 << 22;
const MAX_CPUS: u32 = 1 << 16;
/// 36 years.
const MAX_TIME: u64 = 1 << 60;

/// The function that the program called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AllocationFunction {
    /// `malloc`; `operator new` of the C++ library calls it.
    Malloc,
    /// `calloc`.
    Calloc,
    /// `realloc` and `reallocarray`.
    Realloc,
    /// `memalign`.
    Memalign,
    /// `posix_memalign`.
    PosixMemalign,
    /// `aligned_alloc`.
    AlignedAlloc,
    /// `valloc`.
    Valloc,
    /// `pvalloc`.
    Pvalloc,
    /// `free`.
    Free,
    /// `mmap`.
    Mmap,
    /// `munmap`.
    Munmap,
    /// `mremap`.
    Mremap,
}

impl AllocationFunction {
    const ALL: [Self; 12] = [
        Self::Malloc,
        Self::Calloc,
        Self::Realloc,
        Self::Memalign,
        Self::PosixMemalign,
        Self::AlignedAlloc,
        Self::Valloc,
        Self::Pvalloc,
        Self::Free,
        Self::Mmap,
        Self::Munmap,
        Self::Mremap,
    ];

    /// Its name in C.
    pub fn name(self) -> &'static str {
        match self {
            Self::Malloc => "malloc",
            Self::Calloc => "calloc",
            Self::Realloc => "realloc",
            Self::Memalign => "memalign",
            Self::PosixMemalign => "posix_memalign",
            Self::AlignedAlloc => "aligned_alloc",
            Self::Valloc => "valloc",
            Self::Pvalloc => "pvalloc",
            Self::Free => "free",
            Self::Mmap => "mmap",
            Self::Munmap => "munmap",
            Self::Mremap => "mremap",
        }
    }
}

/// What happened to the address space of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AllocationEvent {
    /// The process has a new address space: it is new, or has called exec.
    ProcessBegan {
        /// Its parent.
        parent: u32,
        /// Its table of the sites of small blocks, if it has one.
        sites: Option<BlockSites>,
    },
    /// The process has a copy of the address space of its parent.
    ProcessForked {
        /// The parent.
        parent: u32,
    },
    /// The thread began.
    ThreadBegan {
        /// Where the stack of the thread begins and ends, if that is known within some pages. On x86-64, the thread's
        /// thread-local variables are in the last bytes.
        stack: Option<(u64, u64)>,
        /// Base of its thread-local storage.
        base: u64,
        /// The function that the thread executes; `None` for the first thread of a process.
        function: Option<u64>,
    },
    /// The thread ended.
    ThreadEnded,
    /// A block was allocated.
    Allocated {
        /// Its first byte.
        address: u64,
        /// The bytes that were requested.
        size: u64,
        /// The alignment if one was requested.
        alignment: Option<u64>,
        /// Whether the block is below the threshold. It then represents other blocks too.
        is_sample: bool,
    },
    /// The block at this address is freed.
    Freed {
        /// Its first byte.
        address: u64,
    },
    /// The block at this address that was freed last is there still: `realloc` failed.
    Kept {
        /// Its first byte.
        address: u64,
    },
    /// Memory was mapped, and replaced what was there.
    Mapped {
        /// Its first byte.
        address: u64,
        /// Its length.
        size: u64,
        /// `PROT_...`; 0 for `mremap`, where it is not known.
        protection: u32,
        /// `MAP_...`, or `MREMAP_...`.
        flags: u32,
    },
    /// Memory is unmapped. It may be a part of a mapping, or several mappings.
    Unmapped {
        /// The first byte.
        address: u64,
        /// The length.
        size: u64,
    },
    /// The memory that was last unmapped is still mapped: the call failed.
    StillMapped {
        /// The first byte.
        address: u64,
        /// The length.
        size: u64,
    },
}

impl AllocationEvent {
    /// The bytes of the new block or mapping; 0 for all other events.
    pub fn allocated_bytes(&self) -> u64 {
        match self {
            Self::Allocated { size, .. } | Self::Mapped { size, .. } => *size,
            _ => 0,
        }
    }
}

/// Where the program called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AllocationCall {
    /// The function that it called.
    pub function: AllocationFunction,
    /// The stack pointer of the caller when the function returns: the stack piece begins there.
    pub stack_pointer: u64,
    /// The frame pointer of the caller.
    pub frame_pointer: u64,
    frames: [u64; CALL_FRAMES],
    frame_count: usize,
    piece: [u8; PIECE_BYTES],
    piece_bytes: usize,
}

impl AllocationCall {
    /// Return addresses. The first one is that of the direct caller. The others are found by frame pointers, and may lack
    /// functions that have none. If the call frees something, there is only the first.
    pub fn frames(&self) -> &[u64] {
        &self.frames[..self.frame_count]
    }

    /// The piece of the stack from `stack_pointer` on, for unwinding by tables; empty when something is freed.
    pub fn stack(&self) -> &[u8] {
        &self.piece[..self.piece_bytes]
    }
}

/// One record of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllocationRecord {
    /// Process, in the process's own PID namespace.
    pub process: u32,
    /// Thread, in the process's own PID namespace.
    pub thread: u32,
    /// Monotonic ns, in the process's own time namespace.
    pub time: u64,
    /// The CPU that the thread ran on.
    pub cpu: Option<u32>,
    /// What happened.
    pub event: AllocationEvent,
    /// The call that made it happen, if there was one.
    pub call: Option<AllocationCall>,
}

fn task(number: u64) -> Option<u32> {
    (1..=MAX_TASK).contains(&number).then_some(number as u32)
}

fn stack_of(address: u64, size: u64) -> Option<(u64, u64)> {
    (address != 0 && size != 0).then_some((address, address + size))
}

fn event_of(words: &[u64; SLOT_WORDS]) -> Option<AllocationEvent> {
    let [address, size, other] = [words[3], words[4], words[5]];
    // A process outside of the namespace has the number 0.
    let parent = || if other == 0 { Some(0) } else { task(other) };
    address.checked_add(size)?;
    Some(match words[6] >> 32 & 0xff {
        1 => {
            let sites = (address != 0).then(|| BlockSites::new(address));
            AllocationEvent::ProcessBegan { parent: parent()?, sites }
        }
        2 => AllocationEvent::ProcessForked { parent: parent()? },
        3 => AllocationEvent::ThreadBegan {
            stack: stack_of(address, size),
            base: other,
            function: (words[6] >> 48 & 0xff != 0).then_some(words[FRAMES_AT]),
        },
        4 => AllocationEvent::ThreadEnded,
        kind @ (5 | 6) => {
            let alignment = (other != 0).then_some(other);
            AllocationEvent::Allocated { address, size, alignment, is_sample: kind == 6 }
        }
        7 => AllocationEvent::Freed { address },
        8 => AllocationEvent::Kept { address },
        9 => {
            let (protection, flags) = (other as u32, (other >> 32) as u32);
            AllocationEvent::Mapped { address, size, protection, flags }
        }
        10 => AllocationEvent::Unmapped { address, size },
        11 => AllocationEvent::StillMapped { address, size },
        _ => return None,
    })
}

fn call_of(words: &[u64; SLOT_WORDS]) -> Option<AllocationCall> {
    let function = AllocationFunction::ALL.get((words[6] >> 40 & 0xff).checked_sub(1)? as usize)?;
    let frame_count = (words[6] >> 48 & 0xff) as usize;
    let piece_bytes = usize::try_from(words[9]).ok()?;
    if !(1..=CALL_FRAMES).contains(&frame_count) || piece_bytes > PIECE_BYTES {
        return None;
    }
    let mut frames = [0; CALL_FRAMES];
    frames[..frame_count].copy_from_slice(&words[FRAMES_AT..FRAMES_AT + frame_count]);
    let mut piece = [0; PIECE_BYTES];
    for (bytes, word) in piece[..piece_bytes].chunks_mut(8).zip(&words[PIECE_AT..]) {
        bytes.copy_from_slice(&word.to_le_bytes()[..bytes.len()]);
    }
    let (stack_pointer, frame_pointer, function) = (words[7], words[8], *function);
    Some(AllocationCall { function, stack_pointer, frame_pointer, frames, frame_count, piece, piece_bytes })
}

impl AllocationRecord {
    /// Parses the words of a slot; `None` if the library cannot have written them.
    pub fn parse(words: &[u64; SLOT_WORDS]) -> Option<Self> {
        let (process, thread) = (task(words[1] & 0xffff_ffff)?, task(words[1] >> 32)?);
        let cpu = words[6] as u32;
        if words[2] >= MAX_TIME || (cpu >= MAX_CPUS && cpu != u32::MAX) {
            return None;
        }
        let event = event_of(words)?;
        let is_called = words[6] >> 32 & 0xff > 4;
        let call = if is_called { Some(call_of(words)?) } else { None };
        let cpu = (cpu != u32::MAX).then_some(cpu);
        Some(Self { process, thread, time: words[2], cpu, event, call })
    }
}
