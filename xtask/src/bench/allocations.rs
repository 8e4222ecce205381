//! What the log of allocations costs the program: for a block below the threshold, for one that is sampled, and for one
//! above it. The floor is the same program without the library.

use super::floor;
use super::results::Results;
use super::statistics::{median, pairs};
use crate::build;
use crate::process::Figures;
use anyhow::Result;
use std::path::PathBuf;
use std::process::Command;

const PAIRS: usize = 11;
const SMALL: &str = "64";
const LARGE: &str = "70000";
/// ns for a call below the threshold.
const LIMIT: f64 = 5.0;
/// ns for a block that is logged when it is allocated and when it is freed.
const LOGGED_LIMIT: f64 = 1900.0;

/// What is measured: the name, the size of the block, the number of pairs, and of how many bytes one is a sample.
const LOGGED: [(&str, &str, &str, &str); 2] =
    [("a large block, logged", LARGE, "200000", "0"), ("a small block, each sampled", SMALL, "200000", "1")];

pub fn run(results: &mut Results) -> Result<()> {
    let program = floor::build()?.join("allocations");
    let logged = logger()?;
    let plain = |size: &str, count: &str| Figures::of(Command::new(&program).args([size, count]));
    let with = |size: &str, count: &str, period: &str| {
        Figures::of(Command::new(&logged).args(["65536", period]).arg(&program).args([size, count]))
    };
    let more = |measured: &[(Figures, Figures)]| -> Result<f64> {
        let each = |(with, without): &(Figures, Figures)| -> Result<f64> {
            Ok(with.get("ns_of_a_pair")? - without.get("ns_of_a_pair")?)
        };
        let all: Result<Vec<f64>> = measured.iter().map(each).collect();
        Ok(median(all?))
    };
    let count = "20000000";
    for (what, period) in [("without samples", "0"), ("with samples", "524288")] {
        let measured = pairs(PAIRS, || with(SMALL, count, period), || plain(SMALL, count))?;
        let name = format!("a call below the threshold, {what}");
        results.at_most(&name, more(&measured)? / 2.0, "ns", LIMIT)?;
    }
    for (name, size, count, period) in LOGGED {
        let measured = pairs(PAIRS, || with(size, count, period), || plain(size, count))?;
        results.at_most(name, more(&measured)?, "ns", LOGGED_LIMIT)?;
        let lost: Result<Vec<f64>> = measured.iter().map(|(with, _)| with.get("lost_percent")).collect();
        results.show(&format!("{name}, lost"), median(lost?), "%")?;
    }
    Ok(())
}

/// The program that runs another one with its allocations logged.
fn logger() -> Result<PathBuf> {
    build::example("logged")
}
