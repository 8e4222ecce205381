//! The series of jobs: at most [`MAX_SERIES`], the largest jobs first.

use crate::page::OwnLine;
use crate::places::ExposedPlaces;
use crate::setup::labels;
use crate::table::JobValue;
use numakit_export::Number;
use numakit_jobs::{DETAILED, Job, JobsNow};
use numakit_model::Instance;

/// Series of jobs.
pub const MAX_SERIES: usize = 500;
/// Findings of a job that have a series.
const MAX_FINDINGS: usize = 2;

/// The jobs that fit, and where the nodes of each belong.
#[derive(Debug)]
pub struct ExposedJobs<'a> {
    jobs: Vec<&'a Job>,
    other: Job,
    hidden: usize,
    samples_lost: Option<u64>,
    /// The place of each node.
    places: Vec<Option<usize>>,
    known: &'a ExposedPlaces,
}

impl<'a> ExposedJobs<'a> {
    /// Chooses the jobs that fit; the others are added to `other`.
    pub fn of(now: &'a JobsNow, known: &'a ExposedPlaces) -> Self {
        let places = now.nodes.iter().map(|&node| known.of_instance(Instance::Node(node))).collect();
        let mut jobs: Vec<&Job> = now.jobs.iter().collect();
        jobs.sort_by(|a, b| b.memory_on.is_some().cmp(&a.memory_on.is_some()).then(b.cpu.cmp(&a.cpu)));
        let (other, hidden, samples_lost) = (now.other.clone(), now.hidden, now.samples_lost);
        let mut exposed = Self { jobs, other, hidden, samples_lost, places, known };
        let mut left = MAX_SERIES - exposed.count(&exposed.other) - 2;
        let fits = |job: &&Job| {
            let count = exposed.count(job);
            left = left.saturating_sub(count);
            left > 0
        };
        let fitting = exposed.jobs.iter().copied().take_while(fits).count();
        for job in exposed.jobs.split_off(fitting) {
            exposed.hidden += 1;
            exposed.other.processes += job.processes;
            exposed.other.resident = exposed.other.resident.saturating_add(job.resident);
        }
        exposed
    }

    /// The number of series of a job.
    fn count(&self, job: &Job) -> usize {
        let by_place = if job.memory_on.is_some() { 2 * self.known.list.len() } else { 0 };
        let of_samples = if job.time.is_some() { 3 } else { 0 };
        5 + by_place + of_samples + job.findings.len().min(MAX_FINDINGS)
    }

    /// The lines of a metric.
    pub fn lines(&self, value: JobValue) -> Vec<OwnLine> {
        if value == JobValue::Hidden {
            return vec![(String::new(), Number::Unsigned(self.hidden as u64))];
        }
        if value == JobValue::SamplesLost {
            let lost = |lost| vec![(String::new(), Number::Unsigned(lost))];
            return self.samples_lost.map(lost).unwrap_or_default();
        }
        let has_other = (self.hidden > 0 || self.other.cpu > 0).then_some(&self.other);
        self.jobs.iter().copied().chain(has_other).flat_map(|job| self.of_job(job, value)).collect()
    }

    fn of_job(&self, job: &Job, value: JobValue) -> Vec<OwnLine> {
        let seconds = |ns: u64| Number::Float(ns as f64 / 1e9);
        let one = |number: Number| vec![(labels(&[("job", &job.name)]), number)];
        let is_detailed = job.memory_on.is_some();
        let findings = job.findings.iter().take(MAX_FINDINGS);
        let rule = |rule: &str| labels(&[("job", &job.name), ("rule", rule)]);
        match value {
            JobValue::Cpu => one(seconds(job.cpu)),
            JobValue::CpuOn if is_detailed => self.by_place(job, &job.cpu_on, seconds),
            JobValue::MemoryOn => {
                job.memory_on.as_ref().map(|m| self.by_place(job, m, Number::Unsigned)).unwrap_or_default()
            }
            JobValue::Memory => one(Number::Unsigned(job.resident)),
            JobValue::Processes => one(Number::Unsigned(job.processes)),
            JobValue::MaskNodes => job.mask_nodes.map(|n| one(Number::Unsigned(n))).unwrap_or_default(),
            JobValue::Waited => one(seconds(job.waited)),
            JobValue::MemoryTime => {
                let of = |memory: &str, ns| (labels(&[("job", &job.name), ("memory", memory)]), seconds(ns));
                job.time.map(|t| vec![of("local", t.local), of("remote", t.remote)]).unwrap_or_default()
            }
            JobValue::Contended => job.time.map(|time| one(seconds(time.contended))).unwrap_or_default(),
            JobValue::Finding => {
                findings.filter_map(|found| Some((rule(found.rule), Number::Float(found.cost?)))).collect()
            }
            JobValue::Untold => findings
                .filter(|found| found.cost.is_none())
                .map(|found| (rule(found.rule), Number::Unsigned(1)))
                .collect(),
            JobValue::CpuOn | JobValue::Hidden | JobValue::SamplesLost => Vec::new(),
        }
    }

    /// Values of nodes, summed by place.
    fn by_place(&self, job: &Job, values: &[u64], number: impl Fn(u64) -> Number) -> Vec<OwnLine> {
        let mut sums = vec![0u64; self.known.list.len()];
        for (place, value) in self.places.iter().zip(values) {
            if let Some(sum) = place.and_then(|place| sums.get_mut(place)) {
                *sum = sum.saturating_add(*value);
            }
        }
        let line = |(place, sum): (&crate::places::ExposedPlace, u64)| {
            (labels(&[("job", &job.name), (self.known.label, &place.name)]), number(sum))
        };
        self.known.list.iter().zip(sums).map(line).collect()
    }
}

const _: () = assert!(DETAILED * 42 < MAX_SERIES, "those by node fit on 16 places");

#[cfg(test)]
mod tests {
    use super::*;
    use numakit_jobs::{JobFinding, JobTime, SHOWN};
    use numakit_topology::synthetic;

    fn job(at: usize, is_detailed: bool, nodes: usize) -> Job {
        let finding = |rule, cost| JobFinding { rule, says: String::new(), cost, cost_words: String::new() };
        Job {
            name: format!("unit/{at}\""),
            cpu: 1_000_000_000 * at as u64,
            cpu_on: vec![5; nodes],
            memory_on: is_detailed.then(|| vec![7; nodes]),
            mask_nodes: Some(1),
            time: Some(JobTime { remote: 3_000_000_000, ..JobTime::default() }),
            findings: vec![finding("remote-use", Some(0.5)), finding("memory-on-one-node", None)],
            ..Job::default()
        }
    }

    const ALL: [JobValue; 12] = [
        JobValue::Cpu,
        JobValue::CpuOn,
        JobValue::Memory,
        JobValue::MemoryOn,
        JobValue::Processes,
        JobValue::MaskNodes,
        JobValue::Waited,
        JobValue::MemoryTime,
        JobValue::Contended,
        JobValue::Finding,
        JobValue::Untold,
        JobValue::Hidden,
    ];

    fn exposed(description: &str, jobs: usize) -> (usize, usize, Vec<OwnLine>) {
        let topology = synthetic::parse(description).unwrap();
        let places = ExposedPlaces::of(&topology);
        let nodes: Vec<u32> = topology.nodes.iter().map(|node| node.os_index).collect();
        let jobs = (0..jobs).map(|at| job(at, at < DETAILED, nodes.len())).collect();
        let now = JobsNow { jobs, nodes, hidden: 0, ..JobsNow::default() };
        let exposed = ExposedJobs::of(&now, &places);
        let lines: Vec<OwnLine> = ALL.iter().flat_map(|&value| exposed.lines(value)).collect();
        (exposed.jobs.len(), exposed.hidden, lines)
    }

    #[test]
    fn jobs_have_at_most_500_series_on_every_machine() {
        for description in ["node:2 core:2", "package:4 node:4 core:2", "package:4 node:8 core:2"] {
            let (shown, hidden, lines) = exposed(description, SHOWN);
            assert!(lines.len() <= MAX_SERIES && shown + hidden == SHOWN, "{description}: {}", lines.len());
            assert!(shown >= DETAILED, "{description}: {shown}");
        }
        assert_eq!(exposed("node:2 core:2", 30).1, 0);
    }

    #[test]
    fn values_have_their_labels_and_an_unknown_cost_is_no_number() {
        let (_, _, lines) = exposed("package:4 node:8 core:2", 2);
        let find = |labels: &str| {
            lines.iter().filter(|line| line.0 == labels).map(|line| line.1).collect::<Vec<_>>()
        };
        assert_eq!(find(r#"{job="unit/1\"",memory="remote"}"#), [Number::Float(3.0)]);
        assert_eq!(find(r#"{job="unit/1\"",rule="remote-use"}"#), [Number::Float(0.5)]);
        assert_eq!(find(r#"{job="unit/1\"",rule="memory-on-one-node"}"#), [Number::Unsigned(1)]);
        // Eight nodes of a package.
        assert!(find(r#"{job="unit/1\"",package="3"}"#).contains(&Number::Unsigned(56)));
    }
}
