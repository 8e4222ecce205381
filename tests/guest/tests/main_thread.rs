//! Where the main thread's memory is, which it touches before it creates a thread, and whose fault
//! the kernel says it is.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use numakit_guest::{Boot, Failure, Guest, Shape, or_skipped, programs};
use std::sync::LazyLock;
use std::time::Duration;

const REPEATS: usize = 10;

/// Name, options of `numa run`, and command. The last is started by a program that stays.
const CASES: [(&str, &str, &str); 9] = [
    ("all", "-c 8", "early"),
    ("scatter", "-c 4 --policy scatter", "early"),
    ("four", "-c 4", "early"),
    ("prefer", "-c 4 --memory prefer:2", "early"),
    ("driver", "-c 8", "early 8 5"),
    ("exec", "-c 8", "sh -c 'exec early'"),
    ("below", "-c 8", "sh -c 'early; true'"),
    ("filtered all", "-c 8", "early"),
    ("filtered scatter", "-c 4 --policy scatter", "early"),
];

/// Pages that the kernel counted since the boot: of the CPU's own node, and of others.
const COUNTERS: &str = "awk '/^local_node|^other_node/ {sum[$1] += $2} \
    END {print \"local\", sum[\"local_node\"], \"other\", sum[\"other_node\"]}' \
    /sys/devices/system/node/node*/numastat";

static BOOT: LazyLock<Result<Boot, Failure>> = LazyLock::new(|| {
    let mut guest = Guest::new(Shape::named("four")?)
        .timeout(Duration::from_secs(600))
        .program(&programs::numa()?)
        .env("OMP_WAIT_POLICY", "passive")
        .step("quiet", &["sh", "-c", "echo 0 > /proc/sys/kernel/numa_balancing"])
        .step("small", &["sh", "-c", "echo never > /sys/kernel/mm/transparent_hugepage/enabled"]);
    for name in ["early", "ep", "filtered"] {
        guest = guest.program(&programs::compiled(name)?.unwrap());
    }
    for (name, options, command) in CASES {
        // In a container of Docker, which refuses memory policies.
        let filter = if name.starts_with("filtered") { "filtered " } else { "" };
        let run =
            format!("for i in $(seq {REPEATS}); do {filter}numa run --busy off {options} -- {command}; done");
        guest = guest.step(name, &["sh", "-c", &run]);
    }
    for (name, command) in [
        ("ep bound", "GOMP_CPU_AFFINITY=0-7 ep 20 --tls own"),
        ("ep placed", "numa run --busy off -c 8 -- ep 20"),
    ] {
        guest = guest.step(name, &["sh", "-c", &format!("{COUNTERS}; {command}; {COUNTERS}")]);
    }
    guest.boot()
});

/// The pages of all repeats of a case that were at home and elsewhere, and how many main threads
/// were bound.
fn pages(name: &str) -> Option<(f64, f64, f64)> {
    let text = or_skipped(&BOOT)?[name].succeeded();
    let sum = |what: &str| -> f64 {
        text.lines().filter_map(|line| line.strip_prefix(what)?.trim().parse::<f64>().ok()).sum()
    };
    let sums = (sum("pages_at_home "), sum("pages_elsewhere "), sum("bound "));
    println!("{name}: {} pages at home, {} elsewhere, {} bound", sums.0, sums.1, sums.2);
    Some(sums)
}

#[test]
fn what_the_program_touches_first_is_on_the_node_of_its_first_core() {
    for name in ["all", "scatter", "four", "driver", "exec"] {
        let Some((home, elsewhere, bound)) = pages(name) else { return };
        assert_eq!((home, elsewhere, bound), (2048.0 * REPEATS as f64, 0.0, REPEATS as f64), "{name}");
    }
}

#[test]
fn without_policies_it_is_there_unless_the_kernel_moves_the_thread() {
    for name in ["filtered all", "filtered scatter"] {
        let Some((home, elsewhere, bound)) = pages(name) else { return };
        assert_eq!((home + elsewhere, bound), (2048.0 * REPEATS as f64, REPEATS as f64), "{name}");
        // It floats until it is bound.
        assert!(home >= 0.8 * (home + elsewhere), "{name}: {home} of {}", home + elsewhere);
    }
}

#[test]
fn a_program_that_another_one_starts_takes_the_core_where_its_memory_is() {
    let Some((home, elsewhere, bound)) = pages("below") else { return };
    assert_eq!((home + elsewhere, bound), (2048.0 * REPEATS as f64, REPEATS as f64));
    // The kernel may move it while it floats.
    assert!(home >= 0.8 * (home + elsewhere), "{home} of {}", home + elsewhere);
}

#[test]
fn a_policy_that_was_asked_for_counts_from_the_start() {
    let Some((home, elsewhere, _)) = pages("prefer") else { return };
    // The nearest cores to the memory are on node 2, so it is at home as well.
    assert_eq!(home + elsewhere, 2048.0 * REPEATS as f64);
}

/// Pages that the kernel counted as local and as of another node while a step ran.
fn counted(name: &str) -> Option<(f64, f64)> {
    let text = or_skipped(&BOOT)?[name].succeeded();
    let looks: Vec<(f64, f64)> = text
        .lines()
        .filter_map(|line| {
            let (local, other) = line.strip_prefix("local ")?.split_once(" other ")?;
            Some((local.parse().unwrap(), other.parse().unwrap()))
        })
        .collect();
    let [before, after] = looks[..] else { panic!("{text}") };
    let (local, other) = (after.0 - before.0, after.1 - before.1);
    println!("{name}: {local} pages local, {other} other");
    Some((local, other))
}

#[test]
fn counters_of_the_kernel_do_not_blame_the_placement() {
    let (Some(bound), Some(placed)) = (counted("ep bound"), counted("ep placed")) else { return };
    // Where exec moves the program to another node, what the kernel and the loader make until the library
    // brings it back counts as other, some 300 pages however large the program is. They are on the first
    // core's node all the same.
    let loader = 400.0;
    assert!(placed.1 <= bound.1 + loader && placed.0 >= bound.0 * 0.4, "{placed:?}, bound {bound:?}");
}
