//! Collectives of `numa run --collectives`: which calls were the library's.

use crate::rows::MpiRow;
use numakit_sys::mpi_calls::{MpiProcess, MpiServed};
use serde::{Deserialize, Serialize};

/// The collectives that the user asked for in place of those of the MPI.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServedCollectives {
    /// `auto` or `small`.
    pub which: String,
    /// Why ranks had none, as the first of them says; `None` if all of them could have.
    pub obstacle: Option<String>,
    /// Communicators that had them, of the rank with most.
    pub communicators: u64,
    /// The operations that the library has.
    pub operations: Vec<ServedOperation>,
}

/// Calls of all ranks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServedOperation {
    /// As in `Allreduce`.
    pub operation: String,
    /// Calls.
    pub calls: u64,
    /// Those that were the library's.
    pub served: u64,
}

/// What the ranks of a job had; `None` if those of the MPI were wanted.
pub(crate) fn served(processes: &[&MpiProcess], rows: &[MpiRow]) -> Option<ServedCollectives> {
    let all: Vec<&MpiServed> = processes.iter().filter_map(|process| process.served.as_ref()).collect();
    let first = all.first()?;
    let operation = |at: usize| {
        let name = first.calls[at].0.name();
        let calls = rows.iter().filter(|row| row.operation == name).map(|row| row.calls);
        ServedOperation {
            calls: calls.fold(0, u64::saturating_add),
            served: all.iter().map(|served| served.calls[at].1).fold(0, u64::saturating_add),
            operation: name,
        }
    };
    Some(ServedCollectives {
        which: if first.is_auto { "auto" } else { "small" }.to_owned(),
        obstacle: all.iter().map(|served| &served.obstacle).find(|why| !why.is_empty()).cloned(),
        communicators: all.iter().map(|served| served.communicators).max().unwrap_or(0),
        operations: (0..first.calls.len()).map(operation).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::rows;
    use crate::testing::{cell, process};
    use numakit_sys::mpi_calls::MpiOperation;

    #[test]
    fn calls_are_counted_beside_those_of_the_library() {
        let calls = [
            (MpiOperation::Barrier, 29),
            (MpiOperation::Bcast, 0),
            (MpiOperation::Reduce, 0),
            (MpiOperation::Allreduce, 7),
        ];
        let had = MpiServed { is_auto: true, communicators: 2, calls, obstacle: String::new() };
        let cells = vec![cell(MpiOperation::Barrier, 0, 30, 1), cell(MpiOperation::Allreduce, 4, 8, 1)];
        let with = |rank, served| MpiProcess { served, cells: cells.clone(), ..process(rank, 2) };
        let none =
            MpiServed { obstacle: "no room".to_owned(), calls: calls.map(|(of, _)| (of, 0)), ..had.clone() };
        let job = [with(0, Some(had)), with(1, Some(none))];
        let all: Vec<&MpiProcess> = job.iter().collect();
        let found = served(&all, &rows(&all)).unwrap();
        assert_eq!((found.which.as_str(), found.communicators), ("auto", 2));
        assert_eq!(found.obstacle.as_deref(), Some("no room"));
        let counts: Vec<(u64, u64)> = found.operations.iter().map(|one| (one.calls, one.served)).collect();
        assert_eq!(counts, [(60, 29), (0, 0), (0, 0), (16, 7)]);
        let unasked = with(0, None);
        assert_eq!(served(&[&unasked], &[]), None);
    }
}
