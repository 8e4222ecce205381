use super::*;
use numakit_sys::root::FileTree;
use numakit_testing::processes::{MadeProcess, four_nodes};

const MS: u64 = 1_000_000;

fn no_samples() -> Result<JobSamples, Unavailable> {
    Err(Unavailable::new("samples of jobs", "a test", numakit_model::Fix::OtherKernel(String::new())))
}

fn put(tree: &mut FileTree, pid: u32, cpu: u32, ran: u64, group: &str) {
    let mut process = MadeProcess::new(pid, 1, cpu).maps("heap", &[(0, 60), (3, 40)]);
    process.threads[0].2 = ran;
    process.put(tree);
    tree.file(&format!("/proc/{pid}/cgroup"), format!("0::{group}\n"));
    // Ready and without a CPU for half of the time.
    tree.file(&format!("/proc/{pid}/task/{pid}/schedstat"), format!("{ran} {} 1\n", ran / 2));
    tree.file(&format!("/proc/{pid}/status"), "Name:\tx\nUid:\t5\t1000\t5\t5\nCpus_allowed_list:\t0-3\n");
}

fn watch(root: &SysRoot) -> JobWatch {
    JobWatch::new(root, &four_nodes(), no_samples()).unwrap()
}

#[test]
fn processes_are_added_up_by_job_and_counters_never_fall() {
    let root = SysRoot::of_tree(FileTree::new());
    root.change(|tree| {
        put(tree, 10, 0, 0, "/system.slice/a.service");
        put(tree, 11, 6, 0, "/system.slice/a.service");
        put(tree, 12, 2, 0, "/");
    });
    let mut watch = watch(&root);
    watch.round(&|| true);
    root.change(|tree| {
        put(tree, 10, 0, 30 * MS, "/system.slice/a.service");
        put(tree, 11, 6, 10 * MS, "/system.slice/a.service");
    });
    let now = watch.round(&|| true);
    let job = now.jobs.iter().find(|job| job.name == "unit/a.service").unwrap();
    assert_eq!((job.processes, job.cpu, job.waited), (2, 40 * MS, 20 * MS));
    assert_eq!(job.cpu_on, [30 * MS, 0, 0, 10 * MS]);
    assert_eq!(job.memory_on, Some(vec![120 * 4096, 0, 0, 80 * 4096]));
    assert_eq!((job.mask_nodes, job.time), (Some(2), None));
    assert!(now.jobs.iter().any(|job| job.name == "user/1000"), "{:?}", now.jobs);
    assert!(now.absent.iter().any(|why| why.missing == "samples of jobs"));
    // A process that ends takes nothing away.
    root.change(|tree| _ = tree.remove("/proc/10"));
    let later = watch.round(&|| true);
    let job = later.jobs.iter().find(|job| job.name == "unit/a.service").unwrap();
    assert_eq!((job.processes, job.cpu), (1, 40 * MS));
}

#[test]
fn a_node_whose_cpus_are_offline_is_none_that_a_mask_covers() {
    let root = SysRoot::of_tree(FileTree::new());
    root.change(|tree| put(tree, 10, 0, 0, "/a"));
    let mut watch = watch(&root);
    let nodes = |watch: &mut JobWatch| watch.round(&|| true).jobs[0].mask_nodes;
    assert_eq!(nodes(&mut watch), Some(2));
    root.change(|tree| _ = tree.file("/sys/devices/system/cpu/online", "0-1,4-7\n"));
    assert_eq!(nodes(&mut watch), Some(1));
}

#[test]
fn jobs_that_have_ended_are_forgotten_and_memory_comes_from_their_group() {
    let root = SysRoot::of_tree(FileTree::new());
    root.change(|tree| {
        put(tree, 10, 0, 0, "/a");
        put(tree, 11, 0, 0, "/b");
        tree.file("/proc/self/mounts", "cgroup2 /cg cgroup2 rw 0 0\n").file("/cg/a/cgroup.procs", "");
        tree.file("/cg/a/memory.numa_stat", "anon N0=5 N1=7\nfile N0=1\n");
    });
    let mut watch = watch(&root);
    let now = watch.round(&|| true);
    let job = now.jobs.iter().find(|job| job.name == "cgroup/a").unwrap();
    assert_eq!(job.memory_on, Some(vec![6, 7, 0, 0]));
    root.change(|tree| _ = tree.remove("/proc/11"));
    let names = |now: &JobsNow| now.jobs.iter().map(|job| job.name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&watch.round(&|| true)), ["cgroup/a", "cgroup/b"]);
    let last = (0..RETIRED).map(|_| watch.round(&|| true)).last().unwrap();
    assert_eq!(names(&last), ["cgroup/a"]);
}

#[test]
fn memory_that_there_was_no_time_to_read_is_absent_with_its_reason() {
    let root = SysRoot::of_tree(FileTree::new());
    root.change(|tree| {
        tree.file("/proc/self/status", "Uid:\t0\t0\t0\t0\nCapEff:\t000001ffffffffff\n");
        put(tree, 10, 0, 0, "/a");
    });
    let mut watch = watch(&root);
    let is_absent = |now: &JobsNow| now.absent.iter().any(|why| why.missing == "memory by node of jobs");
    assert!(!is_absent(&watch.round(&|| false)), "nobody has tried yet");
    assert!(!is_absent(&watch.round(&|| true)));
    root.change(|tree| put(tree, 11, 0, 100 * MS, "/b"));
    assert!(is_absent(&watch.round(&|| false)));
    assert!(!is_absent(&watch.round(&|| true)));
}

#[test]
fn of_many_jobs_the_busiest_are_shown_and_the_rest_is_one() {
    let root = SysRoot::of_tree(FileTree::new());
    let all = SHOWN as u32 + 30;
    let run = |factor: u64| {
        root.change(|tree| {
            for pid in 100..100 + all {
                put(tree, pid, 0, u64::from(pid) * factor * MS, &format!("/job{pid}"));
            }
        });
    };
    run(0);
    let mut watch = watch(&root);
    watch.round(&|| true);
    run(1);
    let now = watch.round(&|| true);
    assert_eq!((now.jobs.len(), now.hidden, now.other.processes), (SHOWN, 30, 30));
    let hidden: u64 = (100..130).sum();
    assert_eq!((now.other.cpu, now.other.waited), (hidden * MS, hidden * MS / 2));
    assert!(now.jobs.iter().all(|job| job.name != "cgroup/job100"), "the idlest is not shown");
    let detailed = now.jobs.iter().filter(|job| job.memory_on.is_some()).count();
    assert_eq!(detailed, DETAILED);
    run(2);
    assert_eq!(watch.round(&|| true).other.cpu, 2 * hidden * MS);
}

#[test]
fn what_is_not_shown_is_counted_with_all_others() {
    let root = SysRoot::of_tree(FileTree::new());
    let run = |factor: u64| {
        root.change(|tree| {
            (1..=5).for_each(|at| put(tree, 100 + at, 0, u64::from(at) * factor * MS, &format!("/job{at}")));
        });
    };
    run(0);
    let mut watch = watch(&root);
    watch.show(2);
    watch.round(&|| true);
    for factor in 1..4 {
        run(factor);
        let now = watch.round(&|| true);
        assert_eq!((now.jobs.len(), now.hidden, now.other.cpu), (2, 3, 6 * factor * MS));
    }
}

#[test]
fn the_last_samples_of_a_process_that_ended_belong_to_its_job() {
    let root = SysRoot::of_tree(FileTree::new());
    root.change(|tree| put(tree, 10, 0, 0, "/a"));
    let mut watch = watch(&root);
    watch.round(&|| true);
    root.change(|tree| _ = tree.remove("/proc/10"));
    watch.round(&|| true);
    assert_eq!(watch.ended.get(&10).map(|name| &**name), Some("cgroup/a"));
    watch.round(&|| true);
    assert_eq!(watch.ended.get(&10), None);
}

#[test]
fn a_process_that_changes_its_group_changes_its_job() {
    let root = SysRoot::of_tree(FileTree::new());
    root.change(|tree| put(tree, 10, 0, 0, "/a"));
    let mut watch = watch(&root);
    watch.round(&|| true);
    root.change(|tree| put(tree, 10, 0, 0, "/b"));
    let last = (0..2 * RENAMED).map(|_| watch.round(&|| true)).last().unwrap();
    assert_eq!(last.jobs.iter().map(|job| job.name.as_str()).collect::<Vec<_>>(), ["cgroup/b"]);
}
