//! Holders and their CPUs.

use numakit_model::CpuSet;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A process, distinguished from a later one with the same PID.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessId {
    /// Its PID.
    pub pid: u32,
    /// Its start time: field 22 of its `stat`, in ticks since boot.
    pub start: u64,
}

/// A holder of cores, as its record describes it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// The program's name.
    pub application: String,
    /// The user's number.
    pub user: u32,
    /// When the cores were taken, in nanoseconds since 1970, UTC; unknown without a record.
    pub since: Option<u64>,
    /// The start of the reservation in ticks since boot, as the start times of processes are.
    pub since_boot: u64,
    /// How many cores the CPUs are, if known.
    pub cores: Option<u32>,
    /// Its control group; `/` is the root.
    pub cgroup: Option<String>,
    /// Its Slurm job.
    pub job: Option<String>,
    /// The supervisor.
    #[serde(rename = "keeper")]
    pub supervisor: Option<ProcessId>,
    /// The program's first process.
    pub program: Option<ProcessId>,
    /// The namespace of these PIDs.
    #[serde(rename = "pids")]
    pub pid_namespace: u64,
    /// The tag of the program and its descendants: see [`numakit_sys::tag`].
    pub tag: Option<u64>,
}

/// How CPUs are held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HolderState {
    /// By kernel locks.
    Held,
    /// Without locks, because the supervisor was killed and the program had closed the descriptor, or the file was
    /// removed; but this process of the program still runs.
    Bound(u32),
    /// By kernel locks in a file that was the registry until it was removed. The record in that file cannot be read.
    InRemovedFile,
    /// By kernel locks whose record is damaged.
    Unknown,
}

/// CPUs and their holder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holding {
    /// The CPUs.
    pub cpus: CpuSet,
    /// How the CPUs are held.
    pub state: HolderState,
    /// The holder, if known.
    pub holder: Option<Holder>,
    /// Whether the holder's PIDs are in the namespace of this process.
    pub same_pid_namespace: bool,
    /// Whether this process itself belongs to the holder.
    pub is_own: bool,
}

impl Holding {
    /// How many cores: as the record says, else the number of CPUs.
    pub fn cores(&self) -> u32 {
        self.holder.as_ref().and_then(|holder| holder.cores).unwrap_or(self.cpus.len() as u32)
    }

    /// The process to signal, if it is visible from here: the program, else its supervisor.
    pub fn pid(&self) -> Option<u32> {
        let holder = self.holder.as_ref().filter(|_| self.same_pid_namespace)?;
        match self.state {
            HolderState::Bound(pid) => Some(pid),
            _ => holder.program.or(holder.supervisor).map(|process| process.pid),
        }
    }
}

/// For messages: `ep of alice (process 1234)`.
impl fmt::Display for Holding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(holder) = &self.holder else {
            return f.write_str(match self.state {
                HolderState::InRemovedFile => "unknown (its registry was removed)",
                _ => "unknown (damaged record)",
            });
        };
        write!(f, "{} of {}", holder.application, crate::user_name(holder.user))?;
        match (self.pid(), self.is_own) {
            (Some(pid), false) => write!(f, " (process {pid})"),
            (None, false) if !self.same_pid_namespace => f.write_str(" (in another PID namespace)"),
            (_, true) => f.write_str(", to which this process belongs; --share places within its cores"),
            _ => Ok(()),
        }
    }
}

/// A process that is bound to a few CPUs without being registered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoundProcess {
    /// The process.
    pub pid: u32,
    /// Its name.
    pub command: String,
    /// The CPUs that it is bound to.
    pub cpus: CpuSet,
}

impl fmt::Display for BoundProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (process {}, bound there, not registered)", self.command, self.pid)
    }
}

/// What is known of holders when cores are selected.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RegistryView {
    /// CPUs that are held and cannot be selected.
    pub holdings: Vec<Holding>,
    /// Processes that were bound without the registry, and whose CPUs should be avoided.
    pub bound: Vec<BoundProcess>,
    /// A warning: which process does not release the allocation lock, and what to do.
    pub warning: Option<String>,
}

impl RegistryView {
    /// All CPUs that cannot be selected.
    pub fn held(&self) -> CpuSet {
        self.holdings.iter().fold(CpuSet::new(), |all, holding| all.or(&holding.cpus))
    }

    /// CPUs with the description of their holder, as planning takes them.
    pub fn registered(&self) -> Vec<(CpuSet, String)> {
        self.holdings.iter().map(|holding| (holding.cpus.clone(), holding.to_string())).collect()
    }

    /// The CPUs of bound processes with a description of the process, one entry for each set of CPUs.
    pub fn bound(&self) -> Vec<(CpuSet, String)> {
        let mut list: Vec<(CpuSet, String)> = Vec::new();
        for bound in &self.bound {
            if !list.iter().any(|(cpus, _)| *cpus == bound.cpus) {
                list.push((bound.cpus.clone(), bound.to_string()));
            }
        }
        list
    }
}
