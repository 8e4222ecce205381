//! `numa tasks` on a simulated /proc of four nodes, from the files to the text.

#![allow(clippy::unwrap_used)]

use numakit_model::topology::Node;
use numakit_model::{CpuSet, Topology};
use numakit_processes::{ProcessRanking, Survey, TaskAccess};
use numakit_sys::SysRoot;
use numakit_sys::root::FileTree;
use numakit_terminal::tasks::TaskTable;
use std::io::ErrorKind;

/// Node N has the CPUs 4N to 4N + 3.
fn topology() -> Topology {
    let node = |id: u32| Node { os_index: id, cpus: CpuSet::range(4 * id, 4 * id + 3), ..Node::default() };
    Topology { page_size: 4096, nodes: (0..4).map(node).collect(), ..Topology::default() }
}

/// Each thread is its CPU and its CPU time in ms.
fn put(tree: &mut FileTree, pid: u32, uid: u32, command: &str, threads: &[(u32, u64)]) {
    let count = threads.len();
    let stat = |id: u32, cpu: u32| {
        format!(
            "{id} ({command}) S 1 1 1 0 -1 0 1 0 0 0 5 5 0 0 20 0 {count} 0 {pid} 9 5120 1 1 1 1 1 1 0 0 0 0 0 0 0 17 {cpu} 0 0\n"
        )
    };
    tree.file(&format!("/proc/{pid}/stat"), stat(pid, threads[0].0));
    tree.file(&format!("/proc/{pid}/status"), format!("Uid:\t{uid}\t{uid}\t{uid}\t{uid}\n"));
    for (id, (cpu, ms)) in (pid..).zip(threads) {
        tree.file(&format!("/proc/{pid}/task/{id}/stat"), stat(id, *cpu));
        tree.file(&format!("/proc/{pid}/task/{id}/schedstat"), format!("{} 0 1\n", ms * 1_000_000));
    }
}

const SOLVER: &str = "\
55d000 default heap anon=5120 dirty=5120 N0=5120 kernelpagesize_kB=4
7f0000 bind:3 anon=262144 dirty=262144 N3=262144 kernelpagesize_kB=4
7f8000 default file=/usr/lib/libm.so.6 mapped=256 mapmax=9 N0=128 N1=128 kernelpagesize_kB=4
7fa000 interleave:0-3 file=/anon_hugepage\\040(deleted) huge anon=64 N0=16 N1=16 N2=16 N3=16 kernelpagesize_kB=2048
7ff000 default stack anon=8 dirty=8 N0=8 kernelpagesize_kB=4
";

fn machine() -> SysRoot {
    let mut tree = FileTree::new();
    tree.file("/etc/passwd", "root:x:0:0::/:\nalice:x:1000:1000::/:\n");
    work(&mut tree, 0);
    tree.file("/proc/210/numa_maps", SOLVER);
    tree.file("/proc/220/numa_maps", "55d000 default heap anon=25600 N1=25600 kernelpagesize_kB=4\n");
    tree.file("/proc/230/numa_maps", "55d000 default heap anon=2560 N2=2560 kernelpagesize_kB=4\n");
    tree.failing("/proc/240/numa_maps", ErrorKind::PermissionDenied);
    SysRoot::of_tree(tree)
}

/// The processes `ms` ms after the start.
fn work(tree: &mut FileTree, ms: u64) {
    put(tree, 210, 1000, "solver", &[(0, ms), (1, ms), (5, ms / 2)]);
    put(tree, 220, 1000, "web server", &[(4, ms)]);
    put(tree, 230, 77, "idle", &[(0, 0)]);
    put(tree, 240, 0, "sshd", &[(0, ms / 100)]);
}

#[test]
fn from_files_to_text() {
    let root = machine();
    let topology = topology();
    let mut text = String::new();
    for only in [None, Some(vec![210, 240])] {
        root.change(|tree| work(tree, 0));
        let mut survey = Survey::new(&root, &topology, only.clone()).unwrap();
        root.change(|tree| work(tree, 1000));
        let mut processes = survey.measure(&|| true);
        ProcessRanking::Remote.sort(&mut processes);
        let tasks = TaskTable {
            nodes: survey.nodes().to_vec(),
            seconds: 1.0,
            processes,
            fix: TaskAccess::read(&root).fix(),
        };
        text.push_str(&if only.is_none() { tasks.list(20) + "\n" } else { tasks.details() });
    }
    let path = format!("{}/tests/golden/tasks-four-nodes.txt", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    assert_eq!(text, std::fs::read_to_string(&path).unwrap(), "write it with UPDATE=1");
}
