//! Every shape boots, its kernel sees the machine that the shape describes, and so does numa.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use numakit_guest::{Boot, Failure, Guest, Shape, or_skipped, programs};

/// What a user does first. The command of the recording allocates on every node that is allowed.
const VERBS: [(&str, &str); 6] = [
    ("topo", "numa topo"),
    ("list", "numa list"),
    ("stat", "numa stat -i 100ms --count 5"),
    ("record", "numa record -i 50ms -o a.arrows -- dd if=/dev/zero of=/dev/null bs=32M count=8"),
    ("report", "numa report --all a.arrows"),
    ("doctor", "numa doctor"),
];

/// What the kernel, its tables and the boot loader may take of a node's memory.
const TAKEN_MIB: u64 = 64;

fn boot(name: &str, steps: &[(&str, &str)]) -> Result<Boot, Failure> {
    let mut guest = Guest::new(Shape::named(name)?).program(&programs::numa()?);
    if let Some(numactl) = programs::of_host("numactl") {
        let both = "numactl --hardware; numa topo --hardware > hardware";
        guest = guest.program(&numactl).step("numactl", &["sh", "-c", both]);
    }
    for (name, script) in VERBS.iter().chain(steps) {
        guest = guest.step(name, &["sh", "-c", script]);
    }
    guest.boot()
}

/// The numbers after a text at the start of a line.
fn numbers(text: &str, start: &str) -> Vec<u64> {
    let Some(rest) = text.lines().find_map(|line| line.trim_start().strip_prefix(start)) else {
        panic!("no line '{start}' in:\n{text}");
    };
    rest.split_whitespace().filter_map(|word| word.parse().ok()).collect()
}

/// Compares numactl's page with the shape; without numactl that part is skipped.
fn is_as_described(name: &str, boot: &Boot) {
    let shape = Shape::named(name).unwrap();
    let Some(step) = boot.steps.get("numactl") else {
        return numakit_skips::TOOLS
            .skip_part(format_args!("no numactl here to compare shape '{name}' with"));
    };
    let page = step.succeeded();
    assert_eq!(numbers(&page, "available:"), [shape.nodes.len() as u64], "{page}");
    for (id, node) in shape.nodes.iter().enumerate() {
        let cpus: Vec<u64> = node.cpus.iter().map(u64::from).collect();
        assert_eq!(numbers(&page, &format!("node {id} cpus:")), cpus, "{page}");
        let size = numbers(&page, &format!("node {id} size:"))[0];
        let least = node.memory_mib.saturating_sub(TAKEN_MIB);
        assert!((least..=node.memory_mib).contains(&size), "node {id} of {} MiB\n{page}", node.memory_mib);
        let row: Vec<u64> = shape.distances[id].iter().map(|value| u64::from(*value)).collect();
        assert_eq!(numbers(&page, &format!("{id}:")), row, "{page}");
    }
}

/// Line by line what numactl says; free memory changes meanwhile.
fn hardware_is_that_of_numactl(boot: &Boot) {
    let Some(step) = boot.steps.get("numactl") else { return };
    let constant = |page: &str| {
        let lines = page.lines().filter(|line| !line.contains(" free: "));
        lines.map(|line| line.trim_end().to_owned()).collect::<Vec<_>>()
    };
    let ours = std::fs::read_to_string(boot.out.join("hardware")).unwrap();
    assert_eq!(constant(&ours), constant(&step.succeeded()));
    assert_eq!(ours.lines().count(), step.text().lines().count());
}

fn verbs_work(name: &str, boot: &Boot) {
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
    assert_eq!(boot["stat"].succeeded().lines().filter(|line| line.starts_with("   0.")).count(), 5);
    assert!(boot["record"].errors().contains(" samples in total"), "{}", boot["record"].errors());
    boot["record"].succeeded();
    let report = boot["report"].succeeded();
    assert!(report.contains(&count) && report.contains("Locality of allocation"), "{report}");
    let doctor = boot["doctor"].succeeded();
    for sensor in ["vmstat", "node", "cpu", "pressure", "perf", "self"] {
        assert!(doctor.contains(&format!("ok       {sensor}: ")), "{doctor}");
    }
}

/// Boots a shape, compares it, and looks at what its steps gave.
fn check(name: &str, steps: &[(&str, &str)], look: impl Fn(&Boot)) {
    let result = boot(name, steps);
    if let Some(boot) = or_skipped(&result) {
        println!("{name}: started in {:.1?}, {:.1?} in all", boot.boot_time, boot.total_time);
        is_as_described(name, boot);
        hardware_is_that_of_numactl(boot);
        verbs_work(name, boot);
        look(boot);
    }
}

#[test]
fn two() {
    check("two", &[], |_| {});
}

#[test]
fn four_has_two_boards_with_caches_of_their_own_for_each_node() {
    let topology = "cd /sys/devices/system/cpu; cat cpu*/topology/physical_package_id | tr '\\n' ' '; \
                    cat cpu7/cache/index3/shared_cpu_list";
    check("four", &[("topology", topology)], |boot| {
        assert_eq!(boot["topology"].succeeded(), "0 0 0 0 1 1 1 1 6-7\n");
    });
}

#[test]
fn watched() {
    check("watched", &[], |_| {});
}

#[test]
fn eight() {
    check("eight", &[], |_| {});
}

#[test]
fn memoryless_has_a_node_with_cpus_only() {
    let states = "cd /sys/devices/system/node; cat has_cpu has_memory";
    check("memoryless", &[("states", states)], |boot| {
        assert_eq!(boot["states"].succeeded(), "0-2\n0,2\n");
    });
}

#[test]
fn cpuless_tells_latency_and_bandwidth_of_far_memory() {
    let states = "cd /sys/devices/system/node; cat has_cpu has_memory; cd node3/access0/initiators; \
                  cat read_latency write_latency read_bandwidth; ls -d node*";
    check("cpuless", &[("states", states)], |boot| {
        assert_eq!(boot["states"].succeeded(), "0-1\n0-3\n250\n250\n20480\nnode1\n");
    });
}

#[test]
fn asymmetric() {
    check("asymmetric", &[], |_| {});
}

#[test]
fn restricted_starts_commands_in_a_cpuset() {
    let status = "grep -h _allowed_list /proc/self/status; cat /proc/self/cgroup";
    check("restricted", &[("status", status)], |boot| {
        let expected = "Cpus_allowed_list:\t2-5\nMems_allowed_list:\t1-2\n0::/restricted\n";
        assert_eq!(boot["status"].succeeded(), expected);
    });
}

#[test]
fn numbering_goes_to_and_fro_between_the_nodes_of_a_package() {
    let script =
        "cd /sys/devices/system; cat node/node*/cpulist cpu/cpu*/topology/physical_package_id | tr '\\n' ' '";
    check("numbering", &[("numbers", script)], |boot| {
        assert_eq!(boot["numbers"].succeeded(), "0,2 1,3 4,6 5,7 0 0 0 0 1 1 1 1 ");
    });
}

#[test]
fn smt_has_two_threads_on_each_core() {
    let script = "cd /sys/devices/system; \
                  cat cpu/cpu5/topology/thread_siblings_list cpu/cpu5/cache/index3/shared_cpu_list node/node1/cpulist";
    check("smt", &[("siblings", script)], |boot| {
        assert_eq!(boot["siblings"].succeeded(), "4-5\n4-7\n4-7\n");
    });
}
