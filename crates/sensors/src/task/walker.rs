//! The thread that observes processes, so that the sampler never waits for them.

use super::aside::RunningCpus;
use super::layout::{TaskSeries, WalkerStatus};
use super::nodes::TaskNodes;
use super::observer::{Observer, WatchTargets};
use super::pace::Pace;
use super::walk::WalkTarget;
use crate::Target;
use crate::board::{Board, NONE};
use numakit_sys::SysRoot;
use numakit_sys::clock::{self, Alarm};
use numakit_sys::sched;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

const MS: u64 = 1_000_000;

/// How often to check whether the command has started.
const AWAIT: u64 = MS;

/// What the sampler and the walker share.
#[derive(Debug)]
pub struct Shared {
    /// The values.
    pub board: Board,
    /// Time between the last two reads, ns.
    pub interval: AtomicU64,
    /// Why the allocator of a process could not be read, the first time.
    pub allocator_unread: OnceLock<String>,
    /// Where the processes run.
    pub running: RunningCpus,
    stop: AtomicBool,
    alarm: Alarm,
}

impl Shared {
    /// For rows of this number of values.
    pub fn new(values: usize) -> Self {
        Self {
            board: Board::new(values),
            interval: AtomicU64::new(0),
            allocator_unread: OnceLock::new(),
            running: RunningCpus::default(),
            stop: AtomicBool::new(false),
            alarm: Alarm::new(),
        }
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

/// The walker before it starts.
#[derive(Debug, Clone)]
pub struct Walker {
    /// The machine.
    pub root: SysRoot,
    /// Its nodes.
    pub nodes: TaskNodes,
    /// Its base page size.
    pub page_size: u64,
    /// The processes.
    pub target: Target,
    /// What is read.
    pub wanted: WatchTargets,
    /// The order of the values.
    pub layout: TaskSeries,
    /// Whether its bursts may have real-time priority, so that it is not preempted while it holds a
    /// lock of a process.
    pub urgent: bool,
}

impl Walker {
    /// Starts the thread. It ends after [`Shared::stop`]; there is no need to wait for that.
    pub fn start(self, shared: Arc<Shared>) -> io::Result<()> {
        std::thread::Builder::new().name("task-walker".into()).spawn(move || self.run(&shared))?;
        Ok(())
    }

    fn run(&self, shared: &Shared) {
        let Some(pid) = self.wait(shared) else { return };
        let place = WalkTarget {
            root: &self.root,
            nodes: &self.nodes,
            page_size: self.page_size,
            may_hold: self.wanted.walk.memory,
        };
        let mut observer = Observer::new(&place, self.wanted, pid);
        let mut values = vec![NONE; self.layout.values()];
        let (mut status, mut pace) = (WalkerStatus::default(), Pace::default());
        // Start of the current walk.
        let mut walk_start = None;
        while !shared.stopped() {
            let (start, interval) = (clock::monotonic(), shared.interval.load(Ordering::Relaxed));
            if pace.scan_due(start) {
                let before = clock::thread_cpu();
                observer.scan();
                shared.running.set(&observer.activity.running);
                shared.running.leave();
                status.scans += 1;
                let cpu = (clock::thread_cpu() - before).saturating_sub(observer.allocators.searching());
                pace.scanned(clock::monotonic(), cpu, interval);
                self.publish(&observer, &mut status, &mut values, shared);
            }
            let start = clock::monotonic();
            if let Some(until) = pace.walk_until(start).filter(|_| self.walks()) {
                let before = clock::thread_cpu();
                let first = *walk_start.get_or_insert(start);
                let raised = self.urgent && sched::set_realtime().is_ok();
                let done = observer.walk(&|| clock::monotonic() < until && !shared.stopped());
                if raised && sched::set_normal().is_err() {
                    return;
                }
                let end = clock::monotonic();
                pace.walked(end, clock::thread_cpu() - before, done, observer.held_a_lock(), interval);
                if done {
                    (status.walk_time, status.walk_end, walk_start) = (end - first, end, None);
                    self.publish(&observer, &mut status, &mut values, shared);
                }
            }
            shared.rest_until(pace.next(self.walks()));
        }
    }

    fn publish(&self, observer: &Observer, status: &mut WalkerStatus, values: &mut [u64], shared: &Shared) {
        status.cpu = clock::thread_cpu();
        if let Some(why) = observer.allocators.unread() {
            shared.allocator_unread.get_or_init(|| why.to_owned());
        }
        self.layout.fill(observer, status, values);
        shared.board.publish(values);
    }

    fn walks(&self) -> bool {
        self.wanted.walk.memory || self.wanted.walk.huge_pages
    }

    fn wait(&self, shared: &Shared) -> Option<u32> {
        loop {
            match self.target.pid() {
                _ if shared.stopped() => return None,
                Some(pid) => return Some(pid),
                None => shared.rest_until(clock::monotonic().saturating_add(AWAIT)),
            }
        }
    }
}
