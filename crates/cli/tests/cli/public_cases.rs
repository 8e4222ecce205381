//! Troubles that users of NUMA machines report in public, on described machines: what numakit says of each, and a neighbour, the same
//! scene in which one decisive fact differs and it does not say that.
//!
//! | trouble | where it is tested |
//! |---|---|
//! | a model file is cached on one node, and threads of all nodes read it | guest: `measuring_cases`, `files` of `four_large` |
//! | threads on all nodes of a socket, memory of one of them | here; guest: `bound_memory` of `four`, `measuring_cases` |
//! | a server whose memory is bound to one node, and whose threads run on two | here; guest: the same two |
//! | a program that computes, and whose misplaced memory is hardly used | guest: `measuring_cases`; `scripted` of the findings |
//! | both threads of cores are filled while cores are free | here |
//! | memory that the processes of a database share, on one node or interleaved | guest: `measuring_cases` |
//! | nodes that suit a pod alike | here |
//! | a process that runs beside another card than its own | here |

use crate::runner::Folder;
use numakit_model::{CpuSet, Topology};
use numakit_sys::root::FileTree;
use numakit_testing::sysfs;

/// A trouble as two commands, of which the first must print these words and the other must not.
struct PublicCase {
    name: &'static str,
    command: &'static str,
    neighbour: &'static str,
    says: &'static str,
}

/// A machine whose sockets are four nodes each.
const CLUSTERED: &str = "Xeon_Platinum_8480+_x2_SNC4";
/// Memory without CPUs beside that of the CPUs.
const FLAT: &str = "Xeon_Max_9480_x2_SNC4_flat";

/// Words of each finding, whatever its numbers are.
const FINDINGS: [&str; 6] = [
    "remote to them",
    "share cores while",
    "the kubelet takes",
    "not near gpu",
    "has /dev/dri",
    "gets memory of",
];

const CASES: &[PublicCase] = &[
    PublicCase {
        name: "threads on all nodes of a socket, memory of one",
        command: "plan --machine CLUSTERED --nodes 0-3 --memory bind:0",
        neighbour: "plan --machine CLUSTERED --nodes 0-3 --memory bind:0-3",
        says: "warning: threads on nodes 1-3 get the memory of node 0 (--memory bind:0), which is remote to them: --memory bind \
               takes it from the nodes of the threads",
    },
    PublicCase {
        name: "the same as a command that runs",
        command: "run --dry-run --machine CLUSTERED --nodes 0-3 --memory prefer:0 ./serve",
        neighbour: "run --dry-run --machine CLUSTERED --nodes 0 --memory prefer:0 ./serve",
        says: "threads on nodes 1-3 get the memory of node 0 (--memory prefer:0)",
    },
    PublicCase {
        name: "memory of one node, and memory that has no CPUs",
        command: "plan --machine FLAT --nodes 0-3 --memory bind:1",
        neighbour: "plan --machine FLAT --nodes 0-3 --memory bind:8",
        says: "which is remote to them",
    },
    PublicCase {
        name: "both threads of cores while cores are free",
        command: "plan --machine CLUSTERED --threads 56 --threads-per-core 2",
        neighbour: "plan --machine CLUSTERED --threads 224 --threads-per-core 2",
        says: "warning: threads share cores while 84 other cores are free: --threads-per-core 1 gives each its own core",
    },
    PublicCase {
        name: "the same as a command that runs",
        command: "run --dry-run --machine CLUSTERED --nodes 0-3 --threads 56 --threads-per-core 2 ./serve",
        neighbour: "run --dry-run --machine CLUSTERED --nodes 0-3 --threads 112 --threads-per-core 2 ./serve",
        says: "threads share cores while 28 other cores are free",
    },
    PublicCase {
        name: "several nodes suit a pod alike",
        command: "plan --sysroot even -c 6 --for kubernetes",
        neighbour: "plan --sysroot uneven -c 6 --for kubernetes",
        says: "nodes 0-1 each have the CPUs of a pod: of those that are free the kubelet takes the one with the lowest number",
    },
    PublicCase {
        name: "several pairs of nodes suit a pod alike",
        command: "plan --machine CLUSTERED -c 20 --for kubernetes",
        neighbour: "plan --machine CLUSTERED -c 112 --for kubernetes",
        says: "a pod needs 2 of nodes 0-7: of those that are free the kubelet takes the lowest numbers",
    },
    PublicCase {
        name: "a plan that is not beside the GPU",
        command: "plan --synthetic GPUS --nodes 0 -c 2 --policy near:gpu1",
        neighbour: "plan --synthetic GPUS --nodes 0 -c 2 --policy near:gpu0",
        says: "warning: not near gpu1, which is on node 1",
    },
    PublicCase {
        name: "a process beside the wrong GPU",
        command: "doctor --sysroot wrong-gpu",
        neighbour: "doctor --sysroot right-gpu",
        says: "serve (7) has /dev/dri/renderD129 of node 1 open and ran on node 0",
    },
    PublicCase {
        name: "a running server with memory of one node and threads on two",
        command: "doctor --sysroot bound-to-0",
        neighbour: "doctor --sysroot bound-to-both",
        says: "serve (7) gets memory of node 0 only (a memory policy binds it), and ran on nodes 0-1",
    },
    PublicCase {
        name: "the same by a cpuset",
        command: "doctor --sysroot cpuset-of-0",
        neighbour: "doctor --sysroot bound-to-both",
        says: "serve (7) gets memory of node 0 only (its cpuset has no others), and ran on nodes 0-1",
    },
];

/// Two sockets of a node each.
fn machine() -> Topology {
    let mut topology = numakit_topology::synthetic::parse("package:2 node:1(mem=96G) core:8").unwrap();
    topology.nodes.iter_mut().for_each(|node| node.free_kb = Some(90 << 20));
    topology
}

/// The machine with a server of two threads on these CPUs, which may use memory of these nodes, under this policy.
fn with_server(cpus: [u32; 2], nodes: &str, policy: &str) -> FileTree {
    let mut tree = sysfs::tree(&machine());
    for (tid, cpu) in [7, 8].into_iter().zip(cpus) {
        let stat = format!("{tid} (serve) S {}{cpu} 0 0\n", "0 ".repeat(35));
        let status = format!("Cpus_allowed_list:\t0-15\nMems_allowed_list:\t{nodes}\n");
        for folder in ["/proc/7".to_owned(), format!("/proc/7/task/{tid}")] {
            tree.file(&format!("{folder}/stat"), stat.clone());
            tree.file(&format!("{folder}/status"), status.clone());
        }
    }
    tree.file("/proc/7/numa_maps", format!("55d0c000 {policy} file=/bin/serve N0=9\n"));
    for (card, node) in [("renderD128", "0\n"), ("renderD129", "1\n")] {
        tree.file(&format!("/sys/class/drm/{card}/device/numa_node"), node);
    }
    tree
}

fn with_card(card: &str) -> FileTree {
    let mut tree = with_server([0, 1], "0-1", "default");
    tree.symlink("/proc/7/fd/3", card);
    tree
}

fn write_machines(folder: &Folder) {
    let mut uneven = machine();
    uneven.allowed = CpuSet::range(0, 7).or(&CpuSet::range(8, 9));
    for (name, tree) in [
        ("even", sysfs::tree(&machine())),
        ("uneven", sysfs::tree(&uneven)),
        ("wrong-gpu", with_card("/dev/dri/renderD129")),
        ("right-gpu", with_card("/dev/dri/renderD128")),
        ("bound-to-0", with_server([0, 8], "0-1", "bind:0")),
        ("bound-to-both", with_server([0, 8], "0-1", "bind:0-1")),
        ("cpuset-of-0", with_server([0, 8], "0", "default")),
    ] {
        sysfs::write(&tree, &folder.path(name)).unwrap();
    }
}

/// All that a command prints, with each run of spaces and line ends as one space.
fn printed(folder: &Folder, line: &str) -> String {
    let word = |word: &str| match word {
        "CLUSTERED" => CLUSTERED.replace('_', " "),
        "FLAT" => FLAT.replace('_', " "),
        "GPUS" => "package:2 node:1 core:4 accelerator@node0 accelerator@node1".to_owned(),
        word => word.to_owned(),
    };
    let done = folder.numa("").args(line.split(' ').map(word)).output().unwrap();
    let text = [done.stdout, done.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).join(" ");
    // The doctor's code says that something cannot be measured there.
    let codes = if line.starts_with("doctor") { 0..2 } else { 0..1 };
    assert!(done.status.code().is_some_and(|code| codes.contains(&code)), "{line}: {text}");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn public_cases_are_found_and_their_neighbours_are_not() {
    let folder = Folder::new("publiccases");
    write_machines(&folder);
    for PublicCase { name, command, neighbour, says } in CASES {
        let (found, other) = (printed(&folder, command), printed(&folder, neighbour));
        assert!(found.contains(says), "{name}: 'numa {command}' does not say it: {found}");
        assert!(!other.contains(says), "{name}: 'numa {neighbour}' says it too: {other}");
        // Nor of other nodes.
        let said = FINDINGS.iter().find(|words| says.contains(**words) && other.contains(**words));
        assert_eq!(said, None, "{name}: 'numa {neighbour}': {other}");
    }
}
