//! Cores that share a unit are counted as hwloc, Open MPI and AMD count them.
#![allow(clippy::unwrap_used)]

use numakit_model::topology::CacheKind;
use numakit_model::{CpuSet, Topology};
use numakit_sys::SysRoot;
use numakit_sys::root::FileTree;
use numakit_testing::sysfs;
use numakit_topology::{json, read, read_for_placement, synthetic};
use std::path::Path;
use std::process::Command;

const CPU: &str = "/sys/devices/system/cpu";

fn opteron() -> Topology {
    json::parse(numakit_captures::OPTERON_6276).unwrap()
}

/// Its files as a kernel of its time shows them: no `core_cpus`, and its model in /proc/cpuinfo.
fn files() -> FileTree {
    let mut tree = sysfs::tree(&opteron());
    for cpu in 0..64 {
        for file in ["core_cpus", "core_cpus_list", "package_cpus", "package_cpus_list"] {
            tree.remove(&format!("{CPU}/cpu{cpu}/topology/{file}"));
        }
    }
    tree.file("/proc/cpuinfo", cpuinfo());
    tree
}

fn cpuinfo() -> String {
    let one = |cpu: u32| {
        format!(
            "processor\t: {cpu}\nvendor_id\t: AuthenticAMD\ncpu family\t: 21\nmodel\t\t: 1\n\
             model name\t: AMD Opteron(TM) Processor 6276\nphysical id\t: {}\ncore id\t\t: {}\n\n",
            cpu / 16,
            cpu % 8
        )
    };
    (0..64).map(one).collect()
}

fn lists<'a>(sets: impl Iterator<Item = &'a CpuSet>) -> Vec<String> {
    sets.map(ToString::to_string).collect()
}

#[test]
fn pairs_with_numbers_of_their_own_are_cores() {
    for read in [read, |root: &SysRoot| read_for_placement(root, false)] {
        let t = read(&SysRoot::of_tree(files())).unwrap();
        let singles: Vec<String> = (0..64).map(|cpu| cpu.to_string()).collect();
        assert_eq!(lists(t.cores.iter().map(|core| &core.cpus)), singles);
        let pairs: Vec<String> = (0..32).map(|unit| format!("{}-{}", 2 * unit, 2 * unit + 1)).collect();
        assert_eq!(lists(t.units.iter()), pairs);
        assert_eq!(lists(t.caches_of_level(2).map(|cache| &cache.cpus)), pairs);
        assert_eq!(t.packages.len(), 4);
        assert_eq!(t.notes, Vec::<String>::new());
    }
    let t = read(&SysRoot::of_tree(files())).unwrap();
    let ids: Vec<u32> = t.cores.iter().map(|core| core.os_index.unwrap()).collect();
    assert_eq!(ids, (0..64).map(|cpu| cpu % 8).collect::<Vec<_>>());
    let first = |kind| t.caches.iter().filter(|c| c.level == 1 && c.kind == kind).count();
    assert_eq!((first(CacheKind::Data), first(CacheKind::Instruction)), (64, 32));
}

#[test]
fn a_unit_with_one_core_online_is_a_core() {
    let mut tree = files();
    tree.file(&format!("{CPU}/online"), "0,2-63\n");
    let t = read(&SysRoot::of_tree(tree)).unwrap();
    assert_eq!((t.cores.len(), t.units.len()), (63, 31));
    assert_eq!((t.cores[0].cpus.to_string(), t.units[0].to_string()), ("0".into(), "2-3".into()));
}

#[test]
fn threads_of_a_core_stay_together() {
    // Both threads show the number of their core; without numbers, nothing is split.
    let smt = synthetic::parse("package:2 node:1 core:4 pu:2").unwrap();
    let mut tree = sysfs::tree(&smt);
    let t = read(&SysRoot::of_tree(tree.clone())).unwrap();
    assert_eq!((t.cores.len(), t.units.len()), (8, 0));
    for cpu in 0..16 {
        tree.remove(&format!("{CPU}/cpu{cpu}/topology/core_id"));
    }
    let t = read(&SysRoot::of_tree(tree)).unwrap();
    assert_eq!((t.cores.len(), t.units.len()), (8, 0));
}

#[test]
fn a_described_unit_reads_the_same_from_files_and_json() {
    for description in
        ["package:4 node:2 l3:1(size=6M) unit:4 core:2(l1=16K)", "package:2 unit:2(size=1M) core:2 offline=1"]
    {
        let t = synthetic::parse(description).unwrap();
        let copy = read(&SysRoot::of_tree(sysfs::tree(&t))).unwrap();
        let expected = Topology { origin: copy.origin.clone(), ..t.clone() };
        assert_eq!(copy, expected, "{description}");
        assert_eq!(json::parse(&json::text(&t)).unwrap(), t, "{description}");
    }
}

/// What hwloc counts in a folder of files.
fn hwloc(root: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new("hwloc-calc")
        .env("HWLOC_FSROOT", root)
        .env("HWLOC_COMPONENTS", "linux,stop")
        .env("HWLOC_THISSYSTEM", "0")
        .args(arguments)
        .output()
        .ok()?;
    Some(String::from_utf8(output.stdout).unwrap().trim().to_owned())
}

fn write(tree: &FileTree, folder: &Path) {
    let _ = std::fs::remove_dir_all(folder);
    for (path, content) in tree.files() {
        let file = folder.join(path.trim_start_matches('/'));
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, content).unwrap();
    }
}

#[test]
fn hwloc_counts_the_same() {
    let folder = std::env::temp_dir().join(format!("numakit-units-{}", std::process::id()));
    let mut tree = files();
    // hwloc takes these from the system instead of files.
    tree.file("/proc/hwloc-nofile-info", "OSName: Linux\nOSRelease: 3.2.0\nArchitecture: x86_64\n");
    write(&tree, &folder);
    let count = |what: &str| hwloc(&folder, &["--number-of", what, "all"]);
    let Some(cores) = count("core") else {
        return numakit_skips::TOOLS.skip("hwloc-calc is not installed (Debian package hwloc)");
    };
    let t = read(&SysRoot::open(&folder).unwrap()).unwrap();
    assert_eq!(cores, t.cores.len().to_string());
    assert_eq!(count("l2").unwrap(), t.units.len().to_string());
    assert_eq!(count("package").unwrap(), t.packages.len().to_string());
    assert_eq!(count("numa").unwrap(), t.nodes.len().to_string());
    let _ = std::fs::remove_dir_all(&folder);
}

#[test]
fn hwloc_counts_the_same_on_captures() {
    let folder = std::env::temp_dir().join(format!("numakit-counted-{}", std::process::id()));
    for archive in numakit_captures::archives() {
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        let unpacked = Command::new("tar").arg("xjf").arg(&archive).arg("-C").arg(&folder).status().unwrap();
        assert!(unpacked.success());
        let root = std::fs::read_dir(&folder).unwrap().next().unwrap().unwrap().path();
        let Some(cores) = hwloc(&root, &["--whole-system", "--number-of", "core", "all"]) else {
            return numakit_skips::TOOLS.skip("hwloc-calc is not installed (Debian package hwloc)");
        };
        let t = read(&SysRoot::open(&archive).unwrap()).unwrap();
        assert_eq!(cores, t.cores.len().to_string(), "{}", archive.display());
        let packages = hwloc(&root, &["--whole-system", "--number-of", "package", "all"]).unwrap();
        assert_eq!(packages, t.packages.len().to_string(), "{}", archive.display());
    }
    let _ = std::fs::remove_dir_all(&folder);
}
