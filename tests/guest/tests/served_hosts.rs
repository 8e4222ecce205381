//! The answers of `numa serve` that the tests of dashboards use: of a guest whose container is away from its memory, and of one in which
//! the same container is at home.
//!
//! `UPDATE=1 cargo test -p numakit-guest --test served_hosts -- --ignored` keeps new ones in dashboards/hosts.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use numakit_guest::{Boot, Failure, Guest, Shape, or_skipped, place, programs};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;
use std::time::Duration;

/// Scrapes of each guest. Between two of them is a round of jobs, which an emulated processor takes long for: a minute or two.
const SCRAPES: usize = 3;

/// Each host, and the node of its container's memory. The CPUs are those of node 1.
const HOSTS: [(&str, u32); 2] = [("broken", 0), ("repaired", 1)];
const CPUS_NODE: u32 = 1;

/// The first scrape of the broken host waits for its finding.
fn script(node: u32) -> String {
    let found = if node == CPUS_NODE { "true" } else { "grep -q '^numakit_finding' $1" };
    format!(
        r#". /root/jobs
        name_container web
        job $web 2-3 {node} walks 80
        serve
        used() {{ grep '^numakit_job_node_cpu_seconds_total{{job="container/web",node="1"}} [1-9]' $1; }}
        found() {{ {found}; }}
        before=
        for at in $(seq {SCRAPES}); do
            until scrape $at && found $at && used $at >now && [ "$(cat now)" != "$before" ]; do sleep 3; done
            before=$(cat now)
            read up _ </proc/uptime && echo "time $up" >>$at || exit 1
        done
        kill -TERM $serve; wait $serve"#
    )
}

static BOOTS: LazyLock<[Result<Boot, Failure>; 2]> = LazyLock::new(|| HOSTS.map(|(_, node)| boot(node)));

fn boot(node: u32) -> Result<Boot, Failure> {
    Guest::new(Shape::named("four")?)
        .timeout(Duration::from_secs(900))
        .program(&programs::numa()?)
        .compiled(&["walks"])?
        .file(&place::root().join("tests/guest/guest/jobs"), "/root/jobs")
        .step("run", &["sh", "-c", &script(node)])
        .boot()
}

fn folder() -> PathBuf {
    place::root().join("dashboards/hosts")
}

/// The scrapes of a guest: without comments, and with the time since the first one.
fn scrapes(boot: &Boot) -> Vec<String> {
    boot["run"].succeeded();
    let mut first = None;
    let one = |at: usize| {
        let text = fs::read_to_string(boot.out.join(at.to_string())).unwrap();
        let (values, up) = text.rsplit_once("time ").unwrap();
        let up: f64 = up.trim().parse().unwrap();
        let since = up - *first.get_or_insert(up);
        let mut kept = format!("# {since:.0} seconds\n");
        values.lines().filter(|line| !line.starts_with('#')).for_each(|line| _ = writeln!(kept, "{line}"));
        kept
    };
    (1..=SCRAPES).map(one).collect()
}

fn names(text: &str) -> BTreeSet<&str> {
    text.lines().filter_map(|line| line.split(['{', ' ']).next()).filter(|name| *name != "#").collect()
}

/// The sum of all lines that begin so.
fn sum(text: &str, start: &str, part: &str) -> f64 {
    let lines = text.lines().filter(|line| line.starts_with(start) && line.contains(part));
    lines.map(|line| line.rsplit_once(' ').unwrap().1.parse::<f64>().unwrap()).sum()
}

#[test]
#[ignore = "thorough: two guests that serve for some minutes, 8 minutes"]
fn a_broken_and_a_repaired_guest_serve_what_is_kept_of_them() {
    for ((name, _), boot) in HOSTS.iter().zip(&*BOOTS) {
        let Some(boot) = or_skipped(boot) else { return };
        let scrapes = scrapes(boot);
        let (first, last) = (&scrapes[0], &scrapes[SCRAPES - 1]);
        let grown = |kind: &str| {
            let of = |text: &str| sum(text, "numakit_node_allocations_total", &format!("kind=\"{kind}\""));
            of(last) - of(first)
        };
        let (local, remote) = (grown("local"), grown("remote"));
        let findings: Vec<&str> = last.lines().filter(|line| line.starts_with("numakit_finding")).collect();
        println!("{name}: {local} local and {remote} remote allocations, {findings:?}");
        let is_broken = *name == "broken";
        assert_eq!(remote / (local + remote) > 0.8, is_broken, "{name}");
        assert!(is_broken || remote / (local + remote) < 0.1, "{name}");
        let expected = r#"numakit_finding_without_cost{job="container/web",rule="memory-on-one-node"} 1"#;
        assert_eq!(findings, if is_broken { vec![expected] } else { vec![] });
        for (at, scrape) in scrapes.iter().enumerate() {
            let file = folder().join(format!("{name}-{at}.txt"));
            if std::env::var_os("UPDATE").is_some() {
                fs::create_dir_all(folder()).unwrap();
                fs::write(&file, scrape).unwrap();
            }
            let kept = fs::read_to_string(&file).unwrap_or_default();
            assert_eq!(names(scrape), names(&kept), "{}: keep a new one with UPDATE=1", file.display());
        }
    }
}
