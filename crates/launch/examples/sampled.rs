//! `sampled RATE PROGRAM [WORD...]`: runs a program with its threads sampled, and prints on standard error what came: a
//! line of counts, then the processes. `--chain` instead of a program shows where samples of a chain of loads land.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use numakit_launch::preload::Library;
use numakit_sys::clock;
use numakit_sys::sample_ring::{CHAIN, ChainLoop, RingSample, SampleRing, SampledProcess};
use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitCode};

/// Milliseconds between drains.
const DRAIN: u64 = 5;

#[derive(Default)]
struct Seen {
    count: u64,
    cpu_time: u64,
    faults: u64,
    threads: BTreeSet<u32>,
    without_stack: u64,
    places: Vec<u64>,
}

impl Seen {
    fn take(&mut self, sample: &RingSample) {
        self.count += 1;
        self.cpu_time += sample.cpu_time.unwrap_or(0);
        self.faults += u64::from(sample.faults.unwrap_or(0));
        self.threads.insert(sample.thread);
        self.without_stack += u64::from(sample.stack().is_empty());
        self.places.push(sample.ip);
    }
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [rate, program, rest @ ..] = words.as_slice() else { return Err("sampled RATE PROGRAM...".into()) };
    let mut ring = SampleRing::create(4096)?;
    let mut command = Command::new(if program == "--chain" { "true" } else { program });
    command.args(rest).envs(ring.environment(rate.parse()?));
    let mut preload = Library::Explain.extract()?.into_os_string();
    if let Some(others) = std::env::var_os("LD_PRELOAD") {
        preload.push(":");
        preload.push(others);
    }
    command.env("LD_PRELOAD", preload);
    if program == "--chain" {
        command.env(CHAIN, "1000");
    }
    let mut child = command.spawn()?;
    let (mut seen, mut processes) = (Seen::default(), BTreeMap::<(u32, u64), SampledProcess>::new());
    let status = loop {
        let ended = child.try_wait()?;
        ring.drain(&mut |sample| seen.take(sample));
        for process in ring.processes() {
            processes.insert((process.process, process.since), process);
        }
        match ended {
            Some(status) => break status,
            None => ring.wait(clock::monotonic() + DRAIN * 1_000_000),
        }
    };
    eprintln!(
        "samples {} cpu_ms {:.1} faults {} threads {} without_stack {} {:?} {:?}",
        seen.count,
        seen.cpu_time as f64 / 1e6,
        seen.faults,
        seen.threads.len(),
        seen.without_stack,
        ring.losses(),
        ring.counts()
    );
    if std::env::var_os("SAMPLED_PROCESSES").is_some() {
        processes.values().for_each(|process| eprintln!("{process:?}"));
    }
    if let Some(chain) = processes.values().find_map(|process| process.chain) {
        landing(&chain, &seen.places);
    }
    Ok(ExitCode::from(status.code().or(status.signal().map(|s| 128 + s)).unwrap_or(255) as u8))
}

fn landing(chain: &ChainLoop, places: &[u64]) {
    let mut table: BTreeMap<String, u64> = BTreeMap::new();
    for ip in places {
        let key = match *ip {
            ip if ip == chain.load => "at the load".to_owned(),
            ip if ip == chain.behind => "right behind it".to_owned(),
            ip if ip > chain.behind && ip < chain.end => {
                format!("{} further", (ip - chain.behind) / chain.step)
            }
            ip if ip == chain.begin => "start of the loop".to_owned(),
            ip if ip >= chain.begin && ip < chain.load => "nops before it".to_owned(),
            _ => "outside".to_owned(),
        };
        *table.entry(key).or_default() += 1;
    }
    eprintln!("{table:?}");
}
