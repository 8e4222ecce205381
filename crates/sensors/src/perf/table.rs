//! The events of the sensor: the table `data/perf.txt`.

use crate::sensor::metric;
use numakit_model::{Kind, Metric, Scope, Unit};
use numakit_sys::perf::PerfEvent;

/// A line of the table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PerfLine {
    /// The metric's part of the name.
    pub name: &'static str,
    /// What a value belongs to.
    pub scope: Scope,
    /// The kernel's name of the event.
    pub event: &'static str,
    /// The event.
    pub source: PerfSource,
    /// One sentence.
    pub help: &'static str,
}

/// What kind of event.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PerfSource {
    /// A software event.
    Software(PerfEvent),
    /// A generic hardware event.
    Hardware(PerfEvent),
    /// A tracepoint: its subsystem and its name.
    Tracepoint(&'static str, &'static str),
}

const TABLE: &str = include_str!("../../data/perf.txt");

/// Every line; tests check them.
pub fn lines() -> impl Iterator<Item = PerfLine> {
    table_lines(TABLE).filter_map(parse)
}

fn table_lines(text: &'static str) -> impl Iterator<Item = &'static str> {
    text.lines().filter(|l| !l.is_empty() && !l.starts_with('#'))
}

fn parse(line: &'static str) -> Option<PerfLine> {
    let mut words = line.splitn(4, ' ');
    let (name, scope, event, help) = (words.next()?, words.next()?, words.next()?, words.next()?);
    let scope = match scope {
        "node" => Scope::Node,
        "cpu" => Scope::Cpu,
        _ => return None,
    };
    Some(PerfLine { name, scope, event, source: source(event)?, help })
}

/// The numbers of software events are part of the kernel's ABI.
fn source(event: &'static str) -> Option<PerfSource> {
    let software = |code| Some(PerfSource::Software(PerfEvent::new(PerfEvent::SOFTWARE, code)));
    let hardware = |code| Some(PerfSource::Hardware(PerfEvent::new(PerfEvent::HARDWARE, code)));
    match event {
        "page-faults" => software(2),
        "context-switches" => software(3),
        "cpu-migrations" => software(4),
        "minor-faults" => software(5),
        "major-faults" => software(6),
        "cycles" => hardware(0),
        "instructions" => hardware(1),
        _ => event.split_once(':').map(|(system, name)| PerfSource::Tracepoint(system, name)),
    }
}

impl PerfLine {
    /// The metric, at this scope.
    pub fn metric(&self, scope: Scope) -> Metric {
        let unit = if self.event == "cycles" { Unit::Cycles } else { Unit::Count };
        let source = format!("perf_event_open {}", self.event);
        metric(&format!("perf.{}", self.name), unit, Kind::COUNTER, scope, self.help, &source)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_sound() {
        assert!(table_lines(TABLE).count() > 15);
        for line in table_lines(TABLE) {
            let parsed = parse(line).unwrap_or_else(|| panic!("not a line of the table: {line}"));
            assert!(parsed.help.ends_with('.') && parsed.help.len() > 10, "{line}");
        }
    }
}
