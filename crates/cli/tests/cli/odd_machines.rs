//! Machines that are not what they say: lists of CPUs that a container renumbers, nodes without memory, devices elsewhere.

use crate::runner::{Done, Folder};
use numakit_model::CpuSet;
use numakit_model::topology::HugePagePool;
use numakit_sys::sched::affinity;
use numakit_testing::sysfs;
use std::process::Command;

/// Runs a line on one CPU, where /sys lists only another CPU as online, as lxcfs does it.
fn renumbered(folder: &Folder, cpu: u32, line: &str) -> Done {
    const SCRIPT: &str =
        "mount --bind \"$1\" /sys/devices/system/cpu/online && shift && exec taskset -c \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", SCRIPT, "sh"]).arg(folder.path("online")).arg(cpu.to_string());
    command.arg(env!("CARGO_BIN_EXE_numa")).args(line.split_whitespace());
    Done::of(folder.isolate(&mut command).env("NUMAKIT_REGISTRY", folder.path("registry")).output().unwrap())
}

#[test]
fn the_mask_wins_over_a_renumbered_list_of_cpus() {
    let Some(cpu) = affinity().unwrap().last().filter(|cpu| *cpu > 0) else {
        return numakit_skips::MACHINE.skip("renumbering CPUs needs a CPU beside CPU 0");
    };
    if numakit_sys::user::id() != 0 {
        return numakit_skips::ROOT.skip("a mount namespace needs root");
    }
    let folder = Folder::new("renumbered");
    std::fs::write(folder.path("online"), "0\n").unwrap();
    if renumbered(&folder, cpu, "--version").code != 0 {
        return numakit_skips::PRIVILEGES
            .skip("this root may not mount over /sys, or there is no unshare or taskset");
    }
    let ran = renumbered(&folder, cpu, "run -c 1 --busy off -- grep Cpus_allowed_list /proc/self/status");
    assert_eq!((ran.code, ran.out), (0, format!("Cpus_allowed_list:\t{cpu}\n")), "{}", ran.err);
    let planned = renumbered(&folder, cpu, "plan -c 1 --json");
    let plan: serde_json::Value = serde_json::from_str(&planned.out).unwrap();
    assert_eq!(plan["plan"]["steps"][0]["cpu"], cpu, "{}", planned.out);
    let topo = renumbered(&folder, cpu, "topo --json");
    let topo: serde_json::Value = serde_json::from_str(&topo.out).unwrap();
    assert_eq!(topo["allowed"], cpu.to_string(), "{topo}");
    let doctor = renumbered(&folder, cpu, "doctor --all");
    let note = format!("online lists CPUs 0, and this process may run on CPUs {cpu}");
    assert!(doctor.out.contains(&note), "{}", doctor.out);
}

/// A machine as files: node 1 has no memory, node 2 is full and has all huge pages, and a card is at node 1.
fn write_odd(folder: &Folder) {
    let description = "package:2 node:2(mem=96G) core:2 dist=10/12/32 accelerator@node1";
    let mut topology = numakit_topology::synthetic::parse(description).unwrap();
    for (node, free_kb) in [(0, 90 << 20), (1, 0), (2, 400 << 10), (3, 90 << 20)] {
        let node = &mut topology.nodes[node];
        node.free_kb = Some(free_kb);
        node.memory_kb = Some(if free_kb == 0 { 0 } else { 96 << 20 });
        node.huge_pages =
            vec![HugePagePool { size_kb: 2048, count: if node.os_index == 2 { 512 } else { 0 } }];
    }
    topology.allowed = CpuSet::range(0, 1).or(&CpuSet::range(4, 7));
    sysfs::write(&sysfs::tree(&topology), &folder.path("root")).unwrap();
}

#[test]
fn plans_and_the_doctor_say_what_a_machine_lacks() {
    let folder = Folder::new("oddmachine");
    write_odd(&folder);
    let run = |line: &str| {
        let done = folder.run(&format!("{line} --sysroot root"));
        assert!(done.code < 2, "{line}: {}", done.err);
        done.out
    };
    let text = run("plan -c 4 --explain");
    assert!(text.starts_with("1 process of 4 threads on 4 CPUs of nodes 0,3\n"), "{text}");
    assert!(
        text.contains("nodes with free memory are preferred to node 2 (400 MiB of 96 GiB free)"),
        "{text}"
    );
    let text = run("plan -c 1 --policy near:gpu0");
    assert!(
        text.starts_with("1 process of 1 thread on 1 CPU of node 0, not near gpu0, which is on node 1\n"),
        "{text}"
    );
    assert!(
        text.contains("warning: not near gpu0, which is on node 1: that node has no free core"),
        "{text}"
    );
    let text = run("plan -c 2 --nodes 2");
    assert!(
        text.contains("warning: node 2 has 400 MiB of 96 GiB free: the kernel allocates what does not fit"),
        "{text}"
    );
    let text = run("doctor --all");
    for expected in [
        "note     memory of nodes: node 1 has CPUs and no memory; memory of threads on node 1 is on other nodes, at best node 0",
        "note     memory of nodes: node 2 has 400 MiB of 96 GiB free",
        "note     reserved huge pages: all 512 pages of 2 MiB are on node 2 and none on nodes 0,3",
    ] {
        assert!(text.contains(expected), "{expected}\n{text}");
    }
}
