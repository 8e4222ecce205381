//! What libnumalloc's blocks take on other nodes when theirs is full: counted by `numa alloc --pid`, by the library at the
//! end of the program, and by the sensor `task`.

use super::recording::Recording;
use numakit_guest::{Failure, Guest, Part, Shape, programs};
use serde_json::Value;
use std::time::Duration;

const MIB: u64 = 1 << 20;

/// More than the first node has.
const BLOCKS: u64 = 320;

/// Waits until the recording has what the allocator says, and pages of all blocks: an emulated recorder that costs much rests
/// long.
const RECORDED: &str = r#"
mapped=$(tr '}' '\n' <stats | sed -n '/"node":0/s/.*"mapped":\([0-9]*\).*/\1/p')
until numa export --to csv --raw spilled.arrows | awk -F, -v mapped=$mapped -v blocks=$1 '
    NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i }
    END {
        pages = $at["task.alloc_local@node0"] + $at["task.alloc_spilled@node0"]
        exit !($at["task.alloc_mapped@node0"] == mapped && pages > blocks * 1042000)
    }'
do sleep 1; done
"#;

pub fn guest() -> Result<Guest, Failure> {
    let run = format!(
        "NUMALLOC_STATS=1 numa record -i 100ms -e 'task.alloc_*,task.resident_error' -o spilled.arrows -- \
         numa run --alloc numa -c 4 --busy off -- spilling {BLOCKS} \
         'cat /proc/$PID/numa_maps > maps; numa alloc --pid $PID --json > stats; numa alloc --pid $PID; \
         sh recorded {BLOCKS}' 2> said"
    );
    // So that a page is a page and stays.
    let quiet =
        "echo never > /sys/kernel/mm/transparent_hugepage/enabled; echo 0 > /proc/sys/kernel/numa_balancing";
    Ok(Guest::new(Shape::named("four")?)
        .timeout(Duration::from_secs(600))
        .program(&programs::numa()?)
        .program(&programs::compiled("spilling")?.unwrap())
        .step("quiet", &["sh", "-c", quiet])
        .step("recorded", &["sh", "-c", &format!("cat > recorded <<'SCRIPT'\n{RECORDED}\nSCRIPT")])
        .step("full", &["sh", "-c", &super::leave(0, 250)])
        .step("spill", &["sh", "-c", &run]))
}

fn part() -> Option<Part> {
    super::LATER.part("spilled")
}

/// Bytes of each node's region on the node, and on others: the library lets the memory of a region prefer its node.
fn told_by_kernel(maps: &str) -> [[u64; 2]; 4] {
    let mut sums = [[0; 2]; 4];
    for line in maps.lines() {
        let mut words = line.split(' ').skip(1);
        let preferred = words.next().and_then(|policy| policy.strip_prefix("prefer:")?.parse::<usize>().ok());
        let Some(preferred) = preferred else { continue };
        for (node, pages) in words.filter_map(|word| word.strip_prefix('N')?.split_once('=')) {
            let is_other = node.parse::<usize>().unwrap() != preferred;
            sums[preferred][usize::from(is_other)] += pages.parse::<u64>().unwrap() * 4096;
        }
    }
    sums
}

#[test]
fn pages_that_spill_to_other_nodes_are_counted() {
    let Some(boot) = part() else { return };
    let table = boot["spill"].succeeded();
    let read = |name: &str| std::fs::read_to_string(boot.out.join(name)).unwrap();
    let (maps, said) = (read("maps"), read("said"));
    println!("{table}{said}");
    let stats: Value = serde_json::from_str(&read("stats")).unwrap();
    let kernel = told_by_kernel(&maps);
    for (node, sums) in kernel.iter().enumerate() {
        let counted = ["local", "spilled"].map(|name| stats["nodes"][node][name].as_u64().unwrap());
        assert_eq!(&counted, sums, "node {node}: {stats}\n{maps}");
    }
    let [local, spilled] = kernel[0];
    assert!(spilled > 16 * MIB && local > 16 * MIB && local + spilled >= BLOCKS * MIB, "{maps}");
    assert!(stats.get("spilled_unknown").is_none(), "{stats}");
    let cells: Vec<&str> = table.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!(
        (cells[0], cells[6]),
        ("0", format!("{:.1}", spilled as f64 / MIB as f64).as_str()),
        "{table}"
    );
    // The library counts the same at the end of the program.
    let last = said.lines().rfind(|line| line.contains("node 0: mapped")).unwrap();
    let at_end = last.split_once("spilled ").unwrap().1.split_once(' ').unwrap().0;
    assert_eq!(at_end.parse::<u64>().unwrap(), spilled >> 10, "{said}");
}

#[test]
fn a_recording_has_the_memory_of_the_allocator_by_node() {
    let Some(boot) = part() else { return };
    boot["spill"].succeeded();
    let maps = std::fs::read_to_string(boot.out.join("maps")).unwrap();
    let stats = std::fs::read_to_string(boot.out.join("stats")).unwrap();
    let stats: Value = serde_json::from_str(&stats).unwrap();
    let recording = Recording::read(&boot.out.join("spilled.arrows"));
    let highest = |name: &str| recording.series(&format!("task.{name}")).into_iter().flatten().max();
    for node in 0..4 {
        for (name, of_table) in [("alloc_mapped", "mapped"), ("alloc_in_use", "in_use")] {
            let (found, told) =
                (highest(&format!("{name}@node{node}")), stats["nodes"][node][of_table].as_u64());
            assert_eq!(found, told, "{name} of node {node}");
        }
    }
    // One page of some is queried.
    let error = highest("resident_error").unwrap();
    for (node, [local, spilled]) in told_by_kernel(&maps).into_iter().enumerate() {
        for (name, told) in [("alloc_local", local), ("alloc_spilled", spilled)] {
            let found = highest(&format!("{name}@node{node}")).unwrap();
            println!("{name} of node {node}: {found}, by the kernel {told}, standard error {error}");
            assert!(
                found.abs_diff(told) <= 4 * error + MIB / 4,
                "{name} of node {node}: {found} is not {told}"
            );
        }
    }
}
