use super::*;
use crate::record::HolderRecord;
use numakit_sys::root::FileTree;
use std::io::ErrorKind;

/// The registry that the tests are about.
const HERE: u64 = 77;
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
    tag: Option<u64>,
    state: char,
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
            tag: None,
            state: 'S',
        }
    }
}

fn machine(processes: &[Made]) -> SysRoot {
    let mut tree = FileTree::new();
    tree.file("/sys/devices/system/cpu/online", "0-7\n");
    tree.file("/proc/2/comm", "kthreadd\n").file("/proc/2/task/2/children", "3 4 \n");
    tree.file("/sys/fs/cgroup/cpuset.cpus.effective", "0-7\n");
    tree.file("/sys/fs/cgroup/box/cpuset.cpus.effective", "0-1\n");
    for made in processes {
        let path = format!("/proc/{}", made.pid);
        let zeros = "0 ".repeat(12);
        // State, parent, ..., flags as field 9, ..., start as field 22.
        let stat = format!(
            "{} ({}) {} {} 0 0 0 0 {} {zeros}{} 0 0\n",
            made.pid, made.name, made.state, made.parent, made.flags, made.start
        );
        tree.file(&format!("{path}/stat"), stat);
        tree.file(&format!("{path}/status"), format!("Name:\tx\nUid:\t{0}\t{0}\t{0}\t{0}\n", made.user));
        tree.file(&format!("{path}/cgroup"), format!("0::{}\n", made.group));
        match made.environment {
            Some(text) => tree.file(&format!("{path}/environ"), text.replace(' ', "\0")),
            None => tree.failing(&format!("{path}/environ"), ErrorKind::PermissionDenied),
        };
        let limit = made.tag.map_or("unlimited".to_owned(), |tag| tag.to_string());
        tree.file(&format!("{path}/limits"), format!("Max file locks   {limit}   unlimited   locks\n"));
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
    look(&machine(&all), 40, scan, &[])
}

fn stale(cpus: &str, cores: u32) -> Scan {
    let who = Who {
        application: "ep".to_owned(),
        user: 1000,
        since_boot: 400,
        cores: Some(cores),
        ..Who::default()
    };
    let record = HolderRecord { cpus: cpus.parse().unwrap(), who, ended: false };
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
    let audit = look(&root, 40, &Scan::default(), &[]);
    assert!(audit.bound.is_empty(), "{audit:?}");
    // Neither does a shell that was bound so that what it starts is bound.
    let shell = Made { pid: 30, masks: vec!["0-2"], ..Made::default() };
    let root = machine(&[Made { masks: vec!["2"], ..me() }, shell]);
    assert!(look(&root, 40, &Scan::default(), &[]).bound.is_empty());
}

fn with_identity(processes: Vec<Made>, scan: &Scan) -> Vec<(Option<u64>, String)> {
    let mut all = vec![me(), Made { pid: 30, name: "shell", ..Made::default() }];
    all.extend(processes);
    let audit = look(&machine(&all), 40, scan, &[HERE]);
    audit.lost.iter().map(|lost| (lost.slot, lost.cpus.to_string())).collect()
}

#[test]
fn the_environment_alone_makes_nobody_a_holder() {
    let narrow =
        Made { masks: vec!["3"], environment: Some("NUMA_HOLD=100 NUMA_MASK=2-5"), ..Made::default() };
    let audit = seen(vec![narrow], &Scan::default());
    assert_eq!((audit.lost.len(), bound(&audit)), (0, vec![(50, "3".to_owned())]));
    let wide = Made { environment: Some("NUMA_HOLD=100 NUMA_MASK=2-5"), ..Made::default() };
    assert_eq!(with_identity(vec![wide], &Scan::default()), []);
}

#[test]
fn a_program_whose_record_is_gone_holds_what_it_was_given() {
    let tag = Some(tag::fresh(HERE));
    let says = |masks: &[&'static str], environment| Made {
        masks: masks.to_vec(),
        environment,
        tag,
        ..Made::default()
    };
    let lost = |made: Made| with_identity(vec![made], &Scan::default());
    let holds = |cpus: &str| vec![(None, cpus.to_owned())];
    assert_eq!(lost(says(&["3"], Some("NUMA_MASK=2-5"))), holds("2-5"));
    assert_eq!(lost(says(&["0-7"], Some("NUMA_MASK=2-5"))), holds("2-5"));
    assert_eq!(lost(says(&["0-7", "3"], None)), holds("3"));
    // It may have all.
    assert_eq!(lost(says(&["0-7"], None)), holds("0-7"));
    assert_eq!(lost(Made { tag: Some(tag::fresh(78)), ..says(&["3"], None) }), [], "another registry's");
    assert_eq!(lost(Made { state: 'Z', ..says(&["3"], None) }), [], "it has ended");
    // One of its processes tells what the others do not, whoever is seen first.
    let vague = || says(&["0-7"], Some(""));
    let clear = || says(&["0-7"], Some("NUMA_MASK=2-5"));
    for pair in [[vague(), clear()], [clear(), vague()]] {
        let [one, two] = pair;
        assert_eq!(with_identity(vec![one, Made { pid: 60, ..two }], &Scan::default()), holds("2-5"));
    }
    let two = Made { pid: 60, ..says(&["4"], None) };
    assert_eq!(with_identity(vec![says(&["3"], None), two], &Scan::default()), holds("3-4"));
    // Somebody has locks that no record tells of: these are its own.
    let scan = Scan { elsewhere: "4-5".parse().unwrap(), ..Scan::default() };
    let keeper = Made { pid: 45, name: "cores-keeper", ..Made::default() };
    let kept = Made { parent: 45, ..says(&["0-7"], None) };
    assert_eq!(with_identity(vec![keeper, kept], &scan), []);
    assert_eq!(with_identity(vec![says(&["0-7"], None)], &scan), holds("0-7"), "nobody keeps them");
    // Where all is in the file, nobody is looked for.
    let audit = seen(vec![says(&["0-7"], None)], &Scan::default());
    assert!(audit.lost.is_empty());
}

#[test]
fn all_that_a_program_started_holds_its_cores_whatever_it_became() {
    let mine = tag::fresh(HERE);
    let mut scan = stale("2-5", 4);
    scan.stale[0].1.who.tag = Some(mine);
    let lost = |made: Made, scan: &Scan| {
        let audit = seen(vec![made], scan);
        audit.lost.iter().map(|lost| (lost.slot, lost.cpus.to_string())).collect::<Vec<_>>()
    };
    let one = || Made { tag: Some(mine), ..Made::default() };
    let all = vec![(Some(7), "2-5".to_owned())];
    assert_eq!(lost(one(), &scan), all);
    for other in [
        Made { user: 1001, environment: None, ..one() },
        Made { masks: vec!["6-7"], ..one() },
        Made { start: 399, ..one() },
        Made { parent: 7, group: "/box", ..one() },
    ] {
        assert_eq!(lost(other, &scan), all);
    }
    // The same mask, user and environment without the tag are somebody else's.
    let marked = "NUMA_HOLD=100 NUMA_MASK=2-5";
    assert_eq!(lost(Made { masks: vec!["2-5"], environment: Some(marked), ..Made::default() }, &scan), []);
    assert_eq!(lost(Made { tag: Some(tag::fresh(HERE)), ..one() }, &scan), []);
    assert_eq!(lost(Made { state: 'Z', ..one() }, &scan), []);
    // Held again, by others or by itself in another record.
    let holding = Holding {
        cpus: "2-5".parse().unwrap(),
        state: HolderState::Held,
        who: None,
        same_pids: true,
        ours: false,
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
    scan.stale[0].1.who = Who { program, pids: pid_namespace(), ..scan.stale[0].1.who.clone() };
    assert_eq!(seen(vec![Made::default()], &scan).lost.len(), 1);
    // Another process with its number.
    assert_eq!(seen(vec![Made { start: 501, ..Made::default() }], &scan).lost.len(), 0);
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
