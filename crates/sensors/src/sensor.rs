//! The interface of sensors.

use crate::Scene;
use numakit_model::{Kind, Metric, Scope, Series, Unavailable, Unit};
use std::time::Duration;

/// A source of samples. It keeps files or descriptors open; it uses no clocks, rates, shares or
/// locks.
pub trait Sensor: Send {
    /// The columns, in the order of [`Sensor::read`]. Only [`Sensor::keep`] changes them.
    fn series(&self) -> &[Series];

    /// Metrics of this sensor that are unavailable here, each with its reason.
    fn absent(&self) -> &[Absent] {
        &[]
    }

    /// Keeps only the selected series; files that none of them needs are not read any more.
    fn keep(&mut self, wanted: &dyn Fn(&Series) -> bool);

    /// The minimum time between two reads. Zero: no minimum.
    fn period(&self) -> Duration {
        Duration::ZERO
    }

    /// Of a sensor whose values are times, how fine these are. Such values make shares of the time between two rows, so these sensors
    /// are read before all others, the finest first, right at the time of the row: what one row or the other waited for others
    /// would be part of the share.
    fn clock_resolution(&self) -> Option<Duration> {
        None
    }

    /// Number of files or descriptors that it keeps open.
    fn files(&self) -> usize {
        0
    }

    /// Stores a raw value per series. Every slot is `None` before the call; a value that cannot be
    /// read stays `None`. No allocation, no clock.
    fn read(&mut self, tick: &Tick, out: &mut [Option<u64>]);

    /// The observation ends: what is not shown yet is shown by the next read. Takes half a second at most.
    fn settle(&mut self) {}

    /// Why slots of the last read are `None`, for a label.
    fn failure(&self) -> Option<String> {
        None
    }
}

/// An unavailable metric.
#[derive(Debug, Clone, PartialEq)]
pub struct Absent {
    /// The metric.
    pub metric: Metric,
    /// The reason.
    pub why: Unavailable,
}

/// The current tick of the sampler, for the sensor `self`.
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
    /// Whether a metric of it is sampled by default.
    pub default: fn(&Metric) -> bool,
    /// Its metrics, whether or not they are available here.
    pub known: fn() -> Vec<Metric>,
    /// Opens it, if it is available. Never panics, whatever the root contains.
    pub probe: fn(&Scene<'_>) -> Probed,
}

/// A sensor, or why it is unavailable.
pub type Probed = Result<Box<dyn Sensor>, Unavailable>;

/// A metric without a minimum time between meaningful values.
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

/// Keeps only the selected series; returns the new position of each old one.
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
