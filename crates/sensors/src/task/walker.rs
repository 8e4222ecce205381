//! The thread that looks at the processes, so that the sampler never waits for them.
//!
//! What it does costs them too: a walk of page tables holds a lock that their own page faults
//! and mappings want. So it rests 19 times as long as it walked, and in between looks at threads
//! only, after which it rests 49 times as long: 5 % of a core for memory, 2 % for threads.

use super::board::{Board, NONE};
use super::layout::{Layout, Status};
use super::nodes::Nodes;
use super::observer::{Observer, Wanted};
use super::walk::Place;
use crate::Target;
use numakit_sys::SysRoot;
use numakit_sys::clock::{self, Alarm};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const MS: u64 = 1_000_000;

/// Rest from walking for each time of it.
const REST_FROM_WALK: u64 = 19;

/// Rest from looking at threads for each time of it.
const REST_FROM_LOOK: u64 = 49;

/// The shortest rest.
const SHORTEST_REST: u64 = 20 * MS;

/// The longest rest that is only for want of anybody who reads: CPU time is given to nodes
/// by what is seen, so it is looked often enough.
const LONGEST_IDLE: u64 = 250 * MS;

/// A walk is interrupted after so long.
const SLICE: u64 = 50 * MS;

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

    fn rest(&self, ns: u64) {
        if !self.stopped() {
            self.alarm.sleep_until(clock::monotonic().saturating_add(ns));
        }
    }
}

/// What the walker needs to begin.
#[derive(Debug, Clone)]
pub struct Walker {
    /// The machine.
    pub root: SysRoot,
    /// Its nodes.
    pub nodes: Nodes,
    /// Its base page size.
    pub page_size: u64,
    /// The processes.
    pub target: Target,
    /// What is looked at.
    pub wanted: Wanted,
    /// Where each value belongs.
    pub layout: Layout,
}

impl Walker {
    /// Starts the thread. It ends when it is told to; nobody needs to wait for that.
    pub fn start(self, shared: Arc<Shared>) -> io::Result<()> {
        std::thread::Builder::new().name("task-walker".into()).spawn(move || self.run(&shared))?;
        Ok(())
    }

    fn run(&self, shared: &Shared) {
        let Some(pid) = self.wait(shared) else { return };
        let place = Place { root: &self.root, nodes: &self.nodes, page_size: self.page_size };
        let mut observer = Observer::new(&place, self.wanted, pid);
        let mut values = vec![NONE; self.layout.values()];
        let mut status = Status::default();
        // When the present walk began, and when it may go on.
        let (mut begun, mut due) = (None, 0);
        while !shared.stopped() {
            let start = clock::monotonic();
            observer.look();
            let looked = clock::monotonic();
            if self.walks() && looked >= due {
                let first = *begun.get_or_insert(looked);
                let done = observer.walk(&|| clock::monotonic() < looked + SLICE && !shared.stopped());
                let end = clock::monotonic();
                due = end + (end - looked).saturating_mul(REST_FROM_WALK);
                if done {
                    (status.walk_time, status.walk_end, begun) = (end - first, end, None);
                }
            }
            status.cpu = clock::thread_cpu();
            self.layout.fill(&observer, &status, &mut values);
            shared.board.show(&values);
            let idle = (shared.interval.load(Ordering::Relaxed) / 2).min(LONGEST_IDLE);
            let rest = (looked - start).saturating_mul(REST_FROM_LOOK);
            shared.rest(rest.max(SHORTEST_REST).max(idle));
        }
    }

    fn walks(&self) -> bool {
        self.wanted.walk.memory || self.wanted.walk.huge_pages
    }

    fn wait(&self, shared: &Shared) -> Option<u32> {
        loop {
            match self.target.pid() {
                _ if shared.stopped() => return None,
                Some(pid) => return Some(pid),
                None => shared.rest(AWAIT),
            }
        }
    }
}
