//! What this machine's memory can do.
//!
//! A benchmark is a file and a line of [`BENCHMARKS`]. It measures on a ground, which selects nodes and CPUs, places
//! memory and verifies where it is, and it returns matrices, curves and values that any renderer can show.

mod bandwidth;
mod c2c;
mod c2c_groups;
mod conditions;
mod faults;
mod ground;
mod interruptible;
pub mod kept;
mod latency;
mod latency_curve;
mod peak;
mod placed;
mod quantiles;
mod results;
mod sampled;
mod settings;
mod stream;
mod team;
mod weights;

pub use conditions::BenchConditions;
pub use interruptible::{BenchProgress, Interrupted, run, select};
pub use kept::keep;
pub use quantiles::Quantiles;
pub use results::{
    Axis, BenchResult, BenchResults, Curve, CurveMark, CurvePoint, NamedValue, NotMeasured, PairMatrix,
    VERSION,
};
pub use settings::{BenchError, BenchSettings};
pub use weights::{InterleaveWeights, KernelWeights, NodeWeight, WeightsError};

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
        about: "Time of a first touch: small and huge pages, fresh and recycled, by threads and by processes",
        measure: faults::measure,
    },
    Benchmark {
        name: "stream",
        about: "STREAM's copy, scale, add and triad by number of threads, on near cores first or over all nodes",
        measure: stream::measure,
    },
];
