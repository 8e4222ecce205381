//! What is wrong with how the ranks of a job run, each with the command that changes it.

use crate::{MpiJob, MpiRank, MpiSurroundings};
use numakit_model::CpuSet;
use numakit_model::numbers::{counted, duration};
use numakit_sys::mpi_calls::{MpiAbi, MpiProcess, SingleCopy};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Waiting is a problem from this part of the ranks' time on.
const MUCH_WAITING: f64 = 0.05;
/// One rank is late if it is waited for during this part of all waiting.
const ONE_RANK: f64 = 0.5;
/// Messages from this size on are copied once where that is allowed.
const LARGE: u64 = 4096;

/// The kind of a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MpiProblem {
    /// One rank is waited for most.
    Late,
    /// Ranks may run on each other's CPUs.
    Unbound,
    /// More ranks than CPUs.
    Oversubscribed,
    /// Messages are copied twice.
    NoSingleCopy,
    /// Ranks that talk are on different nodes.
    Order,
}

/// A problem with its fix.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MpiFinding {
    /// Its kind.
    pub problem: MpiProblem,
    /// What was found.
    pub text: String,
    /// What to type or to do.
    pub fix: String,
}

/// All problems of a job.
pub(crate) fn findings(job: &MpiJob, processes: &[&MpiProcess], around: &MpiSurroundings) -> Vec<MpiFinding> {
    let abi = processes.first().and_then(|process| process.abi);
    [binding(job, abi), late(job), single_copy(job, processes, around), order(job)]
        .into_iter()
        .flatten()
        .collect()
}

/// Ranks as ranges: `0-2,5`.
fn list(ranks: impl IntoIterator<Item = u32>) -> String {
    ranks.into_iter().collect::<CpuSet>().to_string()
}

fn mask(rank: &MpiRank) -> CpuSet {
    CpuSet::parse_list(&rank.cpus).unwrap_or_default()
}

/// More ranks than CPUs, or ranks that may run on each other's.
fn binding(job: &MpiJob, abi: Option<MpiAbi>) -> Option<MpiFinding> {
    let mut by_mask: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
    for rank in job.ranks.iter().filter(|rank| !rank.cpus.is_empty()) {
        by_mask.entry(rank.cpus.as_str()).or_default().push(rank.rank);
    }
    let crowded = by_mask
        .iter()
        .find(|(cpus, ranks)| CpuSet::parse_list(cpus).is_ok_and(|cpus| ranks.len() > cpus.len()));
    let all = job.ranks.iter().fold(CpuSet::new(), |all, rank| all.or(&mask(rank)));
    if let Some((cpus, ranks)) = crowded {
        let count = CpuSet::parse_list(cpus).map_or(0, |cpus| cpus.len());
        let text = format!(
            "ranks {} share {} ({cpus}): a rank that waits takes the time of one that works{}",
            list(ranks.iter().copied()),
            counted(count, "CPU"),
            ran(job, ranks),
        );
        let fix = match job.ranks.len() > all.len() {
            true => {
                format!("start as many ranks as there are CPUs: mpirun -n {}{}", all.len(), yielding(abi))
            }
            false => format!("give each rank a CPU of its own: {}", bound(abi)),
        };
        return Some(MpiFinding { problem: MpiProblem::Oversubscribed, text, fix });
    }
    let overlapping: Vec<u32> = job
        .ranks
        .iter()
        .filter(|one| {
            job.ranks.iter().any(|other| one.rank != other.rank && mask(one).intersects(&mask(other)))
        })
        .map(|rank| rank.rank)
        .collect();
    (!overlapping.is_empty()).then(|| MpiFinding {
        problem: MpiProblem::Unbound,
        text: format!(
            "ranks {} may run on each other's CPUs ({}): the kernel moves them away from their memory",
            list(overlapping.iter().copied()),
            job.ranks
                .iter()
                .find(|rank| overlapping.contains(&rank.rank))
                .map_or("-", |rank| rank.cpus.as_str()),
        ),
        fix: format!("bind them: {}", bound(abi)),
    })
}

fn bound(abi: Option<MpiAbi>) -> String {
    match abi {
        Some(MpiAbi::OpenMpi) => "numa run -- mpirun ..., or mpirun --bind-to core ...".to_owned(),
        _ => "numa run -- mpirun ..., or mpirun -bind-to core ...".to_owned(),
    }
}

/// Open MPI can give the CPU away while it waits.
fn yielding(abi: Option<MpiAbi>) -> &'static str {
    match abi {
        Some(MpiAbi::OpenMpi) => {
            ", or let ranks that wait give their CPU away: mpirun --mca mpi_yield_when_idle 1"
        }
        _ => "",
    }
}

/// How much of the time the ranks had a CPU, if it is known.
fn ran(job: &MpiJob, ranks: &[u32]) -> String {
    let shares: Vec<f64> = job
        .ranks
        .iter()
        .filter(|rank| ranks.contains(&rank.rank))
        .filter_map(|rank| rank.cpu_share)
        .collect();
    match shares.iter().copied().reduce(f64::min) {
        Some(least) if least < 0.95 => format!("; each ran at least {:.0} % of the time", least * 100.0),
        _ => String::new(),
    }
}

/// The rank that is waited for most.
fn late(job: &MpiJob) -> Option<MpiFinding> {
    let waited: f64 = job.ranks.iter().map(|rank| rank.waited_for_seconds).sum();
    let all: f64 = job.ranks.iter().filter_map(|rank| rank.seconds).sum();
    let last =
        job.ranks.iter().max_by(|one, other| one.waited_for_seconds.total_cmp(&other.waited_for_seconds))?;
    let is_much = job.waiting >= MUCH_WAITING * all && all > 0.0;
    (is_much && last.waited_for_seconds >= ONE_RANK * waited && waited > 0.0).then(|| MpiFinding {
        problem: MpiProblem::Late,
        text: format!(
            "rank {} comes last: of {} that ranks waited in collectives where it is known for whom, {:.0} % were for it",
            last.rank,
            duration(waited),
            100.0 * last.waited_for_seconds / waited
        ),
        fix: match last.cpu_share {
            Some(share) if share < 0.9 => format!(
                "it ran {:.0} % of the time, so it waited for a CPU, or for files or timers: give it a CPU of its own with numa run -- mpirun ..., \
                 or see for what with numa explain --pid {} while it runs",
                share * 100.0,
                last.pid
            ),
            _ => format!(
                "give it less work, or find what it does meanwhile: numa explain --pid {} while it runs",
                last.pid
            ),
        },
    })
}

/// Whether the kernel refuses that ranks read each other's memory.
fn single_copy(job: &MpiJob, processes: &[&MpiProcess], around: &MpiSurroundings) -> Option<MpiFinding> {
    if !job.rows.iter().any(|row| row.to_bytes >= LARGE && row.bytes > 0) {
        return None;
    }
    let failed = processes.iter().find_map(|process| match process.copy {
        SingleCopy::Fails(error) => Some(error),
        _ => None,
    });
    let filtered = || {
        let is_filtered = processes.iter().any(|process| process.copy == SingleCopy::Filtered);
        around.copy_filter.filter(|_| is_filtered)
    };
    let (error, is_filter) = match failed {
        Some(error) => (error, false),
        None => (filtered()?, true),
    };
    let (why, fix) = reason(error, is_filter, around.yama);
    Some(MpiFinding {
        problem: MpiProblem::NoSingleCopy,
        text: format!(
            "messages of {LARGE} bytes and more are copied twice: ranks cannot read each other's memory, {why}"
        ),
        fix,
    })
}

fn reason(error: i32, is_filter: bool, yama: Option<u32>) -> (String, String) {
    const EPERM: i32 = 1;
    const ESRCH: i32 = 3;
    const ENOSYS: i32 = 38;
    match (error, yama) {
        _ if is_filter => (
            "since a filter of system calls (seccomp) of this container refuses process_vm_readv".to_owned(),
            "start the container with it: docker run --cap-add SYS_PTRACE ...".to_owned(),
        ),
        (EPERM, Some(scope @ 1..)) => (
            format!("since kernel.yama.ptrace_scope is {scope}"),
            match scope {
                3 => "restart the machine with kernel.yama.ptrace_scope=0: 3 stays until then".to_owned(),
                _ => "as root: sysctl -w kernel.yama.ptrace_scope=0".to_owned(),
            },
        ),
        (EPERM, _) => (
            "since the kernel refuses process_vm_readv (EPERM)".to_owned(),
            "start all ranks as one user, and in a container with: docker run --cap-add SYS_PTRACE ..."
                .to_owned(),
        ),
        (ESRCH, _) => (
            "since they are in different PID namespaces".to_owned(),
            "start all ranks in one container, or containers with: docker run --pid host ...".to_owned(),
        ),
        (ENOSYS, _) => (
            "since this kernel has no process_vm_readv".to_owned(),
            "use a kernel that is built with CONFIG_CROSS_MEMORY_ATTACH".to_owned(),
        ),
        (error, _) => (
            format!("process_vm_readv fails with error {error}"),
            "start all ranks as one user in one container".to_owned(),
        ),
    }
}

fn order(job: &MpiJob) -> Option<MpiFinding> {
    let order = job.order.as_ref()?;
    Some(MpiFinding {
        problem: MpiProblem::Order,
        text: format!(
            "{:.0} % of the bytes of messages go to other nodes; in another order of the ranks {:.0} % would",
            order.crossing_before * 100.0,
            order.crossing * 100.0
        ),
        fix: format!(
            "write this report with --mpi-report=FILE, then: numa plan --from FILE --for {}",
            if job.library.starts_with("Open MPI v4") {
                "openmpi4"
            } else if job.library.starts_with("Open MPI") {
                "openmpi5"
            } else {
                "mpich"
            }
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MpiReport;
    use crate::testing::{cell, process};
    use numakit_sys::mpi_calls::{MpiCalls, MpiCell, MpiOperation, MpiPeer};

    fn found(processes: Vec<MpiProcess>, around: &MpiSurroundings) -> Vec<MpiFinding> {
        let count = processes.len() as u64;
        let report = MpiReport::new("app", &MpiCalls { processes, count }, around);
        report.jobs.into_iter().flat_map(|job| job.findings).collect()
    }

    fn problems(found: &[MpiFinding]) -> Vec<MpiProblem> {
        found.iter().map(|finding| finding.problem).collect()
    }

    fn ranks(masks: &[&str]) -> Vec<MpiProcess> {
        let size = masks.len() as u32;
        let rank = |(rank, mask): (u32, &&str)| MpiProcess {
            cpus: CpuSet::parse_list(mask).unwrap(),
            ..process(rank, size)
        };
        (0..).zip(masks).map(rank).collect()
    }

    #[test]
    fn ranks_without_cpus_of_their_own_are_named() {
        let around = MpiSurroundings::default();
        assert_eq!(found(ranks(&["0", "1"]), &around), []);
        let unbound = found(ranks(&["0-3", "0-3", "9"]), &around);
        assert_eq!(problems(&unbound), [MpiProblem::Unbound]);
        assert!(unbound[0].text.starts_with("ranks 0-1 may run on each other's CPUs (0-3)"), "{unbound:?}");
        assert!(unbound[0].fix.contains("mpirun --bind-to core"));
        let crowded = found(ranks(&["0-1", "0-1", "0-1"]), &around);
        assert_eq!(problems(&crowded), [MpiProblem::Oversubscribed]);
        assert!(crowded[0].text.starts_with("ranks 0-2 share 2 CPUs (0-1)"), "{crowded:?}");
        assert!(crowded[0].fix.contains("mpirun -n 2"), "{crowded:?}");
        let same = found(ranks(&["0", "0", "5"]), &around);
        assert!(same[0].fix.contains("mpirun -n 2"), "{same:?}");
        let wrong = found(ranks(&["0", "0", "5-6"]), &around);
        assert!(wrong[0].fix.contains("a CPU of its own"), "{wrong:?}");
    }

    #[test]
    fn a_late_rank_is_named_if_much_time_is_lost() {
        let waits = |ns: u64| {
            let mut all = ranks(&["0", "1", "2"]);
            for rank in [0, 2] {
                let barrier = cell(MpiOperation::Barrier, 0, 10, ns);
                all[rank].cells = vec![MpiCell { judged: 10, judged_ns: ns, waited_ns: ns, ..barrier }];
                all[rank].peers = vec![(1, MpiPeer { waited_ns: ns, late: 10, ..MpiPeer::default() })];
            }
            found(all, &MpiSurroundings::default())
        };
        let much = waits(500_000_000);
        assert_eq!(problems(&much), [MpiProblem::Late]);
        assert!(much[0].text.starts_with("rank 1 comes last: of 1 s"), "{much:?}");
        assert!(much[0].fix.contains("numa explain --pid 101"), "{much:?}");
        assert_eq!(waits(500_000), []);
    }

    #[test]
    fn a_refused_single_copy_is_named_with_its_reason() {
        let of = |copy: SingleCopy, class: u32, around: MpiSurroundings| {
            let mut all = ranks(&["0", "1"]);
            all[1].copy = copy;
            all[0].cells = vec![MpiCell { bytes: 9000, ..cell(MpiOperation::Send, class, 1, 10) }];
            found(all, &around)
        };
        let yama = MpiSurroundings { yama: Some(1), ..MpiSurroundings::default() };
        let fix = of(SingleCopy::Fails(1), 14, yama.clone());
        assert!(fix[0].fix.contains("sysctl -w kernel.yama.ptrace_scope=0"), "{fix:?}");
        assert_eq!(of(SingleCopy::Fails(1), 8, yama), []);
        let filter = MpiSurroundings { copy_filter: Some(1), ..MpiSurroundings::default() };
        assert!(of(SingleCopy::Filtered, 14, filter)[0].fix.contains("--cap-add SYS_PTRACE"));
        assert_eq!(of(SingleCopy::Filtered, 14, MpiSurroundings::default()), []);
        assert!(of(SingleCopy::Fails(3), 14, MpiSurroundings::default())[0].fix.contains("--pid host"));
    }
}
