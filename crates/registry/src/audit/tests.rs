use super::*;
use crate::record::Record;
use numakit_sys::root::Tree;
use std::io::ErrorKind;

const HERE: &str = "/x/cores";
const KERNEL: u64 = 0x0020_0000;

/// A process of a machine that is made up.
struct Made {
    pid: u32,
    parent: u32,
    name: &'static str,
    start: u64,
    flags: u64,
    user: u32,
    masks: Vec<&'static str>,
    environment: Option<&'static str>,
    group: &'static str,
}

impl Default for Made {
    fn default() -> Self {
        let masks = vec!["0-7"];
        Self {
            pid: 50,
            parent: 1,
            name: "app",
            start: 500,
            flags: 0,
            user: 1000,
            masks,
            environment: Some(""),
            group: "/",
        }
    }
}

fn machine(processes: &[Made]) -> SysRoot {
    let mut tree = Tree::new();
    tree.file("/sys/devices/system/cpu/online", "0-7\n");
    tree.file("/proc/2/comm", "kthreadd\n").file("/proc/2/task/2/children", "3 4 \n");
    tree.file("/sys/fs/cgroup/cpuset.cpus.effective", "0-7\n");
    tree.file("/sys/fs/cgroup/box/cpuset.cpus.effective", "0-1\n");
    for made in processes {
        let path = format!("/proc/{}", made.pid);
        let zeros = "0 ".repeat(12);
        // State, parent, ..., flags as field 9, ..., start as field 22.
        let stat = format!(
            "{} ({}) S {} 0 0 0 0 {} {zeros}{} 0 0\n",
            made.pid, made.name, made.parent, made.flags, made.start
        );
        tree.file(&format!("{path}/stat"), stat);
        tree.file(&format!("{path}/status"), format!("Name:\tx\nUid:\t{0}\t{0}\t{0}\t{0}\n", made.user));
        tree.file(&format!("{path}/cgroup"), format!("0::{}\n", made.group));
        match made.environment {
            Some(text) => tree.file(&format!("{path}/environ"), text.replace(' ', "\0")),
            None => tree.failing(&format!("{path}/environ"), ErrorKind::PermissionDenied),
        };
        for (at, mask) in made.masks.iter().enumerate() {
            let thread = made.pid + at as u32;
            tree.file(&format!("{path}/task/{thread}/status"), format!("Cpus_allowed_list:\t{mask}\n"));
        }
    }
    SysRoot::of_tree(tree)
}

fn me() -> Made {
    Made { pid: 40, parent: 30, name: "numa", ..Made::default() }
}

fn seen(processes: Vec<Made>, scan: &Scan) -> Audit {
    let mut all = vec![me(), Made { pid: 30, name: "shell", ..Made::default() }];
    all.extend(processes);
    look(&machine(&all), 40, scan, Path::new(HERE))
}

fn stale(cpus: &str, cores: u32) -> Scan {
    let who = Who {
        application: "ep".to_owned(),
        user: 1000,
        since_boot: 400,
        cores: Some(cores),
        ..Who::default()
    };
    let record = Record { cpus: cpus.parse().unwrap(), who, ended: false };
    Scan { stale: vec![(7, record)], ..Scan::default() }
}

fn bound(audit: &Audit) -> Vec<(u32, String)> {
    audit.bound.iter().map(|bound| (bound.pid, bound.cpus.to_string())).collect()
}

#[test]
fn who_runs_everywhere_and_the_kernels_own_threads_are_nobodys_business() {
    let kernel = Made { pid: 3, masks: vec!["5"], ..Made::default() };
    let unlisted = Made { pid: 9, masks: vec!["6"], flags: KERNEL, ..Made::default() };
    let audit = seen(vec![Made::default(), kernel, unlisted], &Scan::default());
    assert!(audit.lost.is_empty() && audit.bound.is_empty(), "{audit:?}");
}

#[test]
fn a_process_that_somebody_bound_is_told() {
    let threads = Made { masks: vec!["0-7", "2", "3"], name: "qemu", ..Made::default() };
    let wide = Made { pid: 60, masks: vec!["0-5"], ..Made::default() };
    let audit = seen(vec![threads, wide], &Scan::default());
    assert_eq!(bound(&audit), [(50, "2-3".to_owned())]);
    assert_eq!(audit.bound[0].to_string(), "qemu (process 50, bound there, not registered)");
}

#[test]
fn a_container_is_confined_and_not_bound() {
    let inside = Made { masks: vec!["0-1"], group: "/box", ..Made::default() };
    let deeper = Made { pid: 60, masks: vec!["0-1"], group: "/box/no/cpuset/there", ..Made::default() };
    let pinned = Made { pid: 70, masks: vec!["1"], group: "/box", ..Made::default() };
    assert_eq!(bound(&seen(vec![inside, deeper, pinned], &Scan::default())), [(70, "1".to_owned())]);
}

#[test]
fn what_confines_this_process_too_binds_nobody() {
    let like_me = Made { masks: vec!["0-1"], group: "/box-without-files", ..Made::default() };
    let root = machine(&[Made { masks: vec!["0-1"], ..me() }, like_me]);
    let audit = look(&root, 40, &Scan::default(), Path::new(HERE));
    assert!(audit.bound.is_empty(), "{audit:?}");
    // Neither does a shell that was bound so that what it starts is bound.
    let shell = Made { pid: 30, masks: vec!["0-2"], ..Made::default() };
    let root = machine(&[Made { masks: vec!["2"], ..me() }, shell]);
    assert!(look(&root, 40, &Scan::default(), Path::new(HERE)).bound.is_empty());
}

#[test]
fn a_program_that_says_that_it_holds_cores_is_believed_without_a_record() {
    let here = format!("NUMA_HOLD=100 NUMA_MASK=2-5 NUMAKIT_REGISTRY={HERE}");
    let environment: &'static str = Box::leak(here.into_boxed_str());
    let program = || Made { masks: vec!["3"], environment: Some(environment), ..Made::default() };
    let audit = seen(vec![program()], &Scan::default());
    assert_eq!(audit.lost.len(), 1);
    assert_eq!((audit.lost[0].slot, audit.lost[0].cpus.to_string()), (None, "2-5".to_owned()));
    // Of another registry: what somebody bound.
    let elsewhere = "NUMA_HOLD=100 NUMA_MASK=2-5 NUMAKIT_REGISTRY=/y";
    let audit = seen(vec![Made { environment: Some(elsewhere), ..program() }], &Scan::default());
    assert_eq!((audit.lost.len(), bound(&audit)), (0, vec![(50, "3".to_owned())]));
    // With --share it holds nothing.
    let shared = Made { environment: Some("NUMA_MASK=2-5 NUMAKIT_REGISTRY=/x/cores"), ..program() };
    assert!(seen(vec![shared], &Scan::default()).lost.is_empty());
}

#[test]
fn a_record_without_locks_counts_as_long_as_its_program_runs() {
    let lost = |made: Made, scan: &Scan| {
        let audit = seen(vec![made], scan);
        audit.lost.iter().map(|lost| (lost.slot, lost.cpus.to_string())).collect::<Vec<_>>()
    };
    let all = vec![(Some(7), "2-5".to_owned())];
    let narrow = || Made { masks: vec!["2-5"], ..Made::default() };
    assert_eq!(lost(narrow(), &stale("2-5", 4)), all);
    // Only a PU of each core, as a mask without siblings.
    assert_eq!(lost(Made { masks: vec!["2-3"], ..Made::default() }, &stale("2-5", 2)), all);
    // Who may not be asked.
    let foreign = Made { masks: vec!["3"], environment: None, ..Made::default() };
    assert_eq!(lost(foreign, &stale("2-5", 4)), all);
    for other in [
        Made { masks: vec!["3"], ..Made::default() },
        Made { start: 399, ..narrow() },
        Made { user: 1001, ..narrow() },
        Made { masks: vec!["2-6"], ..Made::default() },
    ] {
        assert_eq!(lost(other, &stale("2-5", 4)), [], "a program of somebody else");
    }
    let mut ended = stale("2-5", 4);
    ended.stale[0].1.ended = true;
    assert_eq!(lost(narrow(), &ended), []);
}

#[test]
fn two_processes_of_a_program_hold_its_cores_once() {
    let one = Made { masks: vec!["2-5"], ..Made::default() };
    let two = Made { pid: 60, masks: vec!["2-5"], ..Made::default() };
    let audit = seen(vec![one, two], &stale("2-5", 4));
    assert_eq!((audit.lost.len(), audit.bound.len()), (1, 0));
}
