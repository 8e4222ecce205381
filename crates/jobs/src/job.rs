//! A job.

use numakit_explain::tally::{NodeTotals, ProcessTotals};
use numakit_model::thresholds::MIN_SAMPLES;

/// Where the sampled time of a job went, in ns since it was first seen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct JobTime {
    pub local: u64,
    pub remote: u64,
    pub unknown: u64,
    pub contended: u64,
    pub cached: u64,
    pub computing: u64,
    pub samples: u64,
    pub clusters: u64,
}

impl JobTime {
    /// Adds the samples of a process.
    pub fn add(&mut self, totals: &ProcessTotals) {
        let NodeTotals { local, remote, unknown, contended, cached, computing, samples } = totals.time;
        let clusters = totals.clusters;
        self.each(
            &Self { local, remote, unknown, contended, cached, computing, samples, clusters },
            u64::saturating_add,
        );
    }

    /// Adds what another one has more than before.
    pub fn add_since(&mut self, now: &Self, before: &Self) {
        let mut more = *now;
        more.each(before, u64::saturating_sub);
        self.each(&more, u64::saturating_add);
    }

    fn each(&mut self, other: &Self, change: fn(u64, u64) -> u64) {
        for (sum, more) in [
            (&mut self.local, other.local),
            (&mut self.remote, other.remote),
            (&mut self.unknown, other.unknown),
            (&mut self.contended, other.contended),
            (&mut self.cached, other.cached),
            (&mut self.computing, other.computing),
            (&mut self.samples, other.samples),
            (&mut self.clusters, other.clusters),
        ] {
            *sum = change(*sum, more);
        }
    }

    /// The share of remote memory in the time at memory of known nodes, in percent.
    pub fn remote_percent(&self) -> Option<f64> {
        let all = self.local.saturating_add(self.remote);
        (all > 0).then(|| 100.0 * self.remote as f64 / all as f64)
    }
}

/// What is wrong with a job.
#[derive(Debug, Clone, PartialEq)]
pub struct JobFinding {
    /// The rule.
    pub rule: &'static str,
    /// What it says.
    pub says: String,
    /// The cost as a share between 0 and 1; `None` if it cannot be told.
    pub cost: Option<f64>,
    /// The cost in words, or why it cannot be told.
    pub cost_words: String,
}

/// Why nothing is said of what is wrong with a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unjudged {
    /// It was seen once.
    New,
    /// Fewer samples of it were looked at than a verdict needs.
    FewSamples,
    /// No samples are taken, and its memory by node does not tell enough.
    NoSamples,
    /// It hardly used a CPU.
    Idle,
}

impl Unjudged {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::FewSamples => "few-samples",
            Self::NoSamples => "no-samples",
            Self::Idle => "idle",
        }
    }
}

/// A job as the last round saw it. Counters begin when it was first seen.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Job {
    /// Its name, printable and bounded.
    pub name: String,
    /// Processes.
    pub processes: u64,
    /// CPU time in ns.
    pub cpu: u64,
    /// The same by node.
    pub cpu_on: Vec<u64>,
    /// Time in ns in which its threads were ready and had no CPU.
    pub waited: u64,
    /// Resident memory in bytes, a page that several processes map once for each.
    pub resident: u64,
    /// Memory in bytes by node, if it was read.
    pub memory_on: Option<Vec<u64>>,
    /// How many nodes its CPU masks cover.
    pub mask_nodes: Option<u64>,
    /// CPU time since the round before, in ns.
    pub ran: u64,
    /// Where its sampled time went; `None` without samples.
    pub time: Option<JobTime>,
    /// What is wrong with it, the worst first.
    pub findings: Vec<JobFinding>,
    /// Why that cannot be told. `None` with findings, and where enough was seen to say that there are none.
    pub unjudged: Option<Unjudged>,
}

impl Job {
    /// The share of its memory that is not on the nodes where it runs, weighted by its CPU time, in percent.
    pub fn remote_memory_percent(&self) -> Option<f64> {
        let memory = self.memory_on.as_ref()?;
        let all: f64 = memory.iter().map(|&bytes| bytes as f64).sum();
        let cpu: f64 = self.cpu_on.iter().map(|&ns| ns as f64).sum();
        if all <= 0.0 || cpu <= 0.0 || memory.len() < 2 {
            return None;
        }
        let near: f64 =
            memory.iter().zip(&self.cpu_on).map(|(&m, &c)| m as f64 / all * (c as f64 / cpu)).sum();
        Some(100.0 * (1.0 - near))
    }

    /// Where its sampled time went, if there are enough samples to say that.
    pub fn known_time(&self) -> Option<JobTime> {
        self.time.filter(|time| time.samples >= MIN_SAMPLES)
    }

    /// The share of remote memory in its time at memory; where there are too few samples, in its memory.
    pub fn remote_percent(&self) -> Option<f64> {
        self.known_time().and_then(|time| time.remote_percent()).or_else(|| self.remote_memory_percent())
    }

    /// The cost of its worst finding.
    pub fn cost(&self) -> Option<f64> {
        self.findings.iter().filter_map(|finding| finding.cost).reduce(f64::max)
    }
}

/// Who is guilty first: by cost, then with a finding, then by remote use, then by CPU time.
pub fn guilty_first(a: &Job, b: &Job) -> std::cmp::Ordering {
    let key = |job: &Job| {
        let remote = job.remote_percent().unwrap_or(0.0);
        (job.cost().unwrap_or(0.0), f64::from(u8::from(!job.findings.is_empty())), remote * job.ran as f64)
    };
    let (one, other) = (key(a), key(b));
    other
        .partial_cmp(&one)
        .unwrap_or(std::cmp::Ordering::Equal)
        .then(b.ran.cmp(&a.ran))
        .then(a.name.cmp(&b.name))
}
