//! `numa explain --hint-faults` on four nodes: who uses which page is what the program does, pages are where they were
//! before, and the settings of the machine come back.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use numakit_guest::{Boot, Failure, Guest, Shape, or_skipped, place, programs};
use serde_json::Value;
use std::sync::LazyLock;
use std::time::Duration;

/// The settings that are changed.
const SETTINGS: &str = "cd /sys/kernel/debug/sched/numa_balancing
grep . /proc/sys/kernel/numa_balancing scan_delay_ms scan_period_min_ms scan_period_max_ms scan_size_mb";

/// Ends an observation by a signal while balancing is switched on, and prints its exit status.
const ENDED: &str = "misplaced uneven broken 600 & program=$!
numa explain --hint-faults --pid $program --output /tmp/text & observer=$!
is_on() { kill -0 $observer || exit 1; [ $(cat /proc/sys/kernel/numa_balancing) = 1 ]; }
# It is tried at the start for a moment.
until is_on && usleep 500000 && is_on; do usleep 10000; done
kill -$1 $observer; wait $observer; echo status $?
kill $program; wait $program; true";

static BOOT: LazyLock<Result<Boot, Failure>> = LazyLock::new(|| {
    let script = place::root().join("tests/guest/guest/observed");
    let mut guest = Guest::new(Shape::named("watched")?)
        .program(&programs::numa()?)
        .program(&programs::compiled("misplaced")?.ok_or_else(|| Failure::NotFound("misplaced".to_owned()))?)
        .file(&script, "/root/observed")
        .timeout(Duration::from_secs(600));
    for (name, value) in [
        ("OMP_NUM_THREADS", "8"),
        ("OMP_WAIT_POLICY", "passive"),
        ("GOMP_SPINCOUNT", "0"),
        ("GOMP_CPU_AFFINITY", "0-7"),
        ("OBSERVE", "--hint-faults"),
    ] {
        guest = guest.env(name, value);
    }
    let quiet =
        "echo 0 >/proc/sys/kernel/numa_balancing; echo never >/sys/kernel/mm/transparent_hugepage/enabled";
    let warm =
        "numa explain --json - -- sh -c 'i=0; while [ $i -lt 100000 ]; do i=$((i + 1)); done' >/dev/null";
    let refused = "echo 'nobody:x:65534:65534::/tmp:/bin/sh' >/etc/passwd; chmod 755 /; \
                   su nobody -c 'numa explain --hint-faults -- true'; echo status $?";
    let of_command = "numa explain --hint-faults -- misplaced uneven broken 150";
    let left = "numa doctor --all | tee /tmp/doctor; numa explain --hint-faults -- true; echo status $?";
    let restored = "sh -c \"$(numa explain --hint-faults -- true 2>&1 | sed -n 's/.*as root: //p' | head -n 1)\"; \
                    numa doctor --all >/tmp/doctor; echo $(grep -c 'was killed' /tmp/doctor) $(grep -c '^ok ' /tmp/doctor)";
    for (name, words) in [
        ("quiet", quiet),
        ("before", SETTINGS),
        ("warm", warm),
        ("hinted", "sh /root/observed misplaced uneven broken 250"),
        ("after", SETTINGS),
        ("repaired", "sh /root/observed misplaced uneven repaired 250"),
        ("command", of_command),
        ("after-command", SETTINGS),
    ] {
        guest = guest.step(name, &["sh", "-c", words]);
    }
    for (name, signal) in [("interrupted", "INT"), ("terminated", "TERM"), ("killed", "KILL")] {
        guest = guest.step(name, &["sh", "-c", ENDED, "ended", signal]);
        guest = guest.step(&format!("after-{name}"), &["sh", "-c", SETTINGS]);
    }
    for (name, words) in [("left", left), ("restored", restored), ("at-last", SETTINGS), ("refused", refused)]
    {
        guest = guest.step(name, &["sh", "-c", words]);
    }
    guest.boot()
});

fn report(boot: &Boot, step: &str) -> Value {
    serde_json::from_str(&boot[step].succeeded()).unwrap()
}

/// The object of a result with this name.
fn array(report: &Value) -> &Value {
    let objects = report["objects"].as_array().unwrap();
    objects.iter().find(|object| object["name"] == "uneven").unwrap()
}

/// Shares of nodes 0 to 3, in percent.
fn nodes(shares: &Value) -> [f64; 4] {
    let mut all = [0.0; 4];
    for share in shares.as_array().unwrap() {
        if let Some(node) = all.get_mut(share["node"].as_u64().unwrap() as usize) {
            *node = share["share"].as_f64().unwrap() * 100.0;
        }
    }
    all
}

#[test]
#[ignore = "thorough: balancing at its own pace, 3 minutes"]
fn the_shares_of_nodes_are_those_of_samples_and_of_the_program() {
    let Some(boot) = or_skipped(&BOOT) else { return };
    for (step, far) in [("hinted", 100.0), ("repaired", 0.0)] {
        let report = report(boot, step);
        let object = array(&report);
        println!("{step}: {} {object}", report["hint_faults"]);
        let (hinted, sampled) = (nodes(&object["hint_faults"]["used_from"]), nodes(&object["used_from"]));
        for (node, truth) in [0.0, 50.0, 25.0, 25.0].into_iter().enumerate() {
            assert!((hinted[node] - truth).abs() <= 10.0, "{step}: {hinted:?}");
            assert!((sampled[node] - hinted[node]).abs() <= 10.0, "{step}: {sampled:?} {hinted:?}");
        }
        let remote = object["hint_faults"]["remote"]["share"].as_f64().unwrap() * 100.0;
        assert!((remote - far).abs() <= 10.0, "{step}: {remote}");
        // 16 MiB, each page several times.
        let count = |name: &str| object["hint_faults"][name].as_u64().unwrap();
        assert!((3900..=4200).contains(&count("pages")) && count("faults") > 2 * count("pages"), "{object}");
    }
}

#[test]
#[ignore = "thorough: balancing at its own pace, 3 minutes"]
fn pages_are_moved_back_and_the_verdict_stays() {
    let Some(boot) = or_skipped(&BOOT) else { return };
    let report = report(boot, "hinted");
    let count = |name: &str| report["hint_faults"][name].as_u64().unwrap();
    assert!(count("moved_back") * 100 >= count("moved") * 95, "{}", report["hint_faults"]);
    assert_eq!(array(&report)["verdict"]["rule"], "first-touch", "{}", array(&report));
    assert!(array(&report)["remote"]["share"].as_f64().unwrap() > 0.85, "{}", array(&report));
}

#[test]
#[ignore = "thorough: balancing at its own pace, 3 minutes"]
fn the_text_has_a_table_of_its_own() {
    let Some(boot) = or_skipped(&BOOT) else { return };
    let text = boot["command"].succeeded();
    println!("{text}");
    let row = text.split("USED FROM by hint faults").nth(1).unwrap().lines().nth(1).unwrap();
    assert!(row.contains("uneven") && row.contains("1:5"), "{row}");
    assert!(text.contains("were moved back. Samples of that time are left out."));
}

#[test]
#[ignore = "thorough: balancing at its own pace, 3 minutes"]
fn settings_come_back_after_the_end_and_after_signals() {
    let Some(boot) = or_skipped(&BOOT) else { return };
    let before = boot["before"].succeeded();
    assert!(before.contains("numa_balancing:0") && before.lines().count() == 5, "{before}");
    for step in ["after", "after-command", "after-interrupted", "after-terminated", "at-last"] {
        assert_eq!(boot[step].succeeded(), before, "{step}");
    }
    for (step, status) in [("interrupted", 130), ("terminated", 143), ("killed", 137)] {
        assert!(boot[step].succeeded().contains(&format!("status {status}")), "{}", boot[step].succeeded());
    }
}

#[test]
#[ignore = "thorough: balancing at its own pace, 3 minutes"]
fn what_a_killed_observer_left_on_is_told_with_the_command() {
    let Some(boot) = or_skipped(&BOOT) else { return };
    assert!(boot["after-killed"].succeeded().contains("numa_balancing:1"));
    let left = &boot["left"];
    let (told, refused) = (left.succeeded(), left.errors());
    assert!(told.contains("which was killed") && told.contains("status 2"), "{told}");
    assert!(refused.contains("echo 0 >/proc/sys/kernel/numa_balancing"), "{refused}");
    let restored = boot["restored"].text();
    let [killed, well] = restored.split_whitespace().collect::<Vec<_>>()[..] else { panic!("{restored}") };
    // The doctor said something, and nothing of it.
    assert!(killed == "0" && well.parse::<u32>().unwrap() > 5, "{restored}");
}

#[test]
#[ignore = "thorough: balancing at its own pace, 3 minutes"]
fn it_is_refused_without_root() {
    let Some(boot) = or_skipped(&BOOT) else { return };
    let refused = &boot["refused"];
    assert_eq!(refused.succeeded().trim(), "status 2");
    let said = refused.errors();
    assert!(said.contains("sudo numa explain --hint-faults"), "{said}");
}
