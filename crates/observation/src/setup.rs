//! Prepares an observation: its sensors, the CPUs of the sampler, the header of the rows.

use crate::interval;
use numakit_model::{CpuSet, Scope, Topology};
use numakit_recording::{AbsentMetric, Header};
use numakit_sensors::{Probe, Scene, SelectError, Selected, Selection, Sensor, Tick, summed};
use numakit_sys::proc::machine;
use numakit_sys::{clock, sched};
use std::collections::HashSet;
use std::time::Duration;
use thiserror::Error;

/// The selected sensors, and the header of their rows.
pub struct Setup {
    /// The sensors.
    pub sensors: Vec<Box<dyn Sensor>>,
    /// The header of a recording or a view.
    pub header: Header,
}

impl Setup {
    /// Finds the selected sensors of a machine.
    pub fn new(
        scene: &Scene<'_>,
        selection: &Selection,
        interval: Duration,
        command: Option<String>,
    ) -> Result<Self, SelectError> {
        // Three files per node stay open. The default limit is enough for most machines; a
        // sensor reports a file that cannot be opened.
        let _ = sched::raise_open_files();
        let Selected { sensors, missing } = Probe::selected(scene, selection)?;
        let absent = missing.into_iter().map(|(name, why)| AbsentMetric { name, why }).collect();
        let header = Header {
            series: sensors.iter().flat_map(|s| s.series().iter().cloned()).collect(),
            topology: Some(scene.topology.clone()),
            host: machine::host_name(scene.root).unwrap_or_default(),
            kernel: machine::kernel_release(scene.root).unwrap_or_default(),
            command,
            program: concat!("numa ", env!("CARGO_PKG_VERSION")).to_owned(),
            started: clock::utc(),
            // A capture does not say where its machine is.
            utc_offset: scene.root.is_host().then(clock::utc_offset).flatten(),
            interval: u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX),
            page_size: scene.topology.page_size,
            absent,
        };
        Ok(Self { sensors, header })
    }
}

impl Setup {
    /// Refuses an interval below a millisecond that is shorter than the time of a sample.
    pub fn check_interval(&mut self, every: Duration) -> Result<(), IntervalTooShort> {
        if every >= Duration::from_millis(1) {
            return Ok(());
        }
        let takes = self.time_of_sample();
        if takes < every { Ok(()) } else { Err(IntervalTooShort { series: self.header.series.len(), takes }) }
    }

    /// The minimum time of a sample: the fastest of a few.
    fn time_of_sample(&mut self) -> Duration {
        const TRIES: usize = 5;
        let mut values = vec![None; self.header.series.len()];
        let mut once = || {
            let started = clock::monotonic();
            let mut rest = &mut values[..];
            for sensor in &mut self.sensors {
                let (mine, others) = rest.split_at_mut(sensor.series().len());
                sensor.read(&Tick { due: started, woke: started, lost: 0 }, mine);
                rest = others;
            }
            Duration::from_nanos(clock::monotonic() - started)
        };
        (0..TRIES).map(|_| once()).min().unwrap_or_default()
    }

    /// Sums the counters of interconnect cards, so that each of their metrics is one series.
    pub fn sum_cards(&mut self) {
        let of_card = |sensor: &dyn Sensor| sensor.series().iter().any(|s| s.metric.scope == Scope::Device);
        let sensors = std::mem::take(&mut self.sensors).into_iter();
        self.sensors = sensors.map(|s| if of_card(s.as_ref()) { summed(s) } else { s }).collect();
        self.header.series = self.sensors.iter().flat_map(|s| s.series().iter().cloned()).collect();
    }

    /// Samples only these series of the header.
    pub fn narrow(&mut self, wanted: &[bool]) {
        let names: HashSet<String> =
            self.header.series.iter().zip(wanted).filter(|(_, w)| **w).map(|(s, _)| s.name()).collect();
        self.sensors.iter_mut().for_each(|s| s.keep(&|series| names.contains(&series.name())));
        self.sensors.retain(|s| !s.series().is_empty());
        self.header.series = self.sensors.iter().flat_map(|s| s.series().iter().cloned()).collect();
    }
}

/// The interval is shorter than the time of a sample.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "one sample of these {series} series takes {} us here; use -i {} or longer, or select fewer series with -e",
    takes.as_micros(),
    interval::format(self.enough())
)]
pub struct IntervalTooShort {
    series: usize,
    takes: Duration,
}

impl IntervalTooShort {
    /// Twice the time of a sample, rounded up to milliseconds.
    fn enough(&self) -> Duration {
        let ms = u64::try_from((self.takes * 2).as_millis()).unwrap_or(u64::MAX);
        Duration::from_millis(ms.saturating_add(1))
    }
}

/// The sampler may not run on this CPU.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("CPU {cpu} is not one of the CPUs that this process may use; choose one of {allowed}")]
pub struct CpuNotAllowed {
    cpu: u32,
    allowed: CpuSet,
}

/// The CPU mask of the sampler for this CPU, if this process may use it.
pub fn sampler_cpu(cpu: u32, allowed: CpuSet) -> Result<CpuSet, CpuNotAllowed> {
    match allowed.contains(cpu) {
        true => Ok(CpuSet::range(cpu, cpu)),
        false => Err(CpuNotAllowed { cpu, allowed }),
    }
}

/// The CPUs of the sampler: the allowed CPUs of the first allowed node that has any, so that
/// its memory is local and it does not disturb the other nodes.
pub fn sampler_cpus(topology: &Topology) -> CpuSet {
    let nodes = topology.nodes.iter();
    let near = |allowed: bool| {
        nodes
            .clone()
            .filter(|n| !allowed || topology.allowed_nodes.contains(n.os_index))
            .map(|n| n.cpus.and(&topology.allowed))
            .find(|cpus| !cpus.is_empty())
    };
    near(true).or_else(|| near(false)).unwrap_or_else(|| topology.allowed.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use numakit_model::topology::Node;

    #[test]
    fn an_error_about_a_short_interval_names_a_possible_one() {
        let error = IntervalTooShort { series: 7, takes: Duration::from_micros(700) };
        assert_eq!(
            error.to_string(),
            "one sample of these 7 series takes 700 us here; use -i 2ms or longer, or select fewer series with -e"
        );
        let mut none = Setup { sensors: Vec::new(), header: Header::default() };
        assert_eq!(none.check_interval(Duration::from_millis(1)), Ok(()));
        assert!(none.check_interval(Duration::ZERO).is_err(), "no sample takes less than 0 s");
    }

    #[test]
    fn the_sampler_runs_only_on_allowed_cpus() {
        let allowed = CpuSet::range(2, 3);
        assert_eq!(sampler_cpu(2, allowed.clone()), Ok(CpuSet::range(2, 2)));
        let refused = sampler_cpu(4, allowed).unwrap_err().to_string();
        assert!(
            refused.starts_with("CPU 4 is not one of") && refused.ends_with("choose one of 2-3"),
            "{refused}"
        );
    }

    #[test]
    fn the_sampler_runs_on_the_first_allowed_node() {
        let node = |os_index, cpus| Node { os_index, cpus, ..Node::default() };
        let mut topology = Topology {
            nodes: vec![node(0, CpuSet::new()), node(1, CpuSet::range(0, 3)), node(2, CpuSet::range(4, 7))],
            allowed: CpuSet::range(2, 5),
            allowed_nodes: CpuSet::range(0, 2),
            ..Topology::default()
        };
        assert_eq!(sampler_cpus(&topology), CpuSet::range(2, 3));
        topology.allowed_nodes = CpuSet::range(2, 2);
        assert_eq!(sampler_cpus(&topology), CpuSet::range(4, 5));
        topology.allowed_nodes = CpuSet::new();
        assert_eq!(sampler_cpus(&topology), CpuSet::range(2, 3));
    }
}
