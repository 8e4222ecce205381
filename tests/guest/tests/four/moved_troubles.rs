//! What `numa move` does where it cannot do all: a full node, CPUs that go, a program that is traced, a user without privilege. The
//! program goes on in each case, with right results.

use super::moved::{around, at_of, codes};
use numakit_guest::programs::{self, figure};
use numakit_guest::{Failure, Guest, Part, Shape};
use std::collections::BTreeMap;
use std::time::Duration;

const PAGES: u64 = (16 << 20) / 4096;

/// Fills node 1 up to this number of MiB, an expression in which T is all of its memory, while a command runs.
pub fn with_full_node(free: &str, command: &str) -> String {
    format!(
        "mkdir -p full; mount -t tmpfs -o mpol=bind:1,size=1g full full; \
         of_node() {{ echo $(($(sed -n \"s/.*$1: *\\([0-9]*\\) kB/\\1/p\" /sys/devices/system/node/node1/meminfo) / 1024)); }}; \
         T=$(of_node MemTotal); dd if=/dev/zero of=full/x bs=1M count=$(($(of_node MemFree) - ({free}))) 2>/dev/null; {command}; umount full"
    )
}

/// The command itself is kept off the full node: its own 25 MiB would be what fits there.
fn moved_to_full_node(free: &str, options: &[&str]) -> String {
    let one =
        |options: &&str| format!("taskset 1 numa move --pid $P --for 5s --nodes 1 {options}; echo code $?; ");
    let all: String = options.iter().map(one).collect();
    with_full_node(free, &format!("{all} maps after"))
}

/// Takes the CPU of the thread away while it is watched, after one that nobody runs on.
const WITHOUT_CPUS: &str = "offline() { echo $2 >/sys/devices/system/cpu/cpu$1/online; }; \
    T=$(ls /proc/$P/task | tail -n 1); on() { sed -n 's/Cpus_allowed_list:.\\([0-9]*\\)$/\\1/p' /proc/$P/task/$T/status; }; offline 1 0; \
    numa move --pid $P --for 3s --watch >watch & W=$!; until grep -q -e undo -e Nothing watch; do sleep 0.2; done; \
    C=$(on); echo bound $C; offline $C 0; until [ -n \"$(on)\" ] && [ \"$(on)\" != $C ]; do sleep 0.5; done; echo bound $(on); \
    kill -TERM $W; wait $W; echo code $?; offline 1 1; offline $C 1; numa move --pid $P --back; echo code $?";

const TRACED: &str = "traced $P stopped end & T=$!; sleep 1; numa move --pid $P --for 3s; echo code $?; touch end; wait $T; rm end; \
    traced $P runs end & T=$!; sleep 1; numa move --pid $P --for 3s; echo code $?; touch end; wait $T; numa move --pid $P --back; \
    echo code $?";

pub fn guest() -> Result<Guest, Failure> {
    let of_host = |name: &str| programs::of_host(name).ok_or_else(|| Failure::NotFound(name.to_owned()));
    Ok(Guest::new(Shape::named("four")?)
        .timeout(Duration::from_secs(600))
        .program(&programs::numa()?)
        .program(&programs::compiled("elsewhere")?.unwrap())
        .program(&programs::compiled("traced")?.unwrap())
        .program(&of_host("setpriv")?)
        .program(&of_host("taskset")?)
        .step("quiet", &["sh", "-c", "echo 0 > /proc/sys/kernel/numa_balancing"])
        .step("small", &["sh", "-c", "echo never > /sys/kernel/mm/transparent_hugepage/enabled"])
        // A node keeps a part of its memory free.
        .step(
            "some",
            &["sh", "-c", &around("serve 2", &moved_to_full_node("T / 32 + 8", &["--threads", "--pages"]))],
        )
        .step("none", &["sh", "-c", &around("serve 2", &moved_to_full_node("4", &[""]))])
        .step("cpus", &["sh", "-c", &around("few 3", WITHOUT_CPUS)])
        .step("traced", &["sh", "-c", &around("few 3", TRACED)])
        .step(
            "user",
            &[
                "sh",
                "-c",
                &around(
                    "few 3",
                    "/usr/bin/setpriv --reuid 1000 --clear-groups numa move --pid $P --for 1s; echo code $?",
                ),
            ],
        ))
}

fn part() -> Option<Part> {
    super::LATER.part("moved_troubles")
}

/// Pages on each node before and after a step, in which none is lost.
fn pages(text: &str) -> (BTreeMap<u32, u64>, BTreeMap<u32, u64>) {
    println!("{text}");
    let (before, after) = (at_of(text, "before", PAGES).0, at_of(text, "after", PAGES).0);
    assert_eq!(after.values().sum::<u64>(), before.values().sum::<u64>(), "no page is lost");
    assert_eq!(figure(text, "wrong"), Some(0.0));
    (before, after)
}

#[test]
fn a_full_node_gets_what_fits_and_the_rest_stays() {
    let Some(part) = part() else { return };
    let text = part["some"].succeeded();
    let (_, after) = pages(&text);
    assert!((1..=PAGES * 3 / 4).contains(&after.get(&1).copied().unwrap_or(0)), "{after:?}");
    assert!(text.contains("stay: their node would have too little free memory"), "{text}");
    assert_eq!(codes(&text), ["0", "1"]);
}

#[test]
fn threads_do_not_go_where_their_memory_cannot_follow() {
    let Some(part) = part() else { return };
    let (text, errors) = (part["none"].succeeded(), part["none"].errors());
    let (before, after) = pages(&text);
    assert_eq!(after, before);
    assert!(errors.contains("16 MiB would have to follow the threads"), "{errors}");
    assert!(
        text.lines().filter(|line| line.starts_with("Cpus_allowed_list")).all(|line| line.ends_with("0-7")),
        "{text}"
    );
    assert_eq!(codes(&text), ["2"]);
}

#[test]
fn a_thread_whose_cpu_goes_is_bound_to_another_one() {
    let Some(part) = part() else { return };
    let text = part["cpus"].succeeded();
    println!("{text}{}", part["cpus"].errors());
    let bound: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("bound ")).collect();
    assert!(bound.len() == 2 && bound[0] != bound[1], "{bound:?}");
    assert_eq!((codes(&text), figure(&text, "wrong")), (vec!["0", "0"], Some(0.0)));
}

#[test]
fn a_traced_program_is_moved_unless_its_debugger_has_stopped_it() {
    let Some(part) = part() else { return };
    let (text, errors) = (part["traced"].succeeded(), part["traced"].errors());
    println!("{text}{errors}");
    assert!(errors.contains("is stopped by its debugger"), "{errors}");
    assert_eq!((codes(&text), figure(&text, "wrong")), (vec!["2", "0", "0"], Some(0.0)));
}

#[test]
fn a_user_who_may_not_is_told_what_works() {
    let Some(part) = part() else { return };
    let (text, errors) = (part["user"].succeeded(), part["user"].errors());
    println!("{text}{errors}");
    assert!(errors.contains("root"), "{errors}");
    assert_eq!((codes(&text), figure(&text, "wrong")), (vec!["2"], Some(0.0)));
}
