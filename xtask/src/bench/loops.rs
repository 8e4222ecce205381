//! What `libnumasched.so` costs OpenMP loops of two members: a chunk, a loop, and work that needs no balancing. The floor is the
//! same program with `schedule(static)`, which asks nobody.

use super::floor;
use super::results::Results;
use super::statistics::{median, pairs};
use crate::process::{self, Figures};
use crate::workspace;
use anyhow::Result;
use std::path::{Path, PathBuf};
use std::process::Command;

const PAIRS: usize = 11;

fn library() -> Result<PathBuf> {
    let built = workspace::target().join("bench/native");
    let mut make = Command::new("make");
    make.arg("-s")
        .arg("-C")
        .arg(workspace::root().join("native"))
        .arg(format!("OUT={}", built.display()))
        .arg("CFLAGS=-O2");
    process::run(make.arg(built.join("libnumasched.so")))?;
    Ok(built.join("libnumasched.so"))
}

/// Nanoseconds of a kind of work. Members that wait must not sleep, or the kernel's wake-ups are measured.
fn measured(program: &Path, kind: &str, library: Option<&Path>) -> Result<f64> {
    let mut command = Command::new(program);
    command.args([kind, if library.is_some() { "runtime" } else { "static" }]);
    command.env("OMP_PROC_BIND", "true").env("OMP_WAIT_POLICY", "active").env("OMP_SCHEDULE", "dynamic");
    if let Some(library) = library {
        command.env("LD_PRELOAD", library);
    }
    Figures::of(&mut command)?.get("ns")
}

pub fn run(results: &mut Results) -> Result<()> {
    let program = floor::build()?.join("loops");
    let library = library()?;
    let adaptive = |kind: &str| measured(&program, kind, Some(&library));
    let of_pairs = |kind: &str| pairs(PAIRS, || adaptive(kind), || measured(&program, kind, None));
    let chunks = (0..PAIRS).map(|_| adaptive("chunk")).collect::<Result<Vec<f64>>>()?;
    results.at_most("a chunk of the own share", median(chunks), "ns", 25.0)?;
    let loops = of_pairs("loop")?;
    let more = median(loops.iter().map(|(adaptive, fixed)| adaptive - fixed));
    results.at_most("a loop, more than static", more, "ns", 300.0)?;
    results.ratio("iterations of 100 ns, by static", &of_pairs("uniform")?, "ns", 1.01)?;
    let fine = of_pairs("fine")?;
    results.show("iterations of 1 ns, by static", median(fine.iter().map(|(ours, fixed)| ours / fixed)), "x")
}
