use super::*;
use crate::record::HolderRecord;
use numakit_sys::root::FileTree;
use std::io::ErrorKind;

/// The registry that the tests are about.
const HERE: u64 = 77;
const KERNEL: u64 = 0x0020_0000;

/// A process of a simulated machine.
struct Process {
    pid: u32,
    parent: u32,
    name: &'static str,
    start: u64,
    flags: u64,
    user: u32,
    masks: Vec<&'static str>,
    environment: Option<&'static str>,
    group: &'static str,
    tag: Option<u64>,
    state: char,
}

impl Default for Process {
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
            tag: None,
            state: 'S',
        }
    }
}

fn machine(processes: &[Process]) -> SysRoot {
    let mut tree = FileTree::new();
    tree.file("/sys/devices/system/cpu/online", "0-7\n");
    tree.file("/proc/2/comm", "kthreadd\n").file("/proc/2/task/2/children", "3 4 \n");
    tree.file("/sys/fs/cgroup/cpuset.cpus.effective", "0-7\n");
    tree.file("/sys/fs/cgroup/box/cpuset.cpus.effective", "0-1\n");
    for process in processes {
        let path = format!("/proc/{}", process.pid);
        let zeros = "0 ".repeat(12);
        // State, parent, ..., flags as field 9, ..., start as field 22.
        let stat = format!(
            "{} ({}) {} {} 0 0 0 0 {} {zeros}{} 0 0\n",
            process.pid, process.name, process.state, process.parent, process.flags, process.start
        );
        tree.file(&format!("{path}/stat"), stat);
        tree.file(&format!("{path}/status"), format!("Name:\tx\nUid:\t{0}\t{0}\t{0}\t{0}\n", process.user));
        tree.file(&format!("{path}/cgroup"), format!("0::{}\n", process.group));
        match process.environment {
            Some(text) => tree.file(&format!("{path}/environ"), text.replace(' ', "\0")),
            None => tree.failing(&format!("{path}/environ"), ErrorKind::PermissionDenied),
        };
        let limit = process.tag.map_or("unlimited".to_owned(), |tag| tag.to_string());
        tree.file(&format!("{path}/limits"), format!("Max file locks   {limit}   unlimited   locks\n"));
        for (at, mask) in process.masks.iter().enumerate() {
            let thread = process.pid + at as u32;
            tree.file(&format!("{path}/task/{thread}/status"), format!("Cpus_allowed_list:\t{mask}\n"));
        }
    }
    SysRoot::of_tree(tree)
}

fn me() -> Process {
    Process { pid: 40, parent: 30, name: "numa", ..Process::default() }
}

fn audited(processes: Vec<Process>, scan: &Scan) -> Audit {
    let mut all = vec![me(), Process { pid: 30, name: "shell", ..Process::default() }];
    all.extend(processes);
    audit_tasks(&machine(&all), 40, scan, &[])
}

fn stale(cpus: &str, cores: u32) -> Scan {
    let holder = Holder {
        application: "ep".to_owned(),
        user: 1000,
        since_boot: 400,
        cores: Some(cores),
        ..Holder::default()
    };
    let record = HolderRecord { cpus: cpus.parse().unwrap(), holder, ended: false };
    Scan { stale: vec![(7, record)], ..Scan::default() }
}

fn bound(audit: &Audit) -> Vec<(u32, String)> {
    audit.bound.iter().map(|bound| (bound.pid, bound.cpus.to_string())).collect()
}

#[test]
fn unbound_processes_and_kernel_threads_are_ignored() {
    let kernel = Process { pid: 3, masks: vec!["5"], ..Process::default() };
    let unlisted = Process { pid: 9, masks: vec!["6"], flags: KERNEL, ..Process::default() };
    let audit = audited(vec![Process::default(), kernel, unlisted], &Scan::default());
    assert!(audit.lost.is_empty() && audit.bound.is_empty(), "{audit:?}");
}

#[test]
fn a_bound_process_is_listed() {
    let threads = Process { masks: vec!["0-7", "2", "3"], name: "qemu", ..Process::default() };
    let wide = Process { pid: 60, masks: vec!["0-5"], ..Process::default() };
    let audit = audited(vec![threads, wide], &Scan::default());
    assert_eq!(bound(&audit), [(50, "2-3".to_owned())]);
    assert_eq!(audit.bound[0].to_string(), "qemu (process 50, bound there, not registered)");
}

#[test]
fn a_container_is_confined_and_not_bound() {
    let inside = Process { masks: vec!["0-1"], group: "/box", ..Process::default() };
    let deeper = Process { pid: 60, masks: vec!["0-1"], group: "/box/no/cpuset/there", ..Process::default() };
    let pinned = Process { pid: 70, masks: vec!["1"], group: "/box", ..Process::default() };
    assert_eq!(bound(&audited(vec![inside, deeper, pinned], &Scan::default())), [(70, "1".to_owned())]);
}

#[test]
fn a_process_with_the_mask_of_this_one_is_not_bound() {
    let like_me = Process { masks: vec!["0-1"], group: "/box-without-files", ..Process::default() };
    let root = machine(&[Process { masks: vec!["0-1"], ..me() }, like_me]);
    let audit = audit_tasks(&root, 40, &Scan::default(), &[]);
    assert!(audit.bound.is_empty(), "{audit:?}");
    // Nor is a shell that was bound to bind what it starts.
    let shell = Process { pid: 30, masks: vec!["0-2"], ..Process::default() };
    let root = machine(&[Process { masks: vec!["2"], ..me() }, shell]);
    assert!(audit_tasks(&root, 40, &Scan::default(), &[]).bound.is_empty());
}

fn with_identity(processes: Vec<Process>, scan: &Scan) -> Vec<(Option<u64>, String)> {
    let mut all = vec![me(), Process { pid: 30, name: "shell", ..Process::default() }];
    all.extend(processes);
    let audit = audit_tasks(&machine(&all), 40, scan, &[HERE]);
    audit.lost.iter().map(|lost| (lost.slot, lost.cpus.to_string())).collect()
}

#[test]
fn the_environment_without_a_tag_makes_no_holder() {
    let narrow =
        Process { masks: vec!["3"], environment: Some("NUMA_HOLD=100 NUMA_MASK=2-5"), ..Process::default() };
    let audit = audited(vec![narrow], &Scan::default());
    assert_eq!((audit.lost.len(), bound(&audit)), (0, vec![(50, "3".to_owned())]));
    let wide = Process { environment: Some("NUMA_HOLD=100 NUMA_MASK=2-5"), ..Process::default() };
    assert_eq!(with_identity(vec![wide], &Scan::default()), []);
}

#[test]
fn a_program_without_record_holds_the_cores_in_its_environment() {
    let tag = Some(tag::new(HERE));
    let says = |masks: &[&'static str], environment| Process {
        masks: masks.to_vec(),
        environment,
        tag,
        ..Process::default()
    };
    let lost = |process: Process| with_identity(vec![process], &Scan::default());
    let holds = |cpus: &str| vec![(None, cpus.to_owned())];
    assert_eq!(lost(says(&["3"], Some("NUMA_MASK=2-5"))), holds("2-5"));
    assert_eq!(lost(says(&["0-7"], Some("NUMA_MASK=2-5"))), holds("2-5"));
    assert_eq!(lost(says(&["0-7", "3"], None)), holds("3"));
    // It may have all.
    assert_eq!(lost(says(&["0-7"], None)), holds("0-7"));
    assert_eq!(lost(Process { tag: Some(tag::new(78)), ..says(&["3"], None) }), [], "another registry's");
    assert_eq!(lost(Process { state: 'Z', ..says(&["3"], None) }), [], "it has ended");
    // One of its processes has the cores in its environment, whichever is visited first.
    let vague = || says(&["0-7"], Some(""));
    let clear = || says(&["0-7"], Some("NUMA_MASK=2-5"));
    for pair in [[vague(), clear()], [clear(), vague()]] {
        let [one, two] = pair;
        assert_eq!(with_identity(vec![one, Process { pid: 60, ..two }], &Scan::default()), holds("2-5"));
    }
    let two = Process { pid: 60, ..says(&["4"], None) };
    assert_eq!(with_identity(vec![says(&["3"], None), two], &Scan::default()), holds("3-4"));
    // There are locks without a record: these are its own.
    let scan = Scan { in_removed_files: "4-5".parse().unwrap(), ..Scan::default() };
    let supervisor = Process { pid: 45, name: "cores-keeper", ..Process::default() };
    let kept = Process { parent: 45, ..says(&["0-7"], None) };
    assert_eq!(with_identity(vec![supervisor, kept], &scan), []);
    assert_eq!(with_identity(vec![says(&["0-7"], None)], &scan), holds("0-7"), "without a supervisor");
    // If all holders are in the file, there is no search.
    let audit = audited(vec![says(&["0-7"], None)], &Scan::default());
    assert!(audit.lost.is_empty());
}

#[test]
fn every_tagged_descendant_holds_the_cores() {
    let mine = tag::new(HERE);
    let mut scan = stale("2-5", 4);
    scan.stale[0].1.holder.tag = Some(mine);
    let lost = |process: Process, scan: &Scan| {
        let audit = audited(vec![process], scan);
        audit.lost.iter().map(|lost| (lost.slot, lost.cpus.to_string())).collect::<Vec<_>>()
    };
    let one = || Process { tag: Some(mine), ..Process::default() };
    let all = vec![(Some(7), "2-5".to_owned())];
    assert_eq!(lost(one(), &scan), all);
    for other in [
        Process { user: 1001, environment: None, ..one() },
        Process { masks: vec!["6-7"], ..one() },
        Process { start: 399, ..one() },
        Process { parent: 7, group: "/box", ..one() },
    ] {
        assert_eq!(lost(other, &scan), all);
    }
    // The same mask, user and environment without the tag belong to another program.
    let marked = "NUMA_HOLD=100 NUMA_MASK=2-5";
    assert_eq!(
        lost(Process { masks: vec!["2-5"], environment: Some(marked), ..Process::default() }, &scan),
        []
    );
    assert_eq!(lost(Process { tag: Some(tag::new(HERE)), ..one() }, &scan), []);
    assert_eq!(lost(Process { state: 'Z', ..one() }, &scan), []);
    // Held again, by another program or by itself in another record.
    let holding = Holding {
        cpus: "2-5".parse().unwrap(),
        state: HolderState::Held,
        holder: None,
        same_pid_namespace: true,
        is_own: false,
    };
    scan.holdings.push(holding.clone());
    assert_eq!(lost(one(), &scan), []);
    scan.holdings[0].cpus = "2".parse().unwrap();
    assert_eq!(lost(one(), &scan), [(Some(7), "3-5".to_owned())]);
    scan.holdings.clear();
    scan.stale[0].1.ended = true;
    assert_eq!(lost(one(), &scan), []);
}

#[test]
fn the_first_process_of_a_record_holds_its_cores_wherever_it_may_run() {
    let mut scan = stale("2-5", 4);
    let program = Some(ProcessId { pid: 50, start: 500 });
    scan.stale[0].1.holder =
        Holder { program, pid_namespace: pid_namespace(), ..scan.stale[0].1.holder.clone() };
    assert_eq!(audited(vec![Process::default()], &scan).lost.len(), 1);
    // Another process with its number.
    assert_eq!(audited(vec![Process { start: 501, ..Process::default() }], &scan).lost.len(), 0);
}

#[test]
fn a_record_without_locks_counts_as_long_as_its_program_runs() {
    let lost = |process: Process, scan: &Scan| {
        let audit = audited(vec![process], scan);
        audit.lost.iter().map(|lost| (lost.slot, lost.cpus.to_string())).collect::<Vec<_>>()
    };
    let all = vec![(Some(7), "2-5".to_owned())];
    let narrow = || Process { masks: vec!["2-5"], ..Process::default() };
    assert_eq!(lost(narrow(), &stale("2-5", 4)), all);
    // Only a PU of each core, as a mask without siblings.
    assert_eq!(lost(Process { masks: vec!["2-3"], ..Process::default() }, &stale("2-5", 2)), all);
    // The environment cannot be read.
    let foreign = Process { masks: vec!["3"], environment: None, ..Process::default() };
    assert_eq!(lost(foreign, &stale("2-5", 4)), all);
    for other in [
        Process { masks: vec!["3"], ..Process::default() },
        Process { start: 399, ..narrow() },
        Process { user: 1001, ..narrow() },
        Process { masks: vec!["2-6"], ..Process::default() },
    ] {
        assert_eq!(lost(other, &stale("2-5", 4)), [], "another program");
    }
    let mut ended = stale("2-5", 4);
    ended.stale[0].1.ended = true;
    assert_eq!(lost(narrow(), &ended), []);
}

#[test]
fn two_processes_of_a_program_hold_its_cores_once() {
    let one = Process { masks: vec!["2-5"], ..Process::default() };
    let two = Process { pid: 60, masks: vec!["2-5"], ..Process::default() };
    let audit = audited(vec![one, two], &stale("2-5", 4));
    assert_eq!((audit.lost.len(), audit.bound.len()), (1, 0));
}
