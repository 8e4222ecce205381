//! Who holds which CPUs.

use numakit_model::CpuSet;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A process, told apart from a later one with the same number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessId {
    /// Its number.
    pub pid: u32,
    /// When it started: field 22 of its `stat`, in ticks since boot.
    pub start: u64,
}

/// What a holder says of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Who {
    /// The program's name.
    pub application: String,
    /// The user's number.
    pub user: u32,
    /// When the cores were taken, in nanoseconds since 1970, UTC; unknown without a record.
    pub since: Option<u64>,
    /// The same moment in ticks since boot, as processes tell when they started.
    pub since_boot: u64,
    /// How many cores the CPUs are, where the one who took them knew.
    pub cores: Option<u32>,
    /// Its control group, `/` for the topmost.
    pub cgroup: Option<String>,
    /// Its Slurm job.
    pub job: Option<String>,
    /// The process that keeps the cores.
    pub keeper: Option<ProcessId>,
    /// The program's first process.
    pub program: Option<ProcessId>,
    /// The namespace in which process numbers are meant.
    pub pids: u64,
    /// What the program and all that it started are told by: see [`numakit_sys::tag`].
    pub tag: Option<u64>,
}

/// How surely CPUs are held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HolderState {
    /// By locks of the kernel.
    Held,
    /// The registry has no locks of it, as the keeper was killed and the program had closed the
    /// descriptor, or somebody removed the file; but this process of it still runs.
    Bound(u32),
    /// By locks of the kernel in a file that was the registry until somebody removed it. Its record
    /// is out of reach.
    Elsewhere,
    /// By locks of the kernel whose record is damaged: nobody knows whose.
    Unknown,
}

/// Some CPUs and who holds them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holding {
    /// The CPUs.
    pub cpus: CpuSet,
    /// How surely.
    pub state: HolderState,
    /// By whom, unless that is unknown.
    pub who: Option<Who>,
    /// Whether its process numbers are those that this process sees.
    pub same_pids: bool,
    /// Whether this process itself runs on these cores, started by us.
    pub ours: bool,
}

impl Holding {
    /// How many cores: what the holder said, else the number of CPUs.
    pub fn cores(&self) -> u32 {
        self.who.as_ref().and_then(|who| who.cores).unwrap_or(self.cpus.len() as u32)
    }

    /// The process to ask or to end, if it can be told from here: the program, else its keeper.
    pub fn pid(&self) -> Option<u32> {
        let who = self.who.as_ref().filter(|_| self.same_pids)?;
        match self.state {
            HolderState::Bound(pid) => Some(pid),
            _ => who.program.or(who.keeper).map(|process| process.pid),
        }
    }
}

/// For messages: `ep of alice (process 1234)`.
impl fmt::Display for Holding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(who) = &self.who else {
            return f.write_str(match self.state {
                HolderState::Elsewhere => "unknown (its registry was removed)",
                _ => "unknown (damaged record)",
            });
        };
        write!(f, "{} of {}", who.application, crate::user_name(who.user))?;
        match (self.pid(), self.ours) {
            (Some(pid), false) => write!(f, " (process {pid})"),
            (None, false) if !self.same_pids => f.write_str(" (in another PID namespace)"),
            (_, true) => f.write_str(", which this runs in; --share places within its cores"),
            _ => Ok(()),
        }
    }
}

/// A process that somebody else bound to a few CPUs, not registered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoundProcess {
    /// The process.
    pub pid: u32,
    /// Its name.
    pub command: String,
    /// Where it is bound to.
    pub cpus: CpuSet,
}

impl fmt::Display for BoundProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (process {}, bound there, not registered)", self.command, self.pid)
    }
}

/// What there is to know when cores are chosen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RegistryView {
    /// What is held and may not be chosen.
    pub holdings: Vec<Holding>,
    /// What is better left alone: processes that others bound.
    pub bound: Vec<BoundProcess>,
    /// Who holds up those who choose, and what to do about it.
    pub warning: Option<String>,
}

impl RegistryView {
    /// All CPUs that may not be chosen.
    pub fn held(&self) -> CpuSet {
        self.holdings.iter().fold(CpuSet::new(), |all, holding| all.or(&holding.cpus))
    }

    /// The holders with what they hold, as a plan wants to be told.
    pub fn registered(&self) -> Vec<(CpuSet, String)> {
        self.holdings.iter().map(|holding| (holding.cpus.clone(), holding.to_string())).collect()
    }

    /// The bound processes likewise, one entry for each set of CPUs.
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
