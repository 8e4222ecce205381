//! The processes of the machine, as the page shows them.

use super::Ns;
use serde::Serialize;
#[cfg(test)]
use ts_rs::TS;

/// The processes at one time, those that ran most first.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(TS))]
pub struct ProcessList {
    /// When they were measured.
    pub time_ns: Ns,
    /// Since the measurement before, in seconds: what rates and CPU time refer to.
    pub seconds: f64,
    /// The numbers of the nodes with memory or CPUs.
    pub nodes: Vec<u32>,
    /// The processes.
    pub processes: Vec<ProcessInfo>,
    /// Number of processes that are left out, because there are too many.
    pub left_out: u32,
    /// What permits to read the memory of the processes that may not be read.
    pub fix: String,
    /// Why there are no processes; `null` if there are.
    pub why: Option<String>,
}

/// A process.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(TS))]
pub struct ProcessInfo {
    /// Its number.
    pub pid: u32,
    /// That of its parent.
    pub parent: u32,
    /// Its user: the name, or the number.
    pub user: String,
    /// The name of its program.
    pub name: String,
    /// Threads.
    pub threads: u64,
    /// Whether it is a process of the observed program.
    pub observed: bool,
    /// CPU time in percent of a CPU.
    pub cpu: f64,
    /// The share of its memory that is not on the node where it runs, in percent; `null` if unknown.
    pub remote: Option<f64>,
    /// Resident memory in bytes.
    pub resident: u64,
    /// The position of each node that has memory of it, and the bytes there; `null`: unknown.
    pub memory: Option<Vec<(u32, u64)>>,
    /// Why its memory is unknown.
    pub why: Option<MemoryUnknown>,
    /// Page faults per second; `null`: not known yet.
    pub faults: Option<f64>,
    /// Of these, those that waited for a disk.
    pub major: Option<f64>,
    /// Pages per second that NUMA balancing moved; `null` unless the kernel counts them.
    pub moved: Option<f64>,
}

/// Why the memory of a process is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(TS))]
#[serde(rename_all = "snake_case")]
pub enum MemoryUnknown {
    /// It may not be read.
    Denied,
    /// There was no time for it: others run more or have more.
    Late,
    /// Reading it would stop the process meanwhile.
    Refused,
}
