//! How often the kernel moves a main thread while it floats, and whose fault the kernel says its memory is.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

mod early;

use early::PAGES;
use numakit_guest::{Boot, Failure, or_skipped, programs};
use std::sync::LazyLock;

const REPEATS: usize = 10;

/// Pages that the kernel counted since the boot: of the CPU's own node, and of others.
const COUNTERS: &str = "awk '/^local_node|^other_node/ {sum[$1] += $2} \
    END {print \"local\", sum[\"local_node\"], \"other\", sum[\"other_node\"]}' \
    /sys/devices/system/node/node*/numastat";

static BOOT: LazyLock<Result<Boot, Failure>> = LazyLock::new(|| {
    let mut guest = early::guest(REPEATS)?.program(&programs::compiled("ep")?.unwrap());
    for (name, command) in [
        ("ep bound", "GOMP_CPU_AFFINITY=0-7 ep 20 --tls own"),
        ("ep placed", "numa run --busy off -c 8 -- ep 20"),
    ] {
        guest = guest.step(name, &["sh", "-c", &format!("{COUNTERS}; {command}; {COUNTERS}")]);
    }
    guest.boot()
});

#[test]
#[ignore = "thorough: how often the kernel moves a thread, 1 minute"]
fn memory_is_there_unless_the_kernel_moves_the_thread() {
    // Without policies, and below a program that another one starts, the thread floats until it is bound.
    for name in ["filtered all", "filtered scatter", "below"] {
        let Some(boot) = or_skipped(&BOOT) else { return };
        let (home, elsewhere, bound) = early::pages(name, &boot[name]);
        assert_eq!((home + elsewhere, bound), (PAGES * REPEATS as f64, REPEATS as f64), "{name}");
        assert!(home >= 0.8 * (home + elsewhere), "{name}: {home} of {}", home + elsewhere);
    }
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
#[ignore = "thorough: counters of the whole guest, 1 minute"]
fn counters_of_the_kernel_do_not_blame_the_placement() {
    let (Some(bound), Some(placed)) = (counted("ep bound"), counted("ep placed")) else { return };
    // Where exec moves the program to another node, what the kernel and the loader make until the library
    // brings it back counts as other, some 300 pages however large the program is. They are on the first
    // core's node all the same.
    let loader = 400.0;
    assert!(placed.1 <= bound.1 + loader && placed.0 >= bound.0 * 0.4, "{placed:?}, bound {bound:?}");
}
