//! A program that freed most of its memory, in a control group whose limit is near: with libnumalloc a neighbour can have
//! that memory, and nobody is killed for it.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use numakit_guest::runtimes::{Allocator, allocators};
use numakit_guest::{Boot, Failure, Guest, Shape, or_skipped, programs};
use std::sync::LazyLock;
use std::time::Duration;

/// Pages, and MiB that the program has before it frees: near the limit, and far enough from it that nobody notices.
const CASES: [(&str, &str, u32); 3] =
    [("near", "never", 145), ("far", "never", 120), ("huge", "always", 145)];

const SETUP: &str =
    "echo +memory > /sys/fs/cgroup/cgroup.subtree_control; echo 0 > /proc/sys/kernel/numa_balancing";

/// The program frees all but a sixteenth, then the neighbour comes. Prints `oom_kill N`, and the neighbour's status.
const SCRIPT: &str = r#"
group=/sys/fs/cgroup/limited
mkdir $group; echo 160M > $group/memory.max
within() { sh -c 'echo $$ > '$group'/cgroup.procs; exec "$@"' sh "$@"; }
within env LD_PRELOAD=$PRELOAD returned $MIB --hold 600 > left &
until grep -q left left || ! kill -0 $!; do usleep 20000; done
echo current $(($(cat $group/memory.current) >> 20))
within returned 100 > neighbour; echo status $?
grep 'oom_kill ' $group/memory.events
for process in $(cat $group/cgroup.procs); do kill -9 $process; done
wait 2>/dev/null; rm left; until rmdir $group 2>/dev/null; do usleep 20000; done
"#;

static ALLOCATORS: LazyLock<Result<Vec<Allocator>, Failure>> = LazyLock::new(allocators);

static BOOT: LazyLock<Result<Boot, Failure>> = LazyLock::new(|| {
    let all = ALLOCATORS.as_ref().map_err(|failure| Failure::Request(failure.to_string()))?;
    let mut guest = Guest::new(Shape::named("two")?)
        .program(&programs::compiled("returned")?.unwrap())
        .timeout(Duration::from_secs(400))
        .memory_may_end()
        .step("setup", &["sh", "-c", SETUP]);
    for Allocator { name, preload, files } in all {
        guest = files.put_into(guest);
        for (case, pages, mib) in CASES {
            let set = format!("echo {pages} > /sys/kernel/mm/transparent_hugepage/enabled");
            let script = format!("{set}\nPRELOAD={preload} MIB={mib}\n{SCRIPT}");
            guest = guest.step(&format!("{case} {name}"), &["sh", "-c", &script]);
        }
    }
    guest.boot()
});

#[test]
fn free_memory_serves_others_before_anyone_is_killed() {
    let Some(boot) = or_skipped(&BOOT) else { return };
    println!("{:<8}{:<14}{:>20}{:>8}", "", "", "MiB after freeing", "killed");
    for (case, _, _) in CASES {
        let mut killed_by_others = 0.0;
        for Allocator { name, .. } in ALLOCATORS.as_ref().unwrap() {
            let text = boot[format!("{case} {name}").as_str()].text();
            let figure =
                |words: &str| programs::figure(&text, words).unwrap_or_else(|| panic!("{words}: {text}"));
            let killed = figure("oom_kill");
            println!("{case:<8}{name:<14}{:>20}{killed:>8}", figure("current"));
            if *name == "libnumalloc" {
                assert_eq!((killed, figure("status")), (0.0, 0.0), "{text}");
            } else {
                killed_by_others += killed;
            }
        }
        // Else the case would show nothing.
        assert!(killed_by_others > 0.0, "{case}");
    }
}
