//! What a survey finds of a process.

use crate::numa_maps::MemoryByUse;

/// The memory of a process by node, or why it is unknown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum MemorySource {
    /// The memory by node.
    Memory(MemoryByUse),
    /// This user may not read it.
    Denied,
    /// There was no time for it.
    #[default]
    Late,
    /// The kernel only shows it while it stops the process.
    Refused,
}

/// A process, and what it did since the last scan.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProcessSample {
    /// Its number.
    pub pid: u32,
    /// The number of its parent.
    pub parent: u32,
    /// Its start time, in ticks since boot; together with the number, it identifies a process.
    pub start: u64,
    /// Its user: the name if known, otherwise the number.
    pub user: String,
    /// The name of its program.
    pub command: String,
    /// The number of its threads.
    pub threads: u64,
    /// CPU time since the last scan, in ns.
    pub ran: u64,
    /// The same by node of the CPU on which each thread was last seen, in the order of the survey's nodes.
    pub ran_on: Vec<u64>,
    /// Time since the last scan, in ns, in which its threads were ready and had no CPU.
    pub waited: u64,
    /// Page faults; `None` in the first scan that finds the process.
    pub faults: Option<u64>,
    /// Of these, those that waited for a disk.
    pub major_faults: Option<u64>,
    /// Pages that NUMA balancing moved; `None` unless they are counted.
    pub moved: Option<u64>,
    /// CPU time on known nodes, times the share of memory on the same node, and times the share
    /// elsewhere. If the process did not run, all its threads have equal weight. `None` if the
    /// memory or all CPUs are unknown.
    pub near_far: Option<(u64, u64)>,
    /// Resident memory in bytes, as the kernel counts it, without huge page pools.
    pub resident: u64,
    /// Its memory by node.
    pub found: MemorySource,
    /// Maximum standard error of the memory of a node in bytes; 0 if all pages were queried.
    pub error: u64,
    /// Whether its lock was held, because there was no other method.
    pub held: bool,
}

impl ProcessSample {
    /// The memory of the process by node, if it was read.
    pub fn memory(&self) -> Option<&MemoryByUse> {
        match &self.found {
            MemorySource::Memory(memory) => Some(memory),
            _ => None,
        }
    }

    /// The bytes that were found by node, otherwise those that the kernel counts.
    pub fn bytes(&self) -> u64 {
        self.memory().map_or(self.resident, MemoryByUse::total)
    }

    /// The CPU time in percent of a CPU, where the scans of the survey are this many seconds apart.
    pub fn cpu_percent(&self, seconds: f64) -> Option<f64> {
        per_second(self.ran, seconds).map(|ns| ns / 1e7)
    }

    /// The part of [`ProcessSample::near_far`] that is elsewhere, in percent.
    pub fn remote_percent(&self) -> Option<f64> {
        let (near, far) = self.near_far?;
        let all = near as f64 + far as f64;
        (all > 0.0).then(|| 100.0 * far as f64 / all)
    }
}

/// A count over some seconds as a rate; `None` if no time has passed.
pub fn per_second(count: u64, seconds: f64) -> Option<f64> {
    (seconds > 0.0).then(|| count as f64 / seconds)
}
