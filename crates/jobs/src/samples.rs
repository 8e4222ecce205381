//! Samples of everything that runs on this machine, added up by process.

use numakit_explain::explainer::Explainer;
use numakit_explain::tally::{ProcessTotals, Tally};
use numakit_model::{Fix, Topology, Unavailable};
use numakit_sampling::{Landing, Method, SampleSettings, landing, open};
use numakit_sensors::pmu::{Need, Privilege};
use numakit_sys::SysRoot;
use numakit_sys::clock::{self, Alarm};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How often samples are taken from the method, in ns: registers belong to what memory contains now.
const DRAIN: u64 = 10_000_000;
/// The longest pause, in ns. The rings have room for a second or more: what came after that is lost and counted, and costs nothing.
const MAX_PAUSE: u64 = 10_000_000_000;
/// How long the sums wait for the samples of this moment, in ns.
const MAX_WAIT: u64 = 200_000_000;
/// How often they are judged, in ns.
const STEP: u64 = 1_000_000_000;
/// Bytes of the stack in each sample: operands are seldom on the stack, and what is rare need not be found.
const STACK: u32 = 256;
/// Processes whose sums wait to be taken.
const MAX_WAITING: usize = 100_000;

const MISSING: &str = "samples of jobs";

/// What samples may cost.
#[derive(Debug, Clone, Copy)]
pub struct SamplesCost {
    /// Ten-thousandths of the time of each CPU for looking at samples; where more come, one counts as several.
    looking: u64,
    /// One in this many parts of the time of all CPUs is taken; what exceeds it makes pauses longer.
    share: u64,
}

impl SamplesCost {
    /// Of an observer that runs for months.
    pub const OF_MONTHS: Self = Self { looking: 15, share: 500 };
    /// Of a command whose answer somebody waits for.
    pub const OF_SECONDS: Self = Self { looking: 300, share: 25 };
}

/// A thread that takes samples. Dropping it ends the thread.
#[derive(Debug)]
pub struct JobSamples(Arc<SamplesBoard>);

/// What was added up and not taken yet.
#[derive(Debug, Default)]
struct Waiting {
    processes: Vec<(u32, ProcessTotals)>,
    lost: u64,
    /// Whether the samples of this moment are asked for.
    is_asked: bool,
}

#[derive(Debug)]
struct SamplesBoard {
    waiting: Mutex<Waiting>,
    answered: Condvar,
    stop: AtomicBool,
    alarm: Alarm,
}

impl JobSamples {
    /// Takes this number of samples a second of each CPU that is busy, where this process may.
    pub fn start(topology: &Topology, frequency: u32, cost: SamplesCost) -> Result<Self, Unavailable> {
        let privilege = Privilege::read(&SysRoot::host());
        privilege
            .permits(Need::WholeCpu)
            .map_err(|why| Unavailable { missing: MISSING.to_owned(), ..why })?;
        let settings = SampleSettings { frequency, stack: STACK, ..SampleSettings::default() };
        let refused = |why: String| Unavailable::new(MISSING, why, privilege.beyond_the_rules());
        let method = open::machine(&settings, &topology.online).map_err(|error| {
            let mut why = error.to_string();
            let mut source = std::error::Error::source(&error);
            while let Some(error) = source {
                why = format!("{why}: {error}");
                source = error.source();
            }
            refused(why)
        })?;
        let lands = method.landing();
        if !matches!(lands, Landing::Behind | Landing::OneFurther) {
            let fix = Fix::OtherMachine("one whose processor is not emulated".to_owned());
            return Err(Unavailable::new(MISSING, landing::sentence(lands), fix));
        }
        let board = Arc::new(SamplesBoard::new());
        let (shared, topology) = (Arc::clone(&board), topology.clone());
        let started: io::Result<_> = std::thread::Builder::new()
            .name("job-samples".into())
            .spawn(move || observe(method, topology, (frequency, cost), &shared));
        started.map(|_| Self(board)).map_err(|error| refused(error.to_string()))
    }

    /// The sums of each process since the last call, and the number of samples that were lost: the times stand for those too.
    pub fn take(&self) -> (Vec<(u32, ProcessTotals)>, u64) {
        let Self(board) = self;
        let mut waiting = board.lock();
        waiting.is_asked = true;
        board.alarm.ring();
        let wait = Duration::from_nanos(MAX_WAIT);
        let answer = board.answered.wait_timeout_while(waiting, wait, |waiting| waiting.is_asked);
        let mut waiting = answer.unwrap_or_else(PoisonError::into_inner).0;
        let Waiting { processes, lost, .. } = std::mem::take(&mut *waiting);
        (processes, lost)
    }
}

impl Drop for JobSamples {
    fn drop(&mut self) {
        self.0.stop.store(true, Ordering::Release);
        self.0.alarm.ring();
    }
}

fn observe(
    method: Box<dyn Method>,
    topology: Topology,
    (frequency, cost): (u32, SamplesCost),
    board: &SamplesBoard,
) {
    let nodes: Vec<u32> = topology.nodes.iter().map(|node| node.os_index).collect();
    let cpus = topology.online.len().max(1) as u64;
    let share = (cost.share / cpus).max(1);
    let (began, cpu) = (clock::monotonic(), clock::thread_cpu());
    let mut explainer = Explainer::for_series(method, &[], topology).within_share(cost.looking * cpus);
    let mut tally = Tally::new(&nodes).by_process();
    let mut last = clock::monotonic();
    let mut before = (0, 0);
    while !board.stop.load(Ordering::Acquire) {
        let is_asked = board.lock().is_asked;
        // A method that fails delivers nothing more; what came before stays.
        let _ = explainer.drain();
        let now = clock::monotonic();
        if is_asked || now >= last + STEP {
            let due = u64::from(frequency) * cpus * (now - last).div_ceil(STEP);
            last = now;
            explainer.add_to(&mut tally);
            let new = explainer.take_processes(&mut tally);
            let samples = explainer.delivered_and_lost();
            let delivered = samples.0 - before.0;
            board.add(new, delivered, lost_samples(samples.1 - before.1, delivered, due));
            before = samples;
        }
        if is_asked {
            board.lock().is_asked = false;
            board.answered.notify_all();
        }
        let spent = clock::thread_cpu().saturating_sub(cpu).saturating_mul(share);
        board.alarm.sleep_until(began.saturating_add(spent).clamp(now + DRAIN, now + MAX_PAUSE));
    }
}

/// How many of the records that were lost were samples, at most: no more were due. The kernel also counts those of programs that
/// start, of which there are more under a compiler than samples.
fn lost_samples(lost: u64, delivered: u64, due: u64) -> u64 {
    lost.min(due.saturating_sub(delivered))
}

impl SamplesBoard {
    fn new() -> Self {
        let (waiting, answered) = (Mutex::default(), Condvar::new());
        Self { waiting, answered, stop: AtomicBool::new(false), alarm: Alarm::new() }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds sums of processes for `jobs`. The samples that were delivered stand for those that were lost meanwhile.
    fn add(&self, new: Vec<(u32, ProcessTotals)>, delivered: u64, lost: u64) {
        let more = lost as f64 / delivered.max(1) as f64;
        let mut waiting = self.lock();
        waiting.lost += lost;
        let room = MAX_WAITING.saturating_sub(waiting.processes.len());
        waiting.processes.extend(new.into_iter().take(room).map(|(pid, mut totals)| {
            totals.time = totals.time.standing_for(more);
            (pid, totals)
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_samples_were_lost_than_were_due() {
        assert_eq!(lost_samples(7, 30, 38), 7);
        assert_eq!(lost_samples(900, 30, 38), 8);
        assert_eq!(lost_samples(900, 50, 38), 0, "the clock of samples is not that of the step");
    }

    #[test]
    fn samples_count_for_those_that_were_lost() {
        let board = SamplesBoard::new();
        let mut totals = ProcessTotals::default();
        totals.time.local = 100;
        board.add(vec![(7, totals)], 10, 5);
        let samples = JobSamples(Arc::new(board));
        let (taken, lost) = samples.take();
        assert_eq!((taken[0].0, taken[0].1.time.local, lost), (7, 150, 5));
        assert_eq!(samples.take(), (Vec::new(), 0));
    }
}
