//! The tables on simulated machines. Codes are compared with those that vendors and the kernel
//! publish.

use super::*;
use crate::testing::{Values, read};
use crate::{Probe, Selection, Tick};
use numakit_model::Fix;
use numakit_sys::perf::Errno;
use numakit_testing::counters::Script;
use numakit_testing::machines::{Machine, machine, names};
use std::collections::BTreeMap;
use std::sync::Arc;

type Part = fn(&Section) -> bool;

fn look_at(machine: &Machine, sensor: &str, part: Part) -> Hardware {
    let root = SysRoot::of_tree(machine.tree.clone());
    find(&Scene::new(&root, &machine.topology), sensor, part)
}

fn uncore(name: &str) -> Hardware {
    look_at(&machine(name).unwrap(), "uncore", outside_of_cores)
}

fn of_perf(name: &str) -> Hardware {
    look_at(&machine(name).unwrap(), "perf", of_cores)
}

/// The counts of a series.
fn parts<'a>(hardware: &'a Hardware, name: &str) -> &'a [(CounterRequest, Factor)] {
    let found = hardware.counted.iter().find(|(series, _)| series.name() == name);
    found.map(|(_, parts)| parts.as_slice()).unwrap_or_else(|| panic!("no series {name}"))
}

/// The distinct codes of a series.
fn codes(hardware: &Hardware, name: &str) -> Vec<[u64; 2]> {
    let mut codes: Vec<_> =
        parts(hardware, name).iter().map(|(r, _)| [r.event.config[0], r.event.config[1]]).collect();
    codes.sort_unstable();
    codes.dedup();
    codes
}

#[test]
fn codes_are_those_that_vendors_publish() {
    for (name, series, code) in [
        ("haswell-ep", "uncore.imc.UNC_M_CAS_COUNT.RD@package0", [0x304, 0]),
        ("haswell-ep", "uncore.qpi.UNC_Q_TxL_FLITS_G0.DATA@link0.0", [0x200, 0]),
        ("haswell-ep", "uncore.qpi.UNC_Q_RxL_FLITS_G1.DRS_DATA@link1.1", [0x20_0802, 0]),
        ("skylake-sp", "uncore.upi.UNC_UPI_TxL_FLITS.ALL_DATA@link0.1", [0xf02, 0]),
        ("skylake-sp", "uncore.upi.UNC_UPI_TxL_FLITS.NON_DATA@link1.0", [0x9702, 0]),
        ("sapphire-rapids", "uncore.imc.UNC_M_CAS_COUNT.WR@package1", [0xf005, 0]),
        (
            "sapphire-rapids",
            "uncore.cha.UNC_CHA_TOR_INSERTS.IA_MISS_DRD_REMOTE@package0",
            [0x00c8_177e_0000_0135, 0],
        ),
        ("sapphire-rapids", "uncore.m2m.UNC_M2M_IMC_READS.ALL@package0", [0x3_0000_0424, 0]),
        ("opteron-10h", "uncore.cpu.local_cpu_to_remote_memory@node1", [0x98e9, 0]),
        ("opteron-15h", "uncore.amd_nb.ht_data@link0.3", [0x1_0000_02f9, 0]),
        ("opteron-15h", "uncore.amd_nb.cpu_to_dram_node@link2.5", [0x1_0000_20e0, 0]),
        ("zen4", "uncore.amd_df.local_socket_outbound_data_beats_link@link1.0", [0xb_0f00_3e5f, 0]),
        ("grace", "uncore.nvidia_scf_pmu.cmem_rd_data@package1", [0x1a5, 0]),
        ("grace", "uncore.nvidia_scf_pmu.socket_rd_data@link0.2", [0x103, 0]),
        ("cmn-700", "uncore.arm_cmn.ccra_rht_alloc@package0", [0x56_0103, 0]),
        ("kunpeng-920", "uncore.hisi_sccl_hha.rx_outer@node0", [0x1, 0]),
    ] {
        let seen = codes(&uncore(name), series);
        assert_eq!(seen, [code], "{name} {series}: {seen:x?}");
    }
    for (name, series, code) in [
        ("sapphire-rapids", "perf.cpu.MEM_LOAD_L3_MISS_RETIRED.REMOTE_DRAM@node1", [0x2d3, 0]),
        ("sapphire-rapids", "perf.cpu.OCR.READS_TO_CORE.REMOTE_DRAM@node0", [0x12a, 0x7_3000_4477]),
        ("sapphire-rapids", "perf.node-loads@node0", [0x6, 0]),
        ("haswell-ep", "perf.node-load-misses@node0", [0x1_0006, 0]),
        ("zen4", "perf.cpu.ls_any_fills_from_sys.dram_io_far@node0", [0x4044, 0]),
        ("power10", "perf.cpu.PM_DATA_FROM_LMEM@node0", [0x0940_4000_0000_c040, 0]),
    ] {
        let seen = codes(&of_perf(name), series);
        assert_eq!(seen, [code], "{name} {series}: {seen:x?}");
    }
}

#[test]
fn an_event_with_an_index_is_summed_or_is_its_links() {
    let zen4 = uncore("zen4");
    let sum = parts(&zen4, "uncore.amd_df.local_processor_read_data_beats_cs@package0");
    assert_eq!(sum.len(), 12);
    assert_eq!(
        (sum[0].0.event.config[0], sum[11].0.event.config[0]),
        (0x700_fe1f, 0xb_0700_fedf & 0xfff_ffff | 0x2_0000_0000)
    );
    let links = zen4.counted.iter().filter(|(s, _)| s.metric.name == "uncore.link_data_out");
    assert_eq!(links.map(|(s, _)| s.instance).collect::<Vec<_>>().len(), 16);
}

#[test]
fn the_cpu_of_a_pmu_says_where_it_is_not_its_name() {
    let grace = uncore("grace");
    let cpus = |name: &str| parts(&grace, name).iter().map(|(r, _)| r.cpu).collect::<Vec<_>>();
    assert_eq!(cpus("uncore.dram_read_local@package0"), [0]);
    assert_eq!(cpus("uncore.dram_read_local@package1"), [72]);
    // On POWER a field has the chip; the CPU is any.
    let power = uncore("power10");
    let chips = |name: &str| codes(&power, name)[0][0] >> 16 & 0xffff;
    let name = "uncore.hv_24x7.PM_PAU_CYC";
    assert_ne!(chips(&format!("{name}@package0")), chips(&format!("{name}@package1")));
    // A northbridge is read once, although its events are those of a core.
    let opteron = uncore("opteron-10h");
    assert_eq!(parts(&opteron, "uncore.mem_local@node0").len(), 1);
}

#[test]
fn every_machine_has_its_classes_and_every_series_once() {
    for name in names() {
        for hardware in [uncore(name), of_perf(name)] {
            let mut all: Vec<String> = hardware.counted.iter().map(|(s, _)| s.name()).collect();
            let count = all.len();
            all.sort();
            all.dedup();
            assert_eq!(all.len(), count, "{name} has a series twice");
            for (series, parts) in &hardware.counted {
                assert!(!parts.is_empty() && series.metric.confidence.is_some(), "{name} {}", series.name());
            }
            for absent in &hardware.absent {
                let there = hardware.counted.iter().any(|(s, _)| s.metric.name == absent.metric.name);
                assert!(!there, "{name}: {} is both available and absent", absent.metric.name);
            }
        }
        let default = |(s, _): &(Series, _)| events::class(s.metric.bare()).is_some_and(|c| c.default);
        assert!(uncore(name).counted.iter().any(default), "{name} has nothing to show by default");
    }
}

/// A machine with counters, and the script that sets them.
fn counting(name: &str) -> (SysRoot, Machine, Script) {
    let machine = machine(name).unwrap();
    let script = Script::new();
    for pmu in &machine.pmus {
        script.pmu(pmu.kind, pmu.counters, &pmu.cpus.to_string());
    }
    script.pmu(perf::PerfEvent::CACHE, 4, "");
    let root = SysRoot::of_tree(machine.tree.clone()).with_counters(Arc::new(script.clone()));
    (root, machine, script)
}

const SECOND: u64 = 1_000_000_000;

/// A read at this second.
fn next(sensor: &mut dyn Sensor, script: &Script, second: u64) -> Values {
    script.advance(SECOND);
    let mut out = vec![None; sensor.series().len()];
    sensor.read(&Tick { woke: second * SECOND, ..Tick::default() }, &mut out);
    sensor.series().iter().map(Series::name).zip(out).collect()
}

/// The counts of the first second.
fn sample(sensor: &mut dyn Sensor, script: &Script) -> Values {
    let mut out = vec![None; sensor.series().len()];
    sensor.read(&Tick::default(), &mut out);
    next(sensor, script, 1)
}

fn sensor(root: &SysRoot, machine: &Machine, name: &str, wanted: &[&str]) -> Box<dyn Sensor> {
    let scene = Scene::new(root, &machine.topology);
    let mut counting = Counting::new(name, &scene).unwrap();
    let part = if name == "perf" { of_cores } else { outside_of_cores };
    find(&scene, name, part).add_to(&mut counting);
    let mut sensor = counting.finish();
    sensor.keep(&|s| wanted.contains(&s.metric.bare()));
    sensor
}

#[test]
fn counts_become_bytes() {
    let (root, machine, script) = counting("sapphire-rapids");
    script.rates(|_, _| 9_000);
    let mut sensor =
        sensor(&root, &machine, "uncore", &["dram_read", "link_data_out", "imc.UNC_M_CAS_COUNT.RD"]);
    let values = sample(&mut *sensor, &script);
    assert_eq!(values["uncore.imc.UNC_M_CAS_COUNT.RD@package0"], Some(8 * 9_000));
    assert_eq!(values["uncore.dram_read@package1"], Some(8 * 9_000 * 64));
    assert_eq!(values["uncore.link_data_out@link1.2"], Some(9_000 * 64 / 9));
    assert_eq!(values.len(), 2 + 2 + 6);
}

#[test]
fn more_events_than_counters_are_scaled() {
    let (root, machine, script) = counting("skylake-sp");
    script.rates(|_, _| 1_000_000);
    let wanted = ["link_busy_out", "link_busy_in", "link_capacity_out", "link_off", "link_half", "running"];
    let mut sensor = sensor(&root, &machine, "uncore", &wanted);
    let values = sample(&mut *sensor, &script);
    let busy = values["uncore.link_busy_out@link0.0"].unwrap();
    assert!(busy.abs_diff(2_000_000 * 64 / 9) < 2_000_000, "{busy}");
    let share = values["uncore.running"].unwrap();
    assert!((30..80).contains(&share), "7 events on 4 counters ran {share} of the time");
    assert!(script.open_groups().iter().all(|(_, sizes)| sizes.iter().all(|&size| size <= 4)));
}

#[test]
fn a_mean_over_many_pmus_is_one_clock() {
    let (root, machine, script) = counting("sapphire-rapids");
    script.rates(|_, _| 2_800_000);
    let mut sensor = sensor(&root, &machine, "uncore", &["mesh_clock"]);
    assert_eq!(sample(&mut *sensor, &script)["uncore.mesh_clock@package0"], Some(2_800_000));
}

#[test]
fn cores_are_summed_by_node_and_an_offline_one_is_reported() {
    let (root, machine, script) = counting("sapphire-rapids");
    script.rates(|_, _| 1_000);
    let mut sensor = sensor(&root, &machine, "perf", &["load_remote_dram"]);
    assert_eq!(sample(&mut *sensor, &script)["perf.load_remote_dram@node0"], Some(56_000));
    let cpu = machine.topology.nodes[1].cpus.first().unwrap();
    script.offline(cpu);
    next(&mut *sensor, &script, 2);
    let values = next(&mut *sensor, &script, 3);
    assert!(values["perf.load_remote_dram@node0"].is_some());
    assert_eq!(values["perf.load_remote_dram@node1"], Some(55 * 3_000 + 1_000));
    assert_eq!(sensor.failure(), Some(format!("CPU {cpu} is offline")));
}

#[test]
fn a_refused_event_makes_its_class_absent() {
    let (root, machine, script) = counting("sapphire-rapids");
    let kind = machine.pmus.iter().find(|p| p.name == "uncore_cha_0").unwrap().kind;
    let code =
        codes(&uncore("sapphire-rapids"), "uncore.cha.UNC_CHA_TOR_INSERTS.IA_MISS_DRD_LOCAL@package0")[0];
    script.refuse(perf::PerfEvent::new(kind, code[0]), Errno::Invalid);
    let hardware = find(&Scene::new(&root, &machine.topology), "uncore", outside_of_cores);
    let refused: Vec<&str> = hardware.absent.iter().map(|a| a.metric.bare()).collect();
    let event = "cha.UNC_CHA_TOR_INSERTS.IA_MISS_DRD_LOCAL";
    assert_eq!(refused, ["llc_miss_local", "local_read", event]);
    assert!(hardware.absent[2].why.seen.contains("refuses the event 0xc816fe00000135"));
    parts(&hardware, "uncore.llc_miss_remote@package0");
}

#[test]
fn without_permission_there_is_one_reason() {
    let (root, machine, script) = counting("sapphire-rapids");
    script.paranoid(2, false);
    let why = find(&Scene::new(&root, &machine.topology), "uncore", outside_of_cores).nothing.unwrap();
    assert_eq!(why.seen, "kernel.perf_event_paranoid is 2 and this process lacks CAP_PERFMON");
    assert!(why.fix.is_command("sudo sysctl kernel.perf_event_paranoid=0"), "{}", why.fix);
}

#[test]
fn a_missing_pmu_is_named_with_the_present_ones() {
    let (root, machine, _) = counting("sapphire-rapids");
    root.change(|tree| {
        for link in 0..3 {
            tree.remove(&format!("{}/uncore_upi_{link}", pmu::DEVICES));
        }
    });
    let hardware = find(&Scene::new(&root, &machine.topology), "uncore", outside_of_cores);
    let why = &hardware.absent.iter().find(|a| a.metric.name == "uncore.link_data_out").unwrap().why;
    assert!(
        why.seen.starts_with("no PMU uncore_upi_*; seen cpu, software, tracepoint, uncore_cha_0-27"),
        "{why}"
    );
    assert!(matches!(why.fix, Fix::OtherKernel(_)), "{}", why.fix);
    parts(&hardware, "uncore.dram_read@package0");
}

#[test]
fn a_pmu_that_cannot_be_parsed_is_reported() {
    let (root, machine, _) = counting("zen3");
    root.change(|tree| _ = tree.file("/sys/devices/amd_df/format/event", "config:7-0\n"));
    let why = find(&Scene::new(&root, &machine.topology), "uncore", outside_of_cores).nothing.unwrap();
    assert_eq!(why.missing, "the PMU amd_df");
    assert!(why.seen.contains("format of the field 'event' is 'config:7-0'"), "{why}");
}

#[test]
fn a_capture_lists_its_series_and_has_no_values() {
    let machine = machine("zen4").unwrap();
    let root = SysRoot::of_tree(machine.tree.clone());
    let probe = Probe::new(&Scene::new(&root, &machine.topology));
    let selection: Selection = "uncore.link_data_out,perf.fill_dram_io_far".parse().unwrap();
    let mut sensors = probe.select(&selection).unwrap();
    assert_eq!(sensors.len(), 2);
    for sensor in &mut sensors {
        assert!(read(&mut **sensor).values().all(Option::is_none));
        assert!(sensor.failure().unwrap().contains("is a capture: it holds no counters"));
    }
}

#[test]
fn names_of_other_machines_are_explained_here() {
    let tree = machine("zen4").unwrap().tree;
    let bare = SysRoot::of_tree(tree);
    bare.change(|tree| {
        tree.remove("/sys/bus/event_source/devices");
        tree.file("/sys/bus/event_source/devices/msr/type", "11\n");
        tree.file(
            "/proc/cpuinfo",
            "vendor_id : AuthenticAMD\ncpu family : 25\nmodel : 17\nflags : fpu hypervisor\n",
        );
    });
    let topology = machine("zen4").unwrap().topology;
    for item in ["uncore.dram_read", "uncore.imc.UNC_M_CAS_COUNT.RD", "UNC_M_CAS_COUNT.RD", "uncore.*"] {
        let probe = Probe::new(&Scene::new(&bare, &topology));
        let error = probe.select(&item.parse().unwrap()).err().unwrap().to_string();
        assert!(error.starts_with(&format!("event '{item}' is unavailable here")), "{error}");
        assert!(error.contains("no PMU amd_df, amd_umc_*; seen msr; run on bare metal"), "{error}");
    }
}

#[test]
fn the_name_of_the_vendor_is_enough() {
    let (root, machine, _) = counting("sapphire-rapids");
    let probe = Probe::new(&Scene::new(&root, &machine.topology));
    let sensors = probe.select(&"UNC_M_CAS_COUNT.*".parse().unwrap()).unwrap();
    let names: Vec<String> = sensors[0].series().iter().map(Series::name).collect();
    let name = |event: &str, package: u32| format!("uncore.imc.UNC_M_CAS_COUNT.{event}@package{package}");
    assert_eq!(names, [name("RD", 0), name("RD", 1), name("WR", 0), name("WR", 1)]);
}

#[test]
fn only_classes_marked_so_are_sampled_by_default() {
    let (root, machine, _) = counting("sapphire-rapids");
    let probe = Probe::new(&Scene::new(&root, &machine.topology));
    let sensors = probe.select(&Selection::default()).unwrap();
    let sampled: Vec<&str> =
        sensors.iter().flat_map(|s| s.series()).map(|s| s.metric.name.as_str()).collect();
    assert!(sampled.contains(&"uncore.dram_read") && !sampled.contains(&"uncore.dram_clock"));
    assert!(!sampled.iter().any(|name| name.starts_with("uncore.imc.")), "{sampled:?}");
    // Reading the counters of a core interrupts it.
    assert!(!sampled.iter().any(|name| name.starts_with("perf.")), "{sampled:?}");
    let probe = Probe::new(&Scene::new(&root, &machine.topology));
    let both = probe.select(&"default,perf.load_remote_dram".parse().unwrap()).unwrap();
    let more: Vec<&str> = both.iter().flat_map(|s| s.series()).map(|s| s.metric.name.as_str()).collect();
    assert!(more.len() > sampled.len() && more.contains(&"perf.load_remote_dram"));
    assert!(sampled.iter().all(|name| more.contains(name)));
}

#[test]
fn a_class_that_only_cores_count_is_not_sampled_by_default() {
    for class in events::classes().iter().filter(|class| class.default) {
        let tables = TABLES.iter().filter_map(|(_, text)| EventTable::parse(text).ok());
        let outside = tables.flat_map(|table| table.sections).any(|section| {
            let feeds = |event: &events::PlatformEvent| event.feeds.iter().any(|feed| feed.class == class);
            outside_of_cores(&section) && section.events.iter().any(feeds)
        });
        assert!(outside, "{} would be marked as default and never be sampled", class.name);
    }
}

/// The factor of each event series that a class sums.
fn summed(
    class: &str,
    sensor: &str,
    tables: &[EventTable],
    part: fn(&Section) -> bool,
) -> BTreeMap<String, Factor> {
    let events = tables.iter().flat_map(EventTable::events).filter(|(section, _)| part(section));
    let feeds = events.filter_map(|(section, event)| {
        let feed = event.feeds.iter().find(|feed| feed.class.name == class)?;
        let name = format!("{sensor}.{}.{}", names::short(&section.pmus[0]), names::of_event(event));
        Some((name.replace("..", "."), feed.factor?))
    });
    feeds.collect()
}

#[test]
fn a_class_is_the_sum_of_its_event_series_times_their_factors() {
    let parts: [(&str, Part); 2] = [("uncore", outside_of_cores), ("perf", of_cores)];
    for (name, (sensor, part)) in names().flat_map(|name| parts.map(|part| (name, part))) {
        let machine = machine(name).unwrap();
        let root = SysRoot::of_tree(machine.tree.clone());
        let tables = events::tables(&Identity::read(&root), &device::names(&root));
        let hardware = look_at(&machine, sensor, part);
        // Any count that depends on the event and on the CPU.
        let count = |r: &CounterRequest| {
            576 * (u64::from(r.cpu) + r.event.config.iter().fold(7, |a, c| a ^ (c % 1009)))
        };
        let total = |parts: &[(CounterRequest, Factor)]| -> u64 {
            parts.iter().map(|(request, factor)| count(request) * factor.times / factor.over).sum()
        };
        for (series, own) in &hardware.counted {
            let Some(class) = events::class(series.metric.bare()).filter(|class| !class.mean) else {
                continue;
            };
            let mut expected = 0;
            for (event, factor) in summed(class.name, sensor, &tables, part) {
                let name = format!("{event}{}", series.instance);
                let found = hardware.counted.iter().find(|(s, _)| s.name() == name);
                let times = |(request, _): &(CounterRequest, Factor)| (*request, factor);
                expected += found.map_or(0, |(_, parts)| total(&parts.iter().map(times).collect::<Vec<_>>()));
            }
            assert!(expected > 0);
            assert_eq!(total(own), expected, "{name} {}", series.name());
        }
    }
}
