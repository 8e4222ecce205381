use super::*;
use crate::testing::{absent, nodes, read, root, sensor};
use std::io::ErrorKind;

const BOTH: &str =
    "some avg10=0.00 avg60=0.00 avg300=0.01 total=8062\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=77\n";

#[test]
fn totals_are_read_in_microseconds() {
    let root = root(&[
        ("/proc/pressure/cpu", BOTH),
        ("/proc/pressure/memory", BOTH),
        ("/proc/pressure/io", BOTH),
        ("/proc/pressure/irq", "full avg10=0.00 avg60=0.00 avg300=0.00 total=5\n"),
    ]);
    let mut sensor = sensor(&ENTRY, &root, &nodes(&[]));
    let values = read(&mut *sensor);
    assert_eq!(values.len(), 7);
    assert_eq!(values["pressure.memory_some"], Some(8062));
    assert_eq!(values["pressure.io_full"], Some(77));
    assert_eq!(values["pressure.irq_full"], Some(5));
    assert!(sensor.series().iter().all(|s| s.metric.unit == Unit::Microseconds));
    sensor.keep(&|s| s.metric.bare() == "io_full");
    assert_eq!((sensor.files(), read(&mut *sensor)["pressure.io_full"]), (1, Some(77)));
}

#[test]
fn a_missing_file_or_line_is_absent() {
    let some_only = BOTH.lines().next().unwrap().to_owned() + "\n";
    let root = root(&[("/proc/pressure/cpu", &some_only), ("/proc/pressure/memory", BOTH)]);
    root.change(|t| _ = t.failing("/proc/pressure/io", ErrorKind::Unsupported));
    let mut sensor = sensor(&ENTRY, &root, &nodes(&[]));
    assert_eq!(read(&mut *sensor).len(), 3);
    let absent = absent(&*sensor);
    let names: Vec<&str> = absent.iter().map(|(n, _)| n.as_str()).collect();
    assert_eq!(names, ["pressure.cpu_full", "pressure.io_some", "pressure.io_full", "pressure.irq_full"]);
    assert!(absent[0].1.contains("has no line 'full ... total=NUMBER'"), "{}", absent[0].1);
    assert!(absent[1].1.contains("psi=1"), "{}", absent[1].1);
    assert!(absent[3].1.contains("CONFIG_IRQ_TIME_ACCOUNTING"), "{}", absent[3].1);
}

#[test]
fn a_kernel_without_psi_has_a_fix() {
    let why = (ENTRY.probe)(&crate::Scene::new(&root(&[]), &nodes(&[]))).err().unwrap();
    assert_eq!(why.seen, "/proc/pressure/cpu: no such file");
    assert!(matches!(why.fix, Fix::KernelParameter { ref parameter, .. } if parameter == "psi=1"));
    let off = root(&[]);
    off.change(|t| {
        for file in ["cpu", "memory", "io"] {
            t.failing(&format!("/proc/pressure/{file}"), ErrorKind::Unsupported);
        }
    });
    assert!((ENTRY.probe)(&crate::Scene::new(&off, &nodes(&[]))).is_err());
}

#[test]
fn totals_are_parsed_with_care() {
    assert_eq!(total(BOTH.as_bytes(), "some"), Some(8062));
    assert_eq!(total(BOTH.as_bytes(), "full"), Some(77));
    for bad in [
        "",
        "some",
        "some ",
        "some total=",
        "some total=12",
        "some total=x\n",
        "someone total=1\n",
        "full total=1\n",
    ] {
        assert_eq!(total(bad.as_bytes(), "some"), None, "{bad:?}");
    }
}

#[test]
fn it_is_read_ten_times_a_second_at_most() {
    let root = root(&[("/proc/pressure/cpu", BOTH)]);
    let mut sensor = sensor(&ENTRY, &root, &nodes(&[]));
    let mut is_read = |ms: u64| {
        let mut out = [None; 2];
        sensor.read(&Tick { due: ms * 1_000_000, ..Tick::default() }, &mut out);
        out == [Some(8062), Some(77)]
    };
    let read: Vec<u64> = (1000..1310).filter(|&ms| is_read(ms)).collect();
    assert_eq!(read, [1000, 1100, 1200, 1300]);
    assert!(is_read(2000) && is_read(3000), "ticks that are further apart");
}
