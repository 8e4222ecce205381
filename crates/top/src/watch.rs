//! The processes, read in a thread of its own, which takes at most 0.2 % of a core for finding them and 0.15 % for their memory.

use crate::show::ScreenEvent;
use crate::table::{Memories, ProcessTable};
use numakit_model::Topology;
use numakit_processes::Survey;
use numakit_sys::SysRoot;
use numakit_sys::clock::{self, Alarm};
use std::cell::Cell;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::time::Duration;

/// After a measurement it rests this many times as long as it took without reading memory.
const REST: u64 = 500;
/// The same for reading memory.
const REST_FROM_READING: u64 = 666;
/// CPU time for reading memory at the start, ns: the screen is complete soon.
const AT_START: i64 = 200_000_000;
/// CPU time that can be saved for later, ns.
const SAVED: i64 = 20_000_000;
/// The longest that one measurement reads memory, ns.
const LONGEST: u64 = 100_000_000;

/// The interval of measurements, which the user may change.
#[derive(Debug, Clone)]
pub struct Interval(Arc<AtomicU64>);

impl Interval {
    /// At first this.
    pub fn new(every: Duration) -> Self {
        Self(Arc::new(AtomicU64::new(ns(every))))
    }

    /// From now on this.
    pub fn set(&self, every: Duration) {
        self.0.store(ns(every), Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

fn ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Reads them until nobody receives them.
pub fn start(root: SysRoot, topology: Topology, every: Interval, to: Sender<ScreenEvent>) -> io::Result<()> {
    std::thread::Builder::new().name("processes".into()).spawn(move || {
        match Survey::new(&root, &topology, None) {
            Ok(survey) => run(survey, &root, &every, &to),
            Err(why) => {
                let absent = Some(why.to_string());
                let _ = to.send(ScreenEvent::Processes(ProcessTable { absent, ..ProcessTable::default() }));
            }
        }
    })?;
    Ok(())
}

/// Whether the kernel moves pages to the threads that use them; it can be switched at any time.
fn moves_pages(root: &SysRoot) -> bool {
    root.text("/proc/sys/kernel/numa_balancing").is_ok_and(|mode| mode.trim() != "0")
}

fn run(mut survey: Survey, root: &SysRoot, every: &Interval, to: &Sender<ScreenEvent>) {
    let alarm = Alarm::new();
    let nodes = survey.nodes().len();
    let mut memories = Memories::default();
    let mut credit = AT_START;
    let mut started = clock::monotonic();
    // The first times are known soon.
    let mut due = started + every.get().min(200_000_000);
    loop {
        alarm.sleep_until(due);
        let now = clock::monotonic();
        let elapsed = now - started;
        started = now;
        credit =
            (credit + i64::try_from(elapsed / REST_FROM_READING).unwrap_or(SAVED)).min(SAVED.max(credit));
        let before = clock::thread_cpu();
        survey.count_moved(nodes > 1 && moves_pages(root));
        let reading = Reading::within(u64::try_from(credit.max(0)).unwrap_or(0).min(LONGEST));
        let samples = survey
            .measure_by(&|p| memories.urgency(p.pid, p.start, p.ran, p.resident), &|| reading.may_continue());
        let rows = memories.rows(samples, elapsed as f64 / 1e9, nodes);
        let table = ProcessTable { rows, absent: None, fix: survey.access().fix() };
        credit -= i64::try_from(reading.took()).unwrap_or(0);
        let rest = clock::thread_cpu().saturating_sub(before + reading.took());
        if to.send(ScreenEvent::Processes(table)).is_err() {
            return;
        }
        due = now.saturating_add(every.get().max(rest.saturating_mul(REST)));
    }
}

/// The CPU time of reading memory. It is asked before each part; the time until the next question is that of the part, or of
/// what comes between two processes if that was the end of one.
struct Reading {
    budget: u64,
    took: Cell<u64>,
    last: Cell<u64>,
}

impl Reading {
    fn within(budget: u64) -> Self {
        Self { budget, took: Cell::new(0), last: Cell::new(0) }
    }

    fn may_continue(&self) -> bool {
        let now = clock::thread_cpu();
        if self.last.get() > 0 {
            self.took.set(self.took.get() + (now - self.last.get()));
        }
        let may = self.took.get() < self.budget;
        self.last.set(if may { now } else { 0 });
        may
    }

    fn took(&self) -> u64 {
        self.took.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use numakit_sys::root::FileTree;

    #[test]
    fn pages_are_moved_while_balancing_is_on() {
        let moves = |text: Option<&str>| {
            let mut tree = FileTree::new();
            if let Some(text) = text {
                tree.file("/proc/sys/kernel/numa_balancing", text);
            }
            moves_pages(&SysRoot::of_tree(tree))
        };
        assert!(moves(Some("1\n")) && moves(Some("2\n")));
        assert!(!moves(Some("0\n")) && !moves(None));
    }
}
