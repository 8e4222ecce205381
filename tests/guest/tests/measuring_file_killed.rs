//! `numa file move` and `spread` that are killed on their way: the file is as it was, nothing is left behind, and the next
//! command finds it.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use numakit_guest::{Boot, Failure, Guest, Shape, or_skipped, programs};
use serde_json::Value;
use std::sync::LazyLock;
use std::time::Duration;

const MIB: u64 = 96;
/// Percent of what comes to node 2, at which the command is killed.
const MOMENTS: [u32; 3] = [5, 50, 80];
/// The file, what the commands run under, and the commands. A filter refuses to move pages, so that the file is read again;
/// this cannot spread it.
const KINDS: [(&str, &str, &str, &[&str]); 3] = [
    ("disk", "/out/data", "", &["move", "spread"]),
    ("memory", "/dev/shm/data", "", &["move", "spread"]),
    ("filtered", "/out/data", "filtered", &["move"]),
];

const SETUP: &str = "echo never > /sys/kernel/mm/transparent_hugepage/enabled
echo 0 > /proc/sys/kernel/numa_balancing";

/// A line for each command and moment: the status, whether the content is the same, what it left, and what `show` says.
const SCRIPT: &str = r#"
cached() { sed -n 's/^Node [0-9]* FilePages: *\([0-9]*\) kB/\1/p' /sys/devices/system/node/node2/meminfo; }
left() { ls -A /out /dev/shm /tmp | grep -v '^left$'; ls /proc/*/exe -l 2>/dev/null | grep -c /numa$; }
killed() {
    kib=$1; shift
    numa file move --node 1 $F > /dev/null
    first=$(cached)
    $UNDER numa file "$@" $F > /said 2>&1 &
    until [ $(($(cached) - first)) -ge $kib ] || ! kill -0 $! 2>/dev/null; do :; done
    kill -9 $!; wait $! 2>/dev/null; status=$?
    [ "$(md5sum < $F)" = "$sum" ] && content=same || content=changed
    left | cmp -s - /left && rest=nothing || rest=$(left | diff - /left | tr '\n' ' ')
    echo "killed $status $content $rest | $(numa file show --json $F 2>&1 | tr '\n' ' ')"
}
taskset 1 dd if=/dev/urandom of=$F bs=1M count=$MIB 2>/dev/null
sum=$(md5sum < $F); left > /left
for moment in $MOMENTS; do
    for command in $COMMANDS; do
        all=$((MIB * 1024))
        case $command in
        move) killed $((all * moment / 100)) move --node 2 ;;
        spread) killed $((all / 4 * moment / 100)) spread ;;
        esac
    done
done
numa file move --node 3 --json $F | tr '\n' ' '; rm $F
"#;

static BOOT: LazyLock<Result<Boot, Failure>> = LazyLock::new(|| {
    let mut guest = Guest::new(Shape::named("four")?)
        .memory_mib(768)
        .room_mib(2 * MIB)
        .timeout(Duration::from_secs(600))
        .program(&programs::numa()?)
        .program(&programs::compiled("filtered")?.unwrap())
        .step("setup", &["sh", "-c", SETUP]);
    let moments = MOMENTS.map(|moment| moment.to_string()).join(" ");
    for (kind, file, under, commands) in KINDS {
        let commands = commands.join(" ");
        let variables = format!("F={file} UNDER={under} MIB={MIB} MOMENTS='{moments}' COMMANDS='{commands}'");
        let script = format!("{variables}\n{SCRIPT}");
        guest = guest.step(kind, &["sh", "-c", &script]);
    }
    guest.boot()
});

fn check(kind: &str, commands: usize) {
    let Some(boot) = or_skipped(&BOOT) else { return };
    let text = boot[kind].succeeded();
    let mut killed = 0;
    for line in text.lines().filter_map(|line| line.strip_prefix("killed ")) {
        let (ended, shown) = line.split_once(" | ").unwrap();
        let (status, rest) = ended.split_once(' ').unwrap();
        assert_eq!(rest, "same nothing", "{kind}: {text}");
        let shown: Value = serde_json::from_str(shown).unwrap_or_else(|_| panic!("{kind}: {line}"));
        assert_eq!(shown["files"][0]["size"], MIB << 20, "{kind}: {line}");
        println!("{kind}: status {status}, then on nodes {}", shown["files"][0]["on"]);
        killed += usize::from(status == "137");
    }
    // One that is at its end when it is to be killed shows nothing.
    println!("{kind}: {killed} of {} were killed before their end", commands * MOMENTS.len());
    assert!(killed * 2 > commands * MOMENTS.len(), "{kind}: {text}");
    let last: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    assert_eq!(last["files"][0]["complete"], true, "{kind}: {last}");
    assert_eq!(last["files"][0]["after"]["on"][3], MIB << 20, "{kind}: {last}");
}

#[test]
#[ignore = "thorough: 15 kills at moments, 2 minutes"]
fn a_file_on_a_disk_is_whole() {
    check("disk", 2);
}

#[test]
#[ignore = "thorough: 15 kills at moments, 2 minutes"]
fn a_file_in_memory_is_whole() {
    check("memory", 2);
}

#[test]
#[ignore = "thorough: 15 kills at moments, 2 minutes"]
fn a_file_that_is_read_again_is_whole() {
    check("filtered", 1);
}
