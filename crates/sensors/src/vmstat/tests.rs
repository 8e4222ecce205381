use super::*;
use crate::testing::{absent, nodes, read, root, sensor};
use numakit_model::{Fix, Series};
use std::io::ErrorKind;

const CONTENT: &str = "nr_free_pages 100\nnr_new_level 5\nnuma_hit 7\nnuma_miss 0\nworkingset_nodes 3\n\
    other_new 6\nnr_dirty_threshold 9\npgpgin 11\npgfault 12\nnr_new_event 13\nnuma_hint_faults 2\nnr_unstable 0\n";

fn metric_of(sensor: &dyn crate::Sensor, name: &str) -> Metric {
    let series = sensor.series().iter().find(|s| s.metric.name == name);
    Metric::clone(&series.unwrap_or_else(|| panic!("no {name}")).metric)
}

#[test]
fn every_line_is_a_series_in_the_order_of_the_kernel() {
    let mut sensor = sensor(&ENTRY, &root(&[(PATH, CONTENT)]), &nodes(&[]));
    let names: Vec<String> = sensor.series().iter().map(Series::name).collect();
    let lines: Vec<String> =
        CONTENT.lines().map(|l| format!("vmstat.{}", l.split(' ').next().unwrap())).collect();
    assert_eq!(names, lines);
    let values = read(&mut *sensor);
    assert_eq!(values["vmstat.nr_free_pages"], Some(100));
    assert_eq!(values["vmstat.numa_miss"], Some(0));
    assert_eq!(values["vmstat.nr_unstable"], Some(0));
    assert!(sensor.absent().is_empty() && sensor.failure().is_none());
}

#[test]
fn unknown_names_are_sampled_and_their_kind_guessed_by_name_and_place() {
    let sensor = sensor(&ENTRY, &root(&[(PATH, CONTENT)]), &nodes(&[]));
    for (name, kind) in
        [("nr_new_level", Kind::Gauge), ("other_new", Kind::COUNTER), ("nr_new_event", Kind::COUNTER)]
    {
        let metric = metric_of(&*sensor, &format!("vmstat.{name}"));
        assert_eq!(metric.kind, kind, "{name}");
        assert!(metric.help.starts_with("Unknown to this version"), "{}", metric.help);
    }
}

#[test]
fn what_lags_behind_says_so() {
    let sensor = sensor(&ENTRY, &root(&[(PATH, CONTENT)]), &nodes(&[]));
    for (name, batched) in [
        ("nr_free_pages", true),
        ("workingset_nodes", true),
        ("nr_new_level", true),
        ("numa_hit", false),
        ("nr_dirty_threshold", false),
        ("pgfault", false),
        ("nr_unstable", false),
    ] {
        let metric = metric_of(&*sensor, &format!("vmstat.{name}"));
        assert_eq!(metric.source.ends_with("(batched per CPU)"), batched, "{name}: {}", metric.source);
    }
}

#[test]
fn disabled_counters_are_absent_with_their_fix_and_never_zero() {
    let off = root(&[
        (PATH, CONTENT),
        ("/proc/sys/vm/numa_stat", "0\n"),
        ("/proc/sys/kernel/numa_balancing", "0\n"),
    ]);
    let sensor = sensor(&ENTRY, &off, &nodes(&[]));
    assert!(!sensor.series().iter().any(|s| s.metric.bare().starts_with("numa_")));
    let stat = "counters of allocations by node: /proc/sys/vm/numa_stat is 0; sysctl vm.numa_stat=1";
    let balancing = "counters of automatic NUMA balancing: /proc/sys/kernel/numa_balancing is 0; \
                     sysctl kernel.numa_balancing=1";
    let expected =
        [("vmstat.numa_hit", stat), ("vmstat.numa_miss", stat), ("vmstat.numa_hint_faults", balancing)];
    assert_eq!(absent(&*sensor), expected.map(|(n, w)| (n.to_owned(), w.to_owned())));
}

#[test]
fn an_enabled_or_missing_setting_changes_nothing() {
    for value in ["1\n", "2\n", "garbage"] {
        let on = root(&[
            (PATH, CONTENT),
            ("/proc/sys/vm/numa_stat", value),
            ("/proc/sys/kernel/numa_balancing", value),
        ]);
        assert!(sensor(&ENTRY, &on, &nodes(&[])).absent().is_empty());
    }
}

#[test]
fn a_kernel_without_numa_says_which_kernel_has_it() {
    let sensor = sensor(&ENTRY, &root(&[(PATH, "nr_free_pages 1\npgpgin 2\n")]), &nodes(&[]));
    let absent = absent(&*sensor);
    let why = |name: &str| absent.iter().find(|(n, _)| n == name).map(|(_, why)| why.as_str());
    assert!(why("vmstat.numa_hit").unwrap().ends_with("boot a kernel that is built with CONFIG_NUMA"));
    let balancing = why("vmstat.numa_hint_faults").unwrap();
    assert!(balancing.contains("there is no /proc/sys/kernel/numa_balancing"), "{balancing}");
    assert!(balancing.ends_with("CONFIG_NUMA_BALANCING"), "{balancing}");
}

#[test]
fn a_failing_file_has_no_values_a_reason_and_comes_back() {
    let root = root(&[(PATH, "pgpgin 2\npgfault 3\n")]);
    let mut sensor = sensor(&ENTRY, &root, &nodes(&[]));
    root.change(|t| _ = t.failing(PATH, ErrorKind::PermissionDenied));
    assert_eq!(read(&mut *sensor)["vmstat.pgfault"], None);
    assert_eq!(sensor.failure().unwrap(), "/proc/vmstat: permission denied");
    root.change(|t| _ = t.file(PATH, "pgpgin 2\npgfault 4\n"));
    let values = (0..200).map(|_| read(&mut *sensor)["vmstat.pgfault"]).find(Option::is_some);
    assert_eq!(values, Some(Some(4)));
    assert_eq!(sensor.failure(), None);
}

#[test]
fn a_missing_line_is_named() {
    let root = root(&[(PATH, "pgpgin 2\npgfault 3\n")]);
    let mut sensor = sensor(&ENTRY, &root, &nodes(&[]));
    root.change(|t| _ = t.file(PATH, "pgpgin 2\n"));
    assert_eq!(read(&mut *sensor)["vmstat.pgfault"], None);
    assert_eq!(sensor.failure().unwrap(), "/proc/vmstat has no line 'pgfault'");
}

#[test]
fn nothing_to_read_is_a_reason_with_a_fix() {
    let probe =
        |files: &[(&str, &str)]| (ENTRY.probe)(&crate::Scene::new(&root(files), &nodes(&[]))).err().unwrap();
    let missing = probe(&[]);
    assert_eq!(missing.seen, "/proc/vmstat: no such file");
    assert!(matches!(missing.fix, Fix::Capture(_)), "{}", missing.fix);
    let garbage = probe(&[(PATH, "\u{0}\u{1}garbage\n")]);
    assert_eq!(garbage.seen, "/proc/vmstat has no line 'NAME NUMBER'");
}

#[test]
fn a_duplicate_name_is_one_series() {
    let mut sensor = sensor(&ENTRY, &root(&[(PATH, "pgfault 3\npgfault 4\npgfree 5\n")]), &nodes(&[]));
    let values = read(&mut *sensor);
    assert_eq!(sensor.series().len(), 2);
    assert_eq!((values["vmstat.pgfault"], values["vmstat.pgfree"]), (Some(3), Some(5)));
}
