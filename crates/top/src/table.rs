//! Processes: what is known of each, their order, and which of them are shown.

use numakit_processes::{MemorySource, ProcessSample, descendants, per_second};
use std::cmp::Ordering;
use std::collections::HashMap;

/// A process.
#[derive(Debug, Clone, PartialEq)]
pub struct ProcessRow {
    /// Its number; 0: the observed program of a recording.
    pub pid: u32,
    /// Its parent.
    pub parent: u32,
    /// Its user.
    pub user: String,
    /// The name of its program.
    pub command: String,
    /// Percent of a CPU.
    pub cpu: Option<f64>,
    /// Share of its memory on other nodes than its threads, weighted with their time, in percent.
    pub remote: Option<f64>,
    /// Resident bytes.
    pub resident: Option<u64>,
    /// Bytes on each node, or why they are unknown.
    pub memory: Result<Vec<u64>, NotRead>,
    /// Page faults per second.
    pub faults: Option<f64>,
    /// Pages per second that NUMA balancing moved; none unless they are counted.
    pub moved: Option<f64>,
}

/// Why the memory of a process is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotRead {
    /// It may not be read.
    Denied,
    /// Its turn has not come.
    Waits,
    /// The kernel only shows it while it stops the process.
    Refused,
    /// The recording does not have it.
    NotRecorded,
}

impl NotRead {
    /// In words, with the fix where that is another right.
    pub fn words(self, fix: &str) -> String {
        match self {
            Self::Denied => format!("cannot be read; {fix}"),
            Self::Waits => "is not read yet: reading memory takes at most 0.15 % of a core".to_owned(),
            Self::Refused => {
                "is not read: move_pages is refused here, and reading numa_maps would block a process \
                              of that size; numa top --once -p PID reads it"
                    .to_owned()
            }
            Self::NotRecorded => "is not in the recording; record with numa record COMMAND".to_owned(),
        }
    }
}

/// All processes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ProcessTable {
    /// The processes.
    pub rows: Vec<ProcessRow>,
    /// Why there are none, if so.
    pub absent: Option<String>,
    /// The fix if the kernel denies reading other processes.
    pub fix: String,
}

/// The order of processes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ProcessOrder {
    /// CPU time.
    #[default]
    Cpu,
    /// CPU time times the share of remote memory.
    Remote,
    /// Resident memory.
    Memory,
    /// Page faults.
    Faults,
    /// Moved pages.
    Moved,
    /// Number.
    Pid,
    /// Name of the program.
    Name,
}

impl ProcessOrder {
    /// All, in the order in which a key selects them.
    pub const ALL: [Self; 7] =
        [Self::Cpu, Self::Remote, Self::Memory, Self::Faults, Self::Moved, Self::Pid, Self::Name];

    /// The word on the command line and on the screen.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Remote => "remote",
            Self::Memory => "memory",
            Self::Faults => "faults",
            Self::Moved => "moved",
            Self::Pid => "pid",
            Self::Name => "name",
        }
    }

    /// The next one.
    pub fn next(self) -> Self {
        let at = Self::ALL.iter().position(|key| *key == self).unwrap_or(0);
        Self::ALL[(at + 1) % Self::ALL.len()]
    }

    /// The most first, or the lowest number and the first name.
    fn compare(self, a: &ProcessRow, b: &ProcessRow) -> Ordering {
        // What is unknown comes after everything that is known.
        let most = |a: Option<f64>, b: Option<f64>| {
            let order = |value: Option<f64>| value.unwrap_or(f64::NEG_INFINITY);
            order(b).total_cmp(&order(a))
        };
        let far = |p: &ProcessRow| Some(p.cpu? * p.remote?);
        match self {
            Self::Cpu => most(a.cpu, b.cpu),
            Self::Remote => most(far(a), far(b)).then_with(|| most(a.remote, b.remote)),
            Self::Memory => b.resident.cmp(&a.resident),
            Self::Faults => most(a.faults, b.faults),
            Self::Moved => most(a.moved, b.moved),
            Self::Pid => Ordering::Equal,
            Self::Name => a.command.to_lowercase().cmp(&b.command.to_lowercase()),
        }
    }
}

/// Which processes are shown, and in which order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProcessSelection {
    /// The order.
    pub sort: ProcessOrder,
    /// Whether it is reversed.
    pub reversed: bool,
    /// Only those whose command, user or number contains this.
    pub filter: String,
    /// Only these processes and their descendants; empty: all.
    pub of: Vec<u32>,
}

impl ProcessTable {
    /// Whether moved pages are counted.
    pub fn counts_moved(&self) -> bool {
        self.rows.iter().any(|row| row.moved.is_some())
    }

    /// The positions of the rows that are shown, in their order.
    pub fn shown(&self, selection: &ProcessSelection) -> Vec<usize> {
        let family = (!selection.of.is_empty()).then(|| {
            let parents = self.rows.iter().map(|row| (row.parent, row.pid));
            descendants(parents, &selection.of)
        });
        let filter = selection.filter.to_lowercase();
        let matches = |row: &ProcessRow| {
            filter.is_empty()
                || row.command.to_lowercase().contains(&filter)
                || row.user.to_lowercase().contains(&filter)
                || row.pid.to_string() == filter
        };
        let is_shown =
            |row: &ProcessRow| matches(row) && family.as_ref().is_none_or(|f| f.contains(&row.pid));
        let mut shown: Vec<usize> = (0..self.rows.len()).filter(|&at| is_shown(&self.rows[at])).collect();
        shown.sort_by(|&a, &b| {
            let (a, b) = (&self.rows[a], &self.rows[b]);
            let order = selection.sort.compare(a, b).then(a.pid.cmp(&b.pid));
            if selection.reversed { order.reverse() } else { order }
        });
        shown
    }
}

/// What is remembered of a process whose memory is not read each time.
#[derive(Debug, Clone)]
struct Known {
    memory: Result<Vec<u64>, NotRead>,
    remote: Option<f64>,
    /// The measurement in which it was read; none: never.
    read: Option<u64>,
}

/// Keeps the memory of processes from one measurement to the next: not all of it can be read each time.
#[derive(Debug, Default)]
pub struct Memories {
    known: HashMap<(u32, u64), Known>,
    measurement: u64,
}

impl Memories {
    /// How urgent it is to read the memory of a process: one that was never read, then one that ran much and was read long ago.
    pub fn urgency(&self, pid: u32, start: u64, ran: u64, resident: u64) -> (u64, u64) {
        let age = match self.known.get(&(pid, start)).and_then(|known| known.read) {
            None => u64::from(u32::MAX),
            Some(read) => self.measurement.saturating_sub(read) + 1,
        };
        ((ran / 1_000_000 + 1).saturating_mul(age), resident)
    }

    /// The rows of a measurement of that length.
    pub fn rows(&mut self, samples: Vec<ProcessSample>, seconds: f64, nodes: usize) -> Vec<ProcessRow> {
        self.measurement += 1;
        let mut known = HashMap::with_capacity(samples.len());
        let rows = samples
            .into_iter()
            .map(|sample| {
                let memory = self.remember(&sample, nodes);
                let row = row(&sample, seconds, &memory);
                known.insert((sample.pid, sample.start), memory);
                row
            })
            .collect();
        self.known = known;
        rows
    }

    fn remember(&mut self, sample: &ProcessSample, nodes: usize) -> Known {
        let read = Some(self.measurement);
        let memory = match &sample.found {
            MemorySource::Memory(memory) => Ok((0..nodes).map(|at| memory.on(at)).collect()),
            MemorySource::Denied => Err(NotRead::Denied),
            MemorySource::Refused => Err(NotRead::Refused),
            MemorySource::Late => {
                let unread = Known { memory: Err(NotRead::Waits), remote: None, read: None };
                return self.known.remove(&(sample.pid, sample.start)).unwrap_or(unread);
            }
        };
        // On one node nothing can be remote.
        let remote = sample.remote_percent().filter(|_| nodes > 1);
        Known { memory, remote, read }
    }
}

fn row(sample: &ProcessSample, seconds: f64, known: &Known) -> ProcessRow {
    let rate = |count: Option<u64>| per_second(count?, seconds);
    ProcessRow {
        pid: sample.pid,
        parent: sample.parent,
        user: sample.user.clone(),
        command: sample.command.clone(),
        cpu: sample.cpu_percent(seconds),
        remote: known.remote,
        resident: Some(sample.resident),
        memory: known.memory.clone(),
        faults: rate(sample.faults),
        moved: rate(sample.moved),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use numakit_processes::MemoryByUse;

    fn sample(pid: u32, parent: u32, ran_ms: u64, found: MemorySource) -> ProcessSample {
        ProcessSample {
            pid,
            parent,
            start: 5,
            user: "me".into(),
            command: format!("Program{pid}"),
            ran: ran_ms * 1_000_000,
            faults: Some(30),
            moved: (pid == 8).then_some(500),
            near_far: matches!(found, MemorySource::Memory(_)).then_some((1, 3)),
            resident: u64::from(pid) << 20,
            found,
            ..ProcessSample::default()
        }
    }

    fn memory() -> MemorySource {
        let mut memory = MemoryByUse::none(2);
        memory.0[1][0] = 4096;
        MemorySource::Memory(memory)
    }

    fn table() -> ProcessTable {
        let samples = vec![
            sample(1, 0, 10, memory()),
            sample(7, 1, 900, MemorySource::Late),
            sample(8, 7, 20, memory()),
        ];
        ProcessTable { rows: Memories::default().rows(samples, 2.0, 2), ..ProcessTable::default() }
    }

    fn shown(selection: &ProcessSelection) -> Vec<u32> {
        let table = table();
        table.shown(selection).into_iter().map(|at| table.rows[at].pid).collect()
    }

    #[test]
    fn processes_are_sorted_and_filtered() {
        let sorted = |sort| shown(&ProcessSelection { sort, ..ProcessSelection::default() });
        assert_eq!(sorted(ProcessOrder::Cpu), [7, 8, 1]);
        assert_eq!(sorted(ProcessOrder::Remote), [8, 1, 7], "the unknown is last");
        assert_eq!((sorted(ProcessOrder::Memory), sorted(ProcessOrder::Pid)), (vec![8, 7, 1], vec![1, 7, 8]));
        assert_eq!(sorted(ProcessOrder::Moved), [8, 1, 7]);
        assert_eq!(table().rows.iter().map(|row| row.moved).collect::<Vec<_>>(), [None, None, Some(250.0)]);
        let reversed =
            ProcessSelection { sort: ProcessOrder::Pid, reversed: true, ..ProcessSelection::default() };
        assert_eq!(shown(&reversed), [8, 7, 1]);
        let filter =
            |text: &str| shown(&ProcessSelection { filter: text.into(), ..ProcessSelection::default() });
        assert_eq!((filter("program7"), filter("8"), filter("ME").len()), (vec![7], vec![8], 3));
        assert_eq!(shown(&ProcessSelection { of: vec![7], ..ProcessSelection::default() }), [7, 8]);
        assert_eq!(ProcessOrder::ALL.map(ProcessOrder::next).len(), 7);
        assert_eq!(ProcessOrder::Name.next(), ProcessOrder::Cpu);
    }

    #[test]
    fn memory_that_was_not_read_again_is_remembered() {
        let mut memories = Memories::default();
        let first = memories.rows(vec![sample(7, 1, 10, memory())], 1.0, 2);
        assert_eq!(
            (&first[0].memory, first[0].remote, first[0].cpu),
            (&Ok(vec![0, 4096]), Some(75.0), Some(1.0))
        );
        let late = memories.rows(vec![sample(7, 1, 10, MemorySource::Late)], 1.0, 2);
        assert_eq!((&late[0].memory, late[0].remote), (&first[0].memory, Some(75.0)));
        let new = memories.rows(vec![sample(9, 1, 10, MemorySource::Late)], 1.0, 2);
        assert_eq!((&new[0].memory, new[0].remote), (&Err(NotRead::Waits), None));
        let denied = memories.rows(vec![sample(9, 1, 10, MemorySource::Denied)], 1.0, 2);
        assert_eq!(denied[0].memory, Err(NotRead::Denied));
    }

    #[test]
    fn what_was_never_read_is_most_urgent() {
        let mut memories = Memories::default();
        memories.rows(vec![sample(7, 1, 10, memory())], 1.0, 2);
        let urgency = |pid, ran| memories.urgency(pid, 5, ran, 0);
        assert!(urgency(8, 0) > urgency(7, 1_000_000_000));
        assert!(urgency(7, 50_000_000) > urgency(7, 1_000_000));
    }

    #[test]
    fn on_one_node_nothing_is_remote() {
        let rows = Memories::default().rows(vec![sample(1, 0, 10, memory())], 1.0, 1);
        assert_eq!(rows[0].remote, None);
    }
}
