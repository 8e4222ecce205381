//! What `libnumaapply.so` costs a block: one that no object of the cure has, one of a pool, and large ones whose object is
//! known by the direct caller or by two callers; and what it saves two threads that count in blocks of one cache line. The floor is the same
//! program without the library.

use super::floor;
use super::results::Results;
use super::statistics::{median, pairs};
use crate::process::{self, Figures};
use crate::workspace;
use anyhow::Result;
use std::process::Command;

const PAIRS: usize = 11;
/// The part of the CPU time of contended counters that is left where they are padded, on two quiet CPUs.
const PADDED: f64 = 0.5;

/// What is measured: the name, the kind, the number of pairs, and how many ns more a pair may take.
const KINDS: [(&str, &str, &str, f64); 5] = [
    ("a small block that no object has", "other", "20000000", 3.0),
    ("a small block near its user", "near", "20000000", 10.0),
    ("a small padded block", "padded", "20000000", 10.0),
    ("a large block, known by its caller", "large", "2000000", 50.0),
    ("a large block, known by two callers", "chain", "2000000", 2000.0),
];

pub fn run(results: &mut Results) -> Result<()> {
    let program = floor::build()?.join("cured");
    let built = workspace::target().join("bench/native");
    let mut make = Command::new("make");
    make.arg("-s")
        .arg("-C")
        .arg(workspace::root().join("native"))
        .arg(format!("OUT={}", built.display()))
        .arg("CFLAGS=-O2");
    process::run(make.arg(built.join("libnumaapply.so")))?;
    let library = built.join("libnumaapply.so");
    let measured = |kind: &str, count: &str| -> Result<Vec<(f64, f64)>> {
        let with = || Figures::of(Command::new(&program).args([kind, count]).arg(&library));
        let plain = || Figures::of(Command::new(&program).args([kind, count]));
        let measured = pairs(PAIRS, with, plain)?;
        measured
            .iter()
            .map(|(with, plain)| Ok((with.get("ns_of_a_pair")?, plain.get("ns_of_a_pair")?)))
            .collect()
    };
    let ratio = |values: &[(f64, f64)]| median(values.iter().map(|(with, plain)| with / plain));
    for (name, kind, count, limit) in KINDS {
        let values = measured(kind, count)?;
        results.at_most(name, median(values.iter().map(|(with, plain)| with - plain)), "ns more", limit)?;
        results.show(&format!("{name}, ratio"), ratio(&values), "x")?;
    }
    let contended = measured("contended", "20000000")?;
    results.at_most("counters of one line, padded, ratio", ratio(&contended), "x", PADDED)
}
