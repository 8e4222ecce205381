//! One observation: takes samples until the program ends, and says where its time went.

use crate::caches::CacheSizes;
use crate::collector::{Collector, ObservedProcesses};
use crate::processes::Processes;
use crate::report::{ExplainReport, MissingSamples, Regime};
use crate::tally::Tally;
use crate::threads::ThreadAccounts;
use crate::traffic::Traffic;
use crate::{Explanation, Surveyed};
use numakit_model::topology::Topology;
use numakit_sampling::{Landing, Road, RoadError, RoadEvent};
use numakit_sys::clock::EndedUsage;
use numakit_sys::{SysRoot, clock};
use std::time::Duration;

/// Threads are looked at this often, and at most for a twentieth of the time.
const VISIT: Duration = Duration::from_millis(100);
const VISIT_SHARE: u32 = 19;
/// The observer may use this much of the time of each CPU, in percent, and of one CPU at most half; above, it looks at fewer
/// samples. An emulated processor takes milliseconds for what a real one does in microseconds.
const SHARE_OF_EACH: u64 = 5;
const MAX_SHARE: u64 = 50;
/// How often its use is checked, in ns.
const CHECKED: u64 = 200_000_000;
/// The clock is read again after this many samples.
const TIMED: u64 = 16;
/// One in this many samples is looked at in any case.
const MAX_PACE: u64 = 256;
/// By how much the pace changes at once, at most: the first samples of new code cost more than those that follow.
const MAX_STEP: u64 = 4;

/// A thread with this much CPU time should have samples: four periods of 199 Hz.
const MIN_CPU_TIME: u64 = 20_000_000;

/// What is observed, for the report.
#[derive(Debug, Clone)]
pub struct Observed {
    /// The command line, or the process.
    pub program: String,
    /// How samples are taken, and why not otherwise.
    pub road: String,
    /// Why a better road is closed.
    pub road_reason: Option<String>,
    /// Samples for each second of CPU time of a thread.
    pub frequency: u32,
    /// Whether it was started for the observation.
    pub from_start: bool,
}

/// A running observation.
#[derive(Debug)]
pub struct Explainer {
    road: Box<dyn Road>,
    observed: Observed,
    collector: Collector,
    processes: Processes,
    accounts: ThreadAccounts,
    topology: Topology,
    started: u64,
    visited: u64,
    pause: u64,
    late: u64,
    pace: Pace,
    /// Of children that ended before.
    ended_before: EndedUsage,
}

/// How many samples are looked at, by the time that it takes.
#[derive(Debug)]
struct Pace {
    /// One in this many.
    each: u64,
    /// The share of the time of one CPU that it may take, in percent.
    limit: u64,
    checked: u64,
    busy: u64,
}

impl Pace {
    /// From a time on, on a machine with these CPUs.
    fn new(now: u64, cpus: usize) -> Self {
        let limit = (cpus as u64 * SHARE_OF_EACH).clamp(SHARE_OF_EACH, MAX_SHARE);
        Self { each: 1, limit, checked: now, busy: 0 }
    }

    /// After work from one time to another; returns the new pace if it changes.
    fn worked(&mut self, from: u64, to: u64) -> Option<u64> {
        self.busy += to - from;
        let elapsed = to.saturating_sub(self.checked);
        if elapsed < CHECKED {
            return None;
        }
        // What it takes is proportional to the samples that are looked at.
        let wanted = (self.each * self.busy * 100).div_ceil(elapsed * self.limit);
        (self.busy, self.checked) = (0, to);
        let each = wanted.clamp(self.each.div_ceil(MAX_STEP), self.each * MAX_STEP).clamp(1, MAX_PACE);
        (std::mem::replace(&mut self.each, each) != each).then_some(each)
    }
}

impl Explainer {
    /// Observes what the road leads to: `process` and those that it starts.
    pub fn new(road: Box<dyn Road>, observed: Observed, process: u32, topology: Topology) -> Self {
        let root = SysRoot::host();
        let mut processes = Processes::new(&topology);
        processes.mapped(process);
        let started = clock::monotonic();
        let pace = Pace::new(started, topology.cores.iter().map(|core| core.cpus.len()).sum());
        let mut explainer = Self {
            collector: Collector::new(road.landing()),
            accounts: ThreadAccounts::new(&root, observed.from_start),
            processes,
            road,
            observed,
            topology,
            started,
            visited: 0,
            pause: 0,
            late: 0,
            pace,
            ended_before: clock::ended_children(),
        };
        explainer.visit();
        explainer
    }

    /// Takes what came since the last call. Call it every few milliseconds: registers belong to what memory contains now.
    pub fn drain(&mut self) -> Result<(), RoadError> {
        let Self { road, collector, processes, late, pace, .. } = self;
        let (mut from, mut samples) = (clock::monotonic(), 0u64);
        let result = road.drain(&mut |event| match event {
            RoadEvent::Sample(sample) if !sample.in_kernel => {
                collector.take(sample, processes);
                *late += u64::from(processes.has_ended(sample.process));
                samples += 1;
                // While more samples come than are looked at, the ring is never empty.
                if samples.is_multiple_of(TIMED) {
                    let now = clock::monotonic();
                    pace.worked(from, now).into_iter().for_each(|each| collector.set_pace(each));
                    from = now;
                }
            }
            RoadEvent::Sample(_) => {}
            RoadEvent::Executed { process } => {
                collector.forget(process);
                processes.executed(process);
            }
            RoadEvent::Mapped { process } => processes.mapped(process),
            RoadEvent::Ended { process, thread } if process == thread => processes.ended(process),
            RoadEvent::Started { .. } | RoadEvent::Ended { .. } => {}
        });
        self.collector.locate(&mut self.processes);
        let end = clock::monotonic();
        self.pace.worked(from, end).into_iter().for_each(|each| self.collector.set_pace(each));
        if end.saturating_sub(self.visited) >= self.pause {
            self.visit();
        }
        result.map(drop)
    }

    /// Reads no accounts of threads: for series, which have no share of all time.
    pub fn without_accounts(self) -> Self {
        Self { pause: u64::MAX, ..self }
    }

    /// Moves the observations since the last call into sums.
    pub fn add_to(&mut self, tally: &mut Tally) {
        let new = std::mem::take(&mut self.collector.observations);
        tally.add(new, self.caches());
    }

    /// The caches of each of the threads that were sampled.
    fn caches(&self) -> CacheSizes {
        CacheSizes::of(&self.topology, self.collector.sampled_threads.len())
    }

    /// The traffic so far, where time cannot be told.
    pub fn traffic(&self) -> Option<Traffic> {
        self.collector.traffic(self.caches())
    }

    /// Samples that were lost or dropped.
    pub fn missing(&self) -> u64 {
        self.road.losses().total() + self.collector.thinned + self.late
    }

    /// Reads the accounts of the threads.
    pub fn visit(&mut self) {
        let start = clock::monotonic();
        self.accounts.visit(self.processes.numbers(), start);
        let end = clock::monotonic();
        self.visited = end;
        self.pause = (VISIT.as_nanos() as u64).max((end - start) * u64::from(VISIT_SHARE));
    }

    /// What the command and its descendants used, when it has ended.
    fn ended_usage(&self, complete: bool) -> Option<EndedUsage> {
        let now = clock::ended_children();
        let has_ended = complete && self.observed.from_start && now != self.ended_before;
        has_ended.then(|| EndedUsage {
            user: now.user - self.ended_before.user,
            kernel: now.kernel - self.ended_before.kernel,
            faults: now.faults - self.ended_before.faults,
        })
    }

    /// What is known so far.
    pub fn report(&mut self, complete: bool, exit_status: Option<i32>) -> ExplainReport {
        let mut threads = self.collector.sampled_threads.clone();
        for thread in &mut threads {
            thread.name = self.accounts.name(thread.pid, thread.tid).unwrap_or_default().to_owned();
        }
        let has_sample = |(pid, tid): &(u32, u32)| threads.iter().any(|t| (t.pid, t.tid) == (*pid, *tid));
        let without = self.accounts.busy(MIN_CPU_TIME).filter(|key| !has_sample(key)).count() as u64;
        let landing = self.road.landing();
        let nodes = self.topology.nodes.iter().filter(|node| node.memory_kb != Some(0)).count();
        let caches = CacheSizes::of(&self.topology, threads.len());
        let known = Surveyed {
            times: self.accounts.total(self.ended_usage(complete)),
            caches,
            is_precise: matches!(landing, Landing::Behind | Landing::OneFurther),
            has_nodes: nodes > 1,
            traffic: self.collector.traffic(caches),
        };
        let explanation = Explanation::new(&self.collector.observations, known, &mut self.processes);
        ExplainReport {
            version: ExplainReport::VERSION,
            regime: match landing {
                Landing::Behind | Landing::OneFurther => Regime::Precise,
                Landing::BlockStart => Regime::Block,
                Landing::Other => Regime::Unknown,
            },
            road: self.observed.road.clone(),
            road_reason: self.observed.road_reason.clone(),
            rate: self.observed.frequency.into(),
            seconds: clock::monotonic().saturating_sub(self.started) as f64 / 1e9,
            program: self.observed.program.clone(),
            complete,
            exit_status,
            missing: MissingSamples {
                lost: self.road.losses().total(),
                thinned: self.collector.thinned,
                late: self.late,
                threads: without,
            },
            explanation,
            threads_sampled: threads,
            objects: self.collector.sampled_objects.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pace_follows_the_time_that_it_takes() {
        let mut pace = Pace::new(0, 2);
        assert_eq!(pace.worked(0, CHECKED / 4), None);
        // 35 % of the time of one CPU, where 10 % of two are allowed.
        assert_eq!(pace.worked(CHECKED, CHECKED + CHECKED / 8), Some(4));
        let time = |n: u64| CHECKED * (2 * n + 1);
        assert_eq!(pace.worked(time(1), time(1) + CHECKED / 4), Some(5));
        assert_eq!(pace.worked(time(2), time(2) + CHECKED / 1000), Some(2));
        for n in 3..40 {
            pace.worked(time(n), time(n) + CHECKED);
        }
        assert_eq!(pace.each, MAX_PACE);
        assert_eq!((Pace::new(0, 0).limit, Pace::new(0, 8).limit, Pace::new(0, 4096).limit), (5, 40, 50));
    }
}
