//! `numa serve` and `numa jobs` while CPUs of a node go and come.

use numakit_guest::programs;
use numakit_guest::{Failure, Guest, Part, Shape, place};
use std::fs;

/// The CPUs of node 2 go while it serves, come back, and are offline when another one starts.
const RUN: &str = r#"
. /root/jobs
cpus() { for cpu in 4 5; do echo $1 >/sys/devices/system/cpu/cpu$cpu/online || exit 1; done; }
scrape_until() { until scrape $1 && grep -q "$2" $1; do usleep 200000; done; }
serve
scrape before
cpus 0
scrape_until gone '^numakit_absent{what="numakit_node_cpu_seconds_total of node 2"'
numa jobs --interval 1s --json >jobs || exit 1
cpus 1
scrape_until back '^numakit_node_cpu_seconds_total{node="2"'
kill -TERM $serve; wait $serve || exit 1
cpus 0
serve --no-jobs
scrape_until late '^numakit_absent{what="numakit_node_cpu_seconds_total of node 2"'
cpus 1
scrape_until come '^numakit_node_cpu_seconds_total{node="2",mode="idle"'
kill -TERM $serve; wait $serve"#;

pub fn guest() -> Result<Guest, Failure> {
    Ok(Guest::new(Shape::named("four")?)
        .program(&programs::numa()?)
        .file(&place::root().join("tests/guest/guest/jobs"), "/root/jobs")
        .step("run", &["sh", "-c", RUN]))
}

fn part() -> Option<Part> {
    let part = super::LATER.part("hotplug")?;
    part["run"].succeeded();
    Some(part)
}

/// CPUs and idle seconds of each node.
fn nodes(part: &Part, scrape: &str) -> Vec<(f64, Option<f64>)> {
    let text = fs::read_to_string(part.out.join(scrape)).unwrap();
    let value =
        |line: String| text.lines().find_map(|known| known.strip_prefix(&line)?.trim().parse::<f64>().ok());
    let node = |node: u32| {
        let cpus = value(format!("numakit_node_cpus{{node=\"{node}\"}}")).unwrap();
        (cpus, value(format!("numakit_node_cpu_seconds_total{{node=\"{node}\",mode=\"idle\"}}")))
    };
    (0..4).map(node).collect()
}

#[test]
fn values_of_cpus_that_go_and_come_are_right_or_absent_with_their_reason() {
    let Some(part) = part() else { return };
    for (scrape, cpus) in [("before", 2.0), ("gone", 0.0), ("back", 2.0), ("late", 0.0), ("come", 2.0)] {
        let nodes = nodes(&part, scrape);
        println!("{scrape}: {nodes:?}");
        for (at, (online, idle)) in nodes.iter().enumerate() {
            let expected = if at == 2 { cpus } else { 2.0 };
            assert_eq!(*online, expected, "{scrape}, node {at}");
            assert_eq!(idle.is_some(), expected > 0.0, "{scrape}, node {at}");
        }
    }
    let [before, back] = ["before", "back"].map(|scrape| nodes(&part, scrape)[2].1.unwrap());
    assert!(back >= before, "a counter fell: {before} {back}");
    let gone = fs::read_to_string(part.out.join("gone")).unwrap();
    assert!(gone.contains("reason=\"CPUs 4-5 are offline; echo 1 | sudo tee"), "{gone}");
}

#[test]
fn jobs_do_without_the_cpus_that_went() {
    let Some(part) = part() else { return };
    let text = fs::read_to_string(part.out.join("jobs")).unwrap();
    let all: serde_json::Value = serde_json::from_str(&text).unwrap();
    let jobs = all["jobs"].as_array().unwrap();
    assert!(!jobs.is_empty() && all["nodes"].as_array().unwrap().len() == 4, "{text}");
    for job in jobs {
        assert!(job["mask_nodes"].as_u64().is_none_or(|nodes| nodes <= 3), "{job}");
    }
}
