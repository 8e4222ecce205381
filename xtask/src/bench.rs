//! `cargo xtask bench`: one file per benchmark. Each compares with a lower bound in C or another
//! program that is measured in the same run.

mod alloc;
mod allocations;
mod apply;
mod faults;
pub mod floor;
mod guest;
mod live;
mod load;
mod loops;
mod machine;
mod measured;
mod memory;
mod models;
mod page;
mod pages;
mod peers_of_memory;
mod perf;
mod placing;
mod planning;
mod ranks;
mod recorder;
mod reports;
mod results;
mod sampler;
mod samples;
mod scale;
mod serve;
mod served;
mod size;
mod slowdown;
mod stalls;
mod start;
mod statistics;
mod threads;
mod timers;
mod top;
mod tune;
mod verdicts;

use crate::build;
use anyhow::{Result, bail};
use results::Results;
use std::process::ExitCode;

struct Benchmark {
    name: &'static str,
    question: &'static str,
    run: fn(&mut Results) -> Result<()>,
}

/// Those of libraries, without numa as it is installed: a library is measured often while it is changed.
const ALLOC: &str = "alloc";
const APPLY: &str = "apply";
const LOOPS: &str = "loops";
const RANKS: &str = "ranks";
/// Not among all: it takes minutes for each program. Words behind it are names of programs.
const TUNE: &str = "tune";

const BENCHMARKS: &[Benchmark] = &[
    Benchmark {
        name: "sampler",
        question: "what a sample costs at 1 kHz, and whether 1 kHz is held",
        run: sampler::run,
    },
    Benchmark { name: "size", question: "how large a recording is", run: size::run },
    Benchmark {
        name: "reports",
        question: "how long the report of half an hour at 1 kHz takes",
        run: reports::run,
    },
    Benchmark { name: "start", question: "how long until the first sample", run: start::run },
    Benchmark { name: "memory", question: "how much memory recording takes", run: memory::run },
    Benchmark { name: "perf", question: "the cost of counting with perf", run: perf::run },
    Benchmark { name: "scale", question: "a simulated machine of 128 nodes and 4,096 CPUs", run: scale::run },
    Benchmark { name: "top", question: "the cost of numa top with 32 nodes and 1,024 CPUs", run: top::run },
    Benchmark { name: "slowdown", question: "how much a recording slows down a program", run: slowdown::run },
    Benchmark {
        name: "samples",
        question: "what samples of instructions cost the program and the observer",
        run: samples::run,
    },
    Benchmark {
        name: "stalls",
        question: "how long a recording stops a large program that maps memory, and how soon many have values",
        run: stalls::run,
    },
    Benchmark {
        name: "guest",
        question: "how long a NUMA guest takes to start, what simulating costs, which cache lines a launch moves",
        run: guest::run,
    },
    Benchmark { name: "threads", question: "the cost of creating a placed thread", run: threads::run },
    Benchmark {
        name: "allocations",
        question: "what the log of allocations costs for each block",
        run: allocations::run,
    },
    Benchmark {
        name: ALLOC,
        question: "CPU time and memory with our malloc, with glibc's and with others",
        run: alloc::run,
    },
    Benchmark { name: LOOPS, question: "what adaptive OpenMP loops cost", run: loops::run },
    Benchmark {
        name: RANKS,
        question: "what the report on MPI programs costs a call, and a program",
        run: ranks::run,
    },
    Benchmark { name: APPLY, question: "what a block costs under a cure", run: apply::run },
    Benchmark {
        name: "faults",
        question: "how much a program slows down whose page faults are observed",
        run: faults::run,
    },
    Benchmark {
        name: "pages",
        question: "what memory costs that is fresh, dropped, free for the kernel to take, or kept",
        run: pages::run,
    },
    Benchmark {
        name: "measured",
        question: "how near numa bench is to loops in C, likwid-bench, stress-ng and hpcc on the same memory",
        run: measured::run,
    },
    Benchmark {
        name: "timers",
        question: "how much a program slows down whose threads are sampled from within",
        run: timers::run,
    },
    Benchmark {
        name: "verdicts",
        question: "what the remedies of numa explain gain, beside what they are said to be worth",
        run: verdicts::run,
    },
    Benchmark {
        name: "models",
        question: "how many lines of a language model are far before and after numa file spread --by-use",
        run: models::run,
    },
    Benchmark {
        name: "serve",
        question: "the cost of numa serve, and the time of a scrape, beside node_exporter",
        run: serve::run,
    },
    Benchmark {
        name: "load",
        question: "a thousand hosts that push a row each second into each engine",
        run: load::run,
    },
    Benchmark { name: "live", question: "the cost of serving the page, and its latency", run: live::run },
    Benchmark {
        name: "page",
        question: "the cost of an update of the page, compared with Plotly",
        run: page::run,
    },
    Benchmark { name: "placing", question: "how much later a placed program starts", run: placing::run },
    Benchmark {
        name: "planning",
        question: "how long plans for 10,000 cores take, how trees grow",
        run: planning::run,
    },
];

/// Runs the given benchmarks, or all but `tune`; exit status 1 if a limit is exceeded.
pub fn run(words: &[String]) -> Result<ExitCode> {
    if let Some((TUNE, programs)) = words.split_first().map(|(first, rest)| (first.as_str(), rest)) {
        let programs = tune::chosen(programs)?;
        let mut results = Results::open()?;
        results.begin(TUNE, tune::QUESTION)?;
        tune::run(&mut results, &programs)?;
        return Ok(results.end());
    }
    let known: Vec<&str> = BENCHMARKS.iter().map(|b| b.name).collect();
    if let Some(word) = words.iter().find(|word| !known.contains(&word.as_str())) {
        bail!("no benchmark '{word}'; there are: {}, and {TUNE}", known.join(", "));
    }
    if words.iter().any(|word| ![ALLOC, APPLY, LOOPS, RANKS].contains(&word.as_str())) || words.is_empty() {
        build::released()?;
    }
    let mut results = Results::open()?;
    for benchmark in BENCHMARKS.iter().filter(|b| words.is_empty() || words.iter().any(|w| w == b.name)) {
        results.begin(benchmark.name, benchmark.question)?;
        (benchmark.run)(&mut results)?;
    }
    Ok(results.end())
}
