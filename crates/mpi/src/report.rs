//! The report of a run.

use crate::findings::{MpiFinding, findings};
use crate::order::{RankOrder, arranged};
use crate::rows::{CallTime, MpiRow, rows};
use crate::served::{ServedCollectives, served};
use numakit_model::CpuSet;
use numakit_sys::mpi_calls::{MpiCalls, MpiProcess};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The version of the report in JSON.
pub const VERSION: u32 = 1;
/// The largest report that is read back, in bytes.
pub const MOST_BYTES: usize = 256 << 20;

/// What the calls of a run's MPI programs cost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MpiReport {
    /// [`VERSION`].
    pub version: u32,
    /// The command, as a shell reads it.
    pub command: String,
    /// The MPI programs that it ran, in the order in which they began.
    pub jobs: Vec<MpiJob>,
    /// Ranks of which nothing is known, since there was no room for them.
    pub left_out: u64,
}

/// One MPI program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MpiJob {
    /// What the MPI library calls itself.
    pub library: String,
    /// Ranks of `MPI_COMM_WORLD`.
    pub size: u32,
    /// The ranks on this machine, in their order.
    pub ranks: Vec<MpiRank>,
    /// The longest time from `MPI_Init` to `MPI_Finalize`, in seconds; `None` if no rank came to the latter.
    pub seconds: Option<f64>,
    /// Time of all ranks in collectives until the last one came that they needed, in seconds.
    pub waiting: f64,
    /// The rest of the time in collectives, in seconds.
    pub moving: f64,
    /// Time of all ranks in collectives of which it is not known how long they waited, in seconds.
    pub unjudged: f64,
    /// Time of all ranks in calls for messages, in seconds.
    pub messages: f64,
    /// The collectives of `--collectives`; `None` if those of the MPI were wanted.
    #[serde(default)]
    pub collectives: Option<ServedCollectives>,
    /// Calls by communicator, operation and size; those that took longest first.
    pub rows: Vec<MpiRow>,
    /// Who sends to whom; most bytes first.
    pub talk: Vec<Talk>,
    /// The order of ranks that brings talkers together; `None` if it would not help, or the nodes of the ranks are not known.
    pub order: Option<RankOrder>,
    /// What is wrong.
    pub findings: Vec<MpiFinding>,
}

/// A rank.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MpiRank {
    /// Its number in `MPI_COMM_WORLD`.
    pub rank: u32,
    /// Its process.
    pub pid: u32,
    /// The CPUs that it may use, as in `0-3,8`.
    pub cpus: String,
    /// Time from `MPI_Init` to `MPI_Finalize`, in seconds; `None` if it did not come to the latter.
    pub seconds: Option<f64>,
    /// The part of this time in which it had a CPU; above 1 with several threads.
    pub cpu_share: Option<f64>,
    /// Time in MPI, in seconds.
    pub in_mpi: f64,
    /// Time in collectives in which it waited for others, as far as it was measured, in seconds.
    pub waited_seconds: f64,
    /// Time in which others waited for it in collectives, as far as it was measured, in seconds.
    pub waited_for_seconds: f64,
    /// Waits of other ranks in collectives to which it came last, as far as they were measured.
    pub late: u64,
}

/// Messages from one rank to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Talk {
    /// The rank that sends.
    pub from: u32,
    /// The rank that receives.
    pub to: u32,
    /// Messages.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// What is known of the machine.
#[derive(Debug, Clone, Default)]
pub struct MpiSurroundings {
    /// The nodes with their CPUs.
    pub nodes: Vec<(u32, CpuSet)>,
    /// `kernel.yama.ptrace_scope`.
    pub yama: Option<u32>,
    /// The error by which a filter refuses that processes read each other's memory.
    pub copy_filter: Option<i32>,
}

/// Why a report cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The file is no report.
    #[error("'{0}' is no report of numa run: {1}; write one with: numa run --mpi-report=FILE -- mpirun ...")]
    Json(PathBuf, String),
    /// Another version.
    #[error(
        "'{0}' is a report of version {1}, and this numa reads version {VERSION}; write it again with: numa run --mpi-report=FILE -- mpirun ..."
    )]
    Version(PathBuf, u32),
    /// No MPI program.
    #[error(
        "'{0}' is the report of a run without an MPI program; write one with: numa run --mpi-report=FILE -- mpirun ..."
    )]
    Empty(PathBuf),
}

impl MpiReport {
    /// The report of what a command's ranks wrote.
    pub fn new(command: &str, calls: &MpiCalls, around: &MpiSurroundings) -> Self {
        let mut numbers: Vec<u64> = Vec::new();
        let mut by_job: BTreeMap<u64, Vec<&MpiProcess>> = BTreeMap::new();
        for process in &calls.processes {
            if !numbers.contains(&process.job) {
                numbers.push(process.job);
            }
            by_job.entry(process.job).or_default().push(process);
        }
        let mut job = |number: &u64| {
            let mut processes = by_job.remove(number).unwrap_or_default();
            processes.sort_by_key(|process| process.rank);
            job(&processes, around)
        };
        Self {
            version: VERSION,
            command: command.to_owned(),
            jobs: numbers.iter().map(&mut job).collect(),
            left_out: calls.count.saturating_sub(calls.processes.len() as u64),
        }
    }

    /// Reads a report; `path` is for errors.
    pub fn parse(path: &std::path::Path, text: &str) -> Result<Self, ReportError> {
        let wrong = |why: String| ReportError::Json(path.to_owned(), why);
        if text.len() > MOST_BYTES {
            return Err(wrong(format!("it has {} bytes, and a report at most {MOST_BYTES}", text.len())));
        }
        let value: serde_json::Value =
            serde_json::from_str(text).map_err(|error| wrong(error.to_string()))?;
        match value.get("version").and_then(serde_json::Value::as_u64) {
            Some(version) if version != u64::from(VERSION) => {
                return Err(ReportError::Version(
                    path.to_owned(),
                    u32::try_from(version).unwrap_or(u32::MAX),
                ));
            }
            _ => {}
        }
        let report: Self = serde_json::from_value(value).map_err(|error| wrong(error.to_string()))?;
        if report.jobs.is_empty() { Err(ReportError::Empty(path.to_owned())) } else { Ok(report) }
    }

    /// The job with the most ranks.
    pub fn largest(&self) -> Option<&MpiJob> {
        self.jobs.iter().max_by_key(|job| job.size)
    }
}

fn job(processes: &[&MpiProcess], around: &MpiSurroundings) -> MpiJob {
    let rows = rows(processes);
    let talk = talk(processes);
    let collectives = |part: fn(&MpiRow) -> f64| {
        rows.iter().filter(|row| row.divided == CallTime::Measured).map(part).sum::<f64>()
    };
    let unjudged = rows.iter().filter(|row| row.divided == CallTime::Unknown).map(|row| row.seconds).sum();
    let estimated = rows.iter().filter(|row| row.divided == CallTime::Estimated);
    let seconds = processes.iter().filter_map(|process| process.run_ns).max();
    let mut found = MpiJob {
        library: processes.first().map_or_else(String::new, |process| library(&process.library)),
        size: processes.iter().map(|process| process.size).max().unwrap_or(0),
        ranks: processes.iter().map(|process| rank(process, processes)).collect(),
        seconds: seconds.map(|ns| ns as f64 / 1e9),
        waiting: collectives(|row| row.waiting.unwrap_or(0.0)),
        moving: collectives(|row| row.moving.unwrap_or(0.0)),
        unjudged,
        messages: estimated.map(|row| row.seconds).sum(),
        order: nodes_of(processes, around).and_then(|nodes| arranged(&talk, &nodes)),
        collectives: served(processes, &rows),
        rows,
        talk,
        findings: Vec::new(),
    };
    found.findings = findings(&found, processes, around);
    found
}

/// Without what a distribution adds: `Open MPI v4.1.4, package: Debian`.
fn library(text: &str) -> String {
    let first = text.split(',').next().unwrap_or(text).trim();
    let first = first.split(" MPICH Release").next().unwrap_or(first);
    first.replace(" Version:", "").trim().to_owned()
}

fn rank(process: &MpiProcess, all: &[&MpiProcess]) -> MpiRank {
    let seconds = |ns: u64| ns as f64 / 1e9;
    let own = |other: &&MpiProcess| {
        other.peers.iter().find(|(rank, _)| *rank == process.rank).map(|(_, peer)| *peer)
    };
    let others = || all.iter().filter_map(own);
    MpiRank {
        rank: process.rank,
        pid: process.pid,
        cpus: process.cpus.to_string(),
        seconds: process.run_ns.map(seconds),
        cpu_share: process
            .cpu_ns
            .zip(process.run_ns.filter(|ns| *ns > 0))
            .map(|(cpu, run)| cpu as f64 / run as f64),
        in_mpi: seconds(process.cells.iter().map(|cell| cell.ns).fold(0, u64::saturating_add)),
        waited_seconds: seconds(process.cells.iter().map(|cell| cell.waited_ns).fold(0, u64::saturating_add)),
        waited_for_seconds: seconds(others().map(|peer| peer.waited_ns).fold(0, u64::saturating_add)),
        late: others().map(|peer| peer.late).fold(0, u64::saturating_add),
    }
}

fn talk(processes: &[&MpiProcess]) -> Vec<Talk> {
    let of = |process: &&MpiProcess| {
        let from = process.rank;
        let sent = process.peers.iter().filter(|(_, peer)| peer.messages > 0);
        sent.map(move |(to, peer)| Talk { from, to: *to, messages: peer.messages, bytes: peer.bytes })
            .collect::<Vec<_>>()
    };
    let mut talk: Vec<Talk> = processes.iter().flat_map(of).collect();
    talk.sort_by_key(|talk| (std::cmp::Reverse((talk.bytes, talk.messages)), talk.from, talk.to));
    talk
}

/// The node of each rank; `None` if a rank may run on several, or is on another machine.
fn nodes_of(processes: &[&MpiProcess], around: &MpiSurroundings) -> Option<Vec<u32>> {
    let size = processes.first()?.size;
    let is_complete = (0..size).eq(processes.iter().map(|process| process.rank));
    let node = |process: &&MpiProcess| {
        let own = around.nodes.iter().find(|(_, cpus)| process.cpus.is_subset(cpus));
        own.map(|(node, _)| *node).filter(|_| !process.cpus.is_empty())
    };
    processes.iter().map(node).collect::<Option<Vec<u32>>>().filter(|_| is_complete)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::process;
    use numakit_sys::mpi_calls::MpiPeer;
    use std::path::Path;

    fn calls(processes: Vec<MpiProcess>) -> MpiCalls {
        MpiCalls { count: processes.len() as u64 + 1, processes }
    }

    fn talking() -> Vec<MpiProcess> {
        let mut all: Vec<MpiProcess> = (0..4).map(|rank| process(rank, 4)).collect();
        for (rank, to) in [(0, 2), (2, 0), (1, 3)] {
            let peer = MpiPeer { messages: 5, bytes: 5000, ..MpiPeer::default() };
            all[rank].peers = vec![(to, peer)];
        }
        all
    }

    #[test]
    fn ranks_that_talk_across_nodes_get_an_order() {
        let nodes = vec![(0, CpuSet::range(0, 1)), (1, CpuSet::range(2, 3))];
        let around = MpiSurroundings { nodes, ..MpiSurroundings::default() };
        let report = MpiReport::new("mpirun ./app", &calls(talking()), &around);
        let job = &report.jobs[0];
        assert_eq!((report.left_out, job.size, job.talk.len()), (1, 4, 3));
        let order = job.order.as_ref().unwrap();
        assert_eq!((order.crossing_before, order.crossing), (1.0, 0.0));
        assert!(job.findings[0].fix.contains("numa plan --from FILE --for openmpi5"), "{:?}", job.findings);
        let mut unbound = talking();
        unbound[3].cpus = CpuSet::range(0, 3);
        assert_eq!(MpiReport::new("", &calls(unbound), &around).jobs[0].order, None);
    }

    #[test]
    fn jobs_are_separate_and_reports_are_read_back() {
        let mut all = talking();
        all.push(MpiProcess { job: 1, ..process(0, 1) });
        let report = MpiReport::new("x", &calls(all), &MpiSurroundings::default());
        assert_eq!(report.jobs.iter().map(|job| job.size).collect::<Vec<_>>(), [4, 1]);
        assert_eq!(report.largest().unwrap().size, 4);
        let text = serde_json::to_string(&report).unwrap();
        assert_eq!(MpiReport::parse(Path::new("f"), &text).unwrap(), report);
        let error = |text: &str| MpiReport::parse(Path::new("f"), text).unwrap_err().to_string();
        assert!(error("{").starts_with("'f' is no report of numa run"));
        assert!(error("{\"version\": 7}").starts_with("'f' is a report of version 7"));
        let empty = serde_json::to_string(&MpiReport { jobs: Vec::new(), ..report }).unwrap();
        assert!(error(&empty).contains("without an MPI program"));
    }

    #[test]
    fn libraries_have_short_names() {
        assert_eq!(library("Open MPI v4.1.4, package: Debian OpenMPI"), "Open MPI v4.1.4");
        assert_eq!(library("MPICH Version: 4.0.2"), "MPICH 4.0.2");
    }
}
