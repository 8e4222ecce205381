//! `cpu`: /proc/stat: CPU time of each CPU by use, and the machine's interrupts, context switches
//! and processes.
//!
//! CPU time is counted in ticks of 10 ms, so shares over shorter times are meaningless. The kernel
//! may reduce `iowait`; that is a correction and not a wrap.

use crate::Scene;
use crate::sensor::{Absent, Probed, Sensor, SensorEntry, Tick, metric, narrow};
use numakit_model::{CpuSet, Fix, Instance, Kind, Metric, Scope, Series, Unavailable, Unit};
use numakit_sys::proc::machine::{StatLine, numbers, stat_line};
use numakit_sys::root::Watched;
use std::sync::Arc;
use std::time::Duration;

const PATH: &str = "/proc/stat";
const TICK: Duration = Duration::from_millis(10);

/// Line of the table of sensors.
pub const ENTRY: SensorEntry = SensorEntry {
    name: "cpu",
    help: "CPU time of each CPU, in ticks of 10 ms; interrupts and context switches of the machine.",
    default: |_| true,
    known: || ticks().chain(totals()).collect(),
    probe,
};

/// The numbers of a CPU's line, in order.
const TICKS: [(&str, &str); 10] = [
    ("user", "Time in programs, including guests, without niced programs."),
    ("nice", "Time in niced programs, including niced guests."),
    ("system", "Time in the kernel."),
    ("idle", "Idle time."),
    ("iowait", "Idle time while a thread that last ran here waited for storage."),
    ("irq", "Time in interrupts."),
    ("softirq", "Time in softirqs (deferred parts of interrupts)."),
    ("steal", "Time in which the hypervisor ran other guests."),
    ("guest", "Time in guests; also part of user."),
    ("guest_nice", "Time in niced guests; also part of nice."),
];

/// Other lines: their first word, name, kind, description.
const TOTALS: [(&str, &str, Kind, &str); 5] = [
    ("intr", "interrupts", Kind::COUNTER, "Interrupts served."),
    ("ctxt", "context_switches", Kind::COUNTER, "Context switches."),
    ("processes", "forks", Kind::COUNTER, "Processes and threads started."),
    ("procs_running", "procs_running", Kind::Gauge, "Threads that run or are ready to run."),
    ("procs_blocked", "procs_blocked", Kind::Gauge, "Threads that wait for storage."),
];

fn ticks() -> impl Iterator<Item = Metric> {
    TICKS.iter().map(|(name, help)| Metric {
        resolution: TICK,
        ..metric(&format!("cpu.{name}"), Unit::Ticks, Kind::COUNTER, Scope::Cpu, help, PATH)
    })
}

fn totals() -> impl Iterator<Item = Metric> {
    TOTALS.iter().map(|(_, name, kind, help)| {
        metric(&format!("cpu.{name}"), Unit::Count, *kind, Scope::Machine, help, PATH)
    })
}

/// Complete lines.
fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split_inclusive(|&b| b == b'\n').filter_map(|l| l.strip_suffix(b"\n"))
}

#[derive(Debug)]
struct Stat {
    file: Watched,
    buffer: Vec<u8>,
    series: Vec<Series>,
    absent: Vec<Absent>,
    cpus: Vec<Cpu>,
    totals: [Option<usize>; TOTALS.len()],
}

/// A CPU with selected series.
#[derive(Debug)]
struct Cpu {
    id: u32,
    slots: [Option<usize>; TICKS.len()],
    present: bool,
}

fn probe(scene: &Scene<'_>) -> Probed {
    let (root, topology) = (scene.root, scene.topology);
    let unavailable = |seen: String| Unavailable::new("activity of the CPUs", seen, root.fix_for(PATH));
    let mut file = Watched::open(root, PATH).map_err(|e| unavailable(e.to_string()))?;
    let mut buffer = Vec::new();
    if !file.read(&mut buffer) {
        return Err(unavailable(file.failure().map_or_else(String::new, ToString::to_string)));
    }
    let mut fields = 0;
    let mut shown = CpuSet::new();
    let mut words: Vec<&[u8]> = Vec::new();
    for line in lines(&buffer).map(stat_line) {
        match line {
            StatLine::Cpu(id, rest) => {
                fields = fields.max(numbers(rest).take(TICKS.len()).count());
                shown.insert(id);
            }
            StatLine::Other(word, rest) if numbers(rest).next().is_some() => words.push(word),
            StatLine::Other(..) => {}
        }
    }
    if fields == 0 {
        return Err(unavailable(format!("{PATH} has no line 'cpu0 NUMBER...'")));
    }
    let unavailable_metric = |metric: Metric| {
        let seen = format!("{PATH} of this kernel does not have it");
        let why = Unavailable::new(metric.name.clone(), seen, Fix::OtherKernel("that is newer".to_owned()));
        Absent { metric, why }
    };
    let mut series = Vec::new();
    let mut absent: Vec<Absent> = ticks().skip(fields).map(unavailable_metric).collect();
    let metrics: Vec<Arc<Metric>> = ticks().take(fields).map(Arc::new).collect();
    let mut cpus = Vec::new();
    for id in topology.online.or(&topology.offline).or(&shown).iter() {
        let mut slots = [None; TICKS.len()];
        for (slot, metric) in slots.iter_mut().zip(&metrics) {
            *slot = Some(series.len());
            series.push(Series::new(metric, Instance::Cpu(id)));
        }
        cpus.push(Cpu { id, slots, present: true });
    }
    let mut places = [None; TOTALS.len()];
    for ((place, metric), (word, ..)) in places.iter_mut().zip(totals()).zip(TOTALS) {
        if words.contains(&word.as_bytes()) {
            *place = Some(series.len());
            series.push(Series::new(&Arc::new(metric), Instance::Machine));
        } else {
            absent.push(unavailable_metric(metric));
        }
    }
    Ok(Box::new(Stat { file, buffer, series, absent, cpus, totals: places }))
}

impl Sensor for Stat {
    fn series(&self) -> &[Series] {
        &self.series
    }

    fn absent(&self) -> &[Absent] {
        &self.absent
    }

    fn keep(&mut self, wanted: &dyn Fn(&Series) -> bool) {
        let successors = narrow(&mut self.series, wanted);
        let cpus = self.cpus.iter_mut().flat_map(|c| &mut c.slots);
        for slot in cpus.chain(&mut self.totals) {
            *slot = slot.and_then(|old| successors[old]);
        }
        self.cpus.retain(|c| c.slots.iter().any(Option::is_some));
    }

    fn period(&self) -> Duration {
        if self.cpus.is_empty() { Duration::ZERO } else { TICK }
    }

    fn clock_resolution(&self) -> Option<Duration> {
        Some(TICK)
    }

    fn files(&self) -> usize {
        1
    }

    fn read(&mut self, _: &Tick, out: &mut [Option<u64>]) {
        if !self.file.read(&mut self.buffer) {
            return;
        }
        self.cpus.iter_mut().for_each(|c| c.present = false);
        // The kernel prints CPUs in ascending order, so the next line is usually the next CPU.
        let mut next = 0;
        for line in lines(&self.buffer).map(stat_line) {
            match line {
                StatLine::Cpu(id, rest) => {
                    let at = match self.cpus.get(next) {
                        Some(cpu) if cpu.id == id => next,
                        _ => match self.cpus.binary_search_by_key(&id, |c| c.id) {
                            Ok(at) => at,
                            Err(_) => continue,
                        },
                    };
                    next = at + 1;
                    self.cpus[at].present = true;
                    put(self.cpus[at].slots.iter().zip(numbers(rest)), out);
                }
                StatLine::Other(word, rest) => {
                    if let Some(at) = TOTALS.iter().position(|(w, ..)| w.as_bytes() == word) {
                        put(self.totals[at..=at].iter().zip(numbers(rest)), out);
                    }
                }
            }
        }
    }

    fn failure(&self) -> Option<String> {
        if let Some(error) = self.file.failure() {
            return Some(error.to_string());
        }
        let offline: CpuSet = self.cpus.iter().filter(|c| !c.present).map(|c| c.id).collect();
        (!offline.is_empty()).then(|| format!("CPU {offline} is offline"))
    }
}

fn put<'a>(values: impl Iterator<Item = (&'a Option<usize>, u64)>, out: &mut [Option<u64>]) {
    for (slot, value) in values {
        if let Some(place) = slot.and_then(|s| out.get_mut(s)) {
            *place = Some(value);
        }
    }
}

#[cfg(test)]
mod tests;
