//! The seam that every sensor fits into.

use crate::Scene;
use numakit_model::{Fix, Kind, Metric, Scope, Series, Unavailable, Unit};
use numakit_sys::SysRoot;
use std::time::Duration;

/// Something that can be sampled. It holds open files or descriptors and knows nothing of
/// clocks, rates, shares or locks.
pub trait Sensor: Send {
    /// The columns, in the order of [`Sensor::read`]. Fixed between two calls of
    /// [`Sensor::keep`].
    fn series(&self) -> &[Series];

    /// Metrics that this sensor knows but cannot read here, each with its reason.
    fn absent(&self) -> &[Absent] {
        &[]
    }

    /// Keeps only the series that are wanted, and from then on reads no file that none of
    /// them needs.
    fn keep(&mut self, wanted: &dyn Fn(&Series) -> bool);

    /// The slowest interval at which nothing is missed; the sampler reads no more often than
    /// this. Zero: as often as asked.
    fn period(&self) -> Duration {
        Duration::ZERO
    }

    /// How many files or descriptors it keeps open.
    fn files(&self) -> usize {
        0
    }

    /// Fills one raw value per series. Every slot is `None` before the call; a slot that
    /// could not be read stays so. No allocation, no clock.
    fn read(&mut self, tick: &Tick, out: &mut [Option<u64>]);

    /// Why slots of the last read are `None`, for the label that says so.
    fn failure(&self) -> Option<String> {
        None
    }
}

/// A metric that is not to be had here.
#[derive(Debug, Clone, PartialEq)]
pub struct Absent {
    /// What it would be.
    pub metric: Metric,
    /// Why it is not.
    pub why: Unavailable,
}

/// What the sampler knows of the present tick; only the sensor of the sampler itself looks.
#[derive(Debug, Clone, Copy, Default)]
pub struct Tick {
    /// When the tick was due, monotonic ns.
    pub due: u64,
    /// When the sampler woke up for it, monotonic ns.
    pub woke: u64,
    /// Ticks lost since the start.
    pub lost: u64,
}

/// A line of the table of sensors.
pub struct SensorEntry {
    /// First part of its series names.
    pub name: &'static str,
    /// One sentence.
    pub help: &'static str,
    /// Whether a metric of it is read when nothing is asked for by name.
    pub default: fn(&Metric) -> bool,
    /// The metrics that it knows by name, whether or not they are to be had here.
    pub known: fn() -> Vec<Metric>,
    /// Looks whether it is there. Never panics, whatever the root holds.
    pub probe: fn(&Scene<'_>) -> Probed,
}

/// A sensor, or why there is none.
pub type Probed = Result<Box<dyn Sensor>, Unavailable>;

/// A metric of which every difference means something.
pub fn metric(name: &str, unit: Unit, kind: Kind, scope: Scope, help: &str, source: &str) -> Metric {
    Metric {
        name: name.to_owned(),
        unit,
        kind,
        scope,
        help: help.to_owned(),
        source: source.to_owned(),
        resolution: Duration::ZERO,
        confidence: None,
        maximum: None,
    }
}

/// Keeps only the wanted series; the answer is the new place of each old one.
pub fn narrow(series: &mut Vec<Series>, wanted: &dyn Fn(&Series) -> bool) -> Vec<Option<usize>> {
    let mut kept = 0;
    let mut successors = Vec::with_capacity(series.len());
    series.retain(|s| {
        let keep = wanted(s);
        successors.push(keep.then_some(kept));
        kept += usize::from(keep);
        keep
    });
    successors
}

/// What makes a file of /proc or /sys readable that is not.
pub fn fix_for(root: &SysRoot, path: &str) -> Fix {
    match path.split('/').nth(1) {
        _ if !root.is_host() => Fix::Capture(path.to_owned()),
        Some("proc") => Fix::command("mount -t proc proc /proc"),
        _ => Fix::command("mount -t sysfs sysfs /sys"),
    }
}
