//! A simulated machine of 128 nodes and 4,096 CPUs on tmpfs: reading its topology, compared with a bare
//! C loop over the same files, and recording all its node series at 10 Hz.

use super::floor;
use super::machine::Machine;
use super::recorder::Recording;
use super::results::Results;
use super::statistics::{PAIRS, pairs};
use crate::process::Figures;
use anyhow::Result;
use std::fs::File;

const NODES: u32 = 128;
/// With caches, like every machine of this size.
const SYNTHETIC: &str = "package:128 node:1 l3:2 l2:8 core:1 pu:2 numbering=sequential";
/// Lines per node in the padded case, three of which are not series: 32,000 series in all.
const PADDED: usize = 253;

pub fn run(results: &mut Results) -> Result<()> {
    let machine = Machine::generate(SYNTHETIC, NODES)?;
    topology(results, &machine)?;
    record(results, &machine, "node series of this kernel")?;
    machine.pad(PADDED)?;
    record(results, &machine, "padded node series")
}

fn topology(results: &mut Results, machine: &Machine) -> Result<()> {
    let list = machine.list_files()?;
    let measured = pairs(
        PAIRS,
        || machine.read_time(),
        || Figures::of(floor::program("floor_topology")?.stdin(File::open(&list)?)),
    )?;
    let times: Result<Vec<_>> =
        measured.iter().map(|(ours, floor)| Ok((ours / 1e3, floor.get("seconds")? * 1e3))).collect();
    results.show("files that the topology reads", measured[0].1.get("files")?, "")?;
    results.ratio("reading the topology", &times?, "ms", 1.5)
}

fn record(results: &mut Results, machine: &Machine, name: &str) -> Result<()> {
    let root = machine.dir().to_string_lossy().into_owned();
    let figures = Recording::new("-i 100ms -e node*", 20.0).with(&["--sysroot", &root]).make()?;
    results.show(&format!("{name}: series"), figures.get("series")?, "")?;
    results.at_most(&format!("{name}: lost ticks in 20 s"), figures.get("lost")?, "", 0.0)?;
    results.show(&format!("{name}: CPU per sample"), figures.get("process_us")? / 1e3, "ms")?;
    results.at_most(&format!("{name}: RSS"), figures.get("rss_kib")? / 1024.0, "MiB", 120.0)
}
