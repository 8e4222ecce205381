//! The series of jobs: at most [`MAX_SERIES`].

use crate::page::OwnLine;
use crate::places::ExposedPlaces;
use crate::setup::labels;
use crate::table::JobValue;
use numakit_export::Number;
use numakit_jobs::{DETAILED, Job, JobsNow, Unjudged};
use numakit_model::Instance;

/// Series of jobs.
pub const MAX_SERIES: usize = 500;
/// Findings of a job that have a series. One without any has as many at most: why it is not judged.
const MAX_FINDINGS: usize = 2;
/// Series of each job, and those that samples add.
const OF_ALL: usize = 5;
const OF_SAMPLES: usize = 3;

/// The jobs that are shown, and where the nodes of each belong.
#[derive(Debug)]
pub struct ExposedJobs<'a> {
    jobs: Vec<&'a Job>,
    other: &'a Job,
    hidden: usize,
    samples_lost: Option<u64>,
    age: Option<u64>,
    /// The place of each node.
    places: Vec<Option<usize>>,
    known: &'a ExposedPlaces,
}

fn seconds(ns: u64) -> Number {
    Number::Float(ns as f64 / 1e9)
}

/// The number of jobs whose series fit, whatever is found of them. The watch adds all others up: were they left out of a scrape, what
/// they do while they are would be missing.
pub fn fitting(places: &ExposedPlaces, has_samples: bool) -> usize {
    let of_samples = if has_samples { OF_SAMPLES } else { 0 };
    let by_place = DETAILED * 2 * places.list.len();
    // The job of all others has one without findings; and there are the number of them and of lost samples, and the age of all.
    let left = MAX_SERIES.saturating_sub(by_place + 3);
    (left / (OF_ALL + of_samples + MAX_FINDINGS)).saturating_sub(1)
}

impl<'a> ExposedJobs<'a> {
    /// The jobs of a round.
    pub fn of(now: &'a JobsNow, known: &'a ExposedPlaces) -> Self {
        let places = now.nodes.iter().map(|&node| known.of_instance(Instance::Node(node))).collect();
        let mut jobs: Vec<&Job> = now.jobs.iter().collect();
        jobs.sort_by(|a, b| b.memory_on.is_some().cmp(&a.memory_on.is_some()).then(b.cpu.cmp(&a.cpu)));
        let (other, hidden, samples_lost, age) = (&now.other, now.hidden, now.samples_lost, now.age());
        Self { jobs, other, hidden, samples_lost, age, places, known }
    }

    /// The lines of a metric.
    pub fn lines(&self, value: JobValue) -> Vec<OwnLine> {
        let of_all = |number: Option<Number>| number.map(|n| (String::new(), n)).into_iter().collect();
        match value {
            JobValue::Hidden => of_all(Some(Number::Unsigned(self.hidden as u64))),
            JobValue::Age => of_all(self.age.map(seconds)),
            JobValue::SamplesLost => of_all(self.samples_lost.map(Number::Unsigned)),
            _ => {
                let has_other = (self.hidden > 0 || self.other.cpu > 0).then_some(self.other);
                let all = self.jobs.iter().copied().chain(has_other).enumerate();
                all.flat_map(|(at, job)| self.of_job(at, job, value)).collect()
            }
        }
    }

    fn of_job(&self, at: usize, job: &Job, value: JobValue) -> Vec<OwnLine> {
        let one = |number: Number| vec![(labels(&[("job", &job.name)]), number)];
        let is_detailed = at < DETAILED.min(self.jobs.len());
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
            JobValue::Unjudged => {
                let reason = |why: Unjudged| labels(&[("job", &job.name), ("reason", why.name())]);
                job.unjudged.map(|why| (reason(why), Number::Unsigned(1))).into_iter().collect()
            }
            JobValue::CpuOn | JobValue::Hidden | JobValue::Age | JobValue::SamplesLost => Vec::new(),
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
    use crate::table::{EXPOSED, ExposedSource};
    use numakit_jobs::{JobFinding, JobTime};
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

    fn all() -> impl Iterator<Item = JobValue> {
        EXPOSED.iter().filter_map(|metric| match metric.source {
            ExposedSource::Jobs(value) => Some(value),
            _ => None,
        })
    }

    /// The lines of this number of jobs, or of as many as fit, and how many these are.
    fn exposed(description: &str, jobs: Option<usize>) -> (usize, Vec<OwnLine>) {
        let topology = synthetic::parse(description).unwrap();
        let places = ExposedPlaces::of(&topology);
        let nodes: Vec<u32> = topology.nodes.iter().map(|node| node.os_index).collect();
        let jobs = jobs.unwrap_or_else(|| fitting(&places, true));
        let other = Job { name: "other".to_owned(), findings: Vec::new(), ..job(1, false, nodes.len()) };
        let shown = jobs;
        let jobs = (0..shown).map(|at| job(at, at < DETAILED, nodes.len())).collect();
        let now =
            JobsNow { jobs, nodes, hidden: 7, other, ended: 1, samples_lost: Some(3), ..JobsNow::default() };
        let exposed = ExposedJobs::of(&now, &places);
        (shown, all().flat_map(|value| exposed.lines(value)).collect())
    }

    #[test]
    fn jobs_have_at_most_500_series_on_every_machine() {
        for (description, least) in
            [("node:2 core:2", 44), ("package:4 node:4 core:2", 16), ("package:4 node:8 core:2", 40)]
        {
            let (shown, lines) = exposed(description, None);
            assert!(lines.len() <= MAX_SERIES && shown >= least, "{description}: {shown}, {}", lines.len());
            // One more would not fit, if all of it is found.
            assert!(
                lines.len() + OF_ALL + OF_SAMPLES + MAX_FINDINGS > MAX_SERIES - 4,
                "{description}: {shown}"
            );
        }
    }

    #[test]
    fn values_have_their_labels_and_an_unknown_cost_is_no_number() {
        let (_, lines) = exposed("package:4 node:8 core:2", Some(2));
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
