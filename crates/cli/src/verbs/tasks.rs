//! `numa tasks`.

use crate::files;
use crate::observe;
use crate::{Examples, GlobalArgs};
use anyhow::{Context, anyhow};
use clap::{Args, ValueEnum};
use numakit_model::Topology;
use numakit_processes::{Affinity, ProcessRanking, Survey};
use numakit_sensors::totals;
use numakit_sys::SysRoot;
use numakit_sys::clock::{self, Alarm};
use numakit_sys::proc::TaskDir;
use numakit_sys::stdio::{note, print};
use numakit_terminal::affinity;
use numakit_terminal::tasks::TaskTable as Shown;
use std::process::ExitCode;
use std::time::Duration;

/// List processes by their use of remote memory
///
/// --totals shows the counters of every node since boot, as numastat does. --affinity shows the
/// CPU affinity and memory policy of processes and their threads, as taskset -p and numactl --show
/// do, and explains them.
///
/// REMOTE% is the share of a process's memory that is not on the node where it runs, weighted
/// with the CPU time of its threads; for an idle process, with the last CPUs of its threads.
/// Processes that spent most CPU time away from their memory come first. Memory is in MiB.
///
/// The memory of the busiest processes is examined first, for the length of the interval (at least
/// a second). The last lines show how many processes were not examined, for lack of time or of
/// permission. Kernel threads are omitted. The exit code is 1 if a process given with -p does not
/// exist, and 2 if none of them exists.
///
/// --json writes one object per measurement: {seconds, nodes, denied, late, refused, processes:
/// [{pid, user, command, threads, cpu, remote, resident, memory, error, why}]}. cpu and remote are
/// in percent, resident in bytes. memory is {huge, heap, stack, anonymous, file, total}, each with
/// the bytes on every node in the order of nodes, or null; why is then "denied", "late" or
/// "refused". error is the standard error of the bytes on a node, 0 if every page was examined.
#[derive(Debug, Args)]
pub struct TasksArgs {
    /// Show the memory of these processes by kind and node
    #[arg(short, long, value_name = "PID,...", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..))]
    pid: Vec<u32>,
    /// Show the allocation counters of every node since boot
    #[arg(long, conflicts_with_all = ["pid", "affinity", "user", "top"])]
    totals: bool,
    /// Show the CPU affinity and memory policy of these processes
    #[arg(long, value_name = "PID,...", value_delimiter = ',', conflicts_with_all = ["pid", "user", "top"], value_parser = clap::value_parser!(u32).range(1..))]
    affinity: Vec<u32>,
    /// Measure CPU time over this interval
    #[arg(short, long, value_name = "TIME", default_value = "1s", value_parser = observe::interval_of)]
    interval: Duration,
    /// Number of measurements
    #[arg(short = 'n', long, value_name = "COUNT", default_value = "1", value_parser = clap::value_parser!(u64).range(1..))]
    count: u64,
    /// Sort key
    #[arg(long, value_name = "KEY", default_value = "remote")]
    sort: Sort,
    /// Maximum number of processes [default: 20; no maximum with --json]
    #[arg(long, value_name = "N")]
    top: Option<usize>,
    /// Show only processes of this user, by name or ID as in the column USER
    #[arg(long, value_name = "USER")]
    user: Option<String>,
    /// Write JSON, one object per line
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Sort {
    /// CPU time multiplied by the share of remote memory
    Remote,
    /// Resident memory
    Memory,
    /// CPU time
    Cpu,
    /// Process ID
    Pid,
}

impl Sort {
    fn ranking(self) -> ProcessRanking {
        match self {
            Self::Remote => ProcessRanking::Remote,
            Self::Memory => ProcessRanking::Memory,
            Self::Cpu => ProcessRanking::Cpu,
            Self::Pid => ProcessRanking::Pid,
        }
    }
}

/// Default of --top.
const TOP: usize = 20;

/// Minimum time to examine the memory of processes, in ns.
const MIN_WALK: u64 = 1_000_000_000;

impl TasksArgs {
    /// The first lines of its help.
    pub const EXAMPLES: Examples = [
        ("numa tasks", "processes with the most remote memory"),
        ("numa tasks -p 4711", "the memory of one of them by kind and node"),
    ];

    /// Measures and prints.
    pub fn run(self, global: &GlobalArgs) -> anyhow::Result<ExitCode> {
        let root = global.root()?;
        let topology = numakit_topology::read(&root).context("cannot read the topology")?;
        if self.totals {
            return self.show_totals(&root, &topology);
        }
        if !self.affinity.is_empty() {
            return self.show_affinity(&root, &topology);
        }
        let missing: Vec<u32> =
            self.pid.iter().copied().filter(|pid| !TaskDir::of(&root, *pid).exists()).collect();
        if !self.pid.is_empty() && missing.len() == self.pid.len() {
            return Err(none_exists("--pid", &missing, &root));
        }
        let mut start = clock::monotonic();
        let only = (!self.pid.is_empty()).then(|| self.pid.clone());
        let mut survey = Survey::new(&root, &topology, only).map_err(|why| anyhow!("{why}"))?;
        for round in 0..self.count {
            let wait = start.saturating_add(u64::try_from(self.interval.as_nanos()).unwrap_or(u64::MAX));
            Alarm::new().sleep_until(wait);
            let now = clock::monotonic();
            let shown = self.measure(&mut survey, now, now - start);
            start = now;
            if self.json {
                print(format_args!("{}\n", shown.json()))?;
                continue;
            }
            let gap = if round > 0 { "\n" } else { "" };
            let text = match self.pid.is_empty() {
                true => shown.list(self.top.unwrap_or(TOP)),
                false => shown.details(),
            };
            print(format_args!("{gap}{text}"))?;
        }
        if !self.pid.is_empty() && !self.json {
            for (seen, fix) in files::one_sided(&root, &topology, Some(&self.pid)) {
                print(format_args!("\n{seen}; {fix}\n"))?;
            }
        }
        Ok(ended(&missing))
    }

    fn show_totals(&self, root: &SysRoot, topology: &Topology) -> anyhow::Result<ExitCode> {
        let found = totals::read(root, topology).map_err(|why| anyhow!("{why}"))?;
        match self.json {
            true => print(format_args!("{}\n", numakit_terminal::totals::json(&found)))?,
            false => print(numakit_terminal::totals::table(&found))?,
        }
        Ok(ExitCode::SUCCESS)
    }

    fn show_affinity(&self, root: &SysRoot, topology: &Topology) -> anyhow::Result<ExitCode> {
        let mut missing = Vec::new();
        for (at, &pid) in self.affinity.iter().enumerate() {
            match Affinity::of(root, pid) {
                Ok(found) if self.json => print(format_args!("{}\n", affinity::json(&found, topology)))?,
                Ok(found) => {
                    let gap = if at > 0 { "\n" } else { "" };
                    print(format_args!("{gap}{}", affinity::page(&found, topology)))?;
                }
                Err(_) => missing.push(pid),
            }
        }
        if missing.len() == self.affinity.len() {
            return Err(none_exists("--affinity", &missing, root));
        }
        Ok(ended(&missing))
    }

    fn measure(&self, survey: &mut Survey, now: u64, elapsed: u64) -> Shown {
        // Processes given with -p are examined completely.
        let until = match self.pid.is_empty() {
            true => now.saturating_add(elapsed.max(MIN_WALK)),
            false => u64::MAX,
        };
        let mut processes = survey.measure(&|| clock::monotonic() < until);
        processes.retain(|process| self.user.as_ref().is_none_or(|user| process.user == *user));
        self.sort.ranking().sort(&mut processes);
        if let Some(top) = self.top.filter(|_| self.json || !self.pid.is_empty()) {
            processes.truncate(top);
        }
        Shown {
            nodes: survey.nodes().to_vec(),
            seconds: elapsed as f64 / 1e9,
            processes,
            fix: survey.access().fix(),
        }
    }
}

/// The error if none of the processes of an option exists.
fn none_exists(option: &str, missing: &[u32], root: &SysRoot) -> anyhow::Error {
    anyhow!("{option}: there is no process {} in {}; 'numa tasks' lists them", list(missing), root.name())
}

/// The exit code, after a message about processes that do not exist.
fn ended(missing: &[u32]) -> ExitCode {
    if !missing.is_empty() {
        note(format_args!("there is no process {}; 'numa tasks' lists the processes", list(missing)));
    }
    ExitCode::from(u8::from(!missing.is_empty()))
}

fn list(pids: &[u32]) -> String {
    pids.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
}
