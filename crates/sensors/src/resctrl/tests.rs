use super::*;
use crate::testing::{absent, read, sensor};
use numakit_model::topology::{Cache, Node, Package};
use numakit_model::{CpuSet, Topology};
use numakit_sys::root::FileTree;
use std::io::ErrorKind;

const ALL: &str = "llc_occupancy\nmbm_total_bytes\nmbm_total_bytes_config\nmbm_local_bytes\n";

/// A machine with L3 caches of these numbers with four CPUs each, and packages and nodes of
/// `per_package` and `per_node` caches.
fn machine(numbers: &[u32], per_package: u32, per_node: u32) -> (FileTree, Topology) {
    let count = numbers.len() as u32;
    let groups = |size: u32| -> Vec<CpuSet> {
        (0..count / size).map(|at| CpuSet::range(at * size * 4, (at + 1) * size * 4 - 1)).collect()
    };
    let mut tree = FileTree::new();
    let mut topology = Topology::default();
    for (cpus, number) in groups(1).into_iter().zip(numbers) {
        for cpu in cpus.iter() {
            let cache = format!("/sys/devices/system/cpu/cpu{cpu}/cache");
            tree.file(&format!("{cache}/index0/level"), "1\n");
            tree.file(&format!("{cache}/index0/id"), "77\n");
            tree.file(&format!("{cache}/index3/level"), "3\n");
            tree.file(&format!("{cache}/index3/id"), format!("{number}\n"));
        }
        topology.caches.push(Cache { level: 3, cpus, ..Cache::default() });
    }
    for (at, cpus) in (0..).zip(groups(per_package)) {
        topology.packages.push(Package { os_index: Some(at), cpus });
    }
    for (os_index, cpus) in (0..).zip(groups(per_node)) {
        topology.nodes.push(Node { os_index, cpus, ..Node::default() });
    }
    tree.file(FEATURES, ALL);
    (tree, topology)
}

/// A group whose counts are `from`, `from` + 1, ... in the order of domains and files.
fn group(tree: &mut FileTree, path: &str, domains: &[&str], from: u64) {
    let files = ["llc_occupancy", "mbm_total_bytes", "mbm_local_bytes"];
    let places = domains.iter().flat_map(|domain| files.map(|file| format!("{domain}/{file}")));
    for (count, place) in (from..).zip(places) {
        tree.file(&format!("{FOLDER}{path}/mon_data/{place}"), format!("{count}\n"));
    }
}

fn two_packages() -> (SysRoot, Topology) {
    let (mut tree, topology) = machine(&[0, 1], 1, 1);
    let domains = ["mon_L3_00", "mon_L3_01"];
    group(&mut tree, "", &domains, 100);
    group(&mut tree, "/web", &domains, 200);
    group(&mut tree, "/web/mon_groups/new job", &domains, 300);
    group(&mut tree, "/mon_groups/web", &domains, 400);
    tree.file(&format!("{FOLDER}/schemata"), "L3:0=ff\n").file(&format!("{FOLDER}/web/tasks"), "1\n");
    (SysRoot::of_tree(tree), topology)
}

#[test]
fn two_packages_with_groups() {
    let (root, topology) = two_packages();
    let mut sensor = sensor(&ENTRY, &root, &topology);
    let values = read(&mut *sensor);
    assert_eq!(values.len(), 4 * 2 * 3);
    for (name, value) in [
        ("resctrl.llc_occupancy@package0", 100),
        ("resctrl.mbm_total_bytes@package1", 104),
        ("resctrl.web.mbm_local_bytes@package0", 202),
        ("resctrl.web.mon_groups.new_job.mbm_total_bytes@package0", 301),
        ("resctrl.mon_groups.web.mbm_total_bytes@package1", 404),
    ] {
        assert_eq!(values[name], Some(value), "{name}");
    }
    let total = sensor.series().iter().find(|s| s.metric.bare() == "web.mbm_total_bytes").unwrap();
    assert_eq!((total.metric.unit, total.metric.kind), (Unit::Bytes, Kind::COUNTER));
    assert!(total.metric.help.ends_with("by tasks of the group web."));
    assert_eq!(sensor.series()[0].metric.kind, Kind::Gauge);
}

#[test]
fn only_files_of_selected_series_are_read() {
    let (root, topology) = two_packages();
    let mut sensor = sensor(&ENTRY, &root, &topology);
    sensor.keep(&|s| s.name() == "resctrl.web.llc_occupancy@package1");
    assert_eq!(sensor.files(), 1);
    assert_eq!(read(&mut *sensor)["resctrl.web.llc_occupancy@package1"], Some(203));
}

#[test]
fn many_caches_of_a_package_keep_the_numbers_of_the_kernel() {
    let numbers = [0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23];
    let domains: Vec<String> = numbers.iter().map(|n| format!("mon_L3_{n:02}")).collect();
    let domains: Vec<&str> = domains.iter().map(String::as_str).collect();
    let (mut tree, topology) = machine(&numbers, 8, 8);
    group(&mut tree, "", &domains, 0);
    let mut by_cache = sensor(&ENTRY, &SysRoot::of_tree(tree.clone()), &topology);
    assert_eq!(read(&mut *by_cache)["resctrl.mbm_total_bytes@cache16"], Some(25));
    assert_eq!(by_cache.series()[0].metric.scope, Scope::Cache);
    // Firmware can make each of them a node.
    let (_, topology) = machine(&numbers, 8, 1);
    let mut by_node = sensor(&ENTRY, &SysRoot::of_tree(tree), &topology);
    assert_eq!(read(&mut *by_node)["resctrl.mbm_total_bytes@node8"], Some(25));
}

#[test]
fn sub_numa_clusters_are_nodes() {
    let (mut tree, topology) = machine(&[0, 1], 1, 1);
    let parts = ["mon_L3_00/mon_sub_L3_00", "mon_L3_00/mon_sub_L3_01", "mon_L3_01/mon_sub_L3_02"];
    group(&mut tree, "", &["mon_L3_00", "mon_L3_01"], 0);
    group(&mut tree, "", &parts, 50);
    group(&mut tree, "/web", &parts, 70);
    let mut sensor = sensor(&ENTRY, &SysRoot::of_tree(tree), &topology);
    let values = read(&mut *sensor);
    assert_eq!(values.len(), 18);
    assert_eq!(values["resctrl.llc_occupancy@node2"], Some(56));
    assert_eq!(values["resctrl.web.mbm_total_bytes@node1"], Some(74));
}

#[test]
fn words_instead_of_numbers_are_not_values() {
    let (root, topology) = two_packages();
    let mut sensor = sensor(&ENTRY, &root, &topology);
    let path = format!("{FOLDER}/mon_data/mon_L3_01/mbm_total_bytes");
    for (word, reason) in [
        ("Unavailable\n", "the hardware has no count at the moment"),
        ("Error\n", "the hardware refuses the number of the group"),
        ("Unassigned\n", "no counter is assigned to this group"),
        ("12 pages\n", "not a number"),
        ("", "not a number"),
    ] {
        root.change(|tree| _ = tree.file(&path, word));
        let values = read(&mut *sensor);
        assert_eq!(values["resctrl.mbm_total_bytes@package1"], None, "{word}");
        assert_eq!(values["resctrl.mbm_total_bytes@package0"], Some(101));
        assert_eq!(sensor.failure(), Some(format!("{path}: {reason}")));
    }
    root.change(|tree| _ = tree.file(&path, "7\n"));
    assert_eq!(read(&mut *sensor)["resctrl.mbm_total_bytes@package1"], Some(7));
    assert_eq!(sensor.failure(), None);
}

#[test]
fn a_removed_group_has_no_values_and_others_continue() {
    let (root, topology) = two_packages();
    let mut sensor = sensor(&ENTRY, &root, &topology);
    root.change(|tree| _ = tree.remove(&format!("{FOLDER}/web")));
    let values = read(&mut *sensor);
    assert_eq!(values.iter().filter(|(_, value)| value.is_none()).count(), 12);
    assert!(values.iter().all(|(name, value)| value.is_none() == name.starts_with("resctrl.web.")));
    assert!(sensor.failure().unwrap().contains("/web/mon_data/mon_L3_00/llc_occupancy: no such file"));
}

#[test]
fn what_the_hardware_does_not_offer_is_absent() {
    let (mut tree, topology) = machine(&[0], 1, 1);
    group(&mut tree, "", &["mon_L3_00"], 0);
    tree.file(FEATURES, "llc_occupancy\n");
    let sensor = sensor(&ENTRY, &SysRoot::of_tree(tree), &topology);
    assert_eq!(sensor.series().len(), 1);
    let absent = absent(&*sensor);
    assert_eq!(absent.len(), 2);
    let flags = "run on a CPU whose flags have cqm_mbm_total, with rdt=mbmtotal on the kernel's command line";
    assert!(absent[0].1.ends_with(&format!("mon_features has llc_occupancy; {flags}")), "{}", absent[0].1);
}

#[test]
fn a_feature_of_the_cpu_that_the_kernel_lacks_needs_a_parameter() {
    let flags = |words: &str| words.split(' ').map(str::to_owned).collect();
    let parameter = Fix::KernelParameter { parameter: "rdt=mbmtotal".to_owned(), option: None };
    assert_eq!(monitoring(&flags("fpu cqm_mbm_total"), "cqm_mbm_total", "mbmtotal"), parameter);
    let elsewhere = monitoring(&flags("fpu"), "cqm_mbm_total", "mbmtotal");
    assert!(matches!(elsewhere, Fix::OtherMachine(_)), "{elsewhere}");
}

fn why(change: impl FnOnce(&mut FileTree)) -> Unavailable {
    let mut tree = FileTree::new();
    change(&mut tree);
    let scene_root = SysRoot::of_tree(tree);
    (ENTRY.probe)(&Scene::new(&scene_root, &Topology::default())).err().unwrap()
}

#[test]
fn a_machine_without_it_says_what_is_missing() {
    let mount = Fix::command("mount -t resctrl resctrl /sys/fs/resctrl");
    assert_eq!(why(|t| _ = t.directory(FOLDER)).fix, mount);
    assert_eq!(why(|t| _ = t.file("/proc/filesystems", "nodev\tresctrl\n")).fix, mount);
    let only_allocation = why(|t| _ = t.file(&format!("{FOLDER}/info/MB/num_closids"), "8\n"));
    assert_eq!(only_allocation.seen, "/sys/fs/resctrl/info has only MB");
    assert!(matches!(only_allocation.fix, Fix::OtherMachine(_)), "{}", only_allocation.fix);
    let denied = why(|t| _ = t.failing(FEATURES, ErrorKind::PermissionDenied));
    assert!(denied.seen.ends_with("mon_features: permission denied"), "{}", denied.seen);
    let no_such_cpu = why(|t| _ = t.file("/proc/cpuinfo", "flags\t: fpu cqm_l cat_l3\n"));
    assert!(matches!(no_such_cpu.fix, Fix::OtherMachine(_)));
    let has = why(|t| _ = t.file("/proc/cpuinfo", "flags\t: fpu cqm_occup_llc cqm_mbm_total\n"));
    assert!(has.seen.contains("have cqm_occup_llc, cqm_mbm_total, but there is no"), "{}", has.seen);
    assert_eq!(why(|_| ()).seen, "no /sys/fs/resctrl");
}

#[test]
fn names_of_groups_are_unique() {
    let mut taken = HashSet::new();
    let names = ["/", "a b", "a_b", "a,b", "a/mon_groups/x", "mon_groups/x"].map(|g| unique(&mut taken, g));
    assert_eq!(names, ["", "a_b.", "a_b_2.", "a_b_3.", "a.mon_groups.x.", "mon_groups.x."]);
}
