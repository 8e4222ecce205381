use super::*;
use numakit_sys::root::FileTree;
use numakit_testing::processes::{MadeProcess, four_nodes};
use std::cell::Cell;
use std::io::ErrorKind;

fn machine() -> SysRoot {
    let mut files = FileTree::new();
    files.file("/etc/passwd", "root:x:0:0::/:\nme\u{1b}:x:1000:1000::/:\nother:x:1000:1000::/:\n");
    let mut far = MadeProcess::new(10, 1, 0).maps("heap", &[(0, 10), (3, 30)]);
    far.command = "a b) S 1 (\u{7}";
    far.put(&mut files);
    MadeProcess::new(11, 1, 2).maps("heap", &[(1, 8)]).put(&mut files);
    MadeProcess { flags: 0x0020_0000, ..MadeProcess::new(12, 2, 0) }.put(&mut files);
    MadeProcess { state: 'Z', ..MadeProcess::new(13, 10, 0) }.put(&mut files);
    MadeProcess::new(14, 1, 4).put(&mut files);
    files.failing("/proc/14/numa_maps", ErrorKind::PermissionDenied);
    SysRoot::of_tree(files)
}

#[test]
fn processes_have_their_memory_and_their_share_of_far_memory() {
    let root = machine();
    let mut survey = Survey::new(&root, &four_nodes(), None).unwrap();
    let idle = survey.measure(&|| true);
    assert_eq!(idle.iter().map(|p| p.pid).collect::<Vec<_>>(), [10, 11, 14]);
    assert_eq!((idle[0].ran, idle[0].near_far), (0, Some((250_000, 750_000))));
    assert_eq!(
        (idle[1].near_far, idle[2].near_far, &idle[2].found),
        (Some((1_000_000, 0)), None, &MemorySource::Denied)
    );
    assert_eq!((idle[0].user.as_str(), idle[0].command.as_str()), ("me?", "a b) S 1 (?"));
    let mut moved = MadeProcess::new(10, 1, 7).maps("heap", &[(0, 10), (3, 30)]);
    moved.threads[0].2 = 4000;
    root.change(|files| moved.put(files));
    moved.counts[..4].copy_from_slice(&[7, 900, 2, 900]);
    root.change(|files| moved.put(files));
    let ran = survey.measure(&|| true);
    assert_eq!(
        (ran[0].parent, ran[0].faults, ran[0].major_faults, ran[1].faults),
        (1, Some(9), Some(2), Some(0))
    );
    assert_eq!((ran[0].ran, ran[0].near_far), (4000, Some((3000, 1000))));
}

#[test]
fn processes_without_time_are_late_and_the_busiest_come_first() {
    let root = machine();
    let mut survey = Survey::new(&root, &four_nodes(), None).unwrap();
    let mut busy = MadeProcess::new(11, 1, 2).maps("heap", &[(1, 8)]);
    busy.threads[0].2 = 4000;
    root.change(|files| busy.put(files));
    // A file, its end.
    let steps = Cell::new(2u32);
    let time = || steps.replace(steps.get().saturating_sub(1)) > 0;
    let found: Vec<bool> = survey.measure(&time).iter().map(|p| p.found == MemorySource::Late).collect();
    assert_eq!(found, [true, false, true]);
}

#[test]
fn moved_pages_of_all_threads_are_counted_between_two_scans() {
    let root = machine();
    let sched = |tid: u32, moved: u64| {
        root.change(|files| {
            files.file(&format!("/proc/10/task/{tid}/sched"), format!("numa_pages_migrated : {moved}\n"));
        });
    };
    let mut made = MadeProcess::new(10, 1, 0);
    made.threads.push((15, 2, 0, -1));
    root.change(|files| made.put(files));
    sched(10, 100);
    sched(15, 5);
    let mut survey = Survey::new(&root, &four_nodes(), None).unwrap();
    survey.count_moved(true);
    let first = survey.measure(&|| true);
    assert!(first.iter().all(|p| p.moved.is_none()), "the 105 are older than the survey");
    sched(10, 130);
    sched(15, 7);
    let moved: Vec<Option<u64>> = survey.measure(&|| true).iter().map(|p| p.moved).collect();
    assert_eq!(moved, [Some(32), None, None], "the others have no such line");
}

#[test]
fn faults_are_those_since_the_last_scan_and_urgency_is_the_callers() {
    let root = machine();
    let mut survey = Survey::new(&root, &four_nodes(), None).unwrap();
    let faulting = MadeProcess {
        counts: [9, 0, 2, 0, 0, 0, 0, 0],
        ..MadeProcess::new(11, 1, 2).maps("heap", &[(1, 8)])
    };
    root.change(|files| {
        faulting.put(files);
        MadeProcess::new(15, 10, 0).put(files);
    });
    let steps = Cell::new(2u32);
    let time = || steps.replace(steps.get().saturating_sub(1)) > 0;
    let found = survey.measure_by(&|process| (u64::from(process.pid == 10), 0), &time);
    let known: Vec<(u32, u32, Option<u64>, bool)> =
        found.iter().map(|p| (p.pid, p.parent, p.faults, p.found != MemorySource::Late)).collect();
    let rest = [(11, 1, Some(11), false), (14, 1, Some(0), false), (15, 10, None, false)];
    assert_eq!(known, [&[(10, 1, Some(0), true)][..], &rest].concat());
}

#[test]
fn a_kernel_without_nodes_is_reported() {
    let root = machine();
    root.change(|files| [10, 11, 14].iter().for_each(|p| _ = files.remove(&format!("/proc/{p}/numa_maps"))));
    let why = Survey::new(&root, &four_nodes(), None).unwrap_err();
    assert_eq!(why.fix, Fix::BuildOption("CONFIG_NUMA".to_owned()));
    assert!(Survey::new(&SysRoot::of_tree(FileTree::new()), &four_nodes(), None).is_err());
}
