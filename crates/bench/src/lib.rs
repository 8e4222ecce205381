//! What this machine's memory can do.
//!
//! A benchmark is a file and a line of [`BENCHMARKS`]. It measures on a ground, which selects nodes and CPUs, places
//! memory and verifies where it is, and it returns matrices, curves and values that any renderer can show.

mod alias;
mod assoc;
mod bandwidth;
mod barrier;
mod barriers;
mod c2c;
mod c2c_groups;
mod coloring;
mod conditions;
mod faults;
mod faults_zeroing;
mod ground;
mod interruptible;
mod kept;
mod latency;
mod latency_curve;
mod page_sizes;
mod placed;
mod quantiles;
mod results;
mod sampled;
mod settings;
mod stream;
mod stream_orders;
mod team;

pub use conditions::BenchConditions;
pub use interruptible::{BenchProgress, Interrupted, run, select};
pub use kept::keep;
pub use quantiles::Quantiles;
pub use results::{
    Axis, BenchResult, BenchResults, Curve, CurveMark, CurvePoint, NamedValue, NotMeasured, PairMatrix,
    VERSION,
};
pub use settings::{BenchError, BenchSettings};

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

/// All benchmarks, in the order in which `all` runs them.
pub const BENCHMARKS: &[Benchmark] = &[
    Benchmark {
        name: "latency",
        about: "Time of a load that the next one waits for, from each node to each node's memory and by size",
        measure: latency::measure,
    },
    Benchmark {
        name: "bandwidth",
        about: "Bytes per second by read, write, non-temporal write and copy, from each node to each node's memory",
        measure: bandwidth::measure,
    },
    Benchmark {
        name: "c2c",
        about: "Time of a cache line from one CPU to another and back, for every pair, and the groups in it",
        measure: c2c::measure,
    },
    Benchmark {
        name: "faults",
        about: "Time of a first touch: small, medium and huge pages, fresh and recycled, by threads and by processes",
        measure: faults::measure,
    },
    Benchmark {
        name: "stream",
        about: "STREAM's copy, scale, add and triad by number of threads, near ones, spread ones and with strides",
        measure: stream::measure,
    },
    Benchmark {
        name: "assoc",
        about: "Arrays at the same place of a cache's ways beside staggered ones, and pages that compete for a cache",
        measure: assoc::measure,
    },
    Benchmark {
        name: "alias",
        about: "Time of a store and a load whose addresses have the same low 12 bits, by offset (4 KiB aliasing)",
        measure: alias::measure,
    },
    Benchmark {
        name: "barrier",
        about: "Time in which all threads wait for each other, by kind of barrier and by number of threads",
        measure: barrier::measure,
    },
];
