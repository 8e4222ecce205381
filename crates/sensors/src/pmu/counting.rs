//! A sensor whose series are sums of counts: opens only what is wanted, in groups, with one
//! reader for each package, and makes whole counts of those that had a counter for a part of
//! the time only.

use crate::sensor::Absent;
use numakit_model::Series;
use numakit_sys::perf;

/// An event on a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Request {
    /// The CPU that it is opened on.
    pub cpu: u32,
    /// What.
    pub event: perf::Event,
}

/// What a count is multiplied by to be in the unit of a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Factor {
    /// Multiplies.
    pub times: u64,
    /// Divides; not 0.
    pub over: u64,
}

/// The sensor.
#[derive(Debug)]
pub struct Counting {
    series: Vec<Series>,
    absent: Vec<Absent>,
}
