use super::*;
use crate::pmu::privilege::PARANOID;
use crate::testing::{Values, absent, read};
use crate::{Sensor, Tick};
use numakit_model::topology::Node;
use numakit_model::{Fix, Topology};
use numakit_sys::perf::Errno;
use numakit_sys::root::FileTree;
use numakit_testing::counters::Script;
use std::collections::BTreeMap;
use std::io::ErrorKind;

const TRACING: &str = "/sys/kernel/tracing";
const SECOND: u64 = 1_000_000_000;

/// Two nodes with two CPUs each, and one without CPUs.
fn topology() -> Topology {
    let node = |os_index, cpus| Node { os_index, cpus, ..Node::default() };
    let nodes = vec![node(0, CpuSet::range(0, 1)), node(1, CpuSet::range(2, 3)), node(2, CpuSet::new())];
    Topology { online: CpuSet::range(0, 3), offline: CpuSet::range(4, 5), nodes, ..Topology::default() }
}

fn tree() -> FileTree {
    let mut tree = FileTree::new();
    tree.file(PARANOID, "-1\n")
        .file("/sys/bus/event_source/devices/cpu/type", "4\n")
        .file("/sys/bus/event_source/devices/software/type", "1\n");
    for (id, line) in (300..).zip(lines()) {
        if let PerfSource::Tracepoint(system, name) = line.source {
            tree.file(&format!("{TRACING}/events/{system}/{name}/id"), format!("{id}\n"));
        }
    }
    tree
}

/// A kernel on which the event with code n happens n times a second on each CPU.
fn script() -> Script {
    let script = Script::new();
    script.pmu(PerfEvent::HARDWARE, 4, "").rates(|_, event| event.config[0]);
    script
}

fn root(tree: FileTree, script: &Script) -> SysRoot {
    SysRoot::of_tree(tree).with_counters(Arc::new(script.clone()))
}

fn sensor(root: &SysRoot, topology: &Topology) -> Box<dyn Sensor> {
    probe(&Scene::new(root, topology)).unwrap_or_else(|why| panic!("{why}"))
}

fn after_a_second(sensor: &mut dyn Sensor, script: &Script) -> Values {
    read(sensor);
    script.advance(SECOND);
    read(sensor)
}

#[test]
fn events_are_summed_for_their_node() {
    let script = script();
    let mut sensor = sensor(&root(tree(), &script), &topology());
    assert_eq!(absent(&*sensor), []);
    let values = after_a_second(&mut *sensor, &script);
    for (name, value) in [
        ("perf.page_faults@node0", 2 * 2),
        ("perf.context_switches@node1", 2 * 3),
        ("perf.cpu_migrations@node1", 2 * 4),
        ("perf.minor_faults@node0", 2 * 5),
        ("perf.major_faults@node0", 2 * 6),
        ("perf.cpu_switches@cpu3", 3),
        ("perf.instructions@node1", 2),
        ("perf.page_migrations@node0", 2 * 308),
        ("perf.running", 100),
    ] {
        assert_eq!(values[name], Some(value), "{name}");
    }
    assert!(!values.keys().any(|name| name.contains("node2") || name.contains("cpu4")));
    // Every line for two nodes; switches for four CPUs.
    assert_eq!(values.len(), (lines().count() - 1) * 2 + 4 + 1);
    assert!(values.values().all(Option::is_some));
}

#[test]
fn software_events_and_tracepoints_of_a_cpu_are_one_group() {
    let script = script();
    let mut sensor = sensor(&root(tree(), &script), &topology());
    assert_eq!(script.open_groups(), [], "nothing stays open after the trial");
    read(&mut *sensor);
    let groups: BTreeMap<_, _> = script.open_groups().into_iter().collect();
    for cpu in 0..4 {
        assert_eq!(groups[&(cpu, PerfEvent::SOFTWARE)], [5 + 10]);
        assert_eq!(groups[&(cpu, PerfEvent::HARDWARE)], [2]);
    }
    assert_eq!((groups.len(), sensor.files()), (8, 4 * 17));
}

#[test]
fn without_nodes_the_machine_is_one() {
    let script = script();
    let topology = Topology { online: CpuSet::range(0, 2), ..Topology::default() };
    let mut sensor_without_nodes = sensor(&root(tree(), &script), &topology);
    let values = after_a_second(&mut *sensor_without_nodes, &script);
    assert_eq!(values["perf.page_faults"], Some(6));
    let metric = &sensor_without_nodes.series()[0].metric;
    assert_eq!((metric.name.as_str(), metric.scope), ("perf.page_faults", Scope::Machine));
    // Without CPUs in the topology, the kernel's list counts.
    let mut tree = tree();
    tree.file("/sys/devices/system/cpu/online", "0,2\n");
    let mut sensor = sensor(&root(tree, &script), &Topology::default());
    assert_eq!(after_a_second(&mut *sensor, &script)["perf.page_faults"], Some(4));
}

#[test]
fn a_cpu_that_goes_offline_adds_no_more_to_its_node() {
    let script = script();
    let root = root(tree(), &script);
    let mut sensor = sensor(&root, &topology());
    after_a_second(&mut *sensor, &script);
    script.offline(3);
    script.advance(SECOND);
    let mut out = vec![None; sensor.series().len()];
    sensor.read(&Tick { woke: SECOND, ..Tick::default() }, &mut out);
    let values: Values = sensor.series().iter().map(|s| s.name()).zip(out).collect();
    assert_eq!(values["perf.page_faults@node0"], Some(8));
    assert_eq!(values["perf.page_faults@node1"], Some(4 + 2));
    assert_eq!(values["perf.cpu_switches@cpu2"], Some(6));
    assert_eq!(values["perf.cpu_switches@cpu3"], None);
    assert_eq!(sensor.failure(), Some("CPU 3 is offline".to_owned()));
}

/// The reason why a metric is absent after a change of the machine.
fn why(change: impl FnOnce(&mut FileTree), metric: &str) -> String {
    let mut tree = tree();
    change(&mut tree);
    let sensor = sensor(&root(tree, &script()), &topology());
    let found = absent(&*sensor).into_iter().find(|(name, _)| name == metric);
    found.unwrap_or_else(|| panic!("{metric} is not absent")).1
}

#[test]
fn missing_tracepoints_have_their_reason() {
    let metric = "perf.numa_task_moves";
    assert_eq!(
        why(|t| _ = t.remove(TRACING), metric),
        "tracepoints of the kernel: tracefs is not mounted: /sys/kernel/tracing has no folder 'events'; \
         sudo mount -t tracefs tracefs /sys/kernel/tracing"
    );
    assert_eq!(
        why(|t| _ = t.remove(TRACING).failing(TRACING, ErrorKind::PermissionDenied), metric),
        "tracepoints of the kernel: /sys/kernel/tracing: permission denied; run numa as root, or sudo mount \
         -o remount,mode=755 /sys/kernel/tracing"
    );
    let folder = format!("{TRACING}/events/sched/sched_move_numa");
    assert_eq!(
        why(|t| _ = t.remove(&folder), metric),
        format!(
            "the tracepoint sched:sched_move_numa: the kernel has no {folder}; boot a kernel that has it"
        )
    );
    assert!(why(|t| _ = t.file(&format!("{folder}/id"), "x"), metric).contains("/id is 'x', not a number;"));
}

#[test]
fn tracefs_below_debugfs_is_found() {
    let mut moved = FileTree::new();
    for (path, content) in tree().files() {
        moved.file(&path.replace(TRACING, "/sys/kernel/debug/tracing"), content);
    }
    assert_eq!(absent(&*sensor(&root(moved, &script()), &topology())), []);
}

#[test]
fn a_machine_without_a_core_pmu_is_reported() {
    assert_eq!(
        why(|t| _ = t.remove("/sys/bus/event_source/devices/cpu"), "perf.cycles"),
        "no core PMU: /sys/bus/event_source/devices has only software; run on a machine that has one; a \
         virtual machine gets one from its host (QEMU: -cpu host,pmu=on)"
    );
}

#[test]
fn on_hybrid_machines_each_kind_of_core_has_its_own_code() {
    let mut tree = tree();
    tree.remove("/sys/bus/event_source/devices/cpu");
    for (name, kind, cpus) in [("cpu_core", "4", "0-1"), ("cpu_atom", "10", "2-3")] {
        tree.file(&format!("{DEVICES}/{name}/type"), kind).file(&format!("{DEVICES}/{name}/cpus"), cpus);
    }
    let script = script();
    let mut sensor = sensor(&root(tree, &script), &topology());
    let values = after_a_second(&mut *sensor, &script);
    assert_eq!(values["perf.instructions@node0"], Some(2 * (4 << 32 | 1)));
    assert_eq!(values["perf.instructions@node1"], Some(2 * (10 << 32 | 1)));
}

#[test]
fn refused_events_are_absent_and_others_stay() {
    let script = script();
    script.refuse(PerfEvent::new(PerfEvent::HARDWARE, 1), Errno::NoSuchPmu);
    script.refuse(PerfEvent::new(PerfEvent::SOFTWARE, 6), Errno::Invalid);
    let mut sensor = sensor(&root(tree(), &script), &topology());
    let names: Vec<String> = absent(&*sensor).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["perf.major_faults", "perf.instructions"]);
    assert_eq!(after_a_second(&mut *sensor, &script)["perf.minor_faults@node0"], Some(10));
    assert_eq!(sensor.failure(), None);
}

#[test]
fn without_the_privilege_the_sensor_is_absent() {
    let script = script();
    script.paranoid(2, false);
    let root = root(tree(), &script);
    root.change(|t| _ = t.file(PARANOID, "2\n"));
    let why = probe(&Scene::new(&root, &topology())).err().unwrap();
    assert_eq!(
        why.to_string(),
        "counts of whole CPUs: kernel.perf_event_paranoid is 2 and this process lacks CAP_PERFMON; sudo \
         sysctl kernel.perf_event_paranoid=0, or sudo setcap cap_perfmon=ep numa"
    );
    // Counting tracepoints needs the same privilege as counting CPUs.
    script.paranoid(0, false);
    root.change(|t| _ = t.file(PARANOID, "0\n"));
    assert_eq!(absent(&*sensor(&root, &topology())), []);
}

#[test]
fn a_capture_has_no_counters() {
    let root = SysRoot::of_tree(tree());
    let why = probe(&Scene::new(&root, &topology())).err().unwrap();
    assert_eq!(why.fix, Fix::OtherMachine("the captured machine".to_owned()), "{why}");
}
