//! What a read of each sensor costs, compared with a plain read of the same files.
//!
//! `cargo run --release -p numakit-sensors --example cost [DIR|ARCHIVE]`
#![allow(clippy::print_stdout)]

use numakit_model::Topology;
use numakit_model::topology::Node;
use numakit_sensors::{Probe, Scene, Tick};
use numakit_sys::{SysRoot, clock};
use std::hint::black_box;

// Reads per block, for sensors with few files and with many.
const ROUNDS: [usize; 2] = [2000, 20];
const BLOCKS: usize = 15;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let root = match std::env::args_os().nth(1) {
        Some(path) => SysRoot::open(path.as_ref())?,
        None => SysRoot::host(),
    };
    let nodes = root.list("/sys/devices/system/node").unwrap_or_default();
    let numbers = nodes.iter().filter_map(|n| n.strip_prefix("node")?.parse().ok());
    let nodes: Vec<Node> = numbers.map(|os_index| Node { os_index, ..Node::default() }).collect();
    let topology = Topology { nodes, ..Topology::default() };
    println!(
        "{:<10} {:>7} {:>6} {:>10} {:>10} {:>6}",
        "sensor", "series", "files", "bare ns", "read ns", "ratio"
    );
    for mut sensor in Probe::new(&Scene::new(&root, &topology)).sensors {
        let name = sensor.series().first().map(|s| s.metric.sensor().to_owned()).unwrap_or_default();
        let mut files: Vec<_> = paths(&name, &topology).iter().filter_map(|p| root.source(p).ok()).collect();
        let mut buffer = Vec::new();
        let mut out = vec![None; sensor.series().len()];
        let rounds = ROUNDS[usize::from(files.len() > 20)];
        let (mut bare, mut read) = (Vec::new(), Vec::new());
        for _ in 0..BLOCKS {
            bare.push(time(rounds, || files.iter_mut().for_each(|f| _ = black_box(f.read(&mut buffer)))));
            read.push(time(rounds, || sensor.read(&Tick::default(), black_box(&mut out))));
        }
        let (bare, read) = (median(bare), median(read));
        let ratio = if bare > 0 { format!("{:.2}", read as f64 / bare as f64) } else { "-".to_owned() };
        println!("{name:<10} {:>7} {:>6} {bare:>10} {read:>10} {ratio:>6}", out.len(), files.len());
    }
    Ok(())
}

/// The files that a sensor reads.
fn paths(sensor: &str, topology: &Topology) -> Vec<String> {
    match sensor {
        "vmstat" => vec!["/proc/vmstat".to_owned()],
        "cpu" => vec!["/proc/stat".to_owned()],
        "pressure" => ["cpu", "memory", "io", "irq"].map(|f| format!("/proc/pressure/{f}")).to_vec(),
        "node" => topology
            .nodes
            .iter()
            .flat_map(|n| ["numastat", "vmstat", "meminfo"].map(|f| (n.os_index, f)))
            .map(|(n, f)| format!("/sys/devices/system/node/node{n}/{f}"))
            .collect(),
        _ => Vec::new(),
    }
}

/// Nanoseconds per call.
fn time(rounds: usize, mut call: impl FnMut()) -> u64 {
    let start = clock::monotonic();
    for _ in 0..rounds {
        call();
    }
    (clock::monotonic() - start) / rounds as u64
}

fn median(mut values: Vec<u64>) -> u64 {
    values.sort_unstable();
    values[values.len() / 2]
}
