//! The thread that looks at samples, so that the sampler never waits for it.

use super::layout::AccessSeries;
use crate::board::{Board, NONE};
use crate::{SampleSource, Target};
use numakit_explain::explainer::Explainer;
use numakit_explain::tally::Tally;
use numakit_model::Topology;
use numakit_sys::clock::{self, Alarm};
use numakit_sys::proc::tree;
use numakit_sys::{SysRoot, sched};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How often samples are taken from the method, in ns: registers belong to what memory contains now.
const DRAIN: u64 = 5_000_000;
/// How often they are judged and published, in ns, and at most for this part of the time.
const STEP: u64 = 50_000_000;
const STEP_SHARE: u64 = 20;
/// How long the end of an observation waits for the last ones, and how often it looks.
const SETTLE: Duration = Duration::from_millis(400);
const LOOK: Duration = Duration::from_millis(1);

/// What the sampler and the observer share.
#[derive(Debug)]
pub struct AccessBoard {
    /// The values.
    pub board: Board,
    stop: AtomicBool,
    /// Numbers of requests to publish at once, and of those that were.
    asked: AtomicU64,
    done: AtomicU64,
    alarm: Alarm,
}

impl AccessBoard {
    /// For rows of this number of values.
    pub fn new(values: usize) -> Self {
        let (asked, done) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { board: Board::new(values), stop: AtomicBool::new(false), asked, done, alarm: Alarm::new() }
    }

    /// Ends the observer.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Release);
        self.alarm.ring();
    }

    /// Waits until the observer has published what there is, a limited time.
    pub fn settle(&self) {
        let request = self.asked.fetch_add(1, Ordering::AcqRel) + 1;
        self.alarm.ring();
        let end = Instant::now() + SETTLE;
        while self.done.load(Ordering::Acquire) < request && Instant::now() < end {
            std::thread::sleep(LOOK);
        }
    }

    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }
}

/// The observer before it starts.
#[derive(Debug, Clone)]
pub struct AccessObserver {
    /// The samples.
    pub samples: SampleSource,
    /// The process that they are of, with its descendants; `None` for all.
    pub target: Option<Target>,
    /// The machine.
    pub topology: Topology,
    /// The order of the values.
    pub layout: AccessSeries,
    /// Whether it has real-time priority, as the sampler has.
    pub urgent: bool,
}

impl AccessObserver {
    /// Starts the thread. It ends after [`AccessBoard::stop`]; there is no need to wait for that.
    pub fn start(self, shared: Arc<AccessBoard>) -> io::Result<()> {
        std::thread::Builder::new().name("access-observer".into()).spawn(move || self.run(&shared))?;
        Ok(())
    }

    fn run(mut self, shared: &AccessBoard) {
        // With normal priority it is only later, on a busy machine.
        let _ = self.urgent.then(sched::set_realtime);
        let Some(mut explainer) = self.wait(shared) else { return };
        let mut tally = Tally::new(&self.layout.nodes);
        let mut row = vec![NONE; self.layout.values()];
        let (mut next_step, root) = (clock::monotonic(), SysRoot::host());
        while !shared.stopped() {
            let asked = shared.asked.load(Ordering::Acquire);
            // A method that fails delivers nothing more; what came before stays.
            let _ = explainer.drain();
            self.follow(&root, &mut explainer);
            let now = clock::monotonic();
            if now >= next_step || asked > shared.done.load(Ordering::Relaxed) {
                explainer.add_to(&mut tally);
                self.fill(&explainer, &tally, &mut row);
                shared.board.publish(&row);
                shared.done.store(asked, Ordering::Release);
                let end = clock::monotonic();
                next_step = end + STEP.max((end - now) * STEP_SHARE);
            }
            if !shared.stopped() {
                shared.alarm.sleep_until(now + DRAIN);
            }
        }
    }

    /// Also samples what has joined the observed processes.
    fn follow(&mut self, root: &SysRoot, explainer: &mut Explainer) {
        let joined = self.target.as_mut().map(|target| target.joined(root)).unwrap_or_default();
        // The other series tell of those that cannot be sampled.
        if !joined.is_empty() && explainer.attach(&joined).is_err() {
            self.target = None;
        }
    }

    fn fill(&self, explainer: &Explainer, tally: &Tally, row: &mut [u64]) {
        if self.layout.is_precise {
            self.layout.fill_times(tally, row);
        } else if let Some(traffic) = explainer.traffic() {
            self.layout.fill_pages(tally, &traffic, row);
        }
        self.layout.fill_own(explainer.missing(), clock::thread_cpu(), row);
    }

    /// Waits for the method. The command is started after the sampler.
    fn wait(&self, shared: &AccessBoard) -> Option<Explainer> {
        loop {
            if shared.stopped() {
                return None;
            }
            // The method is there before the number of the process is.
            let processes = self.target.as_ref().map(Target::pids);
            if processes != Some(None)
                && let Some(method) = self.samples.take_method()
            {
                let of = |processes: Vec<u32>| tree::families(&SysRoot::host(), &processes);
                let processes = processes.flatten().map(of).unwrap_or_default();
                return Some(Explainer::for_series(method, &processes, self.topology.clone()));
            }
            shared.done.store(shared.asked.load(Ordering::Acquire), Ordering::Release);
            shared.alarm.sleep_until(clock::monotonic() + DRAIN);
        }
    }
}
