//! `numa live` on a simulated machine, with any number of nodes and series, whose values follow a
//! deterministic script.
//!
//! Usage: scripted ADDRESS SERIES NODES INTERVAL_MS
//! Prints its addresses as `numa live` does. A signal ends it; then it prints its CPU time per sample.
#![allow(clippy::disallowed_methods, clippy::print_stdout)]

use numakit_formulas::Catalog;
use numakit_model::{CpuSet, Instance, Kind, Metric, Scope, Series, Topology, Unit};
use numakit_observation::Session;
use numakit_recording::{Header, Priority, Settings};
use numakit_sensors::{SENSORS, Sensor, Tick};
use numakit_server::{ControlSender, ListenOptions, Listener, ingest};
use numakit_sys::{clock, signal};
use numakit_topology::synthetic;
use std::error::Error;
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

/// CPUs of a node.
const CPUS: u32 = 32;
/// How often the state of the observation is read.
const STATUS_PERIOD: Duration = Duration::from_millis(250);
const HISTORY: usize = 256 << 20;

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [address, series, nodes, interval] = words.as_slice() else {
        return Err("usage: scripted ADDRESS SERIES NODES INTERVAL_MS".into());
    };
    let (count, nodes) = (series.parse()?, nodes.parse()?);
    let interval = Duration::from_millis(interval.parse()?);
    let topology =
        synthetic::parse(&format!("package:{nodes} node:1 l3:2 l2:8 core:1 pu:2 numbering=sequential"))?;
    let series = series_of(nodes, count);
    let header = header(&series, topology, interval);
    let listener = Listener::bind(address, "scripted", ListenOptions::default())?;
    let ring = Arc::new(ingest::ring(&header)?);
    let (mut session, waker) = Session::open(header.clone(), false)?;
    signal::ignore_broken_pipe();
    println!("control  {}\nview     {}", listener.urls().controller, listener.urls().viewer);
    std::io::stdout().flush()?;
    let control: ControlSender = Box::new(move |order, answer| waker.send(order, answer));
    let formulas = Arc::new(Catalog::built_in().clone());
    let server = listener.start(Some(control), Arc::clone(&formulas), HISTORY, CpuSet::new())?;
    let ingest = server.follow(&header, &formulas, Arc::clone(&ring), CpuSet::new())?;
    let settings = Settings { interval, cpus: CpuSet::new(), priority: Priority::Auto };
    session.start(sensors(series, header.started), settings, Some(ring))?;
    let ended = session.run(STATUS_PERIOD, |status| server.hub().set_status(status))?;
    let _ = ingest.join();
    drop(server);
    println!("samples {}\nlost {}", ended.samples, ended.lost);
    println!("process_us {}", clock::process_cpu() as f64 / 1e3 / ended.samples as f64);
    Ok(())
}

fn header(series: &[Series], topology: Topology, interval: Duration) -> Header {
    Header {
        series: series.to_vec(),
        page_size: topology.page_size,
        topology: Some(topology),
        host: "scripted".to_owned(),
        program: "scripted".to_owned(),
        started: clock::utc(),
        interval: interval.as_nanos() as u64,
        ..Header::default()
    }
}

/// `count` series, of each metric for all its instances before the next: the clock, a counter
/// of each node, the kernel's counters of nodes and CPUs, then invented metrics.
fn series_of(nodes: u32, count: usize) -> Vec<Series> {
    let at_nodes = || (0..nodes).map(Instance::Node).collect::<Vec<_>>();
    let at_cpus = || (0..nodes * CPUS).map(Instance::Cpu).collect::<Vec<_>>();
    let clock =
        own("clock", (Unit::Milliseconds, Kind::Gauge), Scope::Machine, "Time of the sample since the start");
    let work =
        own("work", (Unit::Count, Kind::COUNTER), Scope::Node, "Grows by a random number with every sample");
    let counted = ["node", "cpu"].into_iter().flat_map(|sensor| {
        let known = SENSORS.iter().filter(move |entry| entry.name == sensor).flat_map(|e| (e.known)());
        known.filter(|m| matches!(m.scope, Scope::Node | Scope::Cpu)).map(move |m| {
            let places = if m.scope == Scope::Cpu { at_cpus() } else { at_nodes() };
            (m, places)
        })
    });
    let more = (0..).map(|n| {
        (
            own(&format!("more_{n:03}"), (Unit::Count, Kind::Gauge), Scope::Node, "A level of the script"),
            at_nodes(),
        )
    });
    let all = [(clock, vec![Instance::Machine]), (work, at_nodes())].into_iter().chain(counted).chain(more);
    let series = |(metric, places): (Metric, Vec<Instance>)| {
        let metric = Arc::new(metric);
        places.into_iter().map(move |place| Series::new(&metric, place)).collect::<Vec<_>>()
    };
    let mut series: Vec<Series> = all.flat_map(series).take(count).collect();
    // The columns of a sensor are adjacent.
    series.sort_by_key(|s| s.metric.sensor() != "scripted");
    series
}

fn own(name: &str, (unit, kind): (Unit, Kind), scope: Scope, help: &str) -> Metric {
    Metric {
        name: format!("scripted.{name}"),
        unit,
        kind,
        scope,
        help: help.to_owned(),
        source: "script".to_owned(),
        resolution: Duration::ZERO,
        confidence: None,
        maximum: None,
    }
}

/// One sensor for each sensor name of the series.
fn sensors(series: Vec<Series>, started: u64) -> Vec<Box<dyn Sensor>> {
    let offset = clock::utc() - clock::monotonic();
    let began = started - offset;
    series
        .chunk_by(|a, b| a.metric.sensor() == b.metric.sensor())
        .map(|part| Box::new(Script::new(part.to_vec(), began)) as Box<dyn Sensor>)
        .collect()
}

/// How a value changes.
#[derive(Debug, Clone, Copy)]
enum Course {
    /// The time in milliseconds.
    Clock,
    /// Never.
    Still,
    /// Jumps once in N reads.
    Steps(u64),
    /// At every read.
    Moves,
}

/// A sensor whose values are computed.
struct Script {
    series: Vec<Series>,
    courses: Vec<Course>,
    values: Vec<u64>,
    random: u64,
    reads: u64,
    began: u64,
}

impl Script {
    fn new(series: Vec<Series>, began: u64) -> Self {
        let course = |(n, s): (usize, &Series)| match (s.metric.bare(), n % 3) {
            ("clock", _) => Course::Clock,
            ("work", _) | (_, 2) => Course::Moves,
            (_, 1) => Course::Steps(50 + n as u64 % 400),
            _ => Course::Still,
        };
        let courses = series.iter().enumerate().map(course).collect();
        let values = vec![1_000_000; series.len()];
        Self { series, courses, values, random: 0x9e37_79b9_7f4a_7c15, reads: 0, began }
    }
}

impl Sensor for Script {
    fn series(&self) -> &[Series] {
        &self.series
    }

    /// All are always wanted.
    fn keep(&mut self, _: &dyn Fn(&Series) -> bool) {}

    fn read(&mut self, tick: &Tick, out: &mut [Option<u64>]) {
        self.reads += 1;
        for (n, ((series, course), value)) in
            self.series.iter().zip(&self.courses).zip(&mut self.values).enumerate()
        {
            let by = match course {
                Course::Clock => {
                    out[n] = Some(tick.woke.saturating_sub(self.began) / 1_000_000);
                    continue;
                }
                Course::Still => 0,
                Course::Steps(every) => 4096 * u64::from((self.reads + n as u64).is_multiple_of(*every)),
                Course::Moves => {
                    self.random ^= self.random << 13;
                    self.random ^= self.random >> 7;
                    self.random ^= self.random << 17;
                    self.random % 2048
                }
            };
            // Counters only grow; levels stay in a range.
            let back = if matches!(series.metric.kind, Kind::Gauge) && by > 0 { 1024 } else { 0 };
            *value = value.wrapping_add(by).saturating_sub(back).max(1024);
            out[n] = Some(*value);
        }
    }
}
