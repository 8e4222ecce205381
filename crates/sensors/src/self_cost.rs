//! `self`: the cost of sampling. It is read first, so that its CPU time is that at the time of the row: what a row takes is in
//! the next one. Read last, a tick of 4 ms was 413 % of the 1 ms since the row before it.

use crate::Scene;
use crate::sensor::{Absent, Probed, Sensor, SensorEntry, Tick, metric, narrow};
use numakit_model::{Fix, Instance, Kind, Metric, Scope, Series, Unavailable, Unit};
use numakit_sys::{clock, fault_cost};
use std::sync::Arc;
use std::time::Duration;

/// Line of the table of sensors.
pub const ENTRY: SensorEntry =
    SensorEntry { name: "self", help: "The cost of sampling.", default: |_| true, known, probe };

const PROCESS: &str = "process_cpu";
/// The kernel updates the CPU time of other threads at its clock ticks, each at most 10 ms late: at 1 kHz their process seemed to
/// use four of two CPUs.
const PROCESS_RESOLUTION: Duration = Duration::from_millis(100);

const VALUES: [(&str, Unit, Kind, &str, &str); 6] = [
    ("cpu", Unit::Nanoseconds, Kind::COUNTER, "CPU time of the sampler thread.", "its CPU clock"),
    (PROCESS, Unit::Nanoseconds, Kind::COUNTER, "CPU time of this whole process.", "its CPU clock"),
    ("wakeup", Unit::Nanoseconds, Kind::Gauge, "Delay of the start of the tick.", "the sampler"),
    ("lost", Unit::Count, Kind::COUNTER, "Lost ticks.", "the sampler"),
    (
        "fault_cost",
        Unit::Nanoseconds,
        Kind::Gauge,
        "CPU time of a page fault that gets a small page, measured at the start.",
        "page faults of its own",
    ),
    (
        "huge_fault_cost",
        Unit::Nanoseconds,
        Kind::Gauge,
        "CPU time of a page fault that gets a huge page, measured at the start; absent where there was none.",
        "page faults of its own",
    ),
];

fn known() -> Vec<Metric> {
    let describe = |&(name, unit, kind, help, source): &_| {
        let metric = metric(&format!("self.{name}"), unit, kind, Scope::Machine, help, source);
        let resolution = if name == PROCESS { PROCESS_RESOLUTION } else { metric.resolution };
        Metric { resolution, ..metric }
    };
    VALUES.iter().map(describe).collect()
}

/// What page faults cost at the start, in ns.
#[derive(Debug, Clone, Copy)]
struct FaultCosts {
    small: Option<u64>,
    huge: Option<u64>,
}

fn value(which: usize, tick: &Tick, costs: FaultCosts) -> Option<u64> {
    match which {
        0 => Some(clock::thread_cpu()),
        1 => Some(clock::process_cpu()),
        2 => Some(tick.woke.saturating_sub(tick.due)),
        3 => Some(tick.lost),
        4 => costs.small,
        _ => costs.huge,
    }
}

/// Number of the metric of huge pages.
const HUGE: usize = 5;

struct SelfCost {
    series: Vec<Series>,
    // The value of each series.
    values: Vec<usize>,
    absent: Vec<Absent>,
    costs: FaultCosts,
}

fn probe(_: &Scene<'_>) -> Probed {
    let costs = FaultCosts { small: fault_cost::small_page(), huge: fault_cost::huge_page() };
    let is_absent = [false, false, false, false, costs.small.is_none(), costs.huge.is_none()];
    let mut sensor = SelfCost { series: Vec::new(), values: Vec::new(), absent: Vec::new(), costs };
    for (at, metric) in known().into_iter().enumerate() {
        if is_absent[at] {
            let fix = Fix::Later(match at {
                HUGE => "transparent huge pages are on and 2 MiB of contiguous memory are free".to_owned(),
                _ => "memory is free".to_owned(),
            });
            let why = Unavailable::new("the cost of a page fault", "no page fault got such a page", fix);
            sensor.absent.push(Absent { metric, why });
            continue;
        }
        sensor.series.push(Series::new(&Arc::new(metric), Instance::Machine));
        sensor.values.push(at);
    }
    Ok(Box::new(sensor))
}

impl Sensor for SelfCost {
    fn series(&self) -> &[Series] {
        &self.series
    }

    fn absent(&self) -> &[Absent] {
        &self.absent
    }

    fn clock_resolution(&self) -> Option<Duration> {
        Some(Duration::from_nanos(1))
    }

    fn keep(&mut self, wanted: &dyn Fn(&Series) -> bool) {
        let successors = narrow(&mut self.series, wanted);
        let mut old = successors.iter();
        self.values.retain(|_| old.next().is_some_and(Option::is_some));
    }

    fn read(&mut self, tick: &Tick, out: &mut [Option<u64>]) {
        for (slot, &which) in out.iter_mut().zip(&self.values) {
            *slot = value(which, tick, self.costs);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use numakit_model::Topology;

    #[test]
    fn the_cpu_time_of_the_process_is_no_finer_than_the_ticks_of_the_kernel() {
        let coarse: Vec<String> =
            known().into_iter().filter(|m| !m.resolution.is_zero()).map(|m| m.name).collect();
        assert_eq!(coarse, ["self.process_cpu"]);
    }

    #[test]
    fn the_cost_is_there_for_every_root_and_follows_the_tick() {
        let mut sensor = crate::testing::sensor(&ENTRY, &crate::testing::root(&[]), &Topology::default());
        let tick = Tick { due: 100, woke: 130, lost: 7 };
        let mut out = vec![None; sensor.series().len()];
        sensor.read(&tick, &mut out);
        let first = out[0].unwrap();
        assert_eq!(out[2..4], [Some(30), Some(7)]);
        assert!(out[4].is_some_and(|ns| ns > 0), "a page fault costs time");
        sensor.keep(&|s| ["self.cpu", "self.lost"].contains(&s.name().as_str()));
        assert_eq!(sensor.series().iter().map(Series::name).collect::<Vec<_>>(), ["self.cpu", "self.lost"]);
        let mut out = [None; 2];
        sensor.read(&tick, &mut out);
        assert!(out[0].unwrap() >= first);
        assert_eq!(out[1], Some(7));
    }
}
