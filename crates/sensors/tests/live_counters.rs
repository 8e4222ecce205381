//! The sensor `perf` on this machine, compared with other counts of the same events: those of this
//! process are a lower bound, those of the whole machine an upper bound.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use numakit_model::topology::Node;
use numakit_model::{CpuSet, Topology};
use numakit_sensors::{SENSORS, Scene, Sensor, Tick};
use numakit_sys::memory::SharedWords;
use numakit_sys::{SysRoot, clock, sched};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

fn topology(root: &SysRoot) -> Topology {
    let cpus =
        |path: &str| CpuSet::parse_list(root.text(path).unwrap_or_default().trim()).unwrap_or_default();
    let names = root.list("/sys/devices/system/node").unwrap_or_default();
    let numbers = names.iter().filter_map(|n| n.strip_prefix("node")?.parse().ok());
    let nodes = numbers.map(|os_index| Node {
        os_index,
        cpus: cpus(&format!("/sys/devices/system/node/node{os_index}/cpulist")),
        ..Node::default()
    });
    let online = cpus("/sys/devices/system/cpu/online");
    Topology { allowed: online.clone(), nodes: nodes.collect(), online, ..Topology::default() }
}

fn sensor(root: &SysRoot, topology: &Topology) -> Option<Box<dyn Sensor>> {
    let entry = SENSORS.iter().find(|e| e.name == "perf").unwrap();
    (entry.probe)(&Scene::new(root, topology)).map_err(|why| numakit_skips::PRIVILEGES.skip(why)).ok()
}

fn read(sensor: &mut dyn Sensor) -> BTreeMap<String, u64> {
    let mut out = vec![None; sensor.series().len()];
    let now = clock::monotonic();
    sensor.read(&Tick { due: now, woke: now, lost: 0 }, &mut out);
    assert_eq!(sensor.failure(), None);
    let named = sensor.series().iter().map(|s| s.name()).zip(out);
    named
        .map(|(name, value)| (name.clone(), value.unwrap_or_else(|| panic!("{name} has no value"))))
        .collect()
}

/// The number after a word in a file.
fn number(root: &SysRoot, path: &str, word: &str) -> u64 {
    let text = root.text(path).unwrap();
    let rest = text.lines().find_map(|line| line.strip_prefix(word)).unwrap();
    rest.trim_start_matches(':').trim().parse().unwrap()
}

/// Minor faults of this process.
fn own_faults(root: &SysRoot) -> u64 {
    let text = root.text("/proc/self/stat").unwrap();
    text.rsplit(')').next().unwrap().split_whitespace().nth(7).unwrap().parse().unwrap()
}

/// Confines this thread to one CPU and says which, with its node.
fn pinned(topology: &Topology) -> (u32, u32) {
    let cpu = sched::affinity().unwrap().last().unwrap();
    sched::set_affinity(&CpuSet::range(cpu, cpu)).unwrap();
    (cpu, topology.node_of_cpu(cpu).map_or(0, |n| n.os_index))
}

#[test]
fn page_faults_are_counted_on_the_node_where_they_happen() {
    let root = SysRoot::host();
    let topology = topology(&root);
    let Some(mut sensor) = sensor(&root, &topology) else { return };
    let (_, node) = pinned(&topology);
    let machine = number(&root, "/proc/vmstat", "pgfault");
    let before = read(&mut *sensor);
    let own = own_faults(&root);
    for _ in 0..100 {
        // Too small for a huge page, and unmapped each time.
        let block = SharedWords::anonymous(128 * 512).unwrap();
        block.iter().step_by(512).for_each(|page| page.store(1, Ordering::Relaxed));
    }
    let own = own_faults(&root) - own;
    let after = read(&mut *sensor);
    let machine = number(&root, "/proc/vmstat", "pgfault") - machine;
    assert!(own > 10_000, "only {own} faults");
    let moved = |name: &str| {
        let name = format!("perf.{name}@node{node}");
        after[&name] - before[&name]
    };
    let (minor, all) = (moved("minor_faults"), moved("page_faults"));
    println!(
        "faults: {own} of this process, {minor} minor and {all} in all of its node, {machine} of the machine"
    );
    assert!((own..=machine).contains(&minor), "{own} <= {minor} <= {machine}");
    assert!(all >= own);
    if after.contains_key(&format!("perf.user_faults@node{node}")) {
        let (user, kernel) = (moved("user_faults"), moved("kernel_faults"));
        println!("tracepoints: {user} faults of programs and {kernel} of the kernel");
        assert!(user + kernel >= own, "{own} <= {user} + {kernel}");
    } else {
        numakit_skips::PRIVILEGES.skip_part("tracepoints, as tracefs is not mounted");
    }
}

#[test]
fn measuring_context_switches_are_counted_on_their_cpu() {
    const SLEEPS: u64 = 1000;
    let root = SysRoot::host();
    let topology = topology(&root);
    let Some(mut sensor) = sensor(&root, &topology) else { return };
    let (cpu, node) = pinned(&topology);
    let machine = number(&root, "/proc/stat", "ctxt");
    let before = read(&mut *sensor);
    for _ in 0..SLEEPS {
        std::thread::sleep(Duration::from_millis(1));
    }
    let after = read(&mut *sensor);
    let machine = number(&root, "/proc/stat", "ctxt") - machine;
    let moved = |name: String| after[&name] - before[&name];
    let (of_cpu, of_node) =
        (moved(format!("perf.cpu_switches@cpu{cpu}")), moved(format!("perf.context_switches@node{node}")));
    println!("switches: {of_cpu} on CPU {cpu}, {of_node} on its node, {machine} of the machine");
    // Each sleep is a switch to another thread and one back, except one whose timer ends before the thread has left its CPU.
    let least = 2 * SLEEPS - SLEEPS / 100;
    assert!((least..=of_node).contains(&of_cpu), "{of_cpu} of {of_node}");
    assert!(of_node <= machine, "{of_node} of {machine}");
}
