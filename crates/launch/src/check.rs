//! Compares the threads of a running job, as /proc shows them, with its plan.

use numakit_model::Topology;
use numakit_placement::check::{EnvironmentError, Expected, ObservedThread, compare, plan_of_environment};
use numakit_placement::{PlacementRequest, PlanError, Taken, explained};
use numakit_sys::proc::{RANKS, TaskDir, tree};
use numakit_sys::{ReadError, SysRoot};
use std::collections::BTreeMap;
use thiserror::Error;

/// Why a job cannot be compared with a plan.
#[derive(Debug, Error)]
pub enum CheckError {
    /// There is no process with this PID.
    #[error("there is no process {pid} in {root}; 'numa top --once' lists them")]
    NoProcess {
        /// The PID.
        pid: u32,
        /// The machine or capture.
        root: String,
    },
    /// The process exited before it was compared.
    #[error("process {0} has ended")]
    Ended(u32),
    /// This user may not read the process's environment.
    #[error("the environment of process {pid} cannot be read; run as its user or as root")]
    Denied {
        /// The PID.
        pid: u32,
        /// The system's error.
        source: ReadError,
    },
    /// The kernel does not show CPU masks.
    #[error("{0} has no line Cpus_allowed_list; use a kernel with cpusets")]
    NoMask(String),
    /// The CPU mask is not a list of CPUs.
    #[error("{path}: Cpus_allowed_list is '{list}', which is not a list of CPUs")]
    Mask {
        /// The file.
        path: String,
        /// Its value.
        list: String,
    },
    /// The plan has several processes, and none has a rank.
    #[error(
        "no process that {0} started has its rank in {names}; check each process separately, or give the PID of \
         the MPI launcher on this machine",
        names = RANKS.join(", ")
    )]
    NoRanks(u32),
    /// The plan in the process's environment is invalid.
    #[error(transparent)]
    Environment(#[from] EnvironmentError),
    /// The request has no plan.
    #[error(transparent)]
    Plan(#[from] PlanError),
}

/// The result of comparing a job with its plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckReport {
    /// Threads that were compared.
    pub threads: usize,
    /// The plan is that of the `numa run` that started the process, not that of the request.
    pub has_run_plan: bool,
    /// The differences, as sentences.
    pub differences: Vec<String>,
}

/// Compares a job with the plan that `numa run` started it with, or else with the plan of a request
/// on an idle machine. Where the plan has several processes, `pid` is their launcher.
pub fn check(
    root: &SysRoot,
    topology: &Topology,
    request: &PlacementRequest,
    pid: u32,
) -> Result<CheckReport, CheckError> {
    let process = TaskDir::of(root, pid);
    if !process.exists() {
        return Err(CheckError::NoProcess { pid, root: root.name().to_owned() });
    }
    let environment = process.environment().map_err(|source| CheckError::Denied { pid, source })?;
    let pairs: Vec<_> = environment.iter().collect();
    let started = plan_of_environment(topology, pairs.iter().map(|(name, value)| (&**name, &**value)))?;
    let has_run_plan = started.is_some();
    let (plan, expected) = match started {
        Some(plan) => (plan, Expected::Started),
        None => (explained(&idle(topology), request, &Taken::default())?.0, Expected::All),
    };
    let observed = match plan.processes().nth(1) {
        Some(_) => ranks(root, pid)?,
        None => threads(root, pid, 0)?,
    };
    if observed.is_empty() {
        return Err(CheckError::Ended(pid));
    }
    let differences = compare(&plan, &observed, expected);
    Ok(CheckReport { threads: observed.len(), has_run_plan, differences })
}

/// The machine before the job filled its memory.
fn idle(topology: &Topology) -> Topology {
    let mut idle = topology.clone();
    idle.nodes.iter_mut().for_each(|node| node.free_kb = None);
    idle
}

/// The threads of a process, in the order in which they were made.
fn threads(root: &SysRoot, pid: u32, process: u32) -> Result<Vec<ObservedThread>, CheckError> {
    let folder = TaskDir::of(root, pid);
    let mut threads = Vec::new();
    for tid in folder.threads().map_err(|_| CheckError::Ended(pid))? {
        let thread = folder.thread(tid);
        // The thread ended since it was listed.
        let Ok(status) = thread.status() else { continue };
        let Some(list) = status.field("Cpus_allowed_list") else {
            return Err(CheckError::NoMask(thread.path("status")));
        };
        let Some(allowed) = status.allowed_cpus() else {
            return Err(CheckError::Mask { path: thread.path("status"), list: list.to_owned() });
        };
        let last = thread.stat().ok().and_then(|stat| stat.cpu);
        let name = status.field("Name").unwrap_or_default().to_owned();
        threads.push(ObservedThread { process, thread: threads.len() as u32, tid, name, allowed, last });
    }
    Ok(threads)
}

/// The threads of all ranks among a process and its descendants. Processes that a rank starts have the same rank
/// and are left out.
fn ranks(root: &SysRoot, pid: u32) -> Result<Vec<ObservedThread>, CheckError> {
    let mut first: BTreeMap<u32, u32> = BTreeMap::new();
    for member in tree::family(root, pid) {
        let Ok(environment) = TaskDir::of(root, member).environment() else { continue };
        if let Some(rank) = environment.rank() {
            first.entry(rank).or_insert(member);
        }
    }
    if first.is_empty() {
        return Err(CheckError::NoRanks(pid));
    }
    let mut all = Vec::new();
    for (rank, member) in first {
        all.extend(threads(root, member, rank)?);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_topology::topology;
    use numakit_placement::Cores;
    use numakit_sys::root::FileTree;

    /// A process with an environment, and threads that may run on these CPUs.
    fn put(tree: &mut FileTree, pid: u32, parent: u32, environment: &str, threads: &[(u32, &str)]) {
        let folder = format!("/proc/{pid}");
        let stat = |id: u32| format!("{id} (app) S {parent} {} 3 0 0\n", "0 ".repeat(34));
        tree.file(&format!("{folder}/stat"), stat(pid));
        tree.file(&format!("{folder}/environ"), environment.replace(' ', "\0"));
        for (tid, cpus) in threads {
            let status = format!("Name:\tworker\nCpus_allowed_list:\t{cpus}\n");
            tree.file(&format!("{folder}/task/{tid}/status"), status);
            tree.file(&format!("{folder}/task/{tid}/stat"), stat(*tid));
        }
    }

    fn request(cores: u32, processes: u32) -> PlacementRequest {
        PlacementRequest { cores: Some(Cores::Count(cores)), processes, ..PlacementRequest::default() }
    }

    fn checked(tree: FileTree, request: &PlacementRequest, pid: u32) -> Result<CheckReport, CheckError> {
        check(&SysRoot::of_tree(tree), &topology(), request, pid)
    }

    #[test]
    fn a_job_is_compared_with_the_plan_that_started_it_or_else_with_the_request() {
        let mut tree = FileTree::new();
        put(&mut tree, 40, 1, "NUMA_PLACE=2,0 HOME=/", &[(7, "0"), (40, "2")]);
        let found = checked(tree.clone(), &request(4, 1), 40).unwrap();
        assert_eq!(found, CheckReport { threads: 2, has_run_plan: true, differences: vec![] });
        put(&mut tree, 41, 1, "HOME=/", &[(41, "0"), (42, "0")]);
        let found = checked(tree, &request(2, 1), 41).unwrap();
        assert_eq!((found.threads, found.has_run_plan), (2, false));
        assert!(found.differences[0].starts_with("CPU 0 has 2 threads while CPU 1 has none"), "{found:?}");
    }

    #[test]
    fn ranks_are_the_first_processes_of_a_family_that_have_one() {
        let mut tree = FileTree::new();
        put(&mut tree, 40, 1, "HOME=/", &[(40, "0-3")]);
        put(&mut tree, 50, 40, "PMI_RANK=1", &[(50, "1")]);
        put(&mut tree, 60, 40, "PMI_RANK=0", &[(60, "0")]);
        // A child of a rank, and another program's rank.
        put(&mut tree, 61, 60, "PMI_RANK=0", &[(61, "0-3")]);
        put(&mut tree, 70, 1, "PMI_RANK=2", &[(70, "3")]);
        let found = checked(tree, &request(2, 2), 40).unwrap();
        assert_eq!(found, CheckReport { threads: 2, has_run_plan: false, differences: vec![] });
    }

    #[test]
    fn errors_say_why_a_job_cannot_be_compared() {
        let mut tree = FileTree::new();
        put(&mut tree, 40, 1, "HOME=/", &[(40, "0-3")]);
        tree.file("/proc/43/task/43/status", "Name:\tx\n").file("/proc/43/environ", "");
        tree.file("/proc/44/task/44/status", "Cpus_allowed_list:\tx\n").file("/proc/44/environ", "");
        tree.file("/proc/45/environ", "").failing("/proc/46/environ", std::io::ErrorKind::PermissionDenied);
        let why =
            |pid, processes| checked(tree.clone(), &request(2, processes), pid).unwrap_err().to_string();
        assert_eq!(why(99, 1), "there is no process 99 in memory; 'numa top --once' lists them");
        assert_eq!(why(45, 1), "process 45 has ended");
        assert!(why(46, 1).starts_with("the environment of process 46 cannot be read"));
        assert!(why(43, 1).starts_with("/proc/43/task/43/status has no line Cpus_allowed_list"));
        assert!(why(44, 1).starts_with("/proc/44/task/44/status: Cpus_allowed_list is 'x'"));
        assert!(why(40, 2).contains("no process that 40 started has its rank in OMPI_COMM_WORLD_RANK, "));
    }
}
