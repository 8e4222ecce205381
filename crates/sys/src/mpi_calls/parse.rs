//! The words of the memory file as what ranks wrote. Programs may have overwritten them: any words give something bounded.

use super::MpiOperation;
use super::layout::{
    CELL_WORDS, CELLS, COMMUNICATOR_NAME, COMMUNICATOR_WORDS, COMMUNICATORS, MASK_WORDS, OBSTACLE_WORDS,
    PAIR_WORDS, RANKS, SERVED, TEXT_WORDS, process as at,
};
use numakit_model::CpuSet;

/// Whose functions a rank calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MpiAbi {
    /// Those of Open MPI.
    OpenMpi,
    /// Those of MPICH, Intel MPI, MVAPICH or Cray MPI.
    Mpich,
    /// The standard ABI of MPI 5.
    Standard,
}

/// Whether a rank may read the memory of another one on this machine, so that a message is copied once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SingleCopy {
    /// No other rank was there when it was tried.
    Unknown,
    /// It works.
    Works,
    /// The kernel refuses it, with this error number; 0 if something else was read than the other rank has.
    Fails(i32),
    /// A filter of system calls may end a process that tries.
    Filtered,
}

/// Why it is not known how long ranks of a communicator wait for each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotJudged {
    /// It has two groups.
    Inter,
    /// The file has no room.
    NoRoom,
    /// Ranks run on other machines.
    OtherMachines,
}

/// The collectives that a user asked for in place of those of the MPI.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MpiServed {
    /// Only where the table of the machine says that they pay.
    pub is_auto: bool,
    /// Communicators that had them.
    pub communicators: u64,
    /// Calls that were theirs.
    pub calls: [(MpiOperation, u64); SERVED],
    /// Why none was; empty if some could be.
    pub obstacle: String,
}

/// A process that called `MPI_Init`.
#[derive(Debug, Clone, PartialEq)]
pub struct MpiProcess {
    /// Its ID, in its own namespace.
    pub pid: u32,
    /// The same number for all ranks of one job.
    pub job: u64,
    /// Its rank in `MPI_COMM_WORLD`.
    pub rank: u32,
    /// The number of ranks in `MPI_COMM_WORLD`.
    pub size: u32,
    /// Whose functions it calls; `None` for an unknown number.
    pub abi: Option<MpiAbi>,
    /// Several threads may call MPI at a time.
    pub is_multiple: bool,
    /// The first line of what the library calls itself.
    pub library: String,
    /// Time from `MPI_Init` to `MPI_Finalize`, in ns; `None` without the latter.
    pub run_ns: Option<u64>,
    /// CPU time in between, in ns; `None` as above.
    pub cpu_ns: Option<u64>,
    /// Whether it may read the memory of another rank.
    pub copy: SingleCopy,
    /// The CPUs that it may use.
    pub cpus: CpuSet,
    /// Calls that were counted without communicator and operation, for want of room.
    pub full_cells: u64,
    /// The library's collectives; `None` if those of the MPI were wanted.
    pub served: Option<MpiServed>,
    /// Its communicators, by their places.
    pub communicators: Vec<(usize, MpiCommunicator)>,
    /// What its calls cost.
    pub cells: Vec<MpiCell>,
    /// Other ranks, by their numbers in `MPI_COMM_WORLD`.
    pub peers: Vec<(u32, MpiPeer)>,
}

/// A communicator of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MpiCommunicator {
    /// The same number in all its ranks.
    pub key: u64,
    /// Its ranks.
    pub size: u32,
    /// Why waiting is not known.
    pub not_judged: Option<NotJudged>,
    /// Its name; may be empty.
    pub name: String,
}

/// Calls of an operation on a communicator with bytes of one class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MpiCell {
    /// The place of the communicator; `None` for those without room, and for calls without any.
    pub communicator: Option<usize>,
    /// The operation; `None` for the calls without a cell of their own.
    pub operation: Option<MpiOperation>,
    /// The class: 0 for no bytes, else one more than the power of two.
    pub class: u32,
    /// Calls.
    pub calls: u64,
    /// Time in them, in ns.
    pub ns: u64,
    /// Bytes of this rank.
    pub bytes: u64,
    /// The shortest call, in ns.
    pub least_ns: u64,
    /// Calls of which it is known how long they waited.
    pub judged: u64,
    /// Time in these, in ns.
    pub judged_ns: u64,
    /// Time in these in which another rank had not come yet, in ns.
    pub waited_ns: u64,
}

/// What a rank has to do with another one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MpiPeer {
    /// Messages to it.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Time in judged collectives in which this rank waited and the other came last, in ns.
    pub waited_ns: u64,
    /// How many these were.
    pub late: u64,
}

/// Nanoseconds of ticks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scale(pub u64);

impl Scale {
    fn ns(self, ticks: u64) -> u64 {
        u64::try_from((u128::from(ticks) * u128::from(self.0)) >> 32).unwrap_or(u64::MAX)
    }
}

/// The part of a process; `None` if it is not complete.
pub(super) fn process(words: &[u64], scale: Scale) -> Option<MpiProcess> {
    if words.len() != at::WORDS || words[at::STATE] != 1 {
        return None;
    }
    let number = |word: usize| u32::try_from(words[word]).ok();
    let (begin, end) = (words[at::BEGIN_TICKS], words[at::END_TICKS]);
    let run_ns = end.checked_sub(begin).filter(|_| end != 0).map(|ticks| scale.ns(ticks));
    let rows = |from: usize, count: usize, size: usize| words[from..from + count * size].chunks_exact(size);
    Some(MpiProcess {
        pid: number(at::PID)?,
        job: words[at::JOB],
        rank: number(at::RANK)?,
        size: number(at::SIZE)?,
        abi: match words[at::ABI] {
            1 => Some(MpiAbi::OpenMpi),
            2 => Some(MpiAbi::Mpich),
            3 => Some(MpiAbi::Standard),
            _ => None,
        },
        is_multiple: words[at::THREAD_LEVEL] == 3,
        library: text(&words[at::LIBRARY..at::LIBRARY + TEXT_WORDS]),
        run_ns,
        cpu_ns: run_ns.map(|_| words[at::CPU_NS]),
        copy: match words[at::COPY] {
            1 => SingleCopy::Works,
            2 => SingleCopy::Fails(i32::try_from(words[at::COPY_ERROR]).unwrap_or(0)),
            3 => SingleCopy::Filtered,
            _ => SingleCopy::Unknown,
        },
        cpus: mask(&words[at::MASK..at::MASK + MASK_WORDS]),
        full_cells: words[at::FULL_CELLS],
        served: served(words),
        communicators: rows(at::COMMUNICATORS_AT, COMMUNICATORS, COMMUNICATOR_WORDS)
            .enumerate()
            .filter_map(|(place, words)| Some((place, communicator(words)?)))
            .collect(),
        cells: rows(at::CELLS_AT, CELLS, CELL_WORDS).filter_map(|words| cell(words, scale)).collect(),
        peers: rows(at::PAIRS_AT, RANKS, PAIR_WORDS)
            .enumerate()
            .filter_map(|(rank, words)| Some((rank as u32, peer(words, scale)?)))
            .collect(),
    })
}

fn served(words: &[u64]) -> Option<MpiServed> {
    let [barrier, bcast, reduce, allreduce] = [0, 1, 2, 3].map(|at| words[at::SERVED_AT + at]);
    matches!(words[at::COLLECTIVES], 1 | 2).then(|| MpiServed {
        is_auto: words[at::COLLECTIVES] == 2,
        communicators: words[at::TEAMS],
        calls: [
            (MpiOperation::Barrier, barrier),
            (MpiOperation::Bcast, bcast),
            (MpiOperation::Reduce, reduce),
            (MpiOperation::Allreduce, allreduce),
        ],
        obstacle: text(&words[at::OBSTACLE..at::OBSTACLE + OBSTACLE_WORDS]),
    })
}

fn communicator(words: &[u64]) -> Option<MpiCommunicator> {
    (words[0] != 0).then(|| MpiCommunicator {
        key: words[0],
        size: u32::try_from(words[1]).unwrap_or(u32::MAX),
        not_judged: match words[3] {
            1 => Some(NotJudged::Inter),
            2 => Some(NotJudged::NoRoom),
            3 => Some(NotJudged::OtherMachines),
            _ => None,
        },
        name: text(&words[COMMUNICATOR_NAME..]),
    })
}

fn cell(words: &[u64], scale: Scale) -> Option<MpiCell> {
    let key = words[0].checked_sub(1);
    let part = |shift: u32| usize::try_from(key.unwrap_or(u64::MAX) >> shift).unwrap_or(usize::MAX);
    (words[1] > 0).then(|| MpiCell {
        communicator: Some(part(12)).filter(|place| *place < COMMUNICATORS - 1),
        operation: key.and_then(|_| MpiOperation::ALL.get(part(6) & 63).copied()),
        class: key.map_or(0, |key| (key & 63) as u32),
        calls: words[1],
        ns: scale.ns(words[2]),
        bytes: words[3],
        least_ns: scale.ns(words[4]),
        judged: words[5].min(words[1]),
        judged_ns: scale.ns(words[6]),
        waited_ns: scale.ns(words[7].min(words[6])),
    })
}

fn peer(words: &[u64], scale: Scale) -> Option<MpiPeer> {
    let peer = MpiPeer { messages: words[0], bytes: words[1], waited_ns: scale.ns(words[2]), late: words[3] };
    (peer != MpiPeer::default()).then_some(peer)
}

fn mask(words: &[u64]) -> CpuSet {
    let bits = words.iter().enumerate().flat_map(|(at, word)| {
        (0..64).filter(move |bit| word >> bit & 1 == 1).map(move |bit| at as u32 * 64 + bit)
    });
    bits.collect()
}

/// The first line, without what a terminal would not show as it is.
fn text(words: &[u64]) -> String {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    let line = bytes.split(|byte| *byte == 0 || *byte == b'\n').next().unwrap_or_default();
    let shown = String::from_utf8_lossy(line);
    let words: Vec<&str> =
        shown.split(|letter: char| letter.is_whitespace() || letter.is_control()).collect();
    words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCALE: Scale = Scale(1 << 32);

    fn words() -> Vec<u64> {
        let mut words = vec![0; at::WORDS];
        let own = [1, 77, 5, 2, 4, 2, 3, 100, 1100, 600, 2, 1];
        words[..own.len()].copy_from_slice(&own);
        words[at::LIBRARY] = u64::from_ne_bytes(*b"MPICH\t4\n");
        words[at::COLLECTIVES..at::OBSTACLE].copy_from_slice(&[2, 1, 10, 20, 0, 40]);
        words[at::OBSTACLE] = u64::from_ne_bytes(*b"no room\0");
        words[at::MASK + 1] = 0b101;
        words[at::COMMUNICATORS_AT..at::COMMUNICATORS_AT + 4].copy_from_slice(&[9, 4, 2, 3]);
        let barrier = MpiOperation::ALL.iter().position(|one| *one == MpiOperation::Barrier).unwrap() as u64;
        let cell = [1 + 64 * barrier, 10, 1000, 0, 50, 8, 800, 300];
        words[at::CELLS_AT..at::CELLS_AT + 8].copy_from_slice(&cell);
        words[at::PAIRS_AT + 4..at::PAIRS_AT + 8].copy_from_slice(&[3, 24, 300, 8]);
        words
    }

    #[test]
    fn what_a_rank_wrote_is_read() {
        let found = process(&words(), SCALE).unwrap();
        assert_eq!((found.pid, found.rank, found.size, found.is_multiple), (77, 2, 4, true));
        assert_eq!((found.run_ns, found.cpu_ns, found.copy), (Some(1000), Some(600), SingleCopy::Fails(1)));
        assert_eq!((found.library.as_str(), found.cpus.to_string().as_str()), ("MPICH 4", "64,66"));
        let served = found.served.unwrap();
        assert_eq!((served.is_auto, served.communicators, served.obstacle.as_str()), (true, 1, "no room"));
        assert_eq!(served.calls.map(|(_, calls)| calls), [10, 20, 0, 40]);
        assert_eq!(served.calls[3].0, MpiOperation::Allreduce);
        assert_eq!(found.communicators[0].1.not_judged, Some(NotJudged::OtherMachines));
        let cell = found.cells[0];
        assert_eq!((cell.operation, cell.communicator), (Some(MpiOperation::Barrier), Some(0)));
        assert_eq!((cell.calls, cell.judged, cell.waited_ns), (10, 8, 300));
        assert_eq!(found.peers, [(1, MpiPeer { messages: 3, bytes: 24, waited_ns: 300, late: 8 })]);
    }

    #[test]
    fn a_rank_that_has_not_ended_has_no_times_and_a_part_that_is_written_is_nothing() {
        let mut words = words();
        (words[at::END_TICKS], words[at::COLLECTIVES]) = (0, 0);
        let found = process(&words, SCALE).unwrap();
        assert_eq!((found.run_ns, found.served), (None, None));
        words[at::STATE] = 0;
        assert_eq!(process(&words, SCALE), None);
    }

    #[test]
    fn any_words_are_something() {
        for word in [u64::MAX, 1 << 63, 1] {
            let mut words = vec![word; at::WORDS];
            words[at::STATE] = 1;
            let _ = process(&words, Scale(u64::MAX));
            let small = [at::PID, at::RANK, at::SIZE];
            small.iter().for_each(|at| words[*at] = 1);
            let found = process(&words, Scale(u64::MAX)).unwrap();
            assert!(found.cells.len() <= CELLS && found.peers.len() <= RANKS);
        }
    }
}
