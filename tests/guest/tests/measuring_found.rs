//! What a recording finds first of programs with one known trouble of nodes each, on real nodes, and that their controls have no
//! such finding. Time means nothing here: findings are about pages and allocations.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use numakit_guest::{Boot, Failure, Guest, Shape, or_skipped, place, programs};
use serde_json::Value;
use std::fmt::Write;
use std::sync::LazyLock;
use std::time::Duration;

/// Programs, the rules of which one stands first, and words of what it says.
const TROUBLES: [(&str, &[&str], &str); 8] = [
    ("main", &["remote-pages"], "memory of node 0"),
    ("bound", &["remote-pages"], "memory of node 0"),
    ("spread", &["remote-pages"], "memory of other nodes"),
    ("cache", &["remote-pages"], "memory of node 0"),
    ("wander", &["remote-pages"], "memory of"),
    ("full", &["full-node"], "Node 0 was full"),
    ("tables", &["remote-page-tables"], "of page tables lie on node 0"),
    ("turns", &["remote-hint-faults", "pages-migrate", "remote-pages"], ""),
];
/// The rules that are about nodes.
const OF_NODES: [&str; 9] = [
    "remote-use",
    "remote-pages",
    "remote-allocation",
    "full-node",
    "pages-migrate",
    "remote-hint-faults",
    "memory-on-one-node",
    "remote-page-tables",
    "threads-wander",
];
const CONTROLS: [&str; 4] = ["own", "parts", "roomy", "tabled"];

/// The kernel must not move the pages of those that are not about that, and the caches that the guest shows must be smaller
/// than what a thread uses.
const MACHINE: &str = r#"
echo 0 > /proc/sys/kernel/numa_balancing
echo never > /sys/kernel/mm/transparent_hugepage/enabled
sh /root/small-caches
"#;
const BALANCING: &str = "cd /sys/kernel/debug/sched/numa_balancing
for setting in scan_delay_ms:50 scan_period_max_ms:250 scan_period_min_ms:250; do
    echo ${setting#*:} >${setting%:*} || exit 1
done
cd /out
echo 1 >/proc/sys/kernel/numa_balancing
";

fn recorded(name: &str) -> String {
    let before = if name == "turns" { BALANCING } else { "" };
    format!(
        "{before}taskset 300 numa record -i 100ms -o {name}.arrows -- taskset ff troubled {name} 5 >{name} 2>&1 || cat {name} \
         >&2; numa show --json {name}.arrows"
    )
}

static BOOT: LazyLock<Result<Boot, Failure>> = LazyLock::new(|| {
    let mut guest = Guest::new(Shape::named("watched")?)
        .program(&programs::numa()?)
        .file(&place::root().join("tests/guest/guest/small-caches"), "/root/small-caches")
        .program(&programs::compiled("troubled")?.unwrap())
        .timeout(Duration::from_secs(600))
        .step("machine", &["sh", "-c", MACHINE]);
    for name in CONTROLS.iter().chain(TROUBLES.iter().map(|(name, ..)| name)) {
        guest = guest.step(name, &["sh", "-c", &recorded(name)]);
    }
    guest.boot()
});

fn problems(boot: &Boot, name: &str) -> (Vec<Value>, String) {
    let report: Value = serde_json::from_str(&boot[name].succeeded()).unwrap();
    let verdict = report["findings"]["headline"]["verdict"].as_str().unwrap().to_owned();
    (report["findings"]["problems"].as_array().unwrap().clone(), verdict)
}

#[test]
#[ignore = "thorough: 12 recordings of 5 s, 3 minutes"]
fn troubles_of_nodes_stand_first_and_controls_have_none() {
    let Some(boot) = or_skipped(&BOOT) else { return };
    boot["machine"].succeeded();
    let mut wrong = String::new();
    for (name, rules, words) in TROUBLES {
        let (problems, verdict) = problems(boot, name);
        let first = problems.iter().find(|problem| OF_NODES.iter().any(|rule| problem["rule"] == *rule));
        let (rule, says) =
            first.map_or(("-", ""), |f| (f["rule"].as_str().unwrap(), f["says"].as_str().unwrap()));
        println!("{name:<8} {:<20} {verdict}", rule);
        if !rules.contains(&rule) || !says.contains(words) {
            let _ = writeln!(wrong, "{name}: {problems:#?}");
        }
    }
    for name in CONTROLS {
        let (problems, verdict) = problems(boot, name);
        println!("{name:<8} {:<20} {verdict}", "-");
        let of_nodes = |problem: &&Value| OF_NODES.iter().any(|rule| problem["rule"] == *rule);
        if let Some(problem) = problems.iter().find(of_nodes) {
            let _ = writeln!(wrong, "{name} is a control: {problem:#?}");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}
