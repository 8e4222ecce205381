//! Series of hardware events from the tables in `data/events/`, under the vendor's names and under
//! names of classes, which are the same for all vendors.
//!
//! The sensor `uncore` has the events of PMUs outside of the cores, the sensor `perf` those of the
//! cores. `SENSOR.CLASS` is a class, `SENSOR.PMU.EVENT` an event. PMU is its name without `uncore_`
//! and number; EVENT has no index: the sum over all PMUs and indices of a package, node or link is
//! one series.

mod captured;
mod counting_cpus;
mod missing;
mod names;
mod sums;

use crate::Scene;
use crate::events::{self, EventTable, HW_CACHE, Identity, PlatformEvent, Section, Spread, TABLES, class};
use crate::pmu::{self, CounterRequest, Counting, Devices, Factor, Pmu, Privilege, device};
use crate::sensor::{Absent, Sensor};
use captured::Captured;
use counting_cpus::CountingCpu;
use missing::MissingPmus;
use numakit_model::{Metric, Series, Unavailable};
use numakit_sys::{SysRoot, perf};
use std::collections::BTreeSet;
use std::sync::LazyLock;
use sums::Sums;

/// The hardware events of a machine.
#[derive(Debug, Default)]
pub struct Hardware {
    /// Series with the counts that they are sums of; classes first.
    pub counted: Vec<(Series, Vec<(CounterRequest, Factor)>)>,
    /// Unavailable metrics, each with its reason.
    pub absent: Vec<Absent>,
    /// The PMUs of the series.
    pub devices: Vec<Pmu>,
    /// Why there are no series, if there are none.
    pub nothing: Option<Unavailable>,
}

/// Whether a section belongs to the sensor `perf`; all others belong to `uncore`.
pub fn of_cores(section: &Section) -> bool {
    section.spread == Spread::Cpu
}

/// Whether a section belongs to the sensor `uncore`.
pub fn outside_of_cores(section: &Section) -> bool {
    !of_cores(section)
}

/// The metrics of the sensor `perf` from all tables, whatever the machine.
pub static KNOWN_OF_CORES: LazyLock<Vec<Metric>> = LazyLock::new(|| known("perf", of_cores));

/// The metrics of the sensor `uncore` from all tables, whatever the machine.
pub static KNOWN_OUTSIDE: LazyLock<Vec<Metric>> = LazyLock::new(|| known("uncore", outside_of_cores));

/// Whether a metric is sampled by default: of hardware events, only classes marked so.
pub fn by_default(metric: &Metric) -> bool {
    // Only hardware events have a confidence.
    metric.confidence.is_none() || class(metric.bare()).is_some_and(|class| class.default)
}

fn known(sensor: &str, part: fn(&Section) -> bool) -> Vec<Metric> {
    let mut sums = Sums::new(sensor);
    for table in TABLES.iter().filter_map(|(_, text)| EventTable::parse(text).ok()) {
        for section in table.sections.iter().filter(|s| part(s)) {
            for event in &section.events {
                sums.event(&table, section, event);
                for feed in &event.feeds {
                    sums.class(&table, section, event, feed);
                }
            }
        }
    }
    sums.metrics()
}

/// Finds the series of a sensor on a machine. Every event is opened once to try it, except on a
/// capture.
pub fn find(scene: &Scene<'_>, sensor: &str, part: fn(&Section) -> bool) -> Hardware {
    let names = device::names(scene.root);
    let identity = Identity::read(scene.root);
    let tables = events::tables(&identity, &names);
    let sections = || tables.iter().flat_map(|t| t.sections.iter().map(move |s| (t, s)));
    let sections = || sections().filter(|(_, section)| part(section));
    let devices = found(scene, &names, |name| sections().any(|(_, section)| section.is_for(name)));
    let mut missing_pmus = MissingPmus::new(&identity, &names);
    missing_pmus.unusable = devices.skipped;
    let mut search = Search {
        scene,
        privilege: Privilege::read(scene.root),
        devices: devices.found,
        sums: Sums::new(sensor),
        used: BTreeSet::new(),
    };
    for (table, section) in sections() {
        // Events of another version of a PMU are not missing here.
        let other = section.condition.is_some() && names.iter().any(|name| section.is_for(name));
        if !search.section(table, section) && !other {
            missing_pmus.sections.push((table, section));
        }
    }
    search.finish(missing_pmus)
}

/// The PMUs of the machine that tables name.
fn found(scene: &Scene<'_>, names: &[String], wanted: impl Fn(&str) -> bool) -> Devices {
    let mut devices = pmu::devices(scene.root, &wanted);
    let cores = names.iter().any(|name| device::is_core(scene.root, name));
    devices.found.extend(events::hw_cache().ok().filter(|_| cores && wanted(HW_CACHE)));
    devices
}

impl Hardware {
    /// Adds everything to a sensor.
    pub fn add_to(self, counting: &mut Counting) {
        self.devices.iter().for_each(|device| counting.describe(device));
        self.counted.into_iter().for_each(|(series, parts)| counting.add(series, parts));
        self.absent.into_iter().for_each(|absent| counting.add_absent(absent));
    }

    /// A sensor that only lists the series, for a capture.
    pub fn listed(self, root: &SysRoot) -> Box<dyn Sensor> {
        let series = self.counted.into_iter().map(|(series, _)| series).collect();
        Box::new(Captured { series, absent: self.absent, name: root.name().to_owned() })
    }
}

struct Search<'a> {
    scene: &'a Scene<'a>,
    privilege: Privilege,
    devices: Vec<Pmu>,
    sums: Sums,
    used: BTreeSet<String>,
}

/// An event that can be opened.
struct OpenableEvent {
    index: u32,
    device: String,
    counting_cpu: CountingCpu,
    request: CounterRequest,
}

/// Why an event cannot be opened.
enum Refusal {
    /// The PMU does not have it: sums are right without it.
    Without(Unavailable),
    /// The PMU should have it: sums would be too small.
    Refused(Unavailable),
}

impl Search<'_> {
    /// Adds the events of a section. False if the machine has none of its PMUs.
    fn section(&mut self, table: &EventTable, section: &Section) -> bool {
        let fits = |d: &&Pmu| section.holds(self.scene.root, &d.name);
        let devices: Vec<Pmu> = self.devices.iter().filter(fits).cloned().collect();
        let counting_cpus: Vec<Vec<CountingCpu>> =
            devices.iter().map(|d| counting_cpus::of(self.scene.topology, section, d)).collect();
        let places: Vec<(&Pmu, &CountingCpu)> = devices
            .iter()
            .zip(&counting_cpus)
            .flat_map(|(d, counting_cpus)| counting_cpus.iter().map(move |s| (d, s)))
            .collect();
        if places.is_empty() {
            return false;
        }
        for event in &section.events {
            match self.ready(event, &places) {
                Ok(ready) => self.add(table, section, event, &ready),
                Err(refusal) => self.refuse(table, section, event, &refusal),
            }
        }
        self.used.extend(devices.into_iter().map(|d| d.name));
        true
    }

    /// All requests of an event. Indices that the machine does not have are left out; an error says
    /// why there are none.
    fn ready(
        &self,
        event: &PlatformEvent,
        places: &[(&Pmu, &CountingCpu)],
    ) -> Result<Vec<OpenableEvent>, Refusal> {
        let (mut ready, mut first) = (Vec::new(), None);
        for index in event.indices.clone() {
            let mut codes =
                places.iter().map(|(device, counting_cpu)| self.request(event, index, device, counting_cpu));
            let tried = match codes.next() {
                Some(Ok(request)) => self.attempt(&request).map(|()| request),
                Some(Err(refusal)) => Err(refusal),
                None => continue,
            };
            match tried {
                Ok(request) => {
                    let rest = codes.map(Result::ok);
                    let all = std::iter::once(Some(request)).chain(rest).zip(places);
                    ready.extend(all.filter_map(|(request, (device, counting_cpu))| {
                        let counting_cpu = CountingCpu::clone(counting_cpu);
                        Some(OpenableEvent {
                            index,
                            device: device.name.clone(),
                            counting_cpu,
                            request: request?,
                        })
                    }));
                }
                Err(refusal) => _ = first.get_or_insert(refusal),
            }
        }
        match first {
            Some(refusal) if ready.is_empty() => Err(refusal),
            _ => Ok(ready),
        }
    }

    fn request(
        &self,
        event: &PlatformEvent,
        index: u32,
        device: &Pmu,
        counting_cpu: &CountingCpu,
    ) -> Result<CounterRequest, Refusal> {
        let missing = || format!("the event {} of {}", event.name_at(index), device.name);
        let fields = event.fields(index, counting_cpu.chip, &device.events);
        let fields = fields.map_err(|error| Refusal::Without(missing::unnamed(missing(), &error)))?;
        let fields = fields.iter().map(|(field, value)| (field.as_str(), *value));
        let config = device.formats.encode(fields);
        let config = config.map_err(|error| Refusal::Refused(missing::no_room(missing(), &error)))?;
        Ok(CounterRequest { cpu: counting_cpu.cpu, event: perf::PerfEvent { pmu: device.kind, config } })
    }

    fn attempt(&self, request: &CounterRequest) -> Result<(), Refusal> {
        match self.scene.root.counters() {
            Some(_) => {
                let tried = pmu::try_event(self.scene, &self.privilege, request.cpu, &request.event);
                tried.map_err(Refusal::Refused)
            }
            None => Ok(()),
        }
    }

    fn add(&mut self, table: &EventTable, section: &Section, event: &PlatformEvent, ready: &[OpenableEvent]) {
        for one in ready {
            let number = event.number(one.index, &one.device);
            let Some(instance) = one.counting_cpu.instance(section.spread, number) else { continue };
            self.sums.event(table, section, event).part(instance, one.request, Factor::ONE);
            for feed in &event.feeds {
                if let (Some(sum), Some(factor)) = (self.sums.class(table, section, event, feed), feed.factor)
                {
                    sum.part(instance, one.request, factor);
                }
            }
        }
    }

    fn refuse(&mut self, table: &EventTable, section: &Section, event: &PlatformEvent, refusal: &Refusal) {
        let (why, whole) = match refusal {
            Refusal::Without(why) => (why, false),
            Refusal::Refused(why) => (why, true),
        };
        self.sums.event(table, section, event).refuse(why, true);
        for feed in &event.feeds {
            if let Some(sum) = self.sums.class(table, section, event, feed) {
                sum.refuse(why, whole);
            }
        }
    }

    fn finish(mut self, missing_pmus: MissingPmus<'_>) -> Hardware {
        for (table, section) in &missing_pmus.sections {
            let why = missing_pmus.why(section);
            for event in &section.events {
                for feed in &event.feeds {
                    if let Some(sum) = self.sums.class(table, section, event, feed) {
                        sum.refuse(&why, false);
                    }
                }
            }
        }
        let (counted, absent) = self.sums.finish();
        let nothing = counted.is_empty().then(|| missing_pmus.nothing(absent.first()));
        self.devices.retain(|d| self.used.contains(&d.name));
        Hardware { counted, absent, devices: self.devices, nothing }
    }
}

#[cfg(test)]
mod tests;
