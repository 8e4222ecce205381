//! The order of the values in a row: those of each node, those of the machine, then values for the
//! sensor itself.

use crate::board::NONE;
use numakit_processes::{Observer, WalkerStatus};

/// Number of values of each node, in the table's order.
pub const OF_NODES: usize = 15;
/// Number of values of the machine.
pub const OF_MACHINE: usize = 14;
/// Position of the duration of the last walk among them.
pub const WALK_TIME: usize = 9;
/// Position of its age.
pub const WALK_AGE: usize = 10;
/// Number of values for the sensor itself: end of the last walk, and the pids that could not be read,
/// whose lock was held, and whose huge pages are unknown; whether the allocator of one is; the number of scans.
const HIDDEN: usize = 6;

/// Values from the observer's memory.
const MEMORY: usize = 6;

/// Values after them: CPU time and threads, then those of allocators.
const ALLOCATORS: usize = MEMORY + 2;

/// The places of the values.
#[derive(Debug, Clone, Copy)]
pub struct TaskSeries {
    nodes: usize,
}

impl TaskSeries {
    /// For a machine with this number of nodes.
    pub fn new(nodes: usize) -> Self {
        Self { nodes }
    }

    /// Length of a row.
    pub fn values(self) -> usize {
        self.nodes * OF_NODES + OF_MACHINE + HIDDEN
    }

    /// The position of a value of a node.
    pub fn of_node(self, which: usize, node: usize) -> usize {
        node * OF_NODES + which
    }

    /// The position of a value of the machine.
    pub fn of_machine(self, which: usize) -> usize {
        self.nodes * OF_NODES + which
    }

    /// The position of the end of the last walk.
    pub fn walk_end(self) -> usize {
        self.of_machine(OF_MACHINE)
    }

    /// The position of the pid that could not be read.
    pub fn denied(self) -> usize {
        self.of_machine(OF_MACHINE + 1)
    }

    /// The position of the pid whose lock was held while it was read.
    pub fn held(self) -> usize {
        self.of_machine(OF_MACHINE + 2)
    }

    /// The position of the pid whose huge pages could not be counted.
    pub fn huge_unknown(self) -> usize {
        self.of_machine(OF_MACHINE + 3)
    }

    /// The position of a value that is there if the allocator of a process could not be read.
    pub fn allocator_unread(self) -> usize {
        self.of_machine(OF_MACHINE + 4)
    }

    /// The position of the number of scans: counters are those of the last one.
    pub fn scans(self) -> usize {
        self.of_machine(OF_MACHINE + 5)
    }

    /// Fills a row.
    pub fn fill(self, observer: &Observer, status: &WalkerStatus, row: &mut [u64]) {
        row.fill(NONE);
        let activity = &observer.activity;
        // If one process may not be read, the sums would be too small.
        let findings = observer.walked.as_ref().map(|walked| walked.findings).unwrap_or_default();
        let walked = observer.walked.as_ref().filter(|_| findings.denied.is_none());
        for (at, row) in row[..self.nodes * OF_NODES].chunks_exact_mut(OF_NODES).enumerate() {
            if let Some(walked) = walked {
                row[0] = walked.memory.on(at);
                row[1..MEMORY].copy_from_slice(&walked.memory.0[at]);
            }
            (row[MEMORY], row[MEMORY + 1]) = (activity.cpu_time[at], activity.threads[at]);
            if let Some(sums) = observer.allocators.sums() {
                let sum = sums[at];
                row[ALLOCATORS..ALLOCATORS + 5].copy_from_slice(&[
                    sum.mapped,
                    sum.in_use,
                    sum.cached,
                    sum.recycled,
                    sum.other_nodes,
                ]);
            }
            let regions = walked.and_then(|walked| walked.regions.as_ref());
            if let Some(regions) = regions.filter(|_| observer.allocators.unread().is_none()) {
                let node = observer.nodes().ids()[at] as usize;
                let pages = regions.get(node).copied().unwrap_or_default();
                (row[ALLOCATORS + 5], row[ALLOCATORS + 6]) = (pages.local, pages.spilled);
            }
        }
        let [minor, major, ticks] = observer.counts();
        let known = |value| walked.map_or(NONE, |_| value);
        let [migrations, voluntary, involuntary] = activity.switches;
        let ended = status.walk_end != 0;
        let huge_pages = walked.filter(|_| findings.huge_unknown.is_none()).map(|_| findings.huge_pages);
        let pid = |pid: Option<u32>| pid.map_or(NONE, u64::from);
        let machine: [u64; OF_MACHINE + HIDDEN] = [
            huge_pages.unwrap_or(NONE),
            minor,
            major,
            ticks,
            known(activity.away),
            observer.processes(),
            migrations,
            voluntary,
            involuntary,
            if ended { status.walk_time } else { NONE },
            // The age is computed at the time of the read.
            NONE,
            status.cpu,
            known(findings.variance.sqrt() as u64),
            observer.throttled.unwrap_or(NONE),
            if ended { status.walk_end } else { NONE },
            pid(findings.denied),
            pid(findings.held),
            pid(findings.huge_unknown),
            observer.allocators.unread().map_or(NONE, |_| 1),
            status.scans,
        ];
        row[self.nodes * OF_NODES..].copy_from_slice(&machine);
    }
}
