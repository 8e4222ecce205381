//! Calls by communicator, operation and size.

use numakit_sys::mpi_calls::{MpiCell, MpiCommunicator, MpiGroup, MpiOperation, MpiProcess};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How the time of calls is divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CallTime {
    /// The ranks wrote down when they came to a collective: waiting is the time until the last one that is needed.
    Measured,
    /// Of messages it is not known when the other rank came: waiting is what is above the shortest call of this size.
    Estimated,
    /// Not known.
    Unknown,
}

/// Calls of an operation on a communicator with bytes of one class, of all ranks together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MpiRow {
    /// The name of the communicator, or what it is called by its ranks; `-` for calls without one.
    pub communicator: String,
    /// Its ranks; 0 for calls without a communicator.
    pub ranks: u32,
    /// The operation, as in `Allreduce`; `-` for calls that had no room.
    pub operation: String,
    /// The least number of bytes of a call.
    pub from_bytes: u64,
    /// The largest number of bytes of a call.
    pub to_bytes: u64,
    /// Calls of all ranks.
    pub calls: u64,
    /// Bytes of all ranks: what each gave to the call, or what a receive had room for.
    pub bytes: u64,
    /// Time of all ranks in these calls, in seconds.
    pub seconds: f64,
    /// The part of it in which they waited for late ranks, in seconds; `None` if it is not known.
    pub waiting: Option<f64>,
    /// The rest, in which data was moved, in seconds.
    pub moving: Option<f64>,
    /// How the time is divided.
    pub divided: CallTime,
    /// The part of the calls of which waiting was measured, from 0 to 1; the others are taken to be like them.
    pub judged: f64,
}

/// Sums of a row.
#[derive(Default)]
struct RowSums {
    ranks: u32,
    calls: u64,
    bytes: u64,
    ns: u64,
    judged: u64,
    judged_ns: u64,
    waited_ns: u64,
    least_ns: u64,
}

impl RowSums {
    fn add(&mut self, cell: &MpiCell) {
        self.calls = self.calls.saturating_add(cell.calls);
        self.bytes = self.bytes.saturating_add(cell.bytes);
        self.ns = self.ns.saturating_add(cell.ns);
        self.judged = self.judged.saturating_add(cell.judged);
        self.judged_ns = self.judged_ns.saturating_add(cell.judged_ns);
        self.waited_ns = self.waited_ns.saturating_add(cell.waited_ns);
        self.least_ns = self.least_ns.saturating_add(cell.calls.saturating_mul(cell.least_ns).min(cell.ns));
    }

    /// Waiting, and how it is known.
    fn waiting(&self, operation: Option<MpiOperation>) -> (Option<f64>, CallTime) {
        let seconds = self.ns as f64 / 1e9;
        match operation.map(MpiOperation::group) {
            None => (None, CallTime::Unknown),
            Some(MpiGroup::Collective) if self.ranks == 1 => (Some(0.0), CallTime::Measured),
            Some(MpiGroup::Collective) if self.judged == 0 => (None, CallTime::Unknown),
            Some(MpiGroup::Collective) => {
                let share = self.waited_ns as f64 / self.judged_ns.max(1) as f64;
                (Some(seconds * share.min(1.0)), CallTime::Measured)
            }
            Some(MpiGroup::Start) => (Some(0.0), CallTime::Estimated),
            Some(MpiGroup::Send | MpiGroup::Receive | MpiGroup::Wait) => {
                (Some((self.ns - self.least_ns.min(self.ns)) as f64 / 1e9), CallTime::Estimated)
            }
        }
    }
}

/// Which calls are one row.
type RowKey = (Option<u64>, Option<MpiOperation>, u32);

/// All rows of the processes of a job, those that took longest first.
pub(crate) fn rows(processes: &[&MpiProcess]) -> Vec<MpiRow> {
    let mut sums: BTreeMap<RowKey, RowSums> = BTreeMap::new();
    let mut names: BTreeMap<u64, String> = BTreeMap::new();
    for process in processes {
        let known: BTreeMap<usize, &MpiCommunicator> =
            process.communicators.iter().map(|(place, communicator)| (*place, communicator)).collect();
        for cell in &process.cells {
            let communicator = cell.communicator.and_then(|place| known.get(&place));
            if let Some(communicator) = communicator {
                names.entry(communicator.key).or_insert_with(|| name_of(communicator));
            }
            let key = (communicator.map(|communicator| communicator.key), cell.operation, cell.class);
            let row = sums.entry(key).or_default();
            row.ranks = communicator.map_or(0, |communicator| communicator.size);
            row.add(cell);
        }
    }
    let mut rows: Vec<MpiRow> = sums.iter().map(|(key, sums)| row(*key, sums, &names)).collect();
    rows.sort_by(|one, other| other.seconds.total_cmp(&one.seconds));
    rows
}

fn name_of(communicator: &MpiCommunicator) -> String {
    match communicator.name.as_str() {
        "" => format!("{} ranks, {:04x}", communicator.size, communicator.key & 0xffff),
        name => name.to_owned(),
    }
}

fn row((key, operation, class): RowKey, sums: &RowSums, names: &BTreeMap<u64, String>) -> MpiRow {
    let (waiting, divided) = sums.waiting(operation);
    let seconds = sums.ns as f64 / 1e9;
    MpiRow {
        communicator: key.and_then(|key| names.get(&key).cloned()).unwrap_or_else(|| "-".to_owned()),
        ranks: sums.ranks,
        operation: operation.map_or_else(|| "-".to_owned(), MpiOperation::name),
        from_bytes: if class == 0 { 0 } else { 1 << (class - 1).min(63) },
        to_bytes: if class == 0 { 0 } else { u64::MAX >> (64 - class.min(64)) },
        calls: sums.calls,
        bytes: sums.bytes,
        seconds,
        waiting,
        moving: waiting.map(|waiting| (seconds - waiting).max(0.0)),
        divided,
        judged: if sums.ranks == 1 { 1.0 } else { sums.judged as f64 / sums.calls.max(1) as f64 },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{cell, process};

    #[test]
    fn ranks_of_a_communicator_are_one_row() {
        let mut two = [process(0, 2), process(1, 2)];
        let barrier = MpiOperation::Barrier;
        two[0].cells =
            vec![MpiCell { judged: 5, judged_ns: 500, waited_ns: 100, ..cell(barrier, 0, 10, 1000) }];
        two[1].cells =
            vec![MpiCell { judged: 5, judged_ns: 500, waited_ns: 400, ..cell(barrier, 0, 10, 1000) }];
        let rows = rows(&two.iter().collect::<Vec<_>>());
        assert_eq!(rows.len(), 1);
        let row = &rows[0];
        assert_eq!(
            (row.communicator.as_str(), row.operation.as_str(), row.calls),
            ("MPI_COMM_WORLD", "Barrier", 20)
        );
        assert_eq!((row.waiting, row.judged, row.divided), (Some(1e-6), 0.5, CallTime::Measured));
        assert_eq!(row.moving, Some(2e-6 - 1e-6));
    }

    #[test]
    fn messages_wait_above_their_shortest_call() {
        let mut one = process(0, 2);
        let recv = MpiCell { least_ns: 30, bytes: 80, ..cell(MpiOperation::Recv, 4, 10, 1000) };
        one.cells = vec![recv, cell(MpiOperation::Isend, 4, 10, 10), cell(MpiOperation::Allreduce, 4, 1, 5)];
        let rows = rows(&[&one]);
        assert_eq!((rows[0].waiting, rows[0].divided), (Some(700e-9), CallTime::Estimated));
        assert_eq!((rows[0].from_bytes, rows[0].to_bytes), (8, 15));
        assert_eq!((rows[1].operation.as_str(), rows[1].waiting), ("Isend", Some(0.0)));
        assert_eq!((rows[2].waiting, rows[2].divided), (None, CallTime::Unknown));
    }
}
