//! What this machine's memory can do.
//!
//! A benchmark is a file and a line of [`BENCHMARKS`]. It measures on a ground, which selects nodes and CPUs, places
//! memory and verifies where it is, and it returns matrices, tables, curves and values that any renderer can show.

mod alloc;
pub mod allocations;
mod bandwidth;
mod caches;
mod collectives;
mod faults;
mod ground;
mod interruptible;
mod latency;
mod overhead;
mod results;
mod runs;
mod sampled;
mod settings;
mod sharing;

pub use alloc::ALLOC_WORK_VERB;
pub use alloc::work::{AllocWork, WorkDone, WorkError, WorkRequest, WorkSeat};
pub use collectives::{
    MOST_BYTES as MOST_COLLECTIVES_BYTES, MeasuredCollective, MeasuredJob, MeasuredJobs, collectives_table,
    keep_collectives,
};
pub use interruptible::{BenchProgress, Interrupted, results_of, run, select};
pub use overhead::{Overhead, OverheadError, measure as measure_overhead};
pub use results::conditions::BenchConditions;
pub use results::kept::{self, keep};
pub use results::quantiles::Quantiles;
pub use results::read::{BenchContentError, BenchReadError};
pub use results::short::{ShortRow, ShortTable, short};
pub use results::weights::{InterleaveWeights, KernelWeights, NodeWeight, WeightsError};
pub use results::{
    Axis, BenchResult, BenchResults, Curve, CurveMark, CurvePoint, NamedTable, NamedValue, NotMeasured,
    PairMatrix, VERSION,
};
pub use results::{distances, less_is_better};
pub use settings::{BenchError, BenchSettings, MAX_RUNS};

use ground::Ground;

/// A benchmark: what it is called, what it measures, and the function that does it. The function adds what it has measured
/// to the result as it goes, so that an interrupted run keeps it.
pub struct Benchmark {
    /// The word for the command line and for results.
    pub name: &'static str,
    /// What it measures, in one line.
    pub about: &'static str,
    measure: fn(&Ground<'_>, &mut BenchResult),
}

/// The word for all benchmarks.
pub const ALL: &str = "all";

/// What a benchmark of this name measures, in one line.
pub fn about(name: &str) -> &'static str {
    match name {
        overhead::OVERHEAD => "Time and CPU time that a recording adds to a command, by rate",
        collectives::COLLECTIVES => "Time of small collectives of MPI programs, the MPI's and libnumampi's",
        name => {
            BENCHMARKS.iter().find(|benchmark| benchmark.name == name).map_or("", |benchmark| benchmark.about)
        }
    }
}

/// All benchmarks, in the order in which `all` runs them.
pub const BENCHMARKS: &[Benchmark] = &[
    Benchmark {
        name: "latency",
        about: "Time of a load that the next one waits for, from each node to each node's memory and by size",
        measure: latency::measure,
    },
    Benchmark {
        name: "bandwidth",
        about: "Bytes per second by read, write and copy, ordinary and non-temporal, from each node to each node's memory",
        measure: bandwidth::measure,
    },
    Benchmark {
        name: "curve",
        about: "Time of a load by how much other cores read and write, for four shares of reads, until memory is saturated",
        measure: bandwidth::curve::measure,
    },
    Benchmark {
        name: "c2c",
        about: "Time of a cache line from one CPU to another and back, for every pair, and the groups in it",
        measure: sharing::c2c::measure,
    },
    Benchmark {
        name: "faults",
        about: "Time of a first touch: small, medium and huge pages, fresh and recycled, by threads and by processes",
        measure: faults::measure,
    },
    Benchmark {
        name: "stream",
        about: "STREAM's copy, scale, add and triad by number of threads, on one node, spread and with strides",
        measure: bandwidth::stream::measure,
    },
    Benchmark {
        name: "tlb",
        about: "How much memory the TLB reaches and what a miss costs, by size of pages",
        measure: caches::tlb::measure,
    },
    Benchmark {
        name: "assoc",
        about: "Arrays at the same place of a cache's ways beside staggered ones, and pages that compete for a cache",
        measure: caches::assoc::measure,
    },
    Benchmark {
        name: "alias",
        about: "Time of a store and a load whose addresses have the same low 12 bits, by offset (4 KiB aliasing)",
        measure: caches::alias::measure,
    },
    Benchmark {
        name: "barrier",
        about: "Time in which all threads wait for each other, by kind of barrier and by number of threads",
        measure: sharing::barrier::measure,
    },
    Benchmark {
        name: "alloc",
        about: "Time and memory of the allocators that are installed: small and large blocks, passed on, in waves",
        measure: alloc::measure,
    },
];
