//! Whether `numa move` brings threads and pages of running programs together, and back, without a change of what they compute.

use numakit_guest::programs::{self, figure};
use numakit_guest::{Failure, Guest, Part, Shape};
use std::collections::BTreeMap;
use std::time::Duration;

/// Pages of the array.
const PAGES: u64 = (16 << 20) / 4096;

/// Starts a program, and runs commands while it runs: `$P` is its process, and `maps NAME` prints where its memory is.
fn around(program: &str, commands: &str) -> String {
    format!(
        "rm -f stop printed; export XDG_STATE_HOME=/tmp/state; elsewhere {program} stop >printed & \
         until grep -qs process printed; do sleep 0.1; done; P=$(sed -n 's/process //p' printed); \
         maps() {{ echo \"maps $1\"; cat /proc/$P/numa_maps; for t in /proc/$P/task/*; do grep Cpus_allowed_list $t/status; done; }}; \
         maps before; {commands}; touch stop; wait; cat printed"
    )
}

/// Somebody frees the thread that was bound, and it is bound again; a signal ends watching; a second watcher is killed, and what it
/// leaves can be undone.
const WATCHED: &str = "watch() { numa move --pid $P --for 3s --watch >watch & W=$!; \
    until grep -q -e undo -e Nothing watch; do sleep 0.2; done; }; \
    watch; T=$(ls /proc/$P/task | tail -n 1); taskset -p ff $T >freed; \
    until grep -qx 'Cpus_allowed_list:.[67]' /proc/$P/task/$T/status; do sleep 0.2; done; maps after; \
    kill -TERM $W; wait $W; echo code $?; \
    watch; kill -KILL $W; wait $W; echo killed $?; numa doctor --all | grep -- --back; ls /tmp/state/numakit/moved | wc -l";

pub fn guest() -> Result<Guest, Failure> {
    let taskset = programs::of_host("taskset").ok_or_else(|| Failure::NotFound("taskset".to_owned()))?;
    let move_it = "numa move --pid $P --for 5s";
    let back = "numa move --pid $P --back; echo code $?; maps back";
    let moved = |options: &str| format!("{move_it} {options}; echo code $?; maps after");
    Ok(Guest::new(Shape::named("four")?)
        .timeout(Duration::from_secs(600))
        .program(&programs::numa()?)
        .program(&programs::compiled("elsewhere")?.unwrap())
        .program(&taskset)
        .step("quiet", &["sh", "-c", "echo 0 > /proc/sys/kernel/numa_balancing"])
        .step("small", &["sh", "-c", "echo never > /sys/kernel/mm/transparent_hugepage/enabled"])
        .step(
            "parts",
            &[
                "sh",
                "-c",
                &around("parts 0", &format!("{move_it} --dry-run; maps dry; {}; {back}", moved(""))),
            ],
        )
        .step("few", &["sh", "-c", &around("few 3", &format!("{}; {back}", moved("")))])
        .step("serve", &["sh", "-c", &around("serve 2", &format!("{}; {back}", moved("--nodes 1")))])
        .step("watched", &["sh", "-c", &around("few 3", &format!("{WATCHED}; {back}"))])
        .step("large", &["sh", "-c", "echo always > /sys/kernel/mm/transparent_hugepage/enabled"])
        .step("huge", &["sh", "-c", &around("huge 3", &format!("{}; {back}", moved("--nodes 1")))])
        .step("after", &["sh", "-c", "echo never > /sys/kernel/mm/transparent_hugepage/enabled"]))
}

fn part() -> Option<Part> {
    super::PARTS.part("moved")
}

/// What a step printed of the memory at a moment: pages by node of mappings as large as the array at least, and the CPU masks.
fn at(text: &str, moment: &str) -> (BTreeMap<u32, u64>, Vec<String>) {
    let (mut nodes, mut masks) = (BTreeMap::new(), Vec::new());
    let lines = text.lines().skip_while(|line| *line != format!("maps {moment}")).skip(1);
    for line in lines.take_while(|line| !line.starts_with("maps ")) {
        if let Some(mask) = line.strip_prefix("Cpus_allowed_list:") {
            masks.push(mask.trim().to_owned());
        }
        let on_node = |word: &str| {
            let (node, pages) = word.strip_prefix('N')?.split_once('=')?;
            Some((node.parse::<u32>().ok()?, pages.parse::<u64>().ok()?))
        };
        let of: Vec<(u32, u64)> = line.split(' ').filter_map(on_node).collect();
        if of.iter().map(|(_, pages)| pages).sum::<u64>() >= PAGES {
            of.into_iter().for_each(|(node, pages)| *nodes.entry(node).or_default() += pages);
        }
    }
    (nodes, masks)
}

fn codes(text: &str) -> Vec<&str> {
    text.lines().filter_map(|line| line.strip_prefix("code ")).collect()
}

#[test]
fn parts_go_to_their_threads_and_back() {
    let Some(part) = part() else { return };
    let text = part["parts"].succeeded();
    println!("{text}");
    let (before, masks) = at(&text, "before");
    assert_eq!(before, BTreeMap::from([(0, PAGES)]));
    assert_eq!(at(&text, "dry"), (before.clone(), masks.clone()), "a dry run changes nothing");
    let (after, bound) = at(&text, "after");
    assert_eq!(after.values().sum::<u64>(), PAGES, "no page is lost: {after:?}");
    // Each of the threads is on a CPU of its own; where two are on one node, their parts go there.
    let cpus: Vec<u32> = bound.iter().filter_map(|mask| mask.parse().ok()).collect();
    assert_eq!(cpus.len(), 4, "{bound:?}");
    let mut expected: BTreeMap<u32, u64> = BTreeMap::new();
    cpus.iter().for_each(|cpu| *expected.entry(cpu / 2).or_default() += PAGES / 4);
    for (node, pages) in &expected {
        let found = after.get(node).copied().unwrap_or(0);
        assert!(found.abs_diff(*pages) <= PAGES / 16, "{found} of {pages} pages on node {node}: {after:?}");
    }
    assert_eq!(at(&text, "back"), (before, masks));
    assert_eq!((codes(&text), figure(&text, "wrong")), (vec!["0", "0"], Some(0.0)));
}

#[test]
fn one_thread_goes_to_its_pages() {
    let Some(part) = part() else { return };
    let text = part["few"].succeeded();
    println!("{text}");
    let (before, masks) = at(&text, "before");
    assert_eq!(before, BTreeMap::from([(3, PAGES)]));
    let (after, bound) = at(&text, "after");
    assert_eq!(after, before, "the pages stay");
    assert!(bound.iter().any(|mask| mask == "6" || mask == "7"), "{bound:?}");
    assert_eq!(at(&text, "back"), (before, masks));
    assert_eq!((codes(&text), figure(&text, "wrong")), (vec!["0", "0"], Some(0.0)));
}

#[test]
fn a_server_answers_while_it_moves_to_a_node_and_back() {
    let Some(part) = part() else { return };
    let text = part["serve"].succeeded();
    println!("{text}");
    let (before, masks) = at(&text, "before");
    assert_eq!(before, BTreeMap::from([(2, PAGES)]));
    let (after, bound) = at(&text, "after");
    assert_eq!(after.values().sum::<u64>(), PAGES);
    assert!(after.get(&1).copied().unwrap_or(0) > PAGES * 9 / 10, "{after:?}");
    assert!(bound == ["2"] || bound == ["3"], "{bound:?}");
    assert_eq!(at(&text, "back"), (before, masks));
    let figures = ["wrong", "failed"].map(|name| figure(&text, name));
    assert_eq!((codes(&text), figures), (vec!["0", "0"], [Some(0.0); 2]));
    assert!(figure(&text, "asked").unwrap() > 100.0);
}

#[test]
fn what_wanders_is_bound_again_and_what_a_killed_watcher_leaves_is_undone() {
    let Some(part) = part() else { return };
    let text = part["watched"].succeeded();
    println!("{text}");
    let (before, masks) = at(&text, "before");
    assert!(at(&text, "after").1.iter().any(|mask| mask == "6" || mask == "7"), "{text}");
    assert!(text.contains("killed 137") && text.contains("--back\n1\n"), "{text}");
    assert_eq!(at(&text, "back"), (before, masks));
    assert_eq!((codes(&text), figure(&text, "wrong")), (vec!["0", "0"], Some(0.0)));
}

#[test]
fn memory_that_asks_for_huge_pages_moves() {
    let Some(part) = part() else { return };
    let text = part["huge"].succeeded();
    println!("{text}");
    let (before, masks) = at(&text, "before");
    let (after, _) = at(&text, "after");
    assert_eq!(after.values().sum::<u64>(), before.values().sum::<u64>());
    assert!(after.get(&1).copied().unwrap_or(0) > PAGES * 9 / 10, "{after:?}");
    assert_eq!(at(&text, "back"), (before, masks));
    assert_eq!((codes(&text), figure(&text, "wrong")), (vec!["0", "0"], Some(0.0)));
}
