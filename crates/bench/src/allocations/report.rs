//! The result, as `--json` writes it.

use crate::allocations::Counted;
use numakit_explain::code::CodeName;
use serde::Serialize;

/// The version of the fields. A field that is added does not change it.
pub const VERSION: u32 = 1;

/// All runs of a program.
#[derive(Debug, Clone, Serialize)]
pub struct AllocationReport {
    /// The version of the fields.
    pub version: u32,
    /// The program with its arguments.
    pub command: String,
    /// One block in this number of bytes was sampled at first.
    pub sampled_every: u64,
    /// Whether a signal ended it before all runs were made.
    pub interrupted: bool,
    /// The runs.
    pub runs: Vec<AllocationRun>,
}

/// A run with one allocator. Sizes are in bytes, times in seconds unless the name says otherwise.
#[derive(Debug, Clone, Default, Serialize)]
pub struct AllocationRun {
    /// The allocator.
    pub allocator: Option<Counted>,
    /// The exit status.
    pub status: i32,
    /// Elapsed time.
    pub seconds: f64,
    /// CPU time of all its processes, without counting.
    pub cpu_seconds: f64,
    /// The part of `cpu_seconds` in the kernel.
    pub kernel_seconds: f64,
    /// CPU time that counting took.
    pub counting_seconds: f64,
    /// Threads that called the allocator.
    pub threads: u64,
    /// Processes that counted.
    pub process_count: u64,
    /// Allocated blocks, including those that realloc made of other blocks.
    pub allocations: u64,
    /// Freed blocks, including those of which realloc made other blocks.
    pub frees: u64,
    /// Allocations by realloc of a block.
    pub reallocs: u64,
    /// Allocations by calloc.
    pub zeroed: u64,
    /// Allocations with an alignment.
    pub aligned: u64,
    /// Calls that failed.
    pub failed: u64,
    /// Bytes that were asked for.
    pub requested: u64,
    /// Bytes of these blocks as the allocator rounds them; `None` if it does not say.
    pub usable: Option<u64>,
    /// The maximum of the bytes of live blocks.
    pub peak_live: Option<u64>,
    /// Whether this is the largest reading of several processes, and not exact.
    pub peak_live_is_read: bool,
    /// Bytes of live blocks at the end.
    pub live_at_end: Option<u64>,
    /// The largest reading of resident anonymous memory; `None` if no reading was made.
    pub peak_resident: Option<u64>,
    /// Time in the allocator.
    pub malloc: MallocTime,
    /// The time of the first touch.
    pub first_touch: TouchTime,
    /// Allocations by size.
    pub sizes: Vec<SizeRow>,
    /// Freed blocks by the time from malloc to free, in ns.
    pub lives_by_ns: Vec<LifeRow>,
    /// Freed blocks by the bytes that the process allocated meanwhile.
    pub lives_by_bytes: Vec<LifeRow>,
    /// Code that allocates, most bytes first.
    pub sites: Vec<CountedChain>,
    /// The processes.
    pub processes: Vec<AllocatingProcess>,
    /// Memory over time.
    pub series: Vec<MemoryMoment>,
    /// What is missing, in sentences.
    pub missing: Vec<String>,
}

/// Time in the functions of the allocator.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct MallocTime {
    /// In malloc and its relatives.
    pub allocating_seconds: f64,
    /// In free.
    pub freeing_seconds: f64,
    /// The part of the CPU time that both take together; `None` if the CPU time is not known.
    pub share: Option<f64>,
}

/// What the pages of new memory cost when they are used first.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct TouchTime {
    /// Page faults of the program in its heap and elsewhere, without those that counting caused.
    pub faults: u64,
    /// What one with a small page costs on this machine, measured before the run; `None` if it could not be.
    pub fault_ns: Option<u64>,
    /// The product, at most the CPU time.
    pub seconds: Option<f64>,
    /// Time in the allocator and this, of the CPU time.
    pub share: Option<f64>,
}

/// Allocations of sizes from `from` to `to`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct SizeRow {
    /// The least size.
    pub from: u64,
    /// The largest size.
    pub to: u64,
    /// How many.
    pub blocks: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Blocks with a life from `from` to below `to`; estimated from samples.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct LifeRow {
    /// The least length.
    pub from: u64,
    /// The length behind.
    pub to: u64,
    /// How many.
    pub blocks: f64,
    /// Their bytes.
    pub bytes: u64,
}

/// A call chain that allocates; all but `samples` is estimated from samples.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct CountedChain {
    /// Functions, the one that asks first.
    pub chain: Vec<CodeName>,
    /// Sampled blocks.
    pub samples: u64,
    /// Blocks.
    pub blocks: f64,
    /// Their bytes.
    pub bytes: u64,
    /// Blocks among these that were freed.
    pub freed_blocks: f64,
    /// Their bytes.
    pub freed_bytes: u64,
    /// The sum of their lives.
    pub life_seconds: f64,
}

impl CountedChain {
    /// The mean life of the blocks that were freed; `None` if none was.
    pub fn mean_life(&self) -> Option<f64> {
        (self.freed_blocks > 0.0).then(|| self.life_seconds / self.freed_blocks)
    }
}

/// A process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct AllocatingProcess {
    /// Its ID.
    pub pid: u32,
    /// The place in this list of the process that forked it; `None` for a program that was executed.
    pub parent: Option<usize>,
    /// Bytes of all its blocks.
    pub allocated: u64,
    /// The maximum of the bytes of live blocks.
    pub peak_live: u64,
    /// Bytes of live blocks at the end.
    pub live_at_end: u64,
}

/// A moment of the run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct MemoryMoment {
    /// Since the start.
    pub seconds: f64,
    /// Bytes of live blocks of all processes.
    pub live: u64,
    /// Resident anonymous memory of all processes, without that of counting.
    pub resident: u64,
}
