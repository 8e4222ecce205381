//! The dashboards and alert rules in dashboards/: they ask for what is served, and a Prometheus with the data of four hosts, two of them
//! guests, answers what it should.

use crate::kept_hosts::KeptHost;
use crate::runner::{Done, Folder};
use crate::serve::Serving;
use crate::servers::{Server, own_address, program};
use numakit_scrape::table::{EXPOSED, ExposedKind, ExposedMetric, ExposedSource};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

const NAMES: [&str; 4] = ["fleet", "host", "job", "compare"];

fn folder() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../dashboards"))
}

/// A query of a panel.
struct Query {
    panel: String,
    expression: String,
}

/// All queries of a dashboard.
fn queries(name: &str) -> Vec<Query> {
    let text = fs::read_to_string(folder().join(format!("{name}.json"))).unwrap();
    let dashboard: Value = serde_json::from_str(&text).unwrap();
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let of_panel = |panel: &Value| -> Vec<Query> {
        let title = panel["title"].as_str().unwrap().to_owned();
        let targets = panel["targets"].as_array().cloned().unwrap_or_default();
        let query = |target: &Value| Query {
            panel: format!("{name}: {title}"),
            expression: target["expr"].as_str().unwrap().to_owned(),
        };
        targets.iter().map(query).collect()
    };
    panels.flat_map(of_panel).collect()
}

/// Names of our metrics in a text.
fn metrics_of(text: &str) -> BTreeSet<&str> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.split(|c: char| !is_name(c)).filter(|word| word.starts_with("numakit_")).collect()
}

#[test]
fn queries_and_rules_ask_for_metrics_that_are_served() {
    let served: BTreeSet<String> = EXPOSED.iter().map(ExposedMetric::sample_name).collect();
    let rules = fs::read_to_string(folder().join("alerts.yml")).unwrap();
    let mut asked = rules;
    let all: Vec<Query> = NAMES.iter().flat_map(|name| queries(name)).collect();
    all.iter().for_each(|query| asked += &format!("\n{}", query.expression));
    let asked = metrics_of(&asked);
    assert!(all.len() > 20 && asked.len() > 12, "{} queries of {} metrics", all.len(), asked.len());
    let unknown: Vec<&&str> = asked.iter().filter(|name| !served.contains(**name)).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}

/// The files are what build.mjs makes of the table: each of its queries is in them.
#[test]
fn dashboards_have_the_queries_of_the_table() {
    let Some(node) = program("node") else { return };
    let script = "import { DASHBOARDS } from './panels.mjs'; for (const { name, rows } of DASHBOARDS) for (const { panels } of rows) \
                  for (const { title, queries } of panels) for (const { query } of queries) console.log(`${name}: ${title}\\t${query}`);";
    let mut command = Command::new(node);
    command.args(["--input-type=module", "-e", script]).current_dir(folder());
    let table = Done::of(command.output().unwrap());
    assert_eq!(table.code, 0, "{}", table.err);
    let plain = |name: &str, query: &str| {
        let host = match name {
            "fleet" => "instance=~\"$host\"",
            "host" | "job" => "instance=\"$host\"",
            _ => "instance=~\"$host|$other\"",
        };
        query.replace("HOST", host).replace("[5m]", "[$__rate_interval]")
    };
    let expected: Vec<String> = table
        .out
        .lines()
        .map(|line| {
            let (panel, query) = line.split_once('\t').unwrap();
            format!("{panel}\t{}", plain(panel.split(':').next().unwrap(), query))
        })
        .collect();
    let found: Vec<String> = NAMES
        .iter()
        .flat_map(|name| queries(name))
        .map(|query| format!("{}\t{}", query.panel, query.expression))
        .collect();
    assert_eq!(found, expected, "dashboards/*.json are stale: 'cargo xtask dashboards' makes them");
}

#[test]
fn alert_rules_fire_on_what_they_should_and_on_nothing_else() {
    let Some(promtool) = program("promtool") else { return };
    let run = |words: [&str; 3]| {
        Done::of(Command::new(&promtool).args(words).current_dir(folder()).output().unwrap())
    };
    let tested = run(["test", "rules", "alerts.test.yml"]);
    assert!(tested.code == 0 && tested.out.contains("SUCCESS"), "{}{}", tested.out, tested.err);
    let rules = fs::read_to_string(folder().join("alerts.yml")).unwrap();
    let tests = fs::read_to_string(folder().join("alerts.test.yml")).unwrap();
    for name in rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")) {
        assert!(
            tests.contains(&format!("alertname: {name}\n        exp_alerts:")),
            "no test lets {name} fire"
        );
    }
}

/// A made host: the label of its places, how many there are, and the part of allocations that is remote.
struct Host {
    name: &'static str,
    label: &'static str,
    places: u32,
    remote: f64,
    free: f64,
}

/// The guests, in which a container is away from its memory, and at home.
const GUESTS: [&str; 2] = ["broken", "repaired"];
const HOSTS: [Host; 2] = [
    Host { name: "full", label: "node", places: 2, remote: 0.25, free: 0.02 },
    Host { name: "large", label: "package", places: 16, remote: 0.1, free: 0.3 },
];
const STEP: u64 = 15;
const STEPS: u64 = 80;

impl Host {
    /// The labels of a metric's samples, each with the increase in a second, or the level.
    fn samples(&self, metric: &ExposedMetric) -> Vec<(String, f64)> {
        // A job of ours has the label that Prometheus gives all others: honor_labels.
        let is_of_job = matches!(metric.source, ExposedSource::Jobs(_));
        let job = if is_of_job { "" } else { ",job=\"numa\"" };
        let instance = format!("instance=\"{}\"{job}", self.name);
        let (label, parts) = match metric.source {
            ExposedSource::Places(label, parts) | ExposedSource::Machine(label, parts) => (label, parts),
            ExposedSource::Own(_) | ExposedSource::Jobs(_) => {
                let labels = metric.labels();
                let own = labels.iter().map(|label| match *label {
                    "node" => format!(",{}=\"0\"", self.label),
                    "job" => ",job=\"container/db\"".to_owned(),
                    "memory" => ",memory=\"remote\"".to_owned(),
                    other => format!(",{other}=\"x\""),
                });
                return vec![(instance + &own.collect::<String>(), 1.0)];
            }
        };
        let places = if matches!(metric.source, ExposedSource::Places(..)) { self.places } else { 1 };
        let mut samples = Vec::new();
        for place in 0..places {
            for (part, _) in parts {
                let mut labels = instance.clone();
                if places > 1 {
                    _ = write!(labels, ",{}=\"{place}\"", self.label);
                }
                if !label.is_empty() {
                    _ = write!(labels, ",{label}=\"{part}\"");
                }
                samples.push((labels, self.value(metric.name, part)));
            }
        }
        samples
    }

    fn value(&self, metric: &str, part: &str) -> f64 {
        match (metric, part) {
            ("numakit_node_allocations", "local") => 1000.0 * (1.0 - self.remote),
            ("numakit_node_allocations", "remote") => 1000.0 * self.remote,
            ("numakit_node_memory_bytes", "total") => 1e9,
            ("numakit_node_memory_bytes", "free") => 1e9 * self.free,
            ("numakit_hint_faults_local", _) => 100.0 * (1.0 - self.remote),
            ("numakit_hint_faults", _) => 100.0,
            _ => 0.5,
        }
    }
}

/// The data of all hosts until a time, as `promtool tsdb create-blocks-from openmetrics` takes them.
fn history(end: u64) -> String {
    let mut text = String::new();
    let begin = end - STEP * STEPS;
    let guests = GUESTS.map(KeptHost::read);
    for metric in EXPOSED {
        let is_counter = metric.kind == ExposedKind::Counter;
        _ = writeln!(text, "# TYPE {} {}", metric.name, if is_counter { "counter" } else { "gauge" });
        for host in &HOSTS {
            for (labels, value) in host.samples(metric) {
                for step in 0..=STEPS {
                    let value = if is_counter { value * (step * STEP) as f64 } else { value };
                    _ = writeln!(
                        text,
                        "{}{{{labels}}} {value} {}",
                        metric.sample_name(),
                        begin + step * STEP
                    );
                }
            }
        }
        guests.iter().for_each(|guest| guest.write(&metric.sample_name(), end, &mut text));
    }
    text += "# TYPE up gauge\n";
    for guest in &guests {
        guest.times(end).for_each(|time| {
            _ = writeln!(text, "up{{instance=\"{}\",job=\"numa\"}} 1 {time}", guest.name);
        });
    }
    for host in &HOSTS {
        let is_up = u8::from(host.name != "full");
        (0..=STEPS).for_each(|step| {
            _ = writeln!(
                text,
                "up{{instance=\"{}\",job=\"numa\"}} {is_up} {}",
                host.name,
                begin + step * STEP
            );
        });
    }
    text + "# EOF\n"
}

/// A Prometheus with that history.
fn with_history(kept: &Folder, end: u64) -> Option<Server> {
    let promtool = program("promtool")?;
    fs::write(kept.path("history"), history(end)).unwrap();
    let mut command = Command::new(promtool);
    command.args(["tsdb", "create-blocks-from", "openmetrics"]);
    let made = Done::of(command.args([kept.path("history"), kept.path("data")]).output().unwrap());
    assert_eq!(made.code, 0, "{}{}", made.out, made.err);
    prometheus(kept, &format!("rule_files: [{:?}]\n", folder().join("alerts.yml")))
}

/// A Prometheus with this configuration.
fn prometheus(folder: &Folder, configuration: &str) -> Option<Server> {
    let program = program("prometheus")?;
    fs::write(folder.path("prometheus.yml"), configuration).unwrap();
    let at = own_address();
    let mut command = Command::new(program);
    command.arg(format!("--config.file={}", folder.path("prometheus.yml").display()));
    command.arg(format!("--storage.tsdb.path={}", folder.path("data").display()));
    command.arg(format!("--web.listen-address={at}"));
    let server = Server::start(&mut command, at);
    numakit_testing::until!(server.ask("GET /-/ready", b"").0 == 200);
    Some(server)
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

/// The values of a query, each with its labels.
fn answer(server: &Server, query: &str, time: u64) -> Vec<(Value, f64)> {
    let escaped: String = query.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let (status, text) = server.ask(&format!("GET /api/v1/query?time={time}&query={escaped}"), b"");
    assert_eq!(status, 200, "{query}: {text}");
    let answer: Value = serde_json::from_str(text.split_once("\r\n\r\n").unwrap().1).unwrap();
    let results = answer["data"]["result"].as_array().unwrap().clone();
    let value = |one: &Value| (one["metric"].clone(), one["value"][1].as_str().unwrap().parse().unwrap());
    results.iter().map(value).collect()
}

/// The query of a panel, for a host and the one beside it, with rates over the time that the guests were served.
fn of_host(query: &str, host: &str) -> String {
    let query = query.replace("$__rate_interval", "10m").replace("$job", ".*");
    query.replace("$host", host).replace("$other", "repaired")
}

fn query_of(name: &str, panel: &str, host: &str) -> String {
    let found = queries(name).into_iter().find(|query| query.panel == format!("{name}: {panel}"));
    of_host(&found.unwrap().expression, host)
}

/// What takes samples of instructions: an emulated processor has none.
const OF_SAMPLES: [&str; 3] = ["job: Findings", "job: Time at memory", "job: Contended lines"];

#[test]
fn every_query_has_an_answer_and_the_remote_share_is_the_right_one() {
    let folder = Folder::new("dashboards");
    let end = now() - 60;
    let Some(server) = with_history(&folder, end) else { return };
    for (name, hosts) in [
        ("fleet", [".*"].as_slice()),
        ("host", &["broken", "repaired", "large"]),
        ("job", &["full", "broken", "repaired"]),
        ("compare", &["broken"]),
    ] {
        for (host, query) in
            hosts.iter().flat_map(|host| queries(name).into_iter().map(move |query| (host, query)))
        {
            let found = answer(&server, &of_host(&query.expression, host), end);
            let is_absent = GUESTS.contains(host) && OF_SAMPLES.contains(&query.panel.as_str());
            assert_eq!(found.is_empty(), is_absent, "{} of {host}: {}", query.panel, query.expression);
            assert!(found.iter().all(|(_, value)| value.is_finite()), "{}: {found:?}", query.panel);
        }
    }
    let found = answer(&server, &query_of("fleet", "Remote share of allocations", ".*"), end);
    assert_eq!(found.len(), HOSTS.len() + GUESTS.len(), "{found:?}");
    let of = |name: &str| found.iter().find(|(labels, _)| labels["instance"] == name).unwrap().1;
    for host in &HOSTS {
        assert!((of(host.name) - host.remote).abs() < 1e-6, "{}: {found:?}", host.name);
    }
    for guest in GUESTS.map(KeptHost::read) {
        let grown = |kind: &str| guest.grown("numakit_node_allocations_total", &format!("kind=\"{kind}\""));
        let share = grown("remote") / (grown("remote") + grown("local"));
        assert!((of(guest.name) - share).abs() < 1e-3, "{}: {share} {found:?}", guest.name);
    }
    let found = answer(&server, &query_of("fleet", "Fullest node", "full"), end);
    assert!(found.len() == 1 && (found[0].1 - 0.02).abs() < 1e-6, "{found:?}");
    let found = answer(&server, &query_of("fleet", "Hosts that do not answer", ".*"), end);
    assert!(found.len() == 1 && found[0].1 == 1.0, "{found:?}");
    // Places of a large machine are packages.
    let found = answer(&server, &query_of("host", "Busy CPUs", "large"), end);
    assert!(found.len() == 16 && found.iter().all(|(labels, _)| labels["package"].is_string()), "{found:?}");
}

/// Each panel has a value of both, and what placement changes differs.
#[test]
fn a_guest_whose_container_is_away_from_its_memory_stands_out_beside_the_repaired_one() {
    let folder = Folder::new("guests");
    let end = now() - 60;
    let Some(server) = with_history(&folder, end) else { return };
    // Of a panel of jobs, the container is looked at.
    let pair = |query: &str| {
        let found = answer(&server, query, end);
        GUESTS.map(|guest| {
            let is_it = |labels: &Value| {
                let job = labels["job"].as_str();
                labels["instance"] == guest && job.is_none_or(|job| job == "container/web")
            };
            found.iter().find(|(labels, _)| is_it(labels)).map(|found| found.1)
        })
    };
    for query in queries("compare") {
        let [broken, repaired] = pair(&of_host(&query.expression, "broken"));
        println!("{}: {broken:?} {repaired:?}", query.panel);
        assert!(broken.is_some() && repaired.is_some(), "{}", query.panel);
    }
    // At home, the kernel samples few accesses, of other programs.
    for (panel, most) in [("Remote share of allocations", 0.1), ("Remote share of sampled accesses", 0.9)] {
        let [broken, repaired] = pair(&query_of("compare", panel, "broken"));
        assert!(broken.unwrap() > 0.95 && repaired.unwrap() < most, "{panel}: {broken:?} {repaired:?}");
    }
    let [broken, repaired] = pair(&query_of("compare", "Memory away from its job", "broken"));
    assert!(broken.unwrap() > 0.95 && repaired.unwrap() < 0.05, "{broken:?} {repaired:?}");
    let findings = answer(&server, &query_of("fleet", "Findings without a cost", "broken|repaired"), end);
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert!(findings[0].0["instance"] == "broken" && findings[0].0["job"] == "container/web", "{findings:?}");
}

/// What the expression of each rule finds: how long it must be true is what promtool tests.
#[test]
fn alert_rules_find_the_broken_guest_and_not_the_repaired_one() {
    let folder = Folder::new("alerts");
    let end = now() - 60;
    let Some(server) = with_history(&folder, end) else { return };
    let (status, text) = server.ask("GET /api/v1/rules", b"");
    assert_eq!(status, 200, "{text}");
    let rules: Value = serde_json::from_str(text.split_once("\r\n\r\n").unwrap().1).unwrap();
    let rules = rules["data"]["groups"][0]["rules"].as_array().unwrap().clone();
    assert!(rules.len() > 6, "{rules:?}");
    let of = |guest: &str| -> Vec<String> {
        let is_found = |rule: &&Value| {
            let found = answer(&server, rule["query"].as_str().unwrap(), end);
            found.iter().any(|(labels, _)| labels["instance"] == guest)
        };
        let found = rules.iter().filter(is_found);
        found.map(|rule| rule["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(of("broken"), ["NumaRemoteAllocations", "NumaJobAwayFromItsMemory"]);
    assert_eq!(of("repaired"), [""; 0]);
}

/// The label job is one that Prometheus gives to what it scrapes.
#[test]
fn a_prometheus_set_up_as_the_guide_says_has_the_jobs_of_the_host() {
    let folder = Folder::new("scraped");
    let guide =
        fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/serve.md")).unwrap();
    let (_, rest) = guide.split_once("```yaml\n").unwrap();
    let serving = Serving::start(&folder, "");
    let configuration = rest.split_once("```").unwrap().0.replace("127.0.0.1:9477", &serving.address);
    assert!(configuration.contains(&serving.address), "{configuration}");
    let configuration = format!("global:\n  scrape_interval: 1s\n{configuration}");
    let Some(server) = prometheus(&folder, &configuration) else { return };
    numakit_testing::until!(!answer(&server, "numakit_job_processes", now()).is_empty());
    let jobs = answer(&server, "numakit_job_processes", now());
    for (labels, _) in &jobs {
        let job = labels["job"].as_str().unwrap();
        assert!(job != "numa" && labels["exported_job"].is_null(), "{labels}");
    }
    // A job has none after its processes have ended, as those of all that ended unseen.
    assert!(jobs.iter().any(|(_, processes)| *processes >= 1.0), "{jobs:?}");
    let nodes = answer(&server, "numakit_node_cpus", now());
    assert!(nodes.iter().all(|(labels, _)| labels["job"] == "numa") && !nodes.is_empty(), "{nodes:?}");
    serving.end().says(0, "");
}
