//! The ranks of an MPI job: how long each works, and how long it waits in MPI for the others.

use crate::account::ThreadTimes;
use crate::call_tree::NO_CHAIN;
use crate::chain_names::ChainNames;
use crate::code::CodeName;
use crate::observation::Observation;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

/// Functions of MPI that are kept of a rank.
const MAX_CALLS: usize = 4;
/// Begins of the names of the libraries in which MPI waits: of MPI itself, of what carries messages, and of events.
const LIBRARIES: [&str; 17] = [
    "libmpi",
    "libpmpi",
    "libopen-pal",
    "libopen-rte",
    "libpmix",
    "mca_",
    "libmca_",
    "libuc",
    "libfabric",
    "libpsm",
    "libinfinipath",
    "libibverbs",
    "libmlx",
    "librdmacm",
    "libhcoll",
    "libevent",
    "[vdso]",
];
/// Begins of names of functions of these libraries that work: they reduce or pack data.
const WORKING: [&str; 4] = ["ompi_op_", "mca_op_", "opal_convertor", "opal_generic_simple"];
/// Functions of the C library that give the CPU away, look whether something has come, or ask for the time of that.
const YIELDING: [&str; 9] = [
    "sched_yield",
    "epoll_wait",
    "epoll_pwait",
    "poll",
    "ppoll",
    "select",
    "nanosleep",
    "clock_nanosleep",
    "clock_gettime",
];

/// The time of a rank.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RankTime {
    /// Its number in the job.
    pub rank: u32,
    /// Its process.
    pub pid: u32,
    /// CPU time in ns in which it did not wait for other ranks.
    pub worked: u64,
    /// CPU time in ns in which it waited in MPI.
    pub waited: u64,
    /// Time in ns in which its threads could have run and had no CPU.
    pub runnable: u64,
    /// How long its first thread was observed, in ns.
    pub observed: u64,
    /// The functions of MPI in which it waited, that with the longest time first.
    pub calls: Vec<MpiCall>,
}

/// A function of MPI in which a rank waited.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MpiCall {
    /// Its name in C, such as `MPI_Allreduce`.
    pub function: String,
    /// CPU time in ns.
    pub time: u64,
}

/// A process that has a rank.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RankProcess {
    /// Its number in the job.
    pub rank: u32,
    /// Its process.
    pub pid: u32,
    /// Whether it has loaded a library of MPI.
    pub is_mpi: bool,
    /// The time of its threads together, and how long its first thread was observed, in ns.
    pub times: ThreadTimes,
    pub observed: u64,
    /// CPU time in the kernel in ns: for functions that only wait, and for others.
    pub kernel: [u64; 2],
}

/// Which samples of ranks wait in MPI.
#[derive(Debug, Default)]
pub(crate) struct MpiWaits {
    /// The processes with a rank, by their places in the list of processes.
    ranks: BTreeMap<u32, RankProcess>,
    /// The function of MPI in which a chain waits; `None` if it does not wait.
    chains: HashMap<u32, Option<String>>,
}

impl MpiWaits {
    /// Looks at the chains of the samples of these processes.
    pub(crate) fn find(
        observations: &[Observation],
        ranks: BTreeMap<u32, RankProcess>,
        names: &mut ChainNames<'_>,
    ) -> Self {
        let mut chains = HashMap::from([(NO_CHAIN, None)]);
        for at in observations.iter().filter(|at| ranks.contains_key(&at.process)) {
            chains.entry(at.chain).or_insert_with(|| waiting_call(&names.of(at.chain)));
        }
        Self { ranks, chains }
    }

    /// The function of MPI in which the thread of a sample waits.
    pub(crate) fn call(&self, at: &Observation) -> Option<&str> {
        self.ranks.get(&at.process)?;
        self.chains.get(&at.chain)?.as_deref()
    }

    /// The processes whose threads wait for each other have one number: ranks that of the first of them.
    pub(crate) fn job(&self, process: u32) -> u32 {
        let first = self.ranks.first_key_value().map_or(process, |(first, _)| *first);
        if self.ranks.contains_key(&process) { first } else { process }
    }

    /// The ranks in their order. A process with a rank that does nothing of MPI is none: a shell that starts one.
    pub(crate) fn times(&self, observations: &[Observation]) -> Vec<RankTime> {
        let mut times: BTreeMap<u32, (u64, BTreeMap<&str, u64>)> = BTreeMap::new();
        for at in observations.iter().filter(|at| self.ranks.contains_key(&at.process)) {
            let (worked, calls) = times.entry(at.process).or_default();
            match self.call(at) {
                Some(call) => *calls.entry(call).or_default() += at.weight,
                None => *worked += at.weight,
            }
        }
        let rank = |(place, process): (&u32, &RankProcess)| {
            let (worked, calls) = times.remove(place).unwrap_or_default();
            let RankProcess { rank, pid, times, observed, kernel: [yielded, other], .. } = *process;
            let waited = calls.values().sum::<u64>() + yielded;
            let call = |(function, time): (&str, u64)| MpiCall { function: function.to_owned(), time };
            let mut calls: Vec<MpiCall> = calls.into_iter().map(call).collect();
            calls.sort_by_key(|call| Reverse(call.time));
            calls.truncate(MAX_CALLS);
            let runnable = times.runnable;
            let is_rank = process.is_mpi || !calls.is_empty();
            is_rank.then_some(RankTime {
                rank,
                pid,
                worked: worked + other,
                waited,
                runnable,
                observed,
                calls,
            })
        };
        let mut ranks: Vec<RankTime> = self.ranks.iter().filter_map(rank).collect();
        ranks.sort_by_key(|rank| (rank.rank, rank.pid));
        ranks
    }
}

/// Whether a function of the C library only waits.
pub(crate) fn is_yielding(function: &str) -> bool {
    YIELDING
        .contains(&function.trim_start_matches("__").trim_start_matches("GI___").trim_start_matches("GI_"))
}

/// Whether this is the name of a library of MPI.
pub(crate) fn is_mpi(library: &str) -> bool {
    library.starts_with("libmpi") || library.starts_with("libpmpi")
}

/// The function of MPI in which a chain waits for other ranks, in C; `None` if it does not wait. `chain` is innermost first.
fn waiting_call(chain: &[CodeName]) -> Option<String> {
    let innermost = chain.first()?;
    let function = innermost.function.as_deref().unwrap_or_default();
    let is_library = LIBRARIES.iter().any(|library| innermost.module.starts_with(library));
    let works =
        WORKING.iter().any(|start| function.starts_with(start) || innermost.module.starts_with(start));
    if works || !is_library && !is_yielding(function) {
        return None;
    }
    // The outermost function is the one that the program calls: some call others.
    let name = |code: &CodeName| {
        let function = code.function.as_deref()?;
        let function = function.strip_prefix('P').unwrap_or(function);
        function.starts_with("MPI_").then(|| function.to_owned())
    };
    chain.iter().rev().find_map(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Waited;

    fn chain(frames: &[(&str, &str)]) -> Vec<CodeName> {
        let code = |(function, module): &(&str, &str)| CodeName {
            function: (!function.is_empty()).then(|| (*function).to_owned()),
            module: (*module).to_owned(),
            ..CodeName::default()
        };
        frames.iter().map(code).collect()
    }

    #[test]
    fn a_chain_waits_in_the_libraries_of_mpi_where_they_do_not_work() {
        let reduce = [("PMPI_Allreduce", "libmpi.so.40"), ("main", "app")];
        let call = |innermost: &[(&str, &str)]| waiting_call(&chain(&[innermost, &reduce].concat()));
        let expected = Some("MPI_Allreduce".to_owned());
        let progress = ("opal_progress", "libopen-pal.so.40");
        assert_eq!(call(&[progress]), expected);
        assert_eq!(call(&[("", "mca_btl_vader.so"), progress]), expected);
        assert_eq!(call(&[("__GI___sched_yield", "libc.so.6"), progress]), expected);
        assert_eq!(call(&[]), expected);
        // Copies, sums, and what the program does itself.
        assert_eq!(call(&[("__memmove_avx_unaligned", "libc.so.6"), ("", "mca_btl_vader.so")]), None);
        assert_eq!(call(&[("ompi_op_avx_2buff_sum_double_avx", "mca_op_avx.so")]), None);
        assert_eq!(waiting_call(&chain(&[("main", "app")])), None);
        assert_eq!(waiting_call(&chain(&[("poll", "libc.so.6"), ("main", "app")])), None, "no MPI");
        assert_eq!(waiting_call(&[]), None);
    }

    #[test]
    fn ranks_have_the_time_of_their_processes() {
        let at = |process, chain, weight| Observation {
            thread: process,
            process,
            time: 0,
            weight,
            cpu_node: None,
            instruction: 0x100,
            waited: Waited::Computing,
            chain,
        };
        let process = |rank, kernel| RankProcess {
            rank,
            pid: 70 + rank,
            is_mpi: true,
            kernel,
            ..RankProcess::default()
        };
        let shell = RankProcess { is_mpi: false, pid: 60, ..RankProcess::default() };
        let waits = MpiWaits {
            ranks: [(3, process(1, [7, 5])), (4, process(0, [0, 0])), (5, shell)].into(),
            chains: [(8, Some("MPI_Recv".to_owned())), (9, None), (NO_CHAIN, None)].into(),
        };
        let times = waits.times(&[at(3, 8, 10), at(3, 9, 20), at(4, 0, 40), at(5, 9, 1), at(6, 8, 100)]);
        let seen: Vec<_> = times.iter().map(|rank| (rank.rank, rank.pid, rank.worked, rank.waited)).collect();
        assert_eq!(seen, [(0, 70, 40, 0), (1, 71, 25, 17)]);
        assert_eq!(times[1].calls, [MpiCall { function: "MPI_Recv".to_owned(), time: 10 }]);
        assert_eq!([waits.job(4), waits.job(3), waits.job(6)], [3, 3, 6], "ranks wait for each other");
    }
}
