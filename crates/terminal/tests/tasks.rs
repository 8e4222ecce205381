//! `numa top --once` on a simulated /proc of four nodes, from the files to the text.

#![allow(clippy::unwrap_used)]

use numakit_processes::{ProcessRanking, Survey, TaskAccess};
use numakit_sys::SysRoot;
use numakit_sys::root::FileTree;
use numakit_terminal::tasks::TaskTable;
use numakit_testing::processes::{MadeProcess, four_nodes};
use std::io::ErrorKind;

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
    SysRoot::of_tree(tree)
}

/// The processes `ms` ms after the start. Each thread is its CPU and its CPU time in ms.
fn work(tree: &mut FileTree, ms: u64) {
    let mut put = |pid: u32, user, command, maps: &str, threads: &[(u32, u64)]| {
        let numa_maps = vec![maps.to_owned()];
        let threads = (pid..).zip(threads).map(|(id, (cpu, ms))| (id, *cpu, ms * 1_000_000, -1)).collect();
        MadeProcess { user, command, threads, numa_maps, resident: 5120, ..MadeProcess::new(pid, 1, 0) }
            .put(tree);
    };
    put(210, 1000, "solver", SOLVER, &[(0, ms), (1, ms), (2, ms / 2)]);
    put(220, 1000, "web server", "55d000 default heap anon=25600 N1=25600 kernelpagesize_kB=4\n", &[(2, ms)]);
    put(230, 77, "idle", "55d000 default heap anon=2560 N2=2560 kernelpagesize_kB=4\n", &[(0, 0)]);
    put(240, 0, "sshd", "", &[(0, ms / 100)]);
    tree.failing("/proc/240/numa_maps", ErrorKind::PermissionDenied);
}

#[test]
fn from_files_to_text() {
    let root = machine();
    let topology = four_nodes();
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
            ..TaskTable::default()
        };
        text.push_str(&if only.is_none() { tasks.list(20) + "\n" } else { tasks.details() });
    }
    let path = format!("{}/tests/golden/tasks-four-nodes.txt", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    assert_eq!(text, std::fs::read_to_string(&path).unwrap(), "write it with UPDATE=1");
}
