//! Writes a recording of a program whose memory is all on node 0, and from the middle on that of each thread's own
//! node: `pairs time|pages OUT`. Threads on the CPUs of four nodes use equally much; node N has the number 2 N.
#![allow(clippy::print_stdout)]

use numakit_model::topology::{Distances, Node};
use numakit_model::{CpuSet, Instance, Kind, Metric, Scope, Series, Topology, Unit};
use numakit_recording::{Header, Recorder};
use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const NODES: [u32; 4] = [0, 2, 4, 6];
const STARTED: u64 = 1_700_000_000_000_000_000;
const INTERVAL: u64 = 100_000_000;
const ROWS: u64 = 200;
/// Of an interval, the time that the threads of a node wait for memory, in ns.
const WAITS: u64 = INTERVAL / 2;
/// Pages that they use in an interval.
const PAGES: u64 = 30;

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let (is_time, out) = match words.as_slice() {
        [kind, out] if kind == "time" => (true, out),
        [kind, out] if kind == "pages" => (false, out),
        _ => return Err("usage: pairs time|pages OUT".into()),
    };
    let header = Header {
        topology: Some(topology()),
        series: series_list(is_time),
        host: "simulated".into(),
        program: "pairs".into(),
        started: STARTED,
        interval: INTERVAL,
        page_size: 4096,
        ..Header::default()
    };
    write(Path::new(out), &header, if is_time { WAITS } else { PAGES })?;
    println!("{{\"started_ns\": {STARTED}, \"interval_ns\": {INTERVAL}, \"rows\": {ROWS}}}");
    Ok(())
}

fn topology() -> Topology {
    let node = |(at, os_index): (usize, &u32)| Node {
        os_index: *os_index,
        cpus: CpuSet::range(at as u32 * 4, at as u32 * 4 + 3),
        ..Node::default()
    };
    let distance = |a: u32, b: u32| if a == b { 10 } else { 21 };
    let rows = NODES.iter().map(|a| NODES.iter().map(|b| distance(*a, *b)).collect()).collect();
    Topology {
        nodes: NODES.iter().enumerate().map(node).collect(),
        distances: Some(Distances { nodes: NODES.to_vec(), rows }),
        ..Topology::default()
    }
}

/// The pairs of nodes, row by row, then what is counted by node: near, far, observations or samples.
fn series_list(is_time: bool) -> Vec<Series> {
    let metric = |name: &str, unit, scope| {
        Arc::new(Metric {
            name: name.to_owned(),
            unit,
            kind: Kind::COUNTER,
            scope,
            help: "Generated.".into(),
            source: "generated".into(),
            confidence: None,
            maximum: None,
            resolution: Duration::ZERO,
        })
    };
    let of_pairs = match is_time {
        true => metric("access.memory", Unit::Nanoseconds, Scope::Pair),
        false => metric("access.pages", Unit::Count, Scope::Pair),
    };
    let pairs = NODES.iter().flat_map(|cpu| NODES.iter().map(|memory| Instance::Pair(*cpu, *memory)));
    let mut list: Vec<Series> = pairs.map(|pair| Series::new(&of_pairs, pair)).collect();
    let of_nodes = match is_time {
        true => [
            ("access.near", Unit::Nanoseconds),
            ("access.far", Unit::Nanoseconds),
            ("access.clusters", Unit::Count),
        ],
        false => [
            ("access.pages_near", Unit::Count),
            ("access.pages_far", Unit::Count),
            ("access.samples", Unit::Count),
        ],
    };
    for (name, unit) in of_nodes {
        let counted = metric(name, unit, Scope::Node);
        list.extend(NODES.iter().map(|node| Series::new(&counted, Instance::Node(*node))));
    }
    list
}

fn write(out: &Path, header: &Header, step: u64) -> Result<(), Box<dyn Error>> {
    let recorder = Recorder::create(out, header, true)?;
    let mut row = vec![0u64; header.series.len()];
    for number in 0..ROWS {
        let values: Vec<Option<u64>> = row.iter().map(|value| Some(*value)).collect();
        recorder.ring().push(STARTED + number * INTERVAL, 0, &values);
        for node in 0..NODES.len() {
            let memory = if number < ROWS / 2 { 0 } else { node };
            let of_nodes = |at: usize| (NODES.len() + at) * NODES.len() + node;
            row[node * NODES.len() + memory] += step;
            row[of_nodes(usize::from(memory != node))] += step;
            row[of_nodes(2)] += 1;
        }
    }
    if recorder.ring().take_dropped() > 0 {
        return Err("the ring buffer is too small".into());
    }
    recorder.finish()?;
    Ok(())
}
