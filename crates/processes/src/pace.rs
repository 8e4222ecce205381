//! When the walker works, and how long it rests.
//!
//! Its work costs the observed processes time too, so it rests 19 times as long as it walks memory and
//! 49 times as long as it scans threads: 5 % of a core for memory, 2 % for threads. It walks in bursts
//! far shorter than a time slice: otherwise the scheduler might preempt it while it holds the mmap lock
//! of a process, which would then wait. The first walk rests only as long as it works, so that its
//! values are available soon.

const US: u64 = 1_000;
const MS: u64 = 1_000_000;

/// Maximum length of a burst of a walk.
const BURST: u64 = 100 * US;

/// Rest after a burst, as a multiple of its CPU time.
const REST_FROM_WALK: u64 = 19;

/// The same in the first walk.
const REST_AT_FIRST: u64 = 1;

/// The same after a lock was held for long: a thousandth of the time.
const REST_FROM_HOLDING: u64 = 999;

/// Rest after a scan of threads, as a multiple of its CPU time.
const REST_FROM_SCAN: u64 = 49;

/// Minimum rest between two scans, and between two walks.
const SHORTEST_REST: u64 = 20 * MS;

/// Maximum rest because of a long interval: CPU time is assigned to the nodes of a scan, so scans must
/// be frequent enough.
const LONGEST_IDLE: u64 = 250 * MS;

/// What is due when, in monotonic ns.
#[derive(Debug, Clone, Copy, Default)]
pub struct Pace {
    /// Whether a walk was completed.
    walked: bool,
    next_scan: u64,
    next_walk: u64,
}

impl Pace {
    /// Whether to scan the threads now.
    pub fn scan_due(&self, now: u64) -> bool {
        now >= self.next_scan
    }

    /// Until when to walk now; `None` while it rests.
    pub fn walk_until(&self, now: u64) -> Option<u64> {
        (now >= self.next_walk).then(|| now.saturating_add(BURST))
    }

    /// Notes a scan of the threads that ended now and took this CPU time; values are read at this
    /// interval.
    pub fn scanned(&mut self, now: u64, cpu: u64, interval: u64) {
        self.next_scan = now.saturating_add(cpu.saturating_mul(REST_FROM_SCAN).max(between(interval)));
    }

    /// Notes a burst of the walk that ended now and took this CPU time.
    pub fn walked(&mut self, now: u64, cpu: u64, complete: bool, held: bool, interval: u64) {
        self.walked |= complete;
        let times = match (held, self.walked) {
            (true, _) => REST_FROM_HOLDING,
            (_, false) => REST_AT_FIRST,
            (_, true) => REST_FROM_WALK,
        };
        let rest = cpu.saturating_mul(times);
        self.next_walk = now.saturating_add(if complete { rest.max(between(interval)) } else { rest });
    }

    /// When the next scan or burst is due.
    pub fn next(&self, walks: bool) -> u64 {
        if walks { self.next_scan.min(self.next_walk) } else { self.next_scan }
    }
}

fn between(interval: u64) -> u64 {
    (interval / 2).clamp(SHORTEST_REST, LONGEST_IDLE)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Time for the threads of a process, and for its memory.
    const SCAN: u64 = 60 * US;
    const WALK: u64 = 120 * US;

    /// When the first and the second walk of this number of processes were complete, and the total
    /// work.
    fn walks(processes: u64) -> ([u64; 2], u64) {
        let (mut pace, mut now, mut left) = (Pace::default(), 0, processes * WALK);
        let (mut ends, mut worked) = (Vec::new(), 0);
        while ends.len() < 2 {
            if pace.scan_due(now) {
                let from = now;
                now += processes * SCAN;
                worked += now - from;
                pace.scanned(now, now - from, 0);
            }
            if let Some(until) = pace.walk_until(now) {
                let work = left.min(until - now);
                (now, left, worked) = (now + work, left - work, worked + work);
                pace.walked(now, work, left == 0, false, 0);
                if left == 0 {
                    ends.push(now);
                    left = processes * WALK;
                }
            }
            now = now.max(pace.next(true));
        }
        ([ends[0], ends[1] - ends[0]], worked)
    }

    #[test]
    fn the_time_of_a_walk_is_proportional_to_the_number_of_processes() {
        for (few, many) in [(500, 5000), (1000, 100_000)] {
            let ((short, _), (long, _)) = (walks(few), walks(many));
            for (short, long) in short.into_iter().zip(long) {
                let linear = short * many / few;
                assert!(
                    (linear * 8 / 10..linear * 12 / 10).contains(&long),
                    "{few} {short:?} {many} {long:?}"
                );
            }
            // A scan, and the walk with rests of the same length.
            assert!(long[0] <= many * (SCAN + 2 * WALK) + BURST, "{long:?}");
        }
    }

    #[test]
    fn work_is_a_small_share_and_in_short_bursts() {
        let ([first, second], worked) = walks(5000);
        let share = (worked as f64 - (first / 2) as f64) / second as f64;
        assert!(share < 0.08, "{share}");
        let mut pace = Pace::default();
        pace.walked(10, 10, true, false, 0);
        assert_eq!(
            (pace.walk_until(10), pace.walk_until(10 + SHORTEST_REST)),
            (None, Some(10 + SHORTEST_REST + BURST))
        );
        pace.walked(3000, 2000, false, false, 0);
        assert_eq!((pace.walk_until(40_999), pace.walk_until(41_000)), (None, Some(41_000 + BURST)));
        pace.walked(10, 10, false, true, 0);
        assert_eq!((pace.walk_until(9999), pace.walk_until(10_000)), (None, Some(10_000 + BURST)));
        pace.scanned(2 * MS, 2 * MS, 0);
        assert!(!pace.scan_due(100 * MS - 1) && pace.scan_due(100 * MS));
        pace.scanned(0, 0, 9000 * MS);
        assert_eq!((pace.next(true), pace.next(false)), (10_000, LONGEST_IDLE));
    }
}
