//! A program that freed most of its memory, in a control group whose limit is near: with libnumalloc a neighbour can have
//! that memory, and nobody is killed for it.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use numakit_guest::runtimes::{Allocator, allocators};
use numakit_guest::{Boot, Failure, Guest, Shape, or_skipped, programs};
use numakit_skips::rounds;
use std::sync::LazyLock;
use std::time::Duration;

/// Pages, MiB that the program has before it frees, and its group: near the limit, far enough from it that nobody notices,
/// and in a group below the one with the limit.
const CASES: [(&str, &str, u32, &str); 4] = [
    ("near", "never", 145, ""),
    ("far", "never", 120, ""),
    ("huge", "always", 145, ""),
    ("above", "never", 145, "/inner"),
];

const SETUP: &str =
    "echo +memory > /sys/fs/cgroup/cgroup.subtree_control; echo 0 > /proc/sys/kernel/numa_balancing";

/// The program frees all but a sixteenth, then the neighbour comes. Prints `oom_kill N`, and the neighbour's status.
const SCRIPT: &str = r#"
group=/sys/fs/cgroup/limited
mkdir $group; echo 160M > $group/memory.max; mkdir -p $group$INNER
within() { sh -c 'echo $$ > '$group$INNER'/cgroup.procs; exec "$@"' sh "$@"; }
within env LD_PRELOAD=$PRELOAD returned $MIB --hold 600 > left &
until grep -q left left || ! kill -0 $!; do usleep 20000; done
echo current $(($(cat $group/memory.current) >> 20))
within returned 100 > neighbour; echo status $?
grep 'oom_kill ' $group/memory.events
for process in $(cat $group$INNER/cgroup.procs); do kill -9 $process; done
wait 2>/dev/null; rm left; [ -z "$INNER" ] || until rmdir $group$INNER 2>/dev/null; do usleep 20000; done; until rmdir $group 2>/dev/null; do usleep 20000; done
"#;

/// The group's memory is full of a file that was read; the program has less than half of the limit. Programs that waited for
/// memory in the last ten seconds, as those of the steps before, would be a reason to give memory back: that time passes first.
const CACHED: &str = r#"
group=/sys/fs/cgroup/cached
mkdir $group; echo 160M > $group/memory.max; echo never > /sys/kernel/mm/transparent_hugepage/enabled
dd if=/dev/zero of=large bs=1M count=200 2>/dev/null; sync; echo 3 > /proc/sys/vm/drop_caches
echo $$ > $group/cgroup.procs
cat large > /dev/null
waiting() { sed -n 's/some avg10=\([0-9]*\).*/\1/p' /proc/pressure/memory; }
while [ "$(waiting)" -ge 2 ]; do sleep 0.2; done
echo current $(($(cat $group/memory.current) >> 20))
LD_PRELOAD=$PRELOAD returned 60
echo "percent of the time in which programs waited for memory: $(waiting)"
rm large
"#;

/// Ours and that of the C library, without which a case would show nothing; thoroughly, those of others too.
static ALLOCATORS: LazyLock<Result<Vec<Allocator>, Failure>> =
    LazyLock::new(|| Ok(allocators()?.into_iter().take(rounds(2, usize::MAX)).collect()));

static BOOT: LazyLock<Result<Boot, Failure>> = LazyLock::new(|| {
    let all = ALLOCATORS.as_ref().map_err(|failure| Failure::Request(failure.to_string()))?;
    let mut guest = Guest::new(Shape::named("two")?)
        .program(&programs::compiled("returned")?.unwrap())
        .timeout(Duration::from_secs(400))
        .memory_may_end()
        .step("setup", &["sh", "-c", SETUP]);
    for Allocator { name, preload, files } in all {
        guest = files.put_into(guest);
        for (case, pages, mib, inner) in CASES {
            let set = format!("echo {pages} > /sys/kernel/mm/transparent_hugepage/enabled");
            let script = format!("{set}\nPRELOAD={preload} MIB={mib} INNER={inner}\n{SCRIPT}");
            guest = guest.step(&format!("{case} {name}"), &["sh", "-c", &script]);
        }
    }
    let cached = format!("PRELOAD={}\n{CACHED}", all[0].preload);
    guest.step("cached", &["sh", "-c", &cached]).boot()
});

#[test]
fn free_memory_serves_others_before_anyone_is_killed() {
    let Some(boot) = or_skipped(&BOOT) else { return };
    println!("{:<8}{:<14}{:>20}{:>8}", "", "", "MiB after freeing", "killed");
    for (case, ..) in CASES {
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

/// How long programs waited for memory in the last ten seconds decides too, and that depends on the speed of this machine.
#[test]
fn measuring_memory_is_kept_where_only_files_fill_the_group() {
    let Some(boot) = or_skipped(&BOOT) else { return };
    let text = boot["cached"].succeeded();
    let figure = |words: &str| programs::figure(&text, words).unwrap_or_else(|| panic!("{words}: {text}"));
    println!(
        "{} MiB in use, then {} page faults of 15,360 pages that are used again",
        figure("current"),
        figure("faults")
    );
    assert!(figure("current") >= 150.0, "{text}");
    assert!(figure("faults") < 1536.0, "{text}");
}
