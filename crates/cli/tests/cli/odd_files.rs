//! Files that are not regular where one is expected: no verb blocks on them.

use crate::live::Address;
use crate::runner::{Done, Folder};
use std::process::Command;

fn fifo(path: std::path::PathBuf) {
    drop(numakit_sys::command::named_pipe(&path, 0o600).unwrap());
}

/// Runs a line that must end.
fn run(folder: &Folder, line: &str) -> Done {
    let mut command = Command::new("timeout");
    command.args(["-s", "KILL", "60", env!("CARGO_BIN_EXE_numa")]).args(line.split_whitespace());
    folder.isolate(&mut command).env("XDG_CONFIG_HOME", folder.path("config"));
    let done = Done::of(command.output().unwrap());
    assert_ne!(done.code, -9, "{line} waits");
    done
}

/// Replaces a file with a FIFO, and runs the verbs that read it.
fn below_a_root(replaced: &str) {
    let folder = Folder::new(&format!("odd-{}", replaced.replace('/', "-")));
    let root = folder.path("root");
    machine_of_two(&root);
    assert_eq!(run(&folder, "topo --sysroot root").code, 0, "{replaced}: the root is complete before");
    let file = root.join(replaced);
    std::fs::remove_file(&file).unwrap();
    fifo(file);
    for line in [
        "topo --sysroot root",
        "topo --sysroot root --json",
        "plan --sysroot root -c 1",
        "stat --sysroot root -n 1 -i 1ms",
        "list --sysroot root",
        "doctor --sysroot root",
        "top --once --sysroot root -i 1ms",
        "capture --sysroot root --force",
        "record --sysroot root -i 1ms -o a.arrows --force -- true",
    ] {
        let done = run(&folder, line);
        assert!((0..=2).contains(&done.code) && !done.err.contains("panicked"), "{line}: {}", done.err);
    }
}

/// A machine of two CPUs, as files.
fn machine_of_two(root: &std::path::Path) {
    let files = [
        ("sys/devices/system/cpu/online", "0-1\n"),
        ("sys/devices/system/cpu/possible", "0-1\n"),
        ("sys/devices/system/cpu/cpu0/topology/core_id", "0\n"),
        ("sys/devices/system/cpu/cpu0/topology/physical_package_id", "0\n"),
        ("sys/devices/system/cpu/cpu0/topology/thread_siblings", "1\n"),
        ("sys/devices/system/cpu/cpu1/topology/core_id", "1\n"),
        ("sys/devices/system/cpu/cpu1/topology/physical_package_id", "0\n"),
        ("sys/devices/system/cpu/cpu1/topology/thread_siblings", "2\n"),
        ("sys/devices/system/node/online", "0\n"),
        ("sys/devices/system/node/node0/cpumap", "3\n"),
        ("sys/devices/system/node/node0/distance", "10\n"),
        ("sys/devices/system/node/node0/meminfo", "Node 0 MemTotal: 1024 kB\nNode 0 MemFree: 512 kB\n"),
        ("sys/devices/system/node/node0/numastat", "numa_hit 1\n"),
        ("proc/stat", "cpu 1 0 1 1\ncpu0 1 0 1 1\ncpu1 1 0 1 1\n"),
        ("proc/vmstat", "pgfault 7\nnr_free_pages 5\n"),
        ("proc/meminfo", "MemTotal: 1024 kB\nMemFree: 512 kB\n"),
        ("proc/sys/kernel/hostname", "elsewhere\n"),
    ];
    for (path, content) in files {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
}

#[test]
fn a_fifo_below_a_root_blocks_no_verb() {
    for replaced in ["sys/devices/system/cpu/online", "sys/devices/system/node/node0/meminfo", "proc/stat"] {
        below_a_root(replaced);
    }
}

#[test]
#[ignore = "thorough: five more files, 10 seconds"]
fn a_fifo_anywhere_below_a_root_blocks_no_verb() {
    for replaced in [
        "sys/devices/system/cpu/cpu1/topology/core_id",
        "sys/devices/system/node/online",
        "sys/devices/system/node/node0/distance",
        "proc/vmstat",
        "proc/meminfo",
    ] {
        below_a_root(replaced);
    }
}

#[test]
fn a_fifo_or_device_as_input_is_refused() {
    let folder = Folder::new("odd-input");
    fifo(folder.path("pipe"));
    fifo(folder.path("pipe.json"));
    let lines = [
        "report",
        "export --to csv",
        "show --page --no-open --listen 127.0.0.1:0",
        "topo --sysroot",
        "list --formulas",
    ];
    for line in lines {
        run(&folder, &format!("{line} pipe")).says(2, "it is a FIFO and not a regular file");
        run(&folder, &format!("{line} /dev/zero")).says(2, "it is a device and not a regular file");
    }
    run(&folder, "explain pipe pipe").says(127, "cannot run 'pipe pipe'");
    for tls in ["--tls-cert pipe --tls-key none", "--tls-key pipe --tls-cert"] {
        let cert = concat!(env!("CARGO_MANIFEST_DIR"), "/../server/tests/server/tls/localhost.pem");
        let cert = if tls.ends_with("--tls-cert") { cert } else { "" };
        run(&folder, &format!("live --no-open --listen 127.0.0.1:0 {tls} {cert}"))
            .says(2, "pipe: it is a FIFO and not a regular file; give a file in PEM form");
    }
    run(&folder, "topo --synthetic pipe.json").says(2, "it is a FIFO and not a regular file");
}

#[test]
fn a_fifo_next_to_a_recording_or_in_the_settings_blocks_no_verb() {
    let folder = Folder::new("odd-beside");
    folder.run("record -i 5ms -e pgfault -o a.arrows -- sleep 0.1").says(0, "samples");
    fifo(folder.path("a.arrows.tail"));
    assert_eq!(run(&folder, "show a.arrows").code, 0);
    fifo(folder.path("a.arrows.levels"));
    // It prints the addresses after it has opened the recordings.
    let mut view = folder.spawn("show --page --no-open --listen 127.0.0.1:0 a.arrows");
    let _ = Address::of(view.child());
    drop(view);
    std::fs::create_dir_all(folder.path("config/numakit")).unwrap();
    fifo(folder.path("config/numakit/formulas.txt"));
    fifo(folder.path("config/numakit/no-huge-pages"));
    for line in ["list pgfault", "run --share -c 1 -- true"] {
        let done = run(&folder, line);
        assert!(done.err.contains("it is a FIFO"), "{line}: {} {}", done.code, done.err);
    }
}
