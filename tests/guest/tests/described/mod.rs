//! What a user does first on a machine of any shape: its kernel sees the machine that the shape describes, and so does numa.

use numakit_guest::{Failure, Guest, Shape, Step, programs};
use std::ops::Index;
use std::path::Path;

/// The steps of a boot, or of a part of one.
type Steps = dyn for<'a> Index<&'a str, Output = Step>;

/// What a user does first. The command of the recording allocates on every node that is allowed.
const VERBS: [(&str, &str); 6] = [
    ("topo", "numa topo"),
    ("list", "numa list"),
    ("stat", "numa stat -i 100ms --count 5"),
    ("record", "numa record -i 50ms -o a.arrows -- dd if=/dev/zero of=/dev/null bs=32M count=8"),
    ("report", "numa show --all a.arrows"),
    ("doctor", "numa doctor --all"),
];

/// What the kernel, its tables and the boot loader may take of a node's memory.
const TAKEN_MIB: u64 = 64;

/// A guest of this shape with these steps beside those of all.
pub fn guest(name: &str, steps: &[(&str, &str)]) -> Result<Guest, Failure> {
    let mut guest = Guest::new(Shape::named(name)?).program(&programs::numa()?);
    if let Some(numactl) = programs::of_host("numactl") {
        let both = "numactl --hardware; numa topo --hardware > hardware";
        guest = guest.program(&numactl).step("numactl", &["sh", "-c", both]);
    }
    for (name, script) in VERBS.iter().chain(steps) {
        guest = guest.step(name, &["sh", "-c", script]);
    }
    Ok(guest)
}

/// The numbers after a text at the start of a line.
fn numbers(text: &str, start: &str) -> Vec<u64> {
    let Some(rest) = text.lines().find_map(|line| line.trim_start().strip_prefix(start)) else {
        panic!("no line '{start}' in:\n{text}");
    };
    rest.split_whitespace().filter_map(|word| word.parse().ok()).collect()
}

/// Compares numactl's page with the shape; without numactl that part is skipped.
fn is_as_described(name: &str, memory_mib: Option<u64>, boot: &Steps) {
    let mut shape = Shape::named(name).unwrap();
    if let Some(mib) = memory_mib {
        shape.set_memory_mib(mib);
    }
    if programs::of_host("numactl").is_none() {
        return numakit_skips::TOOLS
            .skip_part(format_args!("no numactl here to compare shape '{name}' with"));
    }
    let page = boot["numactl"].succeeded();
    assert_eq!(numbers(&page, "available:"), [shape.nodes.len() as u64], "{page}");
    for (id, node) in shape.nodes.iter().enumerate() {
        let cpus: Vec<u64> = node.cpus.iter().map(u64::from).collect();
        assert_eq!(numbers(&page, &format!("node {id} cpus:")), cpus, "{page}");
        let size = numbers(&page, &format!("node {id} size:"))[0];
        // With more than 4 GiB in all, the kernel also takes 64 MiB of one for devices that address less.
        let taken = TAKEN_MIB + if memory_mib.is_some() { 64 } else { 0 };
        let least = node.memory_mib.saturating_sub(taken);
        assert!((least..=node.memory_mib).contains(&size), "node {id} of {} MiB\n{page}", node.memory_mib);
        let row: Vec<u64> = shape.distances[id].iter().map(|value| u64::from(*value)).collect();
        assert_eq!(numbers(&page, &format!("{id}:")), row, "{page}");
    }
}

/// Line by line what numactl says; free memory changes meanwhile.
fn hardware_is_that_of_numactl(boot: &Steps, out: &Path) {
    if programs::of_host("numactl").is_none() {
        return;
    }
    let page = boot["numactl"].succeeded();
    let constant = |page: &str| {
        let lines = page.lines().filter(|line| !line.contains(" free: "));
        lines.map(|line| line.trim_end().to_owned()).collect::<Vec<_>>()
    };
    let ours = std::fs::read_to_string(out.join("hardware")).unwrap();
    assert_eq!(constant(&ours), constant(&page));
    assert_eq!(ours.lines().count(), page.lines().count());
}

fn verbs_work(name: &str, boot: &Steps) {
    let shape = Shape::named(name).unwrap();
    let topo = boot["topo"].succeeded();
    let count =
        if shape.nodes.len() == 1 { "1 node".to_owned() } else { format!("{} nodes", shape.nodes.len()) };
    assert!(topo.lines().next().unwrap().contains(&count), "{topo}");
    for (id, node) in shape.nodes.iter().enumerate() {
        let list = boot["list"].succeeded();
        assert!(list.contains("node.numa_foreign"), "{list}");
        let line = topo.lines().find(|line| line.contains(&format!("node {id} ")));
        assert!(line.is_some_and(|line| node.memory_mib == 0 || line.contains("MiB")), "node {id}:\n{topo}");
    }
    let stat = boot["stat"].succeeded();
    // They begin with the time.
    let is_row = |line: &&str| line.split_whitespace().next().is_some_and(|word| word.parse::<f64>().is_ok());
    assert_eq!(stat.lines().filter(is_row).count(), 5, "{stat}");
    assert!(boot["record"].errors().contains(" ticks lost"), "{}", boot["record"].errors());
    boot["record"].succeeded();
    let report = boot["report"].succeeded();
    assert!(report.contains(&count) && report.contains("Locality of allocation"), "{report}");
    let doctor = boot["doctor"].succeeded();
    for sensor in ["vmstat", "node", "cpu", "pressure", "perf", "self"] {
        assert!(doctor.contains(&format!("ok       {sensor}: ")), "{doctor}");
    }
}

/// Compares a shape with a boot of it, whose nodes have this much memory if it is not what the shape says.
pub fn check(name: &str, memory_mib: Option<u64>, boot: &Steps, out: &Path) {
    is_as_described(name, memory_mib, boot);
    hardware_is_that_of_numactl(boot, out);
    verbs_work(name, boot);
}
