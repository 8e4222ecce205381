//! `numa top --once`: lists of processes.

use crate::files;
use anyhow::{Context, anyhow};
use clap::Args;
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

/// Options that print lines in place of drawing a screen.
#[derive(Debug, Args)]
pub(super) struct BatchArgs {
    /// Print a list of processes once, as to a pipe
    #[arg(long, group = "batch")]
    once: bool,
    /// The same for this number of measurements
    #[arg(short = 'n', long, value_name = "COUNT", group = "batch", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Print the allocation counters of every node since boot
    #[arg(long, group = "batch", conflicts_with_all = ["observed", "affinity", "user", "top", "sort"])]
    totals: bool,
    /// Print the CPU affinity and memory policy of these processes
    #[arg(long, value_name = "PID,...", group = "batch", value_delimiter = ',', conflicts_with_all = ["observed", "user", "top", "sort"], value_parser = clap::value_parser!(u32).range(1..))]
    affinity: Vec<u32>,
    /// Maximum number of processes that are printed [default: 20; no maximum with --json]
    #[arg(long, value_name = "N", requires = "batch")]
    top: Option<usize>,
    /// Print only processes of this user, by name or ID as in the column USER
    #[arg(long, value_name = "USER", requires = "batch")]
    user: Option<String>,
    /// Print JSON, one object per line
    #[arg(long, group = "batch")]
    json: bool,
}

/// What is listed.
#[derive(Debug)]
pub(super) struct ListRequest {
    /// The time between measurements.
    pub interval: Duration,
    /// The order of processes.
    pub sort: ProcessRanking,
    /// The processes that are described, by kind of memory; empty: they are listed.
    pub pids: Vec<u32>,
    /// The processes that are listed; `None`: all.
    pub among: Option<Vec<u32>>,
}

/// Default of --top.
const TOP: usize = 20;

/// Minimum time to examine the memory of processes, in ns.
const MIN_WALK: u64 = 1_000_000_000;

impl BatchArgs {
    /// Whether lines are printed, and no screen is drawn.
    pub(super) fn is_asked(&self) -> bool {
        self.once || self.count.is_some() || self.totals || !self.affinity.is_empty() || self.json
    }

    /// Measures and prints.
    pub(super) fn run(&self, root: &SysRoot, request: &ListRequest) -> anyhow::Result<ExitCode> {
        let topology = numakit_topology::read(root).context("cannot read the topology")?;
        if self.totals {
            return self.show_totals(root, &topology);
        }
        if !self.affinity.is_empty() {
            return self.show_affinity(root, &topology);
        }
        let ListRequest { interval, pids, among, .. } = request;
        let missing: Vec<u32> =
            pids.iter().copied().filter(|pid| !TaskDir::of(root, *pid).exists()).collect();
        if !pids.is_empty() && missing.len() == pids.len() {
            return Err(none_exists("--pid", &missing, root));
        }
        let mut start = clock::monotonic();
        let only = (!pids.is_empty()).then(|| pids.clone()).or_else(|| among.clone());
        let mut survey = Survey::new(root, &topology, only).map_err(|why| anyhow!("{why}"))?;
        for round in 0..self.count.unwrap_or(1) {
            let wait = start.saturating_add(u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX));
            Alarm::new().sleep_until(wait);
            let now = clock::monotonic();
            let shown = self.measure(&mut survey, request, now, now - start);
            start = now;
            if self.json {
                print(format_args!("{}\n", shown.json()))?;
                continue;
            }
            let gap = if round > 0 { "\n" } else { "" };
            let text = match pids.is_empty() {
                true => shown.list(self.top.unwrap_or(TOP)),
                false => shown.details(),
            };
            print(format_args!("{gap}{text}"))?;
        }
        if !pids.is_empty() && !self.json {
            for (seen, fix) in files::one_sided(root, &topology, Some(pids)) {
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

    fn measure(&self, survey: &mut Survey, request: &ListRequest, now: u64, elapsed: u64) -> Shown {
        // Chosen processes are examined completely.
        let until = match request.pids.is_empty() && request.among.is_none() {
            true => now.saturating_add(elapsed.max(MIN_WALK)),
            false => u64::MAX,
        };
        let mut processes = survey.measure(&|| clock::monotonic() < until);
        processes.retain(|process| self.user.as_ref().is_none_or(|user| process.user == *user));
        request.sort.sort(&mut processes);
        if let Some(top) = self.top.filter(|_| self.json || !request.pids.is_empty()) {
            processes.truncate(top);
        }
        Shown {
            nodes: survey.nodes().to_vec(),
            seconds: elapsed as f64 / 1e9,
            processes,
            order: request.sort,
            fix: survey.access().fix(),
        }
    }
}

/// The error if none of the processes of an option exists.
fn none_exists(option: &str, missing: &[u32], root: &SysRoot) -> anyhow::Error {
    anyhow!(
        "{option}: there is no process {} in {}; 'numa top --once' lists them",
        list(missing),
        root.name()
    )
}

/// The exit code, after a message about processes that do not exist.
fn ended(missing: &[u32]) -> ExitCode {
    if !missing.is_empty() {
        note(format_args!("there is no process {}; 'numa top --once' lists the processes", list(missing)));
    }
    ExitCode::from(u8::from(!missing.is_empty()))
}

fn list(pids: &[u32]) -> String {
    pids.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
}
