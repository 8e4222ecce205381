//! `numa jobs`: jobs, and which of them NUMA slows down.

use crate::table::page_table;
use numakit_jobs::{Job, JobsNow, Unjudged};
use numakit_model::numbers::{ABSENT, duration};
use numakit_model::thresholds::MIN_SAMPLES;
use serde_json::{Value, json};

/// Nodes that have a column.
const MAX_NODES: usize = 8;

const MIB: f64 = (1 << 20) as f64;

/// The jobs of a moment.
#[derive(Debug, Clone, Copy)]
pub struct JobTable<'a> {
    /// Who is guilty first.
    pub jobs: &'a JobsNow,
    /// Jobs that are listed.
    pub top: usize,
}

impl JobTable<'_> {
    /// A line for each job, what is wrong with them, and what cannot be told.
    pub fn text(&self) -> String {
        let now = self.jobs;
        let nodes = now.nodes.len().min(MAX_NODES);
        let mut headings: Vec<String> =
            ["<JOB", "PROCESSES", "CPU%", "WAIT%", "REMOTE%", "CONTENDED%", "MEMORY"]
                .map(str::to_owned)
                .into();
        headings.extend(now.nodes.iter().take(nodes).map(|node| format!("NODE{node}")));
        headings.extend(["MASK".to_owned(), "COST".to_owned(), "<FINDING".to_owned()]);
        let headings: Vec<&str> = headings.iter().map(String::as_str).collect();
        let listed = now.jobs.iter().take(self.top);
        let rows: Vec<Vec<String>> = listed.map(|job| self.row(job, nodes)).collect();
        let mut text = page_table(&headings, &rows, "");
        for note in self.notes(nodes) {
            text.push_str(&note);
            text.push('\n');
        }
        text
    }

    fn row(&self, job: &Job, nodes: usize) -> Vec<String> {
        let absent = || ABSENT.to_owned();
        let percent = |value: Option<f64>| value.map_or_else(absent, |value| format!("{value:.1}"));
        let mib = |bytes: u64| format!("{:.0}", bytes as f64 / MIB);
        let finding = job.findings.first();
        let mut row = vec![
            job.name.clone(),
            job.processes.to_string(),
            percent(self.cpu(job)),
            percent(share(job.waited, job.cpu)),
            percent(self.remote(job)),
            percent(job.known_time().and_then(|time| share(time.contended, job.cpu))),
            mib(job.resident),
        ];
        row.extend((0..nodes).map(|at| job.memory_on.as_ref().map_or_else(absent, |m| mib(m[at]))));
        row.push(job.mask_nodes.map_or_else(absent, |nodes| nodes.to_string()));
        row.push(match finding.map(|finding| finding.cost) {
            Some(Some(cost)) => format!("{:.0} %", 100.0 * cost),
            Some(None) => "unknown".to_owned(),
            None => absent(),
        });
        let unjudged = job.unjudged.map_or("none", Unjudged::name);
        row.push(finding.map_or(unjudged, |finding| finding.rule).to_owned());
        row
    }

    fn cpu(&self, job: &Job) -> Option<f64> {
        share(job.ran, self.jobs.span)
    }

    /// Of one node nothing is remote.
    fn remote(&self, job: &Job) -> Option<f64> {
        if self.jobs.nodes.len() > 1 { job.remote_percent() } else { None }
    }

    fn notes(&self, nodes: usize) -> Vec<String> {
        let now = self.jobs;
        let mut notes: Vec<String> = Vec::new();
        for job in now.jobs.iter().take(self.top) {
            let said =
                job.findings.iter().map(|f| format!("{}: {}; cost {}.", job.name, f.says, f.cost_words));
            notes.extend(said);
        }
        notes.push(format!("Memory in MiB; CPU time over {}.", duration(now.span as f64 / 1e9)));
        let hidden = now.hidden + now.jobs.len().saturating_sub(self.top);
        if hidden > 0 {
            notes.push(format!("{hidden} more jobs, which are smaller or have no finding."));
        }
        if nodes < now.nodes.len() {
            notes.push(format!("{} more nodes; --json has all.", now.nodes.len() - nodes));
        }
        if now.nodes.len() < 2 {
            notes.push("The machine has one node: no memory is remote.".to_owned());
        }
        if now.jobs.iter().take(self.top).any(|job| job.unjudged == Some(Unjudged::FewSamples)) {
            notes.push(format!(
                "few-samples: fewer than {MIN_SAMPLES} samples of the job were looked at; a longer --interval, or --watch, sees more."
            ));
        }
        notes.extend(now.absent.iter().map(|why| format!("No {why}.")));
        notes
    }

    /// The same as JSON, as docs/guide/jobs.md describes.
    pub fn json(&self) -> Value {
        let now = self.jobs;
        json!({
            "seconds": now.span as f64 / 1e9,
            "nodes": now.nodes,
            "jobs": now.jobs.iter().take(self.top).map(|job| self.object(job)).collect::<Vec<_>>(),
            "hidden": now.hidden + now.jobs.len().saturating_sub(self.top),
            "absent": now.absent.iter().map(|why| json!({
                "what": why.missing,
                "reason": why.seen,
                "fix": why.fix.to_string(),
            })).collect::<Vec<_>>(),
        })
    }

    fn object(&self, job: &Job) -> Value {
        let seconds = |ns: u64| ns as f64 / 1e9;
        json!({
            "job": job.name,
            "processes": job.processes,
            "cpu_percent": self.cpu(job),
            "cpu_seconds": seconds(job.cpu),
            "cpu_seconds_by_node": job.cpu_on.iter().map(|&ns| seconds(ns)).collect::<Vec<_>>(),
            "wait_seconds": seconds(job.waited),
            "memory_bytes": job.resident,
            "memory_bytes_by_node": job.memory_on,
            "mask_nodes": job.mask_nodes,
            "remote_percent": self.remote(job),
            "local_memory_seconds": job.time.map(|time| seconds(time.local)),
            "remote_memory_seconds": job.time.map(|time| seconds(time.remote)),
            "contended_seconds": job.time.map(|time| seconds(time.contended)),
            "samples": job.time.map(|time| time.samples),
            "unjudged": job.unjudged.map(Unjudged::name),
            "findings": job.findings.iter().map(|finding| json!({
                "rule": finding.rule,
                "says": finding.says,
                "cost": finding.cost,
                "cost_words": finding.cost_words,
            })).collect::<Vec<_>>(),
        })
    }
}

fn share(part: u64, all: u64) -> Option<f64> {
    (all > 0).then(|| 100.0 * part as f64 / all as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use numakit_jobs::{JobFinding, JobTime};
    use numakit_model::{Fix, Unavailable};

    fn now() -> JobsNow {
        let finding = JobFinding {
            rule: "remote-use",
            says: "Threads wait".to_owned(),
            cost: Some(0.42),
            cost_words: "42 %".to_owned(),
        };
        let guilty = Job {
            name: "container/web".to_owned(),
            processes: 3,
            cpu: 2_000_000_000,
            cpu_on: vec![2_000_000_000, 0],
            waited: 500_000_000,
            resident: 3 << 20,
            memory_on: Some(vec![1 << 20, 2 << 20]),
            mask_nodes: Some(2),
            ran: 1_000_000_000,
            time: Some(JobTime {
                local: 1,
                remote: 3,
                contended: 20_000_000,
                samples: 30,
                ..JobTime::default()
            }),
            findings: vec![finding],
            unjudged: None,
        };
        let unjudged = Some(Unjudged::Idle);
        let idle = Job { name: "user/anna".to_owned(), cpu_on: vec![0, 0], unjudged, ..Job::default() };
        let why = Unavailable::new("samples of jobs", "refused", Fix::CommandLine("run as root".to_owned()));
        JobsNow {
            nodes: vec![0, 1],
            jobs: vec![guilty, idle],
            hidden: 4,
            span: 2_000_000_000,
            absent: vec![why],
            ..JobsNow::default()
        }
    }

    #[test]
    fn jobs_are_lines_with_their_findings_below() {
        let now = now();
        let text = JobTable { jobs: &now, top: 20 }.text();
        let expected = "\
JOB            PROCESSES  CPU%  WAIT%  REMOTE%  CONTENDED%  MEMORY  NODE0  NODE1  MASK  COST  FINDING
container/web          3  50.0   25.0     75.0         1.0       3      1      2     2  42 %  remote-use
user/anna              0   0.0      -        -           -       0      -      -     -     -  idle
container/web: Threads wait; cost 42 %.
Memory in MiB; CPU time over 2 s.
4 more jobs, which are smaller or have no finding.
No samples of jobs: refused; run as root.
";
        assert_eq!(text, expected);
    }

    #[test]
    fn no_finding_is_said_apart_from_nothing_seen() {
        let line = |samples, unjudged| {
            let time = Some(JobTime { contended: 20_000_000, samples, ..JobTime::default() });
            let job = Job { cpu: 2_000_000_000, cpu_on: vec![0, 0], time, unjudged, ..Job::default() };
            let now = JobsNow { jobs: vec![job], ..now() };
            let text = JobTable { jobs: &now, top: 20 }.text();
            let words: Vec<&str> = text.lines().nth(1).unwrap().split_whitespace().collect();
            (words[4].to_owned(), words.last().unwrap().to_string(), text.contains("fewer than 30 samples"))
        };
        assert_eq!(line(30, None), ("1.0".to_owned(), "none".to_owned(), false));
        let few = ("-".to_owned(), "few-samples".to_owned(), true);
        assert_eq!(line(29, Some(Unjudged::FewSamples)), few);
    }

    #[test]
    fn what_is_unknown_is_null_in_json() {
        let now = now();
        let all = JobTable { jobs: &now, top: 1 }.json();
        assert_eq!((&all["jobs"][0]["remote_percent"], &all["hidden"]), (&json!(75.0), &json!(5)));
        let idle = JobTable { jobs: &now, top: 2 }.json()["jobs"][1].clone();
        assert!(idle["memory_bytes_by_node"].is_null() && idle["contended_seconds"].is_null(), "{idle}");
        assert_eq!(all["absent"][0]["reason"], json!("refused"));
    }
}
