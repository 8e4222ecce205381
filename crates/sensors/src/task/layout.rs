//! The order of the values in a row: node by node, those of the machine, and behind them what
//! only the sensor itself looks at.

use super::board::NONE;
use super::observer::Observer;

/// Values that each node has one of, in the table's order.
pub const OF_NODES: usize = 8;
/// Values that there is one of.
pub const OF_MACHINE: usize = 15;
/// Which of these are the time and the age of the last walk.
pub const WALK_TIME: usize = 11;
/// As above.
pub const WALK_AGE: usize = 12;
/// When the last walk ended, who could not be looked into, who was held up meanwhile, and whose
/// huge pages are not known.
const HIDDEN: usize = 4;

/// Values from the observer's memory.
const MEMORY: usize = 6;

/// What the walker knows of itself.
#[derive(Debug, Clone, Copy, Default)]
pub struct WalkerStatus {
    /// How long the last walk took, ns.
    pub walk_time: u64,
    /// When it ended, monotonic ns; 0 before the first one.
    pub walk_end: u64,
    /// CPU time so far, ns.
    pub cpu: u64,
}

/// The places of the values.
#[derive(Debug, Clone, Copy)]
pub struct TaskSeries {
    nodes: usize,
}

impl TaskSeries {
    /// For a machine of that many nodes.
    pub fn new(nodes: usize) -> Self {
        Self { nodes }
    }

    /// Length of a row.
    pub fn values(self) -> usize {
        self.nodes * OF_NODES + OF_MACHINE + HIDDEN
    }

    /// The place of a value of a node.
    pub fn of_node(self, which: usize, node: usize) -> usize {
        node * OF_NODES + which
    }

    /// The place of a value of the machine.
    pub fn of_machine(self, which: usize) -> usize {
        self.nodes * OF_NODES + which
    }

    /// The place of the time at which the last walk ended.
    pub fn walk_end(self) -> usize {
        self.of_machine(OF_MACHINE)
    }

    /// The place of the pid that could not be looked into.
    pub fn denied(self) -> usize {
        self.of_machine(OF_MACHINE + 1)
    }

    /// The place of the pid whose lock was held while it was looked at.
    pub fn held(self) -> usize {
        self.of_machine(OF_MACHINE + 2)
    }

    /// The place of the pid whose huge pages could not be counted.
    pub fn huge_unknown(self) -> usize {
        self.of_machine(OF_MACHINE + 3)
    }

    /// Puts what is known into a row.
    pub fn fill(self, observer: &Observer, status: &WalkerStatus, row: &mut [u64]) {
        row.fill(NONE);
        let activity = &observer.activity;
        // With one process that may not be looked into, the sums would be too small.
        let findings = observer.walked.as_ref().map(|walked| walked.findings).unwrap_or_default();
        let walked = observer.walked.as_ref().filter(|_| findings.denied.is_none());
        for (at, row) in row[..self.nodes * OF_NODES].chunks_exact_mut(OF_NODES).enumerate() {
            if let Some(walked) = walked {
                row[0] = walked.memory.on(at);
                row[1..MEMORY].copy_from_slice(&walked.memory.0[at]);
            }
            (row[MEMORY], row[MEMORY + 1]) = (activity.cpu_time[at], activity.threads[at]);
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
            known(activity.near),
            known(activity.far),
            known(activity.away),
            observer.processes(),
            migrations,
            voluntary,
            involuntary,
            if ended { status.walk_time } else { NONE },
            // The age is told at the moment of reading.
            NONE,
            status.cpu,
            known(findings.variance.sqrt() as u64),
            if ended { status.walk_end } else { NONE },
            pid(findings.denied),
            pid(findings.held),
            pid(findings.huge_unknown),
        ];
        row[self.nodes * OF_NODES..].copy_from_slice(&machine);
    }
}
