//! `pressure`: how long threads waited for CPU, memory or storage (PSI).
//!
//! A read adds up what each CPU counted since the last one, weighted by the jiffies that the CPU was in use. Of a time
//! shorter than a jiffy nothing is added, and it is lost for everybody: read 1,000 times a second, a total grew by 5 % of the
//! time in which it grew by 81 % when it was read 2, 10 or 25 times a second. So it is read ten times a second.

use crate::Scene;
use crate::layout::digits;
use crate::sensor::{Absent, Probed, Sensor, SensorEntry, Tick, metric, narrow};
use numakit_model::{Fix, Instance, Kind, Metric, Scope, Series, Unavailable, Unit};
use numakit_sys::root::Watched;
use numakit_sys::{ReadError, SysRoot};
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;

const FOLDER: &str = "/proc/pressure";
/// Minimum time between two reads, ns.
const PAUSE: u64 = 100_000_000;
/// Half of that, since ticks are not exactly on time.
const RESOLUTION: Duration = Duration::from_millis(50);

/// Line of the table of sensors.
pub const ENTRY: SensorEntry = SensorEntry {
    name: "pressure",
    help: "Time in which threads were stalled by lack of CPU, memory or storage (PSI).",
    default: |_| true,
    known: || VALUES.iter().map(describe).collect(),
    probe,
};

/// File, its line, description.
type Value = (&'static str, &'static str, &'static str);

const VALUES: [Value; 7] = [
    ("cpu", "some", "Time in which at least one thread waited for a CPU."),
    ("cpu", "full", "Time in which all threads waited for a CPU; always 0 for a whole machine."),
    ("memory", "some", "Time in which at least one thread waited for memory."),
    ("memory", "full", "Time in which all threads with work to do waited for memory."),
    ("io", "some", "Time in which at least one thread waited for storage."),
    ("io", "full", "Time in which all threads with work to do waited for storage."),
    ("irq", "full", "Time in which interrupts kept all threads of a CPU from running."),
];

fn describe((file, line, help): &Value) -> Metric {
    let name = format!("pressure.{file}_{line}");
    let source = format!("{FOLDER}/{file}");
    let metric = metric(&name, Unit::Microseconds, Kind::COUNTER, Scope::Machine, help, &source);
    Metric { resolution: RESOLUTION, ..metric }
}

/// The total of the line `some` or `full`, in microseconds.
pub fn total(text: &[u8], line: &str) -> Option<u64> {
    let lines = text.split_inclusive(|&b| b == b'\n');
    let rest = lines.filter_map(|l| l.strip_prefix(line.as_bytes())).find(|l| l.starts_with(b" "))?;
    let word = rest.split(|&b| b == b' ').find_map(|w| w.strip_prefix(b"total="))?;
    match digits(word)? {
        (value, b"\n") => Some(value),
        _ => None,
    }
}

/// Why a file has no total.
#[derive(Debug, Error)]
enum NoTotal {
    #[error(transparent)]
    Unreadable(#[from] ReadError),
    #[error("{path} has no line '{line} ... total=NUMBER'")]
    Line { path: String, line: &'static str },
}

#[derive(Debug, Default)]
struct Pressure {
    series: Vec<Series>,
    absent: Vec<Absent>,
    files: Vec<File>,
    buffer: Vec<u8>,
    /// When the tick of the last read was due.
    last: Option<u64>,
}

#[derive(Debug)]
struct File {
    watched: Watched,
    // Lines and the slots of their totals.
    lines: Vec<(&'static str, usize)>,
}

fn probe(scene: &Scene<'_>) -> Probed {
    let root = scene.root;
    let mut sensor = Pressure::default();
    for value @ &(name, line, _) in &VALUES {
        let path = format!("{FOLDER}/{name}");
        let metric = describe(value);
        match sensor.open(root, &path, line) {
            Ok(at) => {
                sensor.files[at].lines.push((line, sensor.series.len()));
                sensor.series.push(Series::new(&Arc::new(metric), Instance::Machine));
            }
            Err(error) => {
                let missing = metric.help.trim_end_matches('.');
                let why = Unavailable::new(missing, error.to_string(), fix(name));
                sensor.absent.push(Absent { metric, why });
            }
        }
    }
    if sensor.series.is_empty() {
        let seen = sensor.absent.swap_remove(0).why.seen;
        return Err(Unavailable::new("pressure stall information", seen, fix("cpu")));
    }
    Ok(Box::new(sensor))
}

fn fix(file: &str) -> Fix {
    match file {
        "irq" => Fix::OtherKernel("6.1 or newer that is built with CONFIG_IRQ_TIME_ACCOUNTING".to_owned()),
        _ => Fix::KernelParameter { parameter: "psi=1".to_owned(), option: Some("CONFIG_PSI".to_owned()) },
    }
}

impl Pressure {
    /// The index of the file, if it has a total in that line.
    fn open(&mut self, root: &SysRoot, path: &str, line: &'static str) -> Result<usize, NoTotal> {
        let known = self.files.iter().position(|f| f.watched.path() == path);
        let at = match known {
            Some(at) => at,
            None => {
                let watched = Watched::open(root, path)?;
                self.files.push(File { watched, lines: Vec::new() });
                self.files.len() - 1
            }
        };
        let file = &mut self.files[at].watched;
        let no_line = || NoTotal::Line { path: path.to_owned(), line };
        let error = if !file.read(&mut self.buffer) {
            file.failure().map_or_else(no_line, |error| error.clone().into())
        } else if total(&self.buffer, line).is_none() {
            no_line()
        } else {
            return Ok(at);
        };
        if known.is_none() {
            self.files.pop();
        }
        Err(error)
    }
}

impl Sensor for Pressure {
    fn series(&self) -> &[Series] {
        &self.series
    }

    fn absent(&self) -> &[Absent] {
        &self.absent
    }

    fn keep(&mut self, wanted: &dyn Fn(&Series) -> bool) {
        let successors = narrow(&mut self.series, wanted);
        for file in &mut self.files {
            file.lines.retain_mut(|(_, slot)| match successors[*slot] {
                Some(new) => {
                    *slot = new;
                    true
                }
                None => false,
            });
        }
        self.files.retain(|f| !f.lines.is_empty());
    }

    fn clock_resolution(&self) -> Option<Duration> {
        Some(Duration::from_micros(1))
    }

    fn files(&self) -> usize {
        self.files.len()
    }

    fn read(&mut self, tick: &Tick, out: &mut [Option<u64>]) {
        if self.last.is_some_and(|last| tick.due > last && tick.due - last < PAUSE) {
            return;
        }
        self.last = Some(tick.due);
        for file in &mut self.files {
            if file.watched.read(&mut self.buffer) {
                for &(line, slot) in &file.lines {
                    out[slot] = total(&self.buffer, line);
                }
            }
        }
    }

    fn failure(&self) -> Option<String> {
        self.files.iter().find_map(|f| f.watched.failure()).map(ToString::to_string)
    }
}

#[cfg(test)]
mod tests;
