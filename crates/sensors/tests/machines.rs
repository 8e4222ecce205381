//! Sensors on captures of real machines and on this one, compared with a second, simpler parser of the
//! same files.
#![allow(clippy::print_stdout)]

use numakit_model::topology::Node;
use numakit_model::{Topology, Unavailable};
use numakit_sensors::{Probe, Scene, Tick};
use numakit_sys::SysRoot;
use std::collections::BTreeMap;

fn topology(root: &SysRoot) -> Topology {
    let names = root.list("/sys/devices/system/node").unwrap_or_default();
    let numbers = names.iter().filter_map(|n| n.strip_prefix("node")?.parse().ok());
    let nodes = numbers.map(|os_index| Node { os_index, ..Node::default() }).collect();
    Topology { nodes, ..Topology::default() }
}

fn read(probe: &mut Probe) -> BTreeMap<String, Option<u64>> {
    let mut values = BTreeMap::new();
    for sensor in &mut probe.sensors {
        let mut out = vec![None; sensor.series().len()];
        sensor.read(&Tick::default(), &mut out);
        assert_eq!(sensor.failure(), None);
        values.extend(sensor.series().iter().map(|s| s.name()).zip(out));
    }
    values
}

/// The values in a machine's files, by series name.
fn expected(root: &SysRoot, topology: &Topology) -> BTreeMap<String, u64> {
    let mut values = BTreeMap::new();
    for node in &topology.nodes {
        for file in ["meminfo", "vmstat", "numastat"] {
            let path = format!("/sys/devices/system/node/node{}/{file}", node.os_index);
            for line in root.text(&path).unwrap_or_default().lines() {
                let line = line.strip_prefix(&format!("Node {} ", node.os_index)).unwrap_or(line);
                let mut words = line.split_whitespace();
                let (Some(name), Some(value)) = (words.next(), words.next()) else { continue };
                let name = format!("node.{}@node{}", name.trim_end_matches(':'), node.os_index);
                values.extend(value.parse().ok().map(|v| (name, v)));
            }
        }
    }
    let fields = "user nice system idle iowait irq softirq steal guest guest_nice";
    for line in root.text("/proc/stat").unwrap_or_default().lines() {
        let Some((word, rest)) = line.split_once(' ') else { continue };
        if let Some(cpu) = word.strip_prefix("cpu").filter(|c| !c.is_empty()) {
            for (field, value) in fields.split(' ').zip(rest.split_whitespace()) {
                values.extend(value.parse().ok().map(|v| (format!("cpu.{field}@cpu{cpu}"), v)));
            }
        } else if word == "ctxt" {
            values.extend(rest.parse().ok().map(|v| ("cpu.context_switches".to_owned(), v)));
        }
    }
    values
}

#[test]
fn captured_machines_have_the_values_of_their_files() {
    for path in numakit_captures::archives() {
        let root = SysRoot::open(&path).unwrap();
        let topology = topology(&root);
        let mut probe = Probe::new(&Scene::new(&root, &topology));
        let values = read(&mut probe);
        let expected = expected(&root, &topology);
        assert!(expected.len() > 20, "{}: only {} values", path.display(), expected.len());
        for (name, value) in &expected {
            assert_eq!(values.get(name), Some(&Some(*value)), "{name} of {}", path.display());
        }
        assert!(values.iter().filter(|(n, _)| !n.starts_with("self.")).all(|(_, v)| v.is_some()));
        let has_nodes = !topology.nodes.is_empty();
        assert_eq!(probe.sensors.iter().any(|s| s.series()[0].metric.sensor() == "node"), has_nodes);
        // None of the captures has these files.
        let missing: Vec<String> = probe.missing().map(|(name, _)| name).collect();
        assert!(missing.contains(&"vmstat".to_owned()) && missing.contains(&"pressure".to_owned()));
    }
}

#[test]
fn every_name_of_this_kernel_is_sampled_and_most_are_known() {
    let root = SysRoot::host();
    let probe = Probe::new(&Scene::new(&root, &topology(&root)));
    let absent: Vec<&str> = probe.absent().map(|a| a.metric.name.as_str()).collect();
    let (mut known, mut unknown) = (0, 0);
    for line in root.text("/proc/vmstat").unwrap().lines() {
        let name = format!("vmstat.{}", line.split(' ').next().unwrap());
        let series = probe.series().find(|s| s.metric.name == name);
        assert!(series.is_some() != absent.contains(&name.as_str()), "{name}");
        match series {
            Some(series) if series.metric.help.starts_with("Unknown") => {
                println!("{name} is not in data/vmstat.txt; add a line");
                unknown += 1;
            }
            Some(_) => known += 1,
            None => {}
        }
    }
    // A newer kernel has a few more.
    assert!(known >= 50 && unknown < known / 2, "{known} known, {unknown} unknown");
}

#[test]
fn values_of_this_machine_are_live() {
    let root = SysRoot::host();
    let mut probe = Probe::new(&Scene::new(&root, &topology(&root)));
    let first = read(&mut probe);
    let block = vec![1u8; 4 << 20];
    assert!(std::hint::black_box(&block).iter().step_by(4096).all(|&b| b == 1));
    let second = read(&mut probe);
    for name in ["vmstat.pgfault", "self.cpu", "self.process_cpu"] {
        assert!(first[name].unwrap() < second[name].unwrap(), "{name}");
    }
    for (name, value) in &first {
        assert!(value.is_some(), "{name}");
    }
}

#[test]
fn an_empty_machine_has_reasons_and_no_panic() {
    let root = SysRoot::of_tree(numakit_sys::root::FileTree::new());
    let probe = Probe::new(&Scene::new(&root, &Topology::default()));
    let others: Vec<String> =
        probe.series().map(|s| s.name()).filter(|name| !name.starts_with("self.")).collect();
    assert_eq!(others, Vec::<String>::new(), "only the cost of sampling itself");
    assert!(probe.series().count() >= 5);
    let sound = |why: &Unavailable| {
        !why.missing.is_empty() && !why.seen.is_empty() && !why.fix.to_string().is_empty()
    };
    let others = numakit_sensors::SENSORS.len() - 1;
    assert_eq!(probe.missing().filter(|(_, why)| sound(why)).count(), others);
}
