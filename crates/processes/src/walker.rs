//! The thread that observes processes, so that the sampler never waits for them.

use crate::observer::{Observer, WatchTargets};
use crate::pace::Pace;
use crate::running_cpus::RunningCpus;
use crate::walk::WalkedMachine;
use numakit_sys::clock::{self, Alarm};
use numakit_sys::sched;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const MS: u64 = 1_000_000;

/// How often to check whether the command has started.
const AWAIT: u64 = MS;

/// Steers a walker from another thread, and knows where the processes run.
#[derive(Debug, Default)]
pub struct WalkerControl {
    /// Time between the last two reads of its values, in ns.
    interval: AtomicU64,
    running: RunningCpus,
    stop: AtomicBool,
    alarm: Alarm,
}

impl WalkerControl {
    /// The values are read at this interval, in ns: the walker need not scan much more often.
    pub fn read_every(&self, interval: u64) {
        self.interval.store(interval, Ordering::Relaxed);
    }

    /// Moves the calling thread off the CPUs of the observed processes, as [`RunningCpus::leave`] does.
    pub fn leave_running(&self) {
        self.running.leave();
    }

    /// Ends the walker.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Release);
        self.alarm.ring();
    }

    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    fn rest_until(&self, time: u64) {
        if !self.stopped() {
            self.alarm.sleep_until(time);
        }
    }
}

/// What the walker measures of itself.
#[derive(Debug, Clone, Copy, Default)]
pub struct WalkerStatus {
    /// How long the last walk took, ns.
    pub walk_time: u64,
    /// When it ended, monotonic ns; 0 before the first one.
    pub walk_end: u64,
    /// CPU time so far, ns.
    pub cpu: u64,
    /// How often it scanned the threads.
    pub scans: u64,
}

/// A walker that has not started yet.
#[derive(Debug, Clone)]
pub struct Walker {
    /// The machine.
    pub machine: WalkedMachine,
    /// What is read.
    pub wanted: WatchTargets,
    /// Whether its bursts may have real-time priority, so that it is not preempted while it holds a
    /// lock of a process.
    pub urgent: bool,
}

impl Walker {
    /// Starts the thread, which waits until there are processes to observe with their descendants, and publishes after each
    /// scan and each walk. Before each scan it asks which processes `joined`. It ends after [`WalkerControl::stop`]; there is no
    /// need to wait for that.
    pub fn start(
        self,
        control: Arc<WalkerControl>,
        pids: impl Fn() -> Option<Vec<u32>> + Send + 'static,
        mut joined: impl FnMut() -> Vec<u32> + Send + 'static,
        mut publish: impl FnMut(&Observer, &WalkerStatus) + Send + 'static,
    ) -> io::Result<()> {
        std::thread::Builder::new().name("task-walker".into()).spawn(move || {
            if let Some(pids) = wait(&control, pids) {
                self.run(&control, &pids, &mut joined, &mut publish);
            }
        })?;
        Ok(())
    }

    fn run(
        &self,
        control: &WalkerControl,
        pids: &[u32],
        joined: &mut dyn FnMut() -> Vec<u32>,
        publish: &mut dyn FnMut(&Observer, &WalkerStatus),
    ) {
        let mut observer = Observer::new(self.machine.clone(), self.wanted, pids);
        let (mut status, mut pace) = (WalkerStatus::default(), Pace::default());
        // Start of the current walk.
        let mut walk_start = None;
        while !control.stopped() {
            let (start, interval) = (clock::monotonic(), control.interval.load(Ordering::Relaxed));
            if pace.scan_due(start) {
                let before = clock::thread_cpu();
                observer.join(&joined());
                observer.scan();
                control.running.set(&observer.activity.running);
                control.running.leave();
                status.scans += 1;
                let cpu = (clock::thread_cpu() - before).saturating_sub(observer.allocators.searching());
                pace.scanned(clock::monotonic(), cpu, interval);
                status.cpu = clock::thread_cpu();
                publish(&observer, &status);
            }
            let start = clock::monotonic();
            if let Some(until) = pace.walk_until(start).filter(|_| self.walks()) {
                let before = clock::thread_cpu();
                let first = *walk_start.get_or_insert(start);
                let raised = self.urgent && sched::set_realtime().is_ok();
                let done = observer.walk(&|| clock::monotonic() < until && !control.stopped());
                if raised && sched::set_normal().is_err() {
                    return;
                }
                let end = clock::monotonic();
                pace.walked(end, clock::thread_cpu() - before, done, observer.held_a_lock(), interval);
                if done {
                    (status.walk_time, status.walk_end, walk_start) = (end - first, end, None);
                    status.cpu = clock::thread_cpu();
                    publish(&observer, &status);
                }
            }
            control.rest_until(pace.next(self.walks()));
        }
    }

    fn walks(&self) -> bool {
        self.wanted.walk.memory || self.wanted.walk.huge_pages
    }
}

/// Waits for the processes; `None` if the walker is stopped before.
fn wait(control: &WalkerControl, pids: impl Fn() -> Option<Vec<u32>>) -> Option<Vec<u32>> {
    while !control.stopped() {
        if let Some(pids) = pids() {
            return Some(pids);
        }
        control.rest_until(clock::monotonic().saturating_add(AWAIT));
    }
    None
}
