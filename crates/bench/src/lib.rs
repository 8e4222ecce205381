//! What this machine's memory can do.
//!
//! A benchmark is a file and a line of [`BENCHMARKS`]. It measures on a ground, which selects nodes and CPUs, places
//! memory and verifies where it is, and it returns matrices, curves and values that any renderer can show.

mod conditions;
mod ground;
mod interruptible;
mod latency;
mod latency_curve;
mod placed;
mod quantiles;
mod results;
mod sampled;
mod settings;

pub use conditions::BenchConditions;
pub use interruptible::{BenchProgress, Interrupted, run, select};
pub use quantiles::Quantiles;
pub use results::{
    BenchResult, BenchResults, CurveMark, CurvePoint, LeftOut, NamedValue, NodeMatrix, SizeCurve, VERSION,
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

/// All benchmarks, in the order in which `all` runs them.
pub const BENCHMARKS: &[Benchmark] = &[
    Benchmark {
        name: "latency",
        about: "Time of a load that the next one waits for, from each node to each node's memory and by size",
        measure: latency::measure,
    },
];
