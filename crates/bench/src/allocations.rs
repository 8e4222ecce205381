//! What a program allocates, and what that costs: it runs once with each allocator while `libnumacount.so` counts, and this
//! process reads the counts, how much memory is resident, and names the code that allocates.

mod allocator;
mod profiler;
mod report;
mod series;
mod sites;

pub use allocator::Counted;
pub use profiler::{ProfileError, Profiler};
pub use report::{
    AllocatingProcess, AllocationReport, AllocationRun, CountedChain, LifeRow, MallocTime, MemoryMoment,
    SizeRow, TouchTime, VERSION,
};
