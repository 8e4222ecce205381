//! What `numa capture` writes is read as the same machine, and has no personal data.
#![allow(clippy::unwrap_used)]

use numakit_model::Topology;
use numakit_sys::SysRoot;
use numakit_sys::root::FileTree;
use numakit_testing::sysfs;
use numakit_topology::capture::Capture;
use numakit_topology::{read, synthetic};
use std::path::{Path, PathBuf};

fn folder(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("numakit-capture-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).unwrap();
    path
}

/// Writes it to a file and reads that.
fn reread(capture: &Capture, name: &str) -> Topology {
    let folder = folder(name);
    let path = folder.join("machine.tar.zst");
    capture.write(&std::fs::File::create(&path).unwrap()).unwrap();
    let topology = read(&SysRoot::open(&path).unwrap()).unwrap();
    std::fs::remove_dir_all(folder).unwrap();
    topology
}

/// Without free memory, which changes all the time.
fn steady(topology: &Topology) -> Topology {
    let mut topology = Topology { origin: String::new(), ..topology.clone() };
    topology.nodes.iter_mut().for_each(|node| (node.free_kb, node.memory_kb) = (None, None));
    topology
}

#[test]
fn this_machine_reads_back() {
    let capture = Capture::take(&SysRoot::host(), |_, _| {}).unwrap();
    assert_eq!(steady(&reread(&capture, "host")), steady(capture.topology()));
}

#[test]
fn the_seven_machines_read_back() {
    for path in numakit_captures::archives() {
        let capture = Capture::take(&SysRoot::open(&path).unwrap(), |_, _| {}).unwrap();
        let copy = Topology { origin: capture.topology().origin.clone(), ..reread(&capture, "seven") };
        assert_eq!(&copy, capture.topology(), "{}", path.display());
    }
}

#[test]
fn what_others_read_is_captured_too() {
    let mut tree = sysfs::tree(&synthetic::parse("node:2 core:2").unwrap());
    tree.file("/proc/pressure/cpu", "some avg10=0.00\n");
    let root = SysRoot::of_tree(tree);
    let capture = Capture::take(&root, |root, topology| {
        let _ = root.text("/proc/pressure/cpu");
        let _ = root.text("/proc/pressure/irq");
        for node in &topology.nodes {
            let _ = root.text(&format!("/sys/devices/system/node/node{}/numastat", node.os_index));
        }
    })
    .unwrap();
    let copy = SysRoot::of_tree(capture.tree().clone());
    assert_eq!(copy.text("/proc/pressure/cpu").unwrap(), "some avg10=0.00\n");
    assert!(!copy.exists("/proc/pressure/irq"));
    assert!(copy.exists("/sys/devices/system/node/node1/numastat"));
    let pressure = capture.contents().into_iter().find(|c| c.place == "/proc/pressure").unwrap();
    assert_eq!((pressure.files, pressure.bytes), (1, 16));
    assert_eq!(capture.contents().iter().map(|c| c.files).sum::<usize>(), capture.tree().files().count());
}

#[test]
fn a_renumbered_list_of_cpus_is_captured_as_it_is() {
    let mut tree = sysfs::tree(&synthetic::parse("package:2 node:1 core:2").unwrap());
    tree.file("/sys/devices/system/cpu/online", "0\n");
    tree.file("/proc/self/status", "Cpus_allowed_list:\t2\nMems_allowed_list:\t0-1\n");
    let capture = Capture::take(&SysRoot::of_tree(tree), |_, _| {}).unwrap();
    let copy = reread(&capture, "renumbered");
    for topology in [capture.topology(), &copy] {
        assert_eq!([&topology.online, &topology.allowed].map(ToString::to_string), ["0-3", "2"]);
    }
    assert_eq!((capture.topology().notes.len(), copy.notes.len()), (1, 0));
}

#[test]
fn personal_data_is_not_captured() {
    let mut tree = sysfs::tree(&synthetic::parse("node:1 core:2").unwrap());
    let secrets = [
        ("/proc/self/status", "Name:\talice-job\nUid:\t1001\nCpus_allowed_list:\t1\nMems_allowed_list:\t0\n"),
        ("/proc/self/cgroup", "0::/user.slice/user-alice.slice\n"),
        ("/proc/mounts", "alice-nas:/home /home nfs rw 0 0\ncgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n"),
        ("/proc/sys/kernel/hostname", "alice-laptop\n"),
        ("/sys/class/dmi/id/product_serial", "alice-123\n"),
        ("/proc/stat.alice", "x\n"),
        ("/sys/fs/resctrl/alice/mon_data/mon_L3_00/llc_occupancy", "1\n"),
        ("/sys/fs/resctrl/mon_groups/alice/mon_data/mon_L3_00/llc_occupancy", "1\n"),
    ];
    for (path, content) in secrets {
        tree.file(path, content);
    }
    let capture = Capture::take(&SysRoot::of_tree(tree), |root, _| {
        secrets.iter().for_each(|(path, _)| drop(root.text(path)));
        let _ = (root.list("/sys/fs/resctrl"), root.list("/sys/fs/resctrl/mon_groups"));
    })
    .unwrap();
    for (path, content) in capture.tree().files() {
        assert!(!path.contains("alice") && !String::from_utf8_lossy(content).contains("alice"), "{path}");
    }
    assert!(capture.tree().directories().all(|path| !path.contains("alice")));
    let copy = SysRoot::of_tree(capture.tree().clone());
    assert_eq!(copy.text("/proc/self/status").unwrap(), "Cpus_allowed_list:\t1\nMems_allowed_list:\t0\n");
    assert_eq!(read(&copy).unwrap().allowed.to_string(), "1");
}

#[test]
fn pmus_are_captured_and_names_of_boards_are_not() {
    let mut tree = sysfs::tree(&synthetic::parse("node:1 core:2").unwrap());
    let folder = "/sys/bus/event_source/devices";
    tree.symlink(&format!("{folder}/uncore_imc_0"), "../../../devices/uncore_imc_0");
    tree.file("/sys/devices/uncore_imc_0/type", "20\n");
    tree.file("/sys/devices/uncore_imc_0/format/event", "config:0-7\n");
    let cpu = "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: Big\nflags\t\t: fpu\n";
    tree.file(
        "/proc/cpuinfo",
        format!("{cpu}Serial\t\t: 4711\n\nHardware\t: Board\nidentification : 4711\n"),
    );
    let capture = Capture::take(&SysRoot::of_tree(tree), |root, _| {
        let _ = (root.list(folder), root.list(&format!("{folder}/uncore_imc_0")));
        let _ = root.text(&format!("{folder}/uncore_imc_0/type"));
        let _ = root.list(&format!("{folder}/uncore_imc_0/format"));
        let _ = root.text(&format!("{folder}/uncore_imc_0/format/event"));
    })
    .unwrap();
    let copy = SysRoot::of_tree(capture.tree().clone());
    assert_eq!(copy.list(folder).unwrap(), ["uncore_imc_0"]);
    assert_eq!(copy.text(&format!("{folder}/uncore_imc_0/type")).unwrap(), "20\n");
    assert_eq!(copy.list(&format!("{folder}/uncore_imc_0/format")).unwrap(), ["event"]);
    assert_eq!(copy.text("/proc/cpuinfo").unwrap(), format!("{cpu}\n"));
}

#[test]
fn a_root_without_a_machine_gives_no_capture() {
    assert!(Capture::take(&SysRoot::of_tree(FileTree::new()), |_, _| {}).is_err());
    assert!(SysRoot::open(Path::new("/nonexistent")).is_err());
}
