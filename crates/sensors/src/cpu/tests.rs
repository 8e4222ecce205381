use super::*;
use crate::testing::{absent, nodes, read, root, sensor};
use numakit_model::Topology;

const STAT: &str = "cpu  30 3 9 900 6 0 3 0 0 0\n\
    cpu0 10 1 3 300 2 0 1 0 0 0\n\
    cpu2 20 2 6 600 4 0 2 0 0 0\n\
    intr 12345 0 1 2 3 4 5 6 7 8 9\n\
    ctxt 777\nbtime 1700000000\nprocesses 88\nprocs_running 2\nprocs_blocked 1\nsoftirq 5 0 1\n";

#[test]
fn ticks_of_each_cpu_and_totals_of_the_machine() {
    let mut sensor = sensor(&ENTRY, &root(&[(PATH, STAT)]), &nodes(&[]));
    let values = read(&mut *sensor);
    assert_eq!(values.len(), 2 * 10 + 5);
    assert_eq!(values["cpu.user@cpu2"], Some(20));
    assert_eq!(values["cpu.guest_nice@cpu0"], Some(0));
    let totals = ["interrupts", "context_switches", "forks", "procs_running", "procs_blocked"];
    assert_eq!(totals.map(|t| values[&format!("cpu.{t}")]), [12345, 777, 88, 2, 1].map(Some));
    assert_eq!(sensor.period(), Duration::from_millis(10));
    let resolution =
        |name: &str| sensor.series().iter().find(|s| s.metric.name == name).unwrap().metric.resolution;
    assert_eq!(resolution("cpu.idle"), Duration::from_millis(10));
    assert_eq!(resolution("cpu.interrupts"), Duration::ZERO);
}

#[test]
fn an_offline_cpu_is_empty_and_comes_back() {
    let root = root(&[(PATH, STAT)]);
    let topology = Topology {
        online: CpuSet::parse_list("0,2").unwrap(),
        offline: CpuSet::parse_list("1").unwrap(),
        ..Topology::default()
    };
    let mut sensor = sensor(&ENTRY, &root, &topology);
    let values = read(&mut *sensor);
    assert_eq!((values["cpu.user@cpu1"], values["cpu.user@cpu2"]), (None, Some(20)));
    assert_eq!(sensor.failure().unwrap(), "CPU 1 is offline");
    root.change(|t| _ = t.file(PATH, STAT.replace("cpu0 10", "cpu1 77").replace("cpu2", "cpu3")));
    let values = read(&mut *sensor);
    assert_eq!(["0", "1", "2"].map(|n| values[&format!("cpu.user@cpu{n}")]), [None, Some(77), None]);
    assert_eq!(sensor.failure().unwrap(), "CPU 0,2 is offline");
}

#[test]
fn the_order_of_the_lines_does_not_matter() {
    let root = root(&[(PATH, STAT)]);
    let mut sensor = sensor(&ENTRY, &root, &nodes(&[]));
    root.change(|t| _ = t.file(PATH, "ctxt 1\ncpu2 5 6\ncpu0 7 8 9\ncpu99999999999 1\ncpuX 1\n"));
    let values = read(&mut *sensor);
    assert_eq!(values["cpu.user@cpu2"], Some(5));
    assert_eq!(values["cpu.system@cpu2"], None);
    assert_eq!(values["cpu.system@cpu0"], Some(9));
    assert_eq!((values["cpu.context_switches"], values["cpu.forks"]), (Some(1), None));
}

#[test]
fn iowait_that_goes_back_stays_as_the_kernel_says() {
    let root = root(&[(PATH, STAT)]);
    let mut sensor = sensor(&ENTRY, &root, &nodes(&[]));
    root.change(|t| _ = t.file(PATH, STAT.replace("300 2", "300 1")));
    assert_eq!(read(&mut *sensor)["cpu.iowait@cpu0"], Some(1));
    let iowait = sensor.series().iter().find(|s| s.metric.name == "cpu.iowait").unwrap();
    assert_eq!(iowait.metric.kind, Kind::Counter { bits: 64 });
}

#[test]
fn without_ticks_there_is_no_slowest_interval() {
    let mut sensor = sensor(&ENTRY, &root(&[(PATH, STAT)]), &nodes(&[]));
    sensor.keep(&|s| ["cpu.interrupts", "cpu.procs_blocked"].contains(&s.name().as_str()));
    assert_eq!(sensor.period(), Duration::ZERO);
    let values: Vec<_> = read(&mut *sensor).into_values().collect();
    assert_eq!(values, [Some(12345), Some(1)]);
    assert_eq!(sensor.failure(), None);
}

#[test]
fn kept_ticks_move_together() {
    let mut sensor = sensor(&ENTRY, &root(&[(PATH, STAT)]), &nodes(&[]));
    sensor.keep(&|s| s.metric.name == "cpu.idle" || s.name() == "cpu.user@cpu2");
    let values: Vec<_> = read(&mut *sensor).into_iter().collect();
    let expected = [("cpu.idle@cpu0", 300), ("cpu.idle@cpu2", 600), ("cpu.user@cpu2", 20)];
    assert_eq!(values, expected.map(|(n, v)| (n.to_owned(), Some(v))));
}

#[test]
fn fields_that_an_old_kernel_lacks_are_absent() {
    let old = "cpu 1 1 1 1 1 1 1 1 1\ncpu0 1 1 1 1 1 1 1 1 1\nintr 5\nctxt 6\nprocesses 7\nprocs_running 1\nprocs_blocked 0\n";
    let sensor = sensor(&ENTRY, &root(&[(PATH, old)]), &nodes(&[]));
    let names: Vec<String> = absent(&*sensor).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["cpu.guest_nice"]);
}

#[test]
fn truncated_lines_and_garbage_have_no_values() {
    let root = root(&[(PATH, STAT)]);
    let mut sensor = sensor(&ENTRY, &root, &nodes(&[]));
    root.change(|t| _ = t.file(PATH, "cpu0 10 1 3 30"));
    assert!(read(&mut *sensor).values().all(Option::is_none));
    root.change(|t| _ = t.file(PATH, b"cpu0 x\n\xff\xfe\nintr\nctxt -3\n\n".to_vec()));
    assert!(read(&mut *sensor).values().all(Option::is_none));
    let why = (ENTRY.probe)(&crate::Scene::new(&crate::testing::root(&[(PATH, "nothing\n")]), &nodes(&[])))
        .err()
        .unwrap();
    assert_eq!(why.seen, "/proc/stat has no line 'cpu0 NUMBER...'");
}
