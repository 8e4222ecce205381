//! The rows of a job, as a recording of it would have them, for the judge of recordings.

use crate::job::{Job, JobFinding, Unjudged};
use numakit_formulas::Catalog;
use numakit_model::thresholds::MIN_SAMPLES;
use numakit_model::{Instance, Metric, Scope, Series, Topology};
use numakit_recording::{Batch, Header};
use numakit_sensors::known::{ACCESS, NameTable, TASK};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// Rows that are kept of a job: what they say is true of the time that they cover.
const KEPT: usize = 12;
/// Findings of a job that are kept.
const MAX_FINDINGS: usize = 4;
/// A job that uses a smaller part of one CPU is idle: whatever is wrong with it costs nothing.
const IDLE: f64 = 0.01;

/// Series of samples, in the order of the columns.
const SAMPLED: [&str; 8] =
    ["near", "far", "unknown", "contended", "cached", "computing", "samples", "clusters"];
/// Findings that are none of jobs: what the sampler loses, and the wait for any memory. Few samples of a job do not tell what is in the
/// caches, and near memory is nothing that NUMA is guilty of.
const NOT_OF_JOBS: [&str; 2] = ["lost-samples", "waits-for-memory"];

/// A row of a job.
#[derive(Debug)]
struct JobRow {
    time: u64,
    values: Vec<Option<u64>>,
    cpu: u64,
    samples: u64,
}

/// Judges jobs.
#[derive(Debug)]
pub struct JobJudge {
    header: Header,
    has_samples: bool,
    rows: HashMap<String, VecDeque<JobRow>>,
}

impl JobJudge {
    /// For the jobs of a machine, with samples or without.
    pub fn new(topology: &Topology, has_samples: bool) -> Self {
        let nodes: Vec<u32> = topology.nodes.iter().map(|node| node.os_index).collect();
        let of = |table: &NameTable, sensor: &str, name: &str, scope| {
            table.get(name).map(|known| Arc::new(known.metric(sensor, scope, "jobs")))
        };
        let mut series = Vec::new();
        for name in ["cpu_time", "resident"] {
            let metric = of(&TASK, "task", name, Scope::Node);
            series.extend(
                metric
                    .iter()
                    .flat_map(|metric| nodes.iter().map(|&node| Series::new(metric, Instance::Node(node)))),
            );
        }
        // Of one node nothing is remote, and what is not there is not 0.
        let sampled = SAMPLED.iter().filter(|_| has_samples);
        let metrics: Vec<Arc<Metric>> =
            sampled.filter_map(|name| of(&ACCESS, "access", name, Scope::Node)).collect();
        let first = nodes.first().copied().unwrap_or(0);
        series.extend(metrics.iter().map(|metric| Series::new(metric, Instance::Node(first))));
        let header = Header {
            series,
            topology: Some(topology.clone()),
            page_size: topology.page_size,
            ..Header::default()
        };
        Self { header, has_samples, rows: HashMap::new() }
    }

    /// Forgets the jobs that are not among these.
    pub fn keep(&mut self, is_known: impl Fn(&str) -> bool) {
        self.rows.retain(|name, _| is_known(name));
    }

    /// Adds a row of a job at this time, in ns, and judges all that are kept of it.
    pub fn judge(&mut self, job: &mut Job, time: u64) {
        let samples = job.time.map_or(0, |time| time.samples);
        let row = JobRow { time, values: self.row(job), cpu: job.cpu, samples };
        let rows = self.rows.entry(job.name.clone()).or_default();
        rows.push_back(row);
        rows.drain(..rows.len().saturating_sub(KEPT));
        job.findings = self.findings(&job.name);
        job.unjudged = if job.findings.is_empty() { self.unjudged(&job.name) } else { None };
    }

    /// Why no finding says nothing.
    fn unjudged(&self, name: &str) -> Option<Unjudged> {
        let rows = self.rows.get(name)?;
        let (first, last) = (rows.front()?, rows.back()?);
        let ran = last.cpu.saturating_sub(first.cpu) as f64;
        if rows.len() < 2 {
            Some(Unjudged::New)
        } else if ran < IDLE * last.time.saturating_sub(first.time) as f64 {
            Some(Unjudged::Idle)
        } else if !self.has_samples {
            Some(Unjudged::NoSamples)
        } else {
            let samples = last.samples.saturating_sub(first.samples);
            (samples < MIN_SAMPLES).then_some(Unjudged::FewSamples)
        }
    }

    fn findings(&self, name: &str) -> Vec<JobFinding> {
        let Some(rows) = self.rows.get(name).filter(|rows| rows.len() > 1) else { return Vec::new() };
        let mut batch = Batch::empty(self.header.series.len());
        rows.iter().for_each(|row| batch.push_sample(row.time, 0, &row.values));
        let interval = rows.iter().zip(rows.iter().skip(1)).map(|(a, b)| b.time.saturating_sub(a.time)).min();
        let header = Header { interval: interval.unwrap_or(0), started: rows[0].time, ..self.header.clone() };
        let Ok(report) = numakit_findings::analyse(&header, [batch], None, Catalog::built_in()) else {
            return Vec::new();
        };
        let all = report.findings.problems.into_iter().filter(|finding| !NOT_OF_JOBS.contains(&finding.rule));
        let found = all.map(|finding| JobFinding {
            rule: finding.rule,
            cost_words: finding.cost.words(),
            cost: finding.cost.percent().map(|percent| percent / 100.0),
            says: finding.says,
        });
        found.take(MAX_FINDINGS).collect()
    }

    fn row(&self, job: &Job) -> Vec<Option<u64>> {
        let nodes = job.cpu_on.len();
        let mut row: Vec<Option<u64>> = job.cpu_on.iter().map(|&ns| Some(ns)).collect();
        row.extend((0..nodes).map(|at| job.memory_on.as_ref().and_then(|memory| memory.get(at).copied())));
        if self.has_samples {
            let time = job.time.unwrap_or_default();
            let far = (nodes > 1).then_some(time.remote);
            let rest =
                [time.unknown, time.contended, time.cached, time.computing, time.samples, time.clusters];
            row.extend([Some(time.local), far].into_iter().chain(rest.map(Some)));
        }
        row
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::JobTime;
    use numakit_topology::synthetic;

    const SECOND: u64 = 1_000_000_000;

    fn last_of(has_samples: bool, rounds: u64, job: impl Fn(u64) -> Job) -> Job {
        let topology = synthetic::parse("package:2 node:1 core:4").unwrap();
        let mut judge = JobJudge::new(&topology, has_samples);
        let judged = (1..=rounds).map(|round| {
            let mut job = job(round);
            judge.judge(&mut job, round * 10 * SECOND);
            job
        });
        judged.last().unwrap()
    }

    fn judged(has_samples: bool, job: impl Fn(u64) -> Job) -> Vec<JobFinding> {
        last_of(has_samples, 8, job).findings
    }

    fn rules(found: &[JobFinding]) -> Vec<&'static str> {
        found.iter().map(|finding| finding.rule).collect()
    }

    #[test]
    fn a_job_at_remote_memory_is_found_with_its_cost_and_one_at_local_memory_is_not() {
        let job = |round: u64, local: u64, remote: u64| Job {
            name: "unit/a".to_owned(),
            cpu: 10 * round * SECOND,
            cpu_on: vec![10 * round * SECOND, 0],
            memory_on: Some(vec![0, 1 << 30]),
            time: Some(JobTime {
                local: round * local * SECOND,
                remote: round * remote * SECOND,
                computing: round * 2 * SECOND,
                samples: round * 190,
                clusters: round * 90,
                ..JobTime::default()
            }),
            ..Job::default()
        };
        let found = judged(true, |round| job(round, 2, 6));
        assert!(rules(&found).contains(&"remote-use"), "{found:?}");
        let remote = found.iter().find(|finding| finding.rule == "remote-use").unwrap();
        assert!((remote.cost.unwrap() - 0.75).abs() < 0.01, "{remote:?}");
        // It waits for memory most of its time, and all of it is near.
        assert_eq!(rules(&judged(true, |round| job(round, 8, 0))), [""; 0]);
    }

    #[test]
    fn no_finding_has_its_reason_unless_enough_was_seen() {
        let job = |round: u64, cpu: u64, samples: u64| Job {
            name: "unit/a".to_owned(),
            cpu: round * cpu,
            cpu_on: vec![round * cpu, 0],
            time: Some(JobTime { local: round * cpu, samples: round * samples, ..JobTime::default() }),
            ..Job::default()
        };
        let unjudged = |has_samples, rounds, cpu, samples| {
            last_of(has_samples, rounds, |round| job(round, cpu, samples)).unjudged
        };
        assert_eq!(unjudged(true, 8, 5 * SECOND, 100), None);
        assert_eq!(unjudged(true, 1, 5 * SECOND, 100), Some(Unjudged::New));
        assert_eq!(unjudged(true, 8, 5 * SECOND, 4), Some(Unjudged::FewSamples));
        assert_eq!(unjudged(true, 8, SECOND / 20, 4), Some(Unjudged::Idle));
        assert_eq!(unjudged(false, 8, 5 * SECOND, 0), Some(Unjudged::NoSamples));
    }

    #[test]
    fn without_samples_memory_on_one_node_is_found_and_its_cost_has_a_reason() {
        let job = |round: u64, memory: [u64; 2]| Job {
            name: "unit/a".to_owned(),
            cpu_on: vec![5 * round * SECOND; 2],
            memory_on: Some(memory.to_vec()),
            ..Job::default()
        };
        let found = judged(false, |round| job(round, [1 << 30, 0]));
        let one = found.iter().find(|finding| finding.rule == "memory-on-one-node");
        assert!(
            one.is_some_and(|one| one.cost.is_none() && one.cost_words.contains("cannot be told")),
            "{found:?}"
        );
        assert_eq!(rules(&judged(false, |round| job(round, [1 << 29, 1 << 29]))), [""; 0]);
    }
}
