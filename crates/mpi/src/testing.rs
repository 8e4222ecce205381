//! Ranks for tests.

use numakit_model::CpuSet;
use numakit_sys::mpi_calls::{MpiAbi, MpiCell, MpiCommunicator, MpiOperation, MpiProcess, SingleCopy};

/// A rank that ran for a second on a CPU of its own.
pub(crate) fn process(rank: u32, size: u32) -> MpiProcess {
    let world = MpiCommunicator { key: 9, size, not_judged: None, name: "MPI_COMM_WORLD".to_owned() };
    MpiProcess {
        pid: 100 + rank,
        job: 5,
        rank,
        size,
        abi: Some(MpiAbi::OpenMpi),
        is_multiple: false,
        library: "Open MPI v5.0.11".to_owned(),
        run_ns: Some(1_000_000_000),
        cpu_ns: Some(1_000_000_000),
        copy: SingleCopy::Works,
        cpus: CpuSet::range(rank, rank),
        full_cells: 0,
        served: None,
        communicators: vec![(0, world)],
        cells: Vec::new(),
        peers: Vec::new(),
    }
}

/// Calls on `MPI_COMM_WORLD`.
pub(crate) fn cell(operation: MpiOperation, class: u32, calls: u64, ns: u64) -> MpiCell {
    MpiCell {
        communicator: Some(0),
        operation: Some(operation),
        class,
        calls,
        ns,
        bytes: 0,
        least_ns: 0,
        judged: 0,
        judged_ns: 0,
        waited_ns: 0,
    }
}
