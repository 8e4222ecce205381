//! The thread that looks at the processes, so that the sampler never waits for them.

use super::board::{Board, NONE};
use super::layout::{TaskSeries, WalkerStatus};
use super::nodes::TaskNodes;
use super::observer::{Observer, WatchTargets};
use super::pace::Pace;
use super::walk::WalkTarget;
use crate::Target;
use numakit_sys::SysRoot;
use numakit_sys::clock::{self, Alarm};
use numakit_sys::sched;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const MS: u64 = 1_000_000;

/// How often it is looked whether the command has started.
const AWAIT: u64 = MS;

/// What the sampler and the walker share.
#[derive(Debug)]
pub struct Shared {
    /// The values.
    pub board: Board,
    /// Time between the last two reads, ns.
    pub interval: AtomicU64,
    stop: AtomicBool,
    alarm: Alarm,
}

impl Shared {
    /// For rows of that many values.
    pub fn new(values: usize) -> Self {
        Self {
            board: Board::new(values),
            interval: AtomicU64::new(0),
            stop: AtomicBool::new(false),
            alarm: Alarm::new(),
        }
    }

    /// Lets the walker end.
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

/// What the walker needs to begin.
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
    /// What is looked at.
    pub wanted: WatchTargets,
    /// Where each value belongs.
    pub layout: TaskSeries,
    /// Whether its bursts may have real-time priority: nobody displaces it from its CPU while it
    /// holds a lock of the processes.
    pub urgent: bool,
}

impl Walker {
    /// Starts the thread. It ends when it is told to; nobody needs to wait for that.
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
        // When the present walk began.
        let mut begun = None;
        while !shared.stopped() {
            let (start, interval) = (clock::monotonic(), shared.interval.load(Ordering::Relaxed));
            if pace.looks(start) {
                let before = clock::thread_cpu();
                observer.look();
                pace.looked(clock::monotonic(), clock::thread_cpu() - before, interval);
                self.show(&observer, &mut status, &mut values, shared);
            }
            let start = clock::monotonic();
            if let Some(until) = pace.walks(start).filter(|_| self.walks()) {
                let before = clock::thread_cpu();
                let first = *begun.get_or_insert(start);
                let raised = self.urgent && sched::set_realtime().is_ok();
                let done = observer.walk(&|| clock::monotonic() < until && !shared.stopped());
                if raised && sched::set_normal().is_err() {
                    return;
                }
                let end = clock::monotonic();
                pace.walked(end, clock::thread_cpu() - before, done, observer.held(), interval);
                if done {
                    (status.walk_time, status.walk_end, begun) = (end - first, end, None);
                    self.show(&observer, &mut status, &mut values, shared);
                }
            }
            shared.rest_until(pace.next(self.walks()));
        }
    }

    fn show(&self, observer: &Observer, status: &mut WalkerStatus, values: &mut [u64], shared: &Shared) {
        status.cpu = clock::thread_cpu();
        self.layout.fill(observer, status, values);
        shared.board.show(values);
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
