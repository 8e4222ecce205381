//! `cargo xtask bench`: one file per benchmark. Each compares with a floor or a peer that is
//! measured in the same run.

pub mod floor;
mod guest;
mod live;
mod machine;
mod memory;
mod page;
mod perf;
mod placing;
mod planning;
mod recorder;
mod results;
mod sampler;
mod scale;
mod served;
mod size;
mod slowdown;
mod stalls;
mod start;
mod statistics;
mod threads;

use crate::build;
use anyhow::{Result, bail};
use results::Results;
use std::process::ExitCode;

struct Benchmark {
    name: &'static str,
    question: &'static str,
    run: fn(&mut Results) -> Result<()>,
}

const BENCHMARKS: &[Benchmark] = &[
    Benchmark {
        name: "sampler",
        question: "what a sample costs at 1 kHz, and whether 1 kHz is held",
        run: sampler::run,
    },
    Benchmark { name: "size", question: "how large a recording is", run: size::run },
    Benchmark { name: "start", question: "how long until the first sample", run: start::run },
    Benchmark { name: "memory", question: "how much memory recording takes", run: memory::run },
    Benchmark { name: "perf", question: "what counting with perf costs", run: perf::run },
    Benchmark { name: "scale", question: "128 nodes and 4,096 CPUs, fabricated", run: scale::run },
    Benchmark {
        name: "slowdown",
        question: "what a recording costs the program beside it",
        run: slowdown::run,
    },
    Benchmark {
        name: "stalls",
        question: "how long a recording stops a large program that maps memory, and how soon it sees many",
        run: stalls::run,
    },
    Benchmark {
        name: "guest",
        question: "how long a NUMA guest takes to start, what simulating costs, which lines a launch takes",
        run: guest::run,
    },
    Benchmark {
        name: "threads",
        question: "what it costs to create a thread that is placed",
        run: threads::run,
    },
    Benchmark { name: "live", question: "what serving the page costs, and how late it is", run: live::run },
    Benchmark { name: "page", question: "what an update of the page costs, beside Plotly", run: page::run },
    Benchmark { name: "placing", question: "how much later a placed program starts", run: placing::run },
    Benchmark {
        name: "planning",
        question: "how long plans for 10,000 cores take, how trees grow",
        run: planning::run,
    },
];

/// Runs the benchmarks that are named, or all; exit status 1 if a limit is missed.
pub fn run(words: &[String]) -> Result<ExitCode> {
    let known: Vec<&str> = BENCHMARKS.iter().map(|b| b.name).collect();
    if let Some(word) = words.iter().find(|word| !known.contains(&word.as_str())) {
        bail!("no benchmark '{word}'; there are: {}", known.join(", "));
    }
    build::everything()?;
    let mut results = Results::open()?;
    for benchmark in BENCHMARKS.iter().filter(|b| words.is_empty() || words.iter().any(|w| w == b.name)) {
        results.begin(benchmark.name, benchmark.question)?;
        (benchmark.run)(&mut results)?;
    }
    Ok(results.end())
}
