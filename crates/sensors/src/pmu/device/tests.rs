use super::*;
use crate::events::Identity;
use crate::testing::root;
use numakit_testing::machines;
use std::io::ErrorKind;

const IMC: &str = "/sys/bus/event_source/devices/uncore_imc_3";

fn machine() -> SysRoot {
    root(&[
        ("/sys/bus/event_source/devices/uncore_imc_3/type", "17\n"),
        ("/sys/bus/event_source/devices/uncore_imc_3/cpumask", "0,28\n"),
        ("/sys/bus/event_source/devices/uncore_imc_3/format/event", "config:0-7\n"),
        ("/sys/bus/event_source/devices/uncore_imc_3/format/umask", "config:8-15\n"),
        ("/sys/bus/event_source/devices/uncore_imc_3/events/cas_count_read", "event=0x04,umask=0x03\n"),
        ("/sys/bus/event_source/devices/uncore_imc_3/events/cas_count_read.unit", "MiB\n"),
        ("/sys/bus/event_source/devices/uncore_imc_3/events/cas_count_read.scale", "6.1e-5\n"),
        ("/sys/bus/event_source/devices/cpu_atom/type", "10\n"),
        ("/sys/bus/event_source/devices/cpu_atom/cpus", "16-23\n"),
        ("/sys/bus/event_source/devices/cpu/type", "4\n"),
        ("/sys/bus/event_source/devices/software/type", "1\n"),
    ])
}

fn names_of(devices: &Devices) -> Vec<&str> {
    devices.found.iter().map(|d| d.name.as_str()).collect()
}

#[test]
fn a_pmu_is_read_from_its_folder() {
    let all = devices(&machine(), |_| true);
    assert_eq!(all.skipped, []);
    assert_eq!(names_of(&all), ["cpu", "cpu_atom", "software", "uncore_imc_3"]);
    let imc = &all.found[3];
    assert_eq!((imc.kind, imc.core, imc.cpus.to_string().as_str()), (17, false, "0,28"));
    assert_eq!(imc.formats.encode([("umask", 3), ("event", 4)]), Ok([0x304, 0, 0, 0]));
    assert_eq!(imc.events.keys().collect::<Vec<_>>(), ["cas_count_read"]);
    assert_eq!(imc.events["cas_count_read"], "event=0x04,umask=0x03");
    assert!(all.found[0].core && all.found[0].cpus.is_empty());
    assert!(all.found[1].core && all.found[1].cpus.contains(16));
    assert!(!all.found[2].core);
}

#[test]
fn only_selected_pmus_are_read() {
    let root = machine().traced();
    let wanted = devices(&root, |name| name == "software");
    assert_eq!(names_of(&wanted), ["software"]);
    assert!(!root.touched().iter().any(|path| path.contains("uncore")));
}

#[test]
fn a_pmu_that_cannot_be_parsed_is_skipped_with_the_reason() {
    type Break = fn(&mut numakit_sys::root::FileTree);
    let cases: [(Break, &str); 6] = [
        (|t| _ = t.file(&format!("{IMC}/type"), "x\n"), "/type is 'x', not a number"),
        (|t| _ = t.remove(&format!("{IMC}/type")), "/type: no such file"),
        (|t| _ = t.file(&format!("{IMC}/format/event"), "config:7-0"), "'event' is 'config:7-0', not like"),
        (|t| _ = t.failing(&format!("{IMC}/events/x"), ErrorKind::PermissionDenied), "permission denied"),
        (|t| _ = t.file(&format!("{IMC}/cpumask"), "0-x\n"), "/cpumask: "),
        (|t| _ = t.file(&format!("{IMC}/cpumask"), "\n"), "/cpumask names no CPU"),
    ];
    for (harm, seen) in cases {
        let root = machine();
        root.change(harm);
        let all = devices(&root, |_| true);
        assert_eq!(names_of(&all), ["cpu", "cpu_atom", "software"], "{seen}");
        assert_eq!(all.skipped[0].1.missing, "the PMU uncore_imc_3");
        assert!(all.skipped[0].1.seen.contains(seen), "{}", all.skipped[0].1.seen);
    }
}

#[test]
fn a_machine_without_events_has_no_pmu() {
    assert_eq!(devices(&root(&[("/proc/stat", "")]), |_| true), Devices::default());
}

#[test]
fn names_end_in_numbers() {
    assert_eq!(number("uncore_imc_3"), Some(3));
    assert_eq!(number("hisi_sccl1_ddrc12"), Some(12));
    assert_eq!(number("amd_df"), None);
    assert_eq!(number("7"), Some(7));
    assert_eq!(number("x99999999999"), None);
}

#[test]
fn every_machine_is_what_its_file_says() {
    for name in machines::names() {
        let machine = machines::machine(name).unwrap_or_else(|e| panic!("{name}: {e}"));
        let root = SysRoot::of_tree(machine.tree.clone());
        let topology = numakit_topology::read(&root).unwrap();
        assert_eq!(topology.packages, machine.topology.packages, "{name}");
        let devices = devices(&root, |_| true);
        assert_eq!(devices.skipped, [], "{name}");
        for pmu in &machine.pmus {
            let device = devices.found.iter().find(|d| d.name == pmu.name).unwrap();
            assert_eq!((device.kind, &device.cpus), (pmu.kind, &pmu.cpus), "{name} {}", pmu.name);
        }
        let mut kinds: Vec<u32> = machine.pmus.iter().map(|p| p.kind).collect();
        kinds.sort_unstable();
        assert!(kinds.windows(2).all(|k| k[0] != k[1]), "{name} has a type twice");
        assert_ne!(Identity::read(&root), Identity::default(), "{name}");
    }
}
