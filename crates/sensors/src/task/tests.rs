use super::*;
use crate::testing::{Values, absent, read};
use numakit_processes::{ChosenProcesses, ProcessChoice};
use numakit_testing::processes::{MadeProcess, four_nodes};
use numakit_testing::wait::wait_for;
use std::io::ErrorKind;

fn sensor(root: &SysRoot, target: &Target) -> Box<dyn Sensor> {
    let topology = four_nodes();
    (ENTRY.probe)(&Scene::new(root, &topology).observing(Some(target))).unwrap_or_else(|why| panic!("{why}"))
}

fn machine() -> SysRoot {
    let mut process = MadeProcess::new(10, 1, 0).maps("heap", &[(0, 3), (2, 1)]);
    process.counts = [8, 1, 2, 1, 30, 4, 2, 1];
    MadeProcess::machine(&[&process])
}

/// Reads until the walker has published values that satisfy the condition.
#[track_caller]
fn read_until(sensor: &mut dyn Sensor, so: impl Fn(&Values, Option<String>) -> bool) -> Values {
    wait_for("other values", || Some(read(sensor)).filter(|values| so(values, sensor.failure())))
}

#[test]
fn values_come_from_the_walker_and_follow_the_files() {
    let root = machine();
    let mut sensor = sensor(&root, &Target::running(10));
    let first = read_until(&mut *sensor, |v, _| v["task.walk_age"].is_some() && v["task.cpu"].is_some());
    for (name, value) in [
        ("task.resident@node0", 12288),
        ("task.heap@node2", 4096),
        ("task.file@node2", 0),
        ("task.threads@node0", 1),
        ("task.threads@node1", 0),
        ("task.processes", 1),
        ("task.minor_faults", 9),
        ("task.major_faults", 3),
        ("task.cpu", 37),
        ("task.threads_away", 0),
        ("task.huge_pages", 2 << 20),
    ] {
        assert_eq!(first[name], Some(value), "{name}");
    }
    assert!(first.values().all(Option::is_some), "{first:?}");
    root.change(|files| _ = files.remove("/proc/10"));
    let last = read_until(&mut *sensor, |v, _| v["task.resident@node0"] == Some(0));
    assert_eq!((last["task.processes"], last["task.minor_faults"]), (Some(0), Some(9)));
}

#[test]
fn processes_that_join_the_choice_later_are_in_the_series() {
    let root = machine();
    let choice = ProcessChoice::Name("^made$".parse().unwrap());
    let chosen = ChosenProcesses::find(&choice, &root).unwrap();
    let mut sensor = sensor(&root, &Target::chosen(&chosen).unwrap());
    read_until(&mut *sensor, |v, _| v["task.processes"] == Some(1));
    let joined = MadeProcess { counts: [5, 0, 0, 0, 0, 0, 0, 0], ..MadeProcess::new(20, 1, 0) };
    let other = MadeProcess { command: "other", ..MadeProcess::new(30, 1, 0) };
    root.change(|files| [joined, other].iter().for_each(|process| process.put(files)));
    read_until(&mut *sensor, |v, _| v["task.processes"] == Some(2) && v["task.minor_faults"] == Some(14));
}

#[test]
fn between_two_scans_levels_stay_and_counters_are_absent() {
    let mut sensor = sensor(&machine(), &Target::running(10));
    read_until(&mut *sensor, |v, _| v["task.minor_faults"] == Some(9));
    read_until(&mut *sensor, |v, _| v["task.minor_faults"].is_none() && v["task.processes"] == Some(1));
    read_until(&mut *sensor, |v, _| v["task.minor_faults"] == Some(9));
}

#[test]
fn a_walk_of_memory_without_a_scan_is_no_reading_of_counters() {
    let (root, topology, target) = (machine(), four_nodes(), Target::running(10));
    let mut task = Task::of(&Scene::new(&root, &topology).observing(Some(&target))).unwrap();
    task.walker = None;
    let (published, layout) = (Arc::clone(&task.published), task.layout);
    let mut after = |scans| {
        let mut row = vec![7; layout.values()];
        row[layout.scans()] = scans;
        published.board.publish(&row);
        let values = read(&mut task);
        (values["task.cpu_time@node0"], values["task.minor_faults"], values["task.processes"])
    };
    assert_eq!(after(1), (Some(7), Some(7), Some(7)));
    assert_eq!(after(1), (None, None, Some(7)));
    assert_eq!(after(2), (Some(7), Some(7), Some(7)));
}

#[test]
fn a_command_that_starts_later_is_waited_for() {
    let root = machine();
    root.change(|files| {
        ["numa_maps", "smaps_rollup", "sched"]
            .iter()
            .for_each(|f| _ = files.file(&format!("/proc/self/{f}"), ""))
    });
    let target = Target::awaited();
    let mut sensor = sensor(&root, &target);
    assert!(read(&mut *sensor).values().all(Option::is_none));
    target.started(10);
    read_until(&mut *sensor, |v, _| v["task.heap@node0"] == Some(12288));
}

#[test]
fn memory_that_may_not_be_read_is_absent_and_reported() {
    let root = machine();
    root.change(|files| _ = files.failing("/proc/10/numa_maps", ErrorKind::PermissionDenied));
    let mut sensor = sensor(&root, &Target::running(10));
    let values = read_until(&mut *sensor, |_, failure| failure.is_some());
    assert_eq!(
        sensor.failure().unwrap(),
        "the memory of PID 10 may not be read; run as root, or as the user of the process"
    );
    assert_eq!((values["task.resident@node0"], values["task.threads@node0"]), (None, Some(1)));
    assert_eq!(values["task.threads_away"], None);
}

#[test]
fn only_what_is_wanted_is_read() {
    let root = machine().traced();
    let mut sensor = sensor(&root, &Target::running(10));
    let before = root.touched();
    sensor.keep(&|s| s.metric.bare() == "minor_faults" || s.metric.bare() == "processes");
    let values = read_until(&mut *sensor, |v, _| v["task.processes"].is_some());
    assert_eq!(values.len(), 2);
    let read: Vec<String> = root.touched().into_iter().filter(|p| !before.contains(p)).collect();
    assert!(
        read.iter().all(|p| !p.contains("numa_maps") && !p.contains("smaps") && !p.contains("sched")),
        "{read:?}"
    );
}

#[test]
fn without_a_target_the_fix_is_reported() {
    let (root, topology) = (machine(), four_nodes());
    let why = (ENTRY.probe)(&Scene::new(&root, &topology)).err().unwrap();
    assert_eq!(
        (why.missing.as_str(), why.fix),
        ("observed processes", Fix::CommandLine("give a command after --, or --pid PID".to_owned()))
    );
    let exited = Target::running(99);
    let why = (ENTRY.probe)(&Scene::new(&root, &topology).observing(Some(&exited))).err().unwrap();
    assert_eq!(why.seen, "/proc/99/stat: no such file");
}

#[test]
fn what_the_kernel_does_not_have_is_absent_with_its_reason() {
    let root = machine();
    root.change(|files| {
        _ = files.remove("/proc/10/numa_maps").remove("/proc/10/sched").remove("/proc/10/task/10/sched")
    });
    let sensor = sensor(&root, &Target::running(10));
    let absent = absent(&*sensor);
    let why = |name: &str| {
        &absent.iter().find(|(n, _)| n == name).unwrap_or_else(|| panic!("{name}: {absent:?}")).1
    };
    assert!(why("task.resident").contains("CONFIG_NUMA"));
    assert!(why("task.threads_away").contains("CONFIG_NUMA"));
    assert!(why("task.migrations").contains("CONFIG_SCHED_DEBUG"));
    assert!(!absent.iter().any(|(n, _)| n == "task.cpu_time" || n == "task.huge_pages"));
}

#[test]
fn the_table_has_the_order_of_the_row() {
    let names: Vec<&str> = TASK.iter().map(|known| known.name).collect();
    assert_eq!(names.len(), OF_NODES + layout::OF_MACHINE);
    assert_eq!(
        names[..OF_NODES],
        [
            "resident",
            "stack",
            "heap",
            "anonymous",
            "file",
            "huge",
            "cpu_time",
            "threads",
            "alloc_mapped",
            "alloc_in_use",
            "alloc_cached",
            "alloc_recycled",
            "alloc_other_nodes",
            "alloc_local",
            "alloc_spilled"
        ]
    );
    assert_eq!(
        (names[OF_NODES + layout::WALK_TIME], names[OF_NODES + layout::WALK_AGE]),
        ("walk_time", "walk_age")
    );
}
