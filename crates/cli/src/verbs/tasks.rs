//! `numa tasks`.

use crate::Global;
use crate::observe;
use anyhow::{Context, anyhow, bail};
use clap::{Args, ValueEnum};
use numakit_model::Topology;
use numakit_sensors::task::affinity::Affinity;
use numakit_sensors::task::survey::Survey;
use numakit_sensors::totals;
use numakit_sys::SysRoot;
use numakit_sys::clock::{self, Alarm};
use numakit_sys::proc::TaskDir;
use numakit_sys::stdio::{note, print};
use numakit_terminal::affinity;
use numakit_terminal::tasks::{Order, Tasks as Shown};
use std::process::ExitCode;
use std::time::Duration;

/// List processes by how much they use memory of other nodes
///
/// --totals shows what every node has counted since the machine started, as numastat does.
/// --affinity shows where processes and their threads may run and take memory from, as taskset -p
/// and numactl --show do, and what that means.
///
/// REMOTE% is the share of a process's memory that is not on the node where it runs, weighted
/// with the CPU time of its threads; where it did not run, with where its threads were last.
/// Those that spent most CPU time far from their memory come first. Memory is in MiB.
///
/// The memory of those that ran most is looked at first, for as long as the interval (at least
/// a second); the last lines say how many were left over, and how many may not be looked into.
/// Threads of the kernel are left out. The exit code is 1 when a process given with -p does not
/// exist, and 2 when none of them does.
///
/// --json writes one object a measurement: {seconds, nodes, denied, late, refused, processes:
/// [{pid, user, command, threads, cpu, remote, resident, memory, error, why}]}. cpu and remote are
/// in percent, resident in bytes; memory is {huge, heap, stack, anonymous, file, total}, each the
/// bytes on every node in the order of nodes, or null, and why then "denied", "late" or "refused".
/// error is the standard error of the bytes of a node, 0 where every page was asked.
#[derive(Debug, Args)]
pub struct Tasks {
    /// Show the memory of these processes by use and node
    #[arg(short, long, value_name = "PID,...", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..))]
    pid: Vec<u32>,
    /// Show the allocations of every node since the machine started
    #[arg(long, conflicts_with_all = ["pid", "affinity", "user", "top"])]
    totals: bool,
    /// Show where these processes may run and take memory from
    #[arg(long, value_name = "PID,...", value_delimiter = ',', conflicts_with_all = ["pid", "user", "top"], value_parser = clap::value_parser!(u32).range(1..))]
    affinity: Vec<u32>,
    /// Measure CPU time over this time
    #[arg(short, long, value_name = "TIME", default_value = "1s", value_parser = observe::interval_of)]
    interval: Duration,
    /// Measure so many times
    #[arg(short = 'n', long, value_name = "COUNT", default_value = "1", value_parser = clap::value_parser!(u64).range(1..))]
    count: u64,
    /// What comes first
    #[arg(long, value_name = "WHAT", default_value = "remote")]
    sort: Sort,
    /// Show so many processes; without it 20, and with --json all
    #[arg(long, value_name = "N")]
    top: Option<usize>,
    /// Only the processes of this user, by name or number as the column USER shows it
    #[arg(long, value_name = "USER")]
    user: Option<String>,
    /// Write JSON, one object a line
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Sort {
    /// CPU time times the share of remote memory
    Remote,
    /// Resident memory
    Memory,
    /// CPU time
    Cpu,
    /// Process number
    Pid,
}

impl Sort {
    fn order(self) -> Order {
        match self {
            Self::Remote => Order::Remote,
            Self::Memory => Order::Memory,
            Self::Cpu => Order::Cpu,
            Self::Pid => Order::Pid,
        }
    }
}

/// Processes that are shown without --top.
const TOP: usize = 20;

/// The memory of processes is looked at for at least so long, in ns.
const SHORTEST_WALK: u64 = 1_000_000_000;

impl Tasks {
    /// Measures and shows.
    pub fn run(self, global: &Global) -> anyhow::Result<ExitCode> {
        let root = global.root()?;
        let topology = numakit_topology::read(&root).context("the machine cannot be read")?;
        if self.totals {
            return self.show_totals(&root, &topology);
        }
        if !self.affinity.is_empty() {
            return self.show_affinity(&root, &topology);
        }
        let missing: Vec<u32> =
            self.pid.iter().copied().filter(|pid| !TaskDir::of(&root, *pid).exists()).collect();
        if !self.pid.is_empty() && missing.len() == self.pid.len() {
            bail!(
                "--pid: there is no process {} in {}; 'numa tasks' lists them",
                list(&missing),
                root.name()
            );
        }
        let mut begun = clock::monotonic();
        let only = (!self.pid.is_empty()).then(|| self.pid.clone());
        let mut survey = Survey::new(&root, &topology, only).map_err(|why| anyhow!("{why}"))?;
        for round in 0..self.count {
            let wait = begun.saturating_add(u64::try_from(self.interval.as_nanos()).unwrap_or(u64::MAX));
            Alarm::new().sleep_until(wait);
            let now = clock::monotonic();
            let shown = self.measure(&mut survey, now, now - begun);
            begun = now;
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
            bail!(
                "--affinity: there is no process {} in {}; 'numa tasks' lists them",
                list(&missing),
                root.name()
            );
        }
        Ok(ended(&missing))
    }

    fn measure(&self, survey: &mut Survey, now: u64, elapsed: u64) -> Shown {
        // Who names a process wants to know of it, however long that takes.
        let until = match self.pid.is_empty() {
            true => now.saturating_add(elapsed.max(SHORTEST_WALK)),
            false => u64::MAX,
        };
        let processes = survey.measure(&|| clock::monotonic() < until);
        let mut shown = Shown {
            nodes: survey.nodes().to_vec(),
            seconds: elapsed as f64 / 1e9,
            processes,
            fix: survey.access().fix(),
        };
        if let Some(user) = &self.user {
            shown.only_of(user);
        }
        shown.sort(self.sort.order());
        if let Some(top) = self.top.filter(|_| self.json || !self.pid.is_empty()) {
            shown.processes.truncate(top);
        }
        shown
    }
}

/// The exit code, after a word about processes that are not there.
fn ended(missing: &[u32]) -> ExitCode {
    if !missing.is_empty() {
        note(format_args!("there is no process {}; 'numa tasks' lists those that there are", list(missing)));
    }
    ExitCode::from(u8::from(!missing.is_empty()))
}

fn list(pids: &[u32]) -> String {
    pids.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
}
