//! Writes a long recording of a simulated machine as fast as possible:
//! `long SERIES ROWS INTERVAL_MS OUT [STARTED_S]`.
//!
//! Most series are constant, some count now and then, some are random walks. `test.row` is the number of the
//! sample modulo 1,000, `test.spike` is 0 except for single samples. Labels `phase 0` to `phase 3` cut it
//! into quarters. The positions that a test needs are printed as JSON.
#![allow(clippy::print_stdout)]

use numakit_model::{Instance, Kind, Metric, Scope, Series, Unit};
use numakit_recording::{Header, Recorder, Ring};
use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const SECOND: u64 = 1_000_000_000;
const STARTED_S: u64 = 1_700_000_000;
const SPIKES: u64 = 5;
/// Each begins with a label.
const PHASES: u64 = 4;
/// Series of real machines, for the default panels of the page.
const REAL: [(&str, Unit, Kind); 6] = [
    ("vmstat.pgfault", Unit::Count, Kind::COUNTER),
    ("vmstat.pgmajfault", Unit::Count, Kind::COUNTER),
    ("vmstat.pgmigrate_success", Unit::Pages, Kind::COUNTER),
    ("vmstat.numa_local", Unit::Count, Kind::COUNTER),
    ("vmstat.numa_other", Unit::Count, Kind::COUNTER),
    ("vmstat.nr_free_pages", Unit::Pages, Kind::Gauge),
];

/// How a series changes.
#[derive(Clone, Copy, PartialEq)]
enum Course {
    Row,
    Spike,
    Still,
    Counts,
    Walks,
}

/// The recording to write.
struct Plan {
    list: Vec<(Series, Course)>,
    rows: u64,
    interval: u64,
    started: u64,
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [series, rows, interval, out, more @ ..] = words.as_slice() else {
        return Err("usage: long SERIES ROWS INTERVAL_MS OUT [STARTED_S]".into());
    };
    let plan = Plan {
        list: series_list(series.parse()?),
        rows: rows.parse()?,
        interval: interval.parse::<u64>()? * 1_000_000,
        started: more.first().map_or(Ok(STARTED_S), |s| s.parse())? * SECOND,
    };
    write(Path::new(out), &plan)?;
    let spikes: Vec<String> = (0..SPIKES).map(|k| spike_row(k, plan.rows).to_string()).collect();
    println!(
        "{{\"started_ns\": {}, \"interval_ns\": {}, \"rows\": {}, \"spikes\": [{}]}}",
        plan.started,
        plan.interval,
        plan.rows,
        spikes.join(", ")
    );
    Ok(())
}

fn series_list(count: usize) -> Vec<(Series, Course)> {
    let series = |name: &str, unit, kind| {
        let metric = Metric {
            name: name.to_owned(),
            unit,
            kind,
            scope: Scope::Machine,
            help: "Generated.".into(),
            source: "generated".into(),
            confidence: None,
            maximum: None,
            resolution: Duration::ZERO,
        };
        Series::new(&Arc::new(metric), Instance::Machine)
    };
    let mut list = vec![
        (series("test.row", Unit::Count, Kind::Gauge), Course::Row),
        (series("test.spike", Unit::Count, Kind::Gauge), Course::Spike),
    ];
    for (name, unit, kind) in REAL {
        list.push((
            series(name, unit, kind),
            if kind == Kind::Gauge { Course::Walks } else { Course::Counts },
        ));
    }
    for number in list.len()..count {
        let (word, kind, course) = match number % 15 {
            0..10 => ("still", Kind::COUNTER, Course::Still),
            10..14 => ("counts", Kind::COUNTER, Course::Counts),
            _ => ("walks", Kind::Gauge, Course::Walks),
        };
        list.push((series(&format!("test.{word}{number}"), Unit::Count, kind), course));
    }
    list
}

/// Spikes are far from each other, and not at round numbers.
fn spike_row(number: u64, rows: u64) -> u64 {
    (rows * (2 * number + 1) / (2 * SPIKES) + 7 * number).min(rows.saturating_sub(1))
}

fn write(out: &Path, plan: &Plan) -> Result<(), Box<dyn Error>> {
    let header = Header {
        series: plan.list.iter().map(|(series, _)| series.clone()).collect(),
        host: "simulated".into(),
        program: "long".into(),
        started: plan.started,
        interval: plan.interval,
        page_size: 4096,
        ..Header::default()
    };
    let recorder = Recorder::create(out, &header, true)?;
    let mut row = vec![Some(1_000_000); plan.list.len()];
    let mut state = 88_172_645_463_325_252u64;
    for number in 0..plan.rows {
        let time = plan.started + number * plan.interval;
        let spike = (0..SPIKES).find(|k| spike_row(*k, plan.rows) == number);
        if let Some(phase) = (0..PHASES).find(|p| p * plan.rows / PHASES == number) {
            push_label(recorder.ring(), time, &format!("phase {phase}"));
        }
        for ((_, course), slot) in plan.list.iter().zip(&mut row) {
            let before = slot.unwrap_or_default();
            *slot = Some(match course {
                Course::Row => number % 1000,
                Course::Spike => spike.map_or(0, |spike| 1000 + spike),
                Course::Still => before,
                Course::Counts if random(&mut state).is_multiple_of(16) => before + (state >> 54),
                Course::Counts => before,
                Course::Walks => (before + random(&mut state) % 201).saturating_sub(100),
            });
        }
        // Like real samples, they are slightly late.
        push(recorder.ring(), time + number * 7919 % 20_011, &row);
    }
    recorder.finish()?;
    Ok(())
}

fn push(ring: &Ring, time: u64, row: &[Option<u64>]) {
    loop {
        ring.push(time, 0, row);
        if ring.take_dropped() == 0 {
            return;
        }
        std::thread::sleep(Duration::from_micros(200));
    }
}

fn push_label(ring: &Ring, time: u64, text: &str) {
    while !ring.push_label(time, text) {
        std::thread::sleep(Duration::from_micros(200));
    }
}

fn random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}
