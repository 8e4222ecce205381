//! Whether `numa move` brings threads and pages of running programs together, and back, without a change of what they compute.

use numakit_guest::programs::{self, figure};
use numakit_guest::{Failure, Guest, Part, Shape};
use serde_json::json;
use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;

/// Pages of the array.
const PAGES: u64 = (16 << 20) / 4096;

/// Starts a program, and runs commands while it runs: `$P` is its process, and `maps NAME` prints where its memory is.
pub fn around(program: &str, commands: &str) -> String {
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

/// Two threads on node 1 use an array that is on node 0. By a cure it goes to node 3, where its users are not: so it is the cure
/// that decides, and not samples. With the build ID of another build it stays.
fn by_cure() -> Result<String, Failure> {
    let npb = programs::compiled("npb")?.unwrap();
    let printed = |command: &mut Command| String::from_utf8(command.output().unwrap().stdout).unwrap();
    let (notes, names) =
        (printed(Command::new("readelf").arg("-n").arg(&npb)), printed(Command::new("nm").arg(&npb)));
    let id = notes.lines().find_map(|line| line.trim().strip_prefix("Build ID: ")).unwrap();
    let address =
        names.lines().find_map(|line| line.strip_suffix(" b store")).unwrap().trim_start_matches('0');
    let cure = |id: &str| {
        let module = json!({"file": "npb", "build_id": id});
        let parts = [json!({"from": 0, "to": 64, "thread": 6, "samples": 99, "sure": 1.0})];
        let object = json!({
            "name": "store", "verdict": "other-node", "reason": "",
            "variable": {"module": module, "address": format!("0x{address}"), "bytes": 8 << 20},
            "policy": {"parts": {"over": "block", "parts": parts}},
        });
        let threads = json!({"working": [6], "count": 8, "cpus": 64});
        json!({"cure": 1, "command": "", "program": module, "threads": threads, "objects": [object]})
    };
    let apply = |cure: &serde_json::Value| {
        format!("echo '{cure}' >cure; numa move --pid $P --pages --for 2s --apply cure; echo code $?")
    };
    Ok(format!(
        "export XDG_STATE_HOME=/tmp/state OMP_NUM_THREADS=8 GOMP_CPU_AFFINITY=0-7; npb store broken 1000000 & P=$!; \
         maps() {{ echo \"maps $1\"; cat /proc/$P/numa_maps; }}; \
         until maps now | grep -q 'N0=[0-9][0-9][0-9][0-9]'; do sleep 0.5; done; \
         maps before; {}; maps other; {}; maps after; numa move --pid $P --back; maps back; kill -KILL $P",
        apply(&cure("00")),
        apply(&cure(id)),
    ))
}

pub fn guest() -> Result<Guest, Failure> {
    let taskset = programs::of_host("taskset").ok_or_else(|| Failure::NotFound("taskset".to_owned()))?;
    let move_it = "numa move --pid $P --for 5s";
    let back = "numa move --pid $P --back; echo code $?; maps back";
    let moved = |options: &str| format!("{move_it} {options}; echo code $?; maps after");
    Ok(Guest::new(Shape::named("four")?)
        .timeout(Duration::from_secs(600))
        .program(&programs::numa()?)
        .program(&programs::compiled("elsewhere")?.unwrap())
        .program(&programs::compiled("npb")?.unwrap())
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
        .step("cured", &["sh", "-c", &by_cure()?])
        .step("watched", &["sh", "-c", &around("few 3", &format!("{WATCHED}; {back}"))])
        .step("large", &["sh", "-c", "echo always > /sys/kernel/mm/transparent_hugepage/enabled"])
        .step("huge", &["sh", "-c", &around("huge 3", &format!("{}; {back}", moved("--nodes 1")))])
        .step("after", &["sh", "-c", "echo never > /sys/kernel/mm/transparent_hugepage/enabled"]))
}

fn part() -> Option<Part> {
    super::LATER.part("moved")
}

/// What a step printed of the memory at a moment: pages by node of mappings as large as the array at least, and the CPU masks.
fn at(text: &str, moment: &str) -> (BTreeMap<u32, u64>, Vec<String>) {
    at_of(text, moment, PAGES)
}

/// The same of mappings with at least this number of pages.
pub fn at_of(text: &str, moment: &str, least: u64) -> (BTreeMap<u32, u64>, Vec<String>) {
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
        if of.iter().map(|(_, pages)| pages).sum::<u64>() >= least {
            of.into_iter().for_each(|(node, pages)| *nodes.entry(node).or_default() += pages);
        }
    }
    (nodes, masks)
}

pub fn codes(text: &str) -> Vec<&str> {
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
fn a_cure_decides_before_samples_and_another_build_gets_nothing() {
    let Some(part) = part() else { return };
    let text = part["cured"].succeeded();
    println!("{text}");
    let (store, [before, other, after, back]) =
        (PAGES / 2, ["before", "other", "after", "back"].map(|moment| at_of(&text, moment, PAGES / 2).0));
    assert!(before[&0] >= store, "{before:?}");
    assert_eq!((other, back), (before.clone(), before.clone()));
    assert_eq!(after.values().sum::<u64>(), before.values().sum::<u64>());
    assert!(after[&3].abs_diff(store) <= 1, "{after:?}");
    assert_eq!(codes(&text), ["2", "0"]);
    assert!(part["cured"].errors().contains("with build ID 00"), "{}", part["cured"].errors());
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
