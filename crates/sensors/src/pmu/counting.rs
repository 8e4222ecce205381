//! A sensor whose series are sums of counts. It opens only the selected events, in groups, reads them
//! with one thread per package, and scales the counts of multiplexed events.

mod bank;
mod readers;

use super::device::Pmu;
use super::privilege::{self, Privilege};
use crate::Scene;
use crate::sensor::{Absent, Sensor, Tick, metric};
use bank::{Bank, CounterReading, RefusedEvent, Trouble};
use numakit_model::topology::Package;
use numakit_model::{CpuSet, Instance, Kind, Metric, Scope, Series, Unavailable, Unit};
use numakit_sys::SysRoot;
use numakit_sys::perf::{Counters, Errno, PerfEvent};
pub use readers::LONGEST_READ;
use readers::{PackageBanks, Readers};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

/// An event on a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CounterRequest {
    /// The CPU on which it is opened.
    pub cpu: u32,
    /// The event.
    pub event: PerfEvent,
}

/// The factor from a count to the unit of a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Factor {
    /// Numerator.
    pub times: u64,
    /// Denominator; not 0.
    pub over: u64,
}

impl Factor {
    /// The count itself.
    pub const ONE: Self = Self { times: 1, over: 1 };

    fn of(self, count: u64) -> Option<u128> {
        (u128::from(count) * u128::from(self.times)).checked_div(u128::from(self.over))
    }
}

/// The cost of reading a group on its own package, and of one that interrupts a CPU.
const READ: Duration = Duration::from_micros(2);
const INTERRUPT: Duration = Duration::from_micros(8);

/// Reading takes at most 1/`PARTS` of a core's time.
const PARTS: u32 = 20;

/// Minimum number of counters of a PMU, on hardware of the last ten years.
const COUNTERS: usize = 4;

/// The sensor. Nothing is opened before the first read.
///
/// A value is the sum of its counts, each with its factor. It is `None` while one of them has not
/// counted since the last read, because its PMU had no counter for it or its CPU is offline. Counts
/// of multiplexed events are scaled; the metric [`running`] says by how much.
#[derive(Debug)]
pub struct Counting {
    sensor: String,
    root: SysRoot,
    counters: Arc<dyn Counters>,
    packages: Vec<Place>,
    pmus: BTreeMap<u32, PmuName>,
    series: Vec<Series>,
    // The counts of each series; empty for `running`.
    parts: Vec<Vec<(CounterRequest, Factor)>>,
    absent: Vec<Absent>,
    totals: HashMap<CounterRequest, u64>,
    started: Option<Started>,
    failure: Option<String>,
}

/// A package: all its CPUs, and those on which its reader may run.
#[derive(Debug, Clone)]
struct Place {
    all: CpuSet,
    near: CpuSet,
}

#[derive(Debug, Clone)]
struct PmuName {
    name: String,
    core: bool,
}

/// The state from the first read on.
#[derive(Debug)]
struct Started {
    readers: Readers,
    /// The count of every request, by package and bank.
    values: Vec<Option<CounterReading>>,
    /// Positions in `values` of the counts of all series, concatenated.
    terms: Vec<(usize, Factor)>,
    /// The range of them for each series; `None` for `running`.
    sums: Vec<Option<Range<usize>>>,
    /// Start of each package in `values`.
    begins: Vec<usize>,
    state: Health,
}

/// The problems of a read; the message is only built anew when they change.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Health {
    late: usize,
    troubles: usize,
    opens: u64,
}

impl Counting {
    /// A sensor without series. An error without counters.
    pub fn new(sensor: &str, scene: &Scene<'_>) -> Result<Self, Unavailable> {
        let place = |package: &Package| {
            let near = package.cpus.and(&scene.topology.allowed);
            Place { all: package.cpus.clone(), near }
        };
        Ok(Self {
            sensor: sensor.to_owned(),
            root: scene.root.clone(),
            counters: Arc::clone(privilege::counters(scene)?),
            packages: scene.topology.packages.iter().map(place).collect(),
            pmus: BTreeMap::new(),
            series: Vec::new(),
            parts: Vec::new(),
            absent: Vec::new(),
            totals: HashMap::new(),
            started: None,
            failure: None,
        })
    }

    /// Notes the name of a PMU, and whether it counts for cores or for packages.
    pub fn describe(&mut self, device: &Pmu) {
        self.pmus.insert(device.kind, PmuName { name: device.name.clone(), core: device.core });
    }

    /// Adds a series: the sum of these counts, each with its factor.
    pub fn add(&mut self, series: Series, parts: Vec<(CounterRequest, Factor)>) {
        self.series.push(series);
        self.parts.push(parts);
    }

    /// Notes an unavailable metric.
    pub fn add_absent(&mut self, absent: Absent) {
        self.absent.push(absent);
    }

    /// The complete sensor. If a PMU may have too few counters, it gets the series [`running`] too.
    pub fn finish(mut self) -> Box<dyn Sensor> {
        if self.parts.iter().flatten().any(|(request, _)| !unlimited(&request.event)) {
            self.series.push(Series::new(&Arc::new(running(&self.sensor)), Instance::Machine));
            self.parts.push(Vec::new());
        }
        Box::new(self)
    }

    /// The distinct requests of all series by package, CPU and PMU.
    fn plan(&self) -> BTreeMap<(usize, u32, u32), Vec<CounterRequest>> {
        let mut seen = BTreeSet::new();
        let mut banks: BTreeMap<_, Vec<CounterRequest>> = BTreeMap::new();
        for (request, _) in self.parts.iter().flatten().filter(|(request, _)| seen.insert(*request)) {
            let package = self.packages.iter().position(|p| p.all.contains(request.cpu)).unwrap_or(0);
            banks.entry((package, request.cpu, self.unit(&request.event))).or_default().push(*request);
        }
        banks
    }

    /// Events of the same unit can share groups.
    fn unit(&self, event: &PerfEvent) -> u32 {
        match event.pmu {
            PerfEvent::TRACEPOINT => PerfEvent::SOFTWARE,
            kind if self.of_core(kind) => PerfEvent::HARDWARE,
            kind => kind,
        }
    }

    fn of_core(&self, kind: u32) -> bool {
        matches!(kind, PerfEvent::HARDWARE | PerfEvent::CACHE) || self.pmus.get(&kind).is_some_and(|p| p.core)
    }

    fn start(&mut self) -> Started {
        let mut all_banks: BTreeMap<usize, PackageBanks> = BTreeMap::new();
        let (mut places, mut begins) = (HashMap::new(), Vec::new());
        for ((package, cpu, _), requests) in self.plan() {
            let package_banks = all_banks.entry(package).or_insert_with(|| {
                begins.push(places.len());
                let cpus = self.packages.get(package).map(|p| p.near.clone()).unwrap_or_default();
                PackageBanks { cpus, banks: Vec::new() }
            });
            for request in &requests {
                places.insert(*request, places.len());
            }
            let total = |r: &CounterRequest| (r.event, self.totals.get(r).copied().unwrap_or(0));
            package_banks.banks.push(Bank::new(cpu, requests.iter().map(total).collect()));
        }
        let mut terms = Vec::new();
        let mut sums = Vec::with_capacity(self.parts.len());
        for (series, parts) in self.series.iter().zip(&self.parts) {
            let first = terms.len();
            terms.extend(parts.iter().filter_map(|(request, factor)| Some((*places.get(request)?, *factor))));
            sums.push((!self.is_running(series)).then_some(first..terms.len()));
        }
        let readers = Readers::start(Arc::clone(&self.counters), all_banks.into_values().collect());
        let values = vec![None; places.len()];
        Started { readers, values, terms, sums, begins, state: Health::default() }
    }

    fn is_running(&self, series: &Series) -> bool {
        series.metric.sensor() == self.sensor && series.metric.bare() == RUNNING
    }

    /// Why values are missing.
    fn explain(&self, started: &Started) -> Option<String> {
        if started.state.late + started.state.troubles == 0 {
            return None;
        }
        let privilege = Privilege::read(&self.root);
        let (mut offline, mut words) = (CpuSet::new(), BTreeSet::new());
        for trouble in started.readers.all_banks().flatten().flat_map(|s| s.troubles().collect::<Vec<_>>()) {
            match trouble {
                Trouble::Refused(refusal) => match self.word(&refusal, &privilege) {
                    Some(word) => _ = words.insert(word),
                    None => offline.insert(refusal.cpu),
                },
                Trouble::Reopened(cpu) => {
                    words.insert(format!("counters on CPU {cpu} had stopped and were opened again"));
                }
            }
        }
        let late = format!("reading counters took longer than {} s", LONGEST_READ.as_secs());
        let first = (started.state.late > 0).then_some(late);
        let second = (!offline.is_empty()).then(|| format!("CPU {offline} is offline"));
        let mut all = first.into_iter().chain(second).chain(words);
        let first = all.next()?;
        Some(match all.count() {
            0 => first,
            more => format!("{first} (and {more} more)"),
        })
    }

    /// Why an event was refused; `None` if its CPU is offline.
    fn word(&self, refusal: &RefusedEvent, privilege: &Privilege) -> Option<String> {
        let error = io::Error::from_raw_os_error(refusal.code);
        let name = self.pmus.get(&refusal.event.pmu).map(|p| p.name.as_str());
        match (Errno::of(&error), name) {
            (Some(Errno::NoDevice), _) => None,
            (Some(Errno::NoSuchPmu), Some(name)) => Some(format!("PMU {name} is gone")),
            _ => {
                let why = privilege.explain(&refusal.event, refusal.cpu, &error);
                Some(format!("{}; {}", why.seen, why.fix))
            }
        }
    }
}

const RUNNING: &str = "running";

/// The metric that says by how much counts are scaled.
pub fn running(sensor: &str) -> Metric {
    let help = "Share of the time, in hundredths, for which those events counted that did so least; \
                below 100 a PMU has fewer counters than it has events, and their counts are scaled up.";
    metric(&format!("{sensor}.{RUNNING}"), Unit::Count, Kind::Gauge, Scope::Machine, help, "perf_event_open")
}

/// Whether an event needs no hardware counter, so that it always counts.
fn unlimited(event: &PerfEvent) -> bool {
    matches!(event.pmu, PerfEvent::SOFTWARE | PerfEvent::TRACEPOINT)
}

impl Started {
    /// Fills the row. True if the problems differ from those of the last read.
    fn read(&mut self, woke: u64, out: &mut [Option<u64>]) -> bool {
        self.readers.read(woke);
        self.values.fill(None);
        let (mut state, mut share) = (Health::default(), None);
        for (package_banks, &begin) in self.readers.all_banks().zip(&self.begins) {
            let Some(package_banks) = package_banks else {
                state.late += 1;
                continue;
            };
            let mut values = self.values[begin..].iter_mut();
            for bank in &package_banks.banks {
                share = share.into_iter().chain(bank.share()).min();
                state.troubles += bank.troubles().count();
                state.opens += bank.opens();
                bank.values().zip(&mut values).for_each(|(value, slot)| *slot = value);
            }
        }
        for (slot, sum) in out.iter_mut().zip(&self.sums) {
            *slot = match sum {
                Some(terms) => total(&self.terms[terms.clone()], &self.values),
                None => share,
            };
        }
        std::mem::replace(&mut self.state, state) != state
    }
}

/// A CPU that is offline adds its count so far, so that the sum does not jump; if all CPUs of a
/// series are offline, it has no value.
fn total(terms: &[(usize, Factor)], values: &[Option<CounterReading>]) -> Option<u64> {
    let (mut sum, mut counts) = (0u128, false);
    for (place, factor) in terms {
        let count = match values[*place]? {
            CounterReading::Counted(count) => {
                counts = true;
                count
            }
            CounterReading::Offline(count) => count,
        };
        sum += factor.of(count)?;
    }
    counts.then_some(sum as u64)
}

impl Sensor for Counting {
    fn series(&self) -> &[Series] {
        &self.series
    }

    fn absent(&self) -> &[Absent] {
        &self.absent
    }

    fn keep(&mut self, wanted: &dyn Fn(&Series) -> bool) {
        if let Some(started) = self.started.take() {
            let banks = started.readers.all_banks().flatten();
            let counted = banks.flat_map(|s| s.banks.iter().flat_map(Bank::totals).collect::<Vec<_>>());
            self.totals.extend(counted.map(|(cpu, event, total)| (CounterRequest { cpu, event }, total)));
        }
        let keep: Vec<bool> = self.series.iter().map(wanted).collect();
        let mut flags = keep.iter();
        self.series.retain(|_| flags.next() == Some(&true));
        let mut flags = keep.iter();
        self.parts.retain(|_| flags.next() == Some(&true));
    }

    fn period(&self) -> Duration {
        let cost = |((_, _, unit), requests): (&(usize, u32, u32), &Vec<CounterRequest>)| {
            let each = match self.pmus.get(unit) {
                Some(pmu) if !pmu.core => READ,
                _ => INTERRUPT,
            };
            let groups = if unlimited(&requests[0].event) { 1 } else { requests.len().div_ceil(COUNTERS) };
            each * groups as u32
        };
        let period = self.plan().iter().map(cost).sum::<Duration>() * PARTS;
        if period < Duration::from_millis(1) { Duration::ZERO } else { period }
    }

    fn files(&self) -> usize {
        self.plan().values().map(Vec::len).sum()
    }

    fn read(&mut self, tick: &Tick, out: &mut [Option<u64>]) {
        let mut started = match self.started.take() {
            Some(started) => started,
            None => self.start(),
        };
        if started.read(tick.woke, out) {
            self.failure = self.explain(&started);
        }
        self.started = Some(started);
    }

    fn failure(&self) -> Option<String> {
        self.failure.clone()
    }
}

#[cfg(test)]
mod tests;
