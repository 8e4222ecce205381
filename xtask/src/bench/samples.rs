//! What samples of instructions cost: the observed program at 199 Hz, and the observer for each sample.

use super::floor;
use super::results::Results;
use super::statistics::{median, pairs};
use crate::build;
use crate::process::Figures;
use anyhow::Result;
use std::path::PathBuf;
use std::process::Command;

const MORE_PAIRS: usize = 9;
/// Some seconds of one thread.
const MILLIONS_OF_STEPS: &str = "1500";
/// The rate of the cost for a sample: high enough that the samples are most of the observer's work.
const OFTEN: &str = "4000";

/// More than are executed before the program is stopped.
const MANY_STEPS: &str = "100000";
/// Loads that depend on one another, through an interpreter.
const COUNTING: &str = "d = {}\nfor i in range(10 ** 9): d[i % 100003] = d.get(i % 1000, 0) + 1";
/// For each way of decoding, in us.
const MAX_DECODING: f64 = 2.0;

/// Methods with the limits of what they may cost the program, in percent.
const ROADS: [(&str, f64); 2] = [("perf", 0.5), ("ptrace", 3.0)];

pub fn run(results: &mut Results) -> Result<()> {
    let program = floor::build()?.join("compute");
    let observe = observer()?;
    let with = |method: &str, frequency: &str, threads: &str| {
        let mut command = Command::new(&observe);
        Figures::of(command.args([method, frequency]).arg(&program).args([threads, MILLIONS_OF_STEPS]))
    };
    for (method, limit) in ROADS {
        if with(method, "199", "1").is_err() {
            results.say(&format!("{method} is not permitted here: skipped"));
            continue;
        }
        // One thread, so that the observer has a CPU of its own.
        let measured = pairs(MORE_PAIRS, || with(method, "199", "1"), || with("none", "199", "1"))?;
        let slower = |(with, without): &(Figures, Figures)| -> Result<f64> {
            Ok((with.get("seconds")? / without.get("seconds")? - 1.0) * 100.0)
        };
        let slower: Result<Vec<f64>> = measured.iter().map(slower).collect();
        results.at_most(&format!("slowdown by {method} at 199 Hz"), median(slower?), "%", limit)?;
        let rate = |(with, _): &(Figures, Figures)| -> Result<f64> {
            Ok(with.get("samples")? / with.get("seconds")?)
        };
        let rates: Result<Vec<f64>> = measured.iter().map(rate).collect();
        results.show(&format!("samples of {method} per second"), median(rates?), "Hz")?;
    }
    cost_of_a_sample(results, &with)?;
    cost_of_decoding(results)
}

/// What it takes to find the operands of a sample in code that is known: the one that it waited for, and those ahead. What is
/// read of the program's memory is a system call each, which the kernel and the machine make more or less expensive.
fn cost_of_decoding(results: &mut Results) -> Result<()> {
    let compute = floor::build()?.join("compute");
    let programs: [(&str, PathBuf, &[&str]); 2] =
        [("C", compute, &["1", MANY_STEPS]), ("Python", PathBuf::from("python3"), &["-c", COUNTING])];
    let decoding = build::example("decoding")?;
    for (name, program, arguments) in programs {
        let Ok(figures) = Figures::of(Command::new(&decoding).arg(program).args(arguments)) else {
            results.say(&format!("perf is not permitted here, or there is no {name}: skipped"));
            continue;
        };
        for (what, prefix) in [("the operand of a sample", "recover"), ("the operands ahead", "ahead")] {
            let cost = figures.get(&format!("{prefix}_us"))?;
            results.at_most(&format!("{what}, {name}"), cost, "us", MAX_DECODING)?;
            results.show(
                &format!("{what}, {name}, with reads"),
                figures.get(&format!("{prefix}_reading_us"))?,
                "us",
            )?;
            results.show(
                &format!("reads for {what}, {name}"),
                figures.get(&format!("{prefix}_reads"))?,
                "",
            )?;
        }
    }
    Ok(())
}

/// The observer's CPU time for a sample by performance events, without what it spends in waking up.
fn cost_of_a_sample(results: &mut Results, with: &dyn Fn(&str, &str, &str) -> Result<Figures>) -> Result<()> {
    if with("perf", OFTEN, "1").is_err() {
        return Ok(());
    }
    let measured = pairs(MORE_PAIRS / 2, || with("perf", OFTEN, "1"), || with("none", OFTEN, "1"))?;
    let each = |(with, without): &(Figures, Figures)| -> Result<f64> {
        let idle = without.get("observer_us")? * with.get("seconds")? / without.get("seconds")?;
        Ok((with.get("observer_us")? - idle) / with.get("samples")?)
    };
    let costs: Result<Vec<f64>> = measured.iter().map(each).collect();
    results.at_most("observer for a sample of perf", median(costs?), "us", 2.0)
}

/// Builds the example that takes samples.
fn observer() -> Result<PathBuf> {
    build::example("observe")
}
