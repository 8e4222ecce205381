//! `numa jobs` and `numa serve` beside three jobs: one whose memory is on another node than its CPUs, one at home, one spread, in two
//! steps.

use numakit_guest::programs;
use numakit_guest::{Failure, Guest, Part, Shape, place};
use serde_json::Value;
use std::fs;

const MIB: f64 = (1 << 20) as f64;

/// What is kept of each job: the memory of its group, and of its processes by mapping.
const RUN: &str = "
. /root/jobs
name_container web
job $web 2-3 0 walks 80; cp $groups/$web/memory.numa_stat web.group; cat /proc/$job/numa_maps >web.maps; all=$job
job $local 4-5 2 walks 80; cp $groups/$local/memory.numa_stat local.group; cat /proc/$job/numa_maps >local.maps; all=\"$all $job\"
for step in 0 1; do
    job $batch/step_$step $((6 + step)) 0-3 policies under interleave 15 walks 40; cat /proc/$job/numa_maps >>batch.maps; all=\"$all $job\"
done
cp $groups/$batch/memory.numa_stat batch.group
numa jobs >table || exit 1
numa jobs --json >json || exit 1
serve
until scrape metrics && grep -q '^numakit_finding' metrics; do sleep 1; done
kill $serve $all; wait $all";

pub fn guest() -> Result<Guest, Failure> {
    Guest::new(Shape::named("four")?)
        .program(&programs::numa()?)
        .file(&place::root().join("tests/guest/guest/jobs"), "/root/jobs")
        .without_balancing()
        .step("run", &["sh", "-c", RUN])
        .compiled(&["walks", "policies"])
}

fn part() -> Option<Part> {
    let part = super::LATER.part("jobs")?;
    println!("{}", part["run"].succeeded());
    Some(part)
}

fn text(part: &Part, file: &str) -> String {
    fs::read_to_string(part.out.join(file)).unwrap()
}

/// Each job: its name, the file of its group, the node of its CPUs, and how much of its memory is elsewhere, in percent.
const JOBS: [(&str, &str, usize, [f64; 2]); 3] = [
    ("container/web", "web", 1, [95.0, 100.0]),
    ("unit/local.service", "local", 2, [0.0, 5.0]),
    ("slurm/7", "batch", 3, [70.0, 80.0]),
];

/// Memory by node in MiB, of lines such as `anon N0=4096` or `7f... anon=1 N0=1`.
fn by_node<'a>(lines: impl Iterator<Item = &'a str>, unit: f64) -> [f64; 4] {
    let mut sums = [0.0; 4];
    for word in lines.flat_map(str::split_whitespace) {
        if let Some((node, count)) = word.strip_prefix('N').and_then(|word| word.split_once('=')) {
            sums[node.parse::<usize>().unwrap()] += count.parse::<f64>().unwrap() * unit / MIB;
        }
    }
    sums
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).collect()
}

fn found(part: &Part) -> Vec<Value> {
    let all: Value = serde_json::from_str(&text(part, "json")).unwrap();
    assert_eq!(numbers(&all["nodes"]), [0.0, 1.0, 2.0, 3.0]);
    all["jobs"].as_array().unwrap().clone()
}

/// The value of a line of metrics.
fn metric(metrics: &str, line: &str) -> f64 {
    let value = metrics.lines().find_map(|known| known.strip_prefix(line)?.strip_prefix(' '));
    value.unwrap_or_else(|| panic!("no {line}\n{metrics}")).parse().unwrap()
}

#[test]
fn memory_and_cpus_of_a_job_are_where_the_kernel_says() {
    let Some(part) = part() else { return };
    let (jobs, metrics) = (found(&part), text(&part, "metrics"));
    for (name, file, node, [least, most]) in JOBS {
        let job = jobs.iter().find(|job| job["job"] == name).unwrap_or_else(|| panic!("{name}: {jobs:?}"));
        let memory: Vec<f64> =
            numbers(&job["memory_bytes_by_node"]).iter().map(|bytes| bytes / MIB).collect();
        let group = text(&part, &format!("{file}.group"));
        let group =
            by_node(group.lines().filter(|line| line.starts_with("anon") || line.starts_with("file ")), 1.0);
        let maps = text(&part, &format!("{file}.maps"));
        let maps = by_node(maps.lines().filter(|line| line.contains("anon=")), 4096.0);
        println!("{name}: {memory:?}, group {group:?}, mappings {maps:?}");
        for at in 0..4 {
            let served =
                metric(&metrics, &format!(r#"numakit_job_node_memory_bytes{{job="{name}",node="{at}"}}"#));
            // A sixteenth of the 80 MiB comes and goes.
            for other in [group[at], maps[at], served / MIB] {
                assert!((memory[at] - other).abs() < 7.0, "{name}, node {at}: {} {other}", memory[at]);
            }
        }
        let cpu = numbers(&job["cpu_seconds_by_node"]);
        assert!(cpu[node] > 0.5 && cpu[node] > 0.99 * cpu.iter().sum::<f64>(), "{name}: {cpu:?}");
        let served =
            metric(&metrics, &format!(r#"numakit_job_node_cpu_seconds_total{{job="{name}",node="{node}"}}"#));
        assert!(served > 0.5, "{name}: {served}");
        assert_eq!(job["mask_nodes"], 1, "{name}");
        let remote = job["remote_percent"].as_f64().unwrap();
        assert!((least..=most).contains(&remote), "{name}: {remote}");
    }
}

#[test]
fn the_guilty_job_stands_first_and_no_other_has_a_finding() {
    let Some(part) = part() else { return };
    let table = text(&part, "table");
    println!("{table}");
    let first = table.lines().nth(1).unwrap();
    assert!(first.starts_with("container/web ") && first.ends_with("memory-on-one-node"), "{first}");
    let says = table.lines().find(|line| line.starts_with("container/web: ")).unwrap();
    assert!(
        says.contains("of the program's memory lies on node 0 while its threads run on node 1"),
        "{says}"
    );
    for job in found(&part) {
        let rules: Vec<&str> =
            job["findings"].as_array().unwrap().iter().map(|f| f["rule"].as_str().unwrap()).collect();
        let expected: &[&str] = if job["job"] == "container/web" { &["memory-on-one-node"] } else { &[] };
        assert_eq!(rules, expected, "{job}");
    }
    let metrics = text(&part, "metrics");
    let found: Vec<&str> = metrics.lines().filter(|line| line.starts_with("numakit_finding")).collect();
    assert_eq!(found, [r#"numakit_finding_without_cost{job="container/web",rule="memory-on-one-node"} 1"#]);
}

/// The processor is emulated: what its samples cannot tell is absent, with the reason.
#[test]
fn time_at_memory_is_absent_with_its_reason() {
    let Some(part) = part() else { return };
    let metrics = text(&part, "metrics");
    assert!(!metrics.contains("numakit_job_memory_time_seconds_total{"), "{metrics}");
    let absent =
        metrics.lines().find(|line| line.starts_with(r#"numakit_absent{what="samples of jobs""#)).unwrap();
    assert!(absent.contains("samples land at the start of a block of instructions"), "{absent}");
    assert!(found(&part).iter().all(|job| job["remote_memory_seconds"].is_null()));
}
