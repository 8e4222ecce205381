//! When the thread that looks at processes works, and how long it rests from that.
//!
//! What it does costs them too, so it rests 19 times as long as it walked memory and 49 times as
//! long as it looked at threads: 5 % of a core for memory, 2 % for threads. It walks in bursts far
//! shorter than a time slice of the scheduler: whoever works for longer is displaced from its CPU
//! in the middle, maybe while it holds a lock of the process, which then waits until it has a CPU
//! again. The first walk rests only as long as it works, so that its values are there soon.

const US: u64 = 1_000;
const MS: u64 = 1_000_000;

/// A walk is interrupted after so long.
const BURST: u64 = 250 * US;

/// Rest from walking for each time of it.
const REST_FROM_WALK: u64 = 19;

/// The same in the first walk.
const REST_AT_FIRST: u64 = 1;

/// The same where the lock of a process was held for long: a thousandth of its time.
const REST_FROM_HOLDING: u64 = 999;

/// Rest from looking at threads for each time of it.
const REST_FROM_LOOK: u64 = 49;

/// The shortest rest between two looks, and between two walks.
const SHORTEST_REST: u64 = 20 * MS;

/// The longest rest that is only for want of anybody who reads: CPU time is given to nodes
/// by what is seen, so it is looked often enough.
const LONGEST_IDLE: u64 = 250 * MS;

/// What is due when, in monotonic ns.
#[derive(Debug, Clone, Copy, Default)]
pub struct Pace {
    /// A walk was completed.
    walked: bool,
    look: u64,
    walk: u64,
}

impl Pace {
    /// Whether to look at the threads now.
    pub fn looks(&self, now: u64) -> bool {
        now >= self.look
    }

    /// Until when to walk now; `None` while it rests.
    pub fn walks(&self, now: u64) -> Option<u64> {
        (now >= self.walk).then(|| now.saturating_add(BURST))
    }

    /// The threads have been looked at until now, which took so much CPU time; values are read at
    /// this interval.
    pub fn looked(&mut self, now: u64, cpu: u64, interval: u64) {
        self.look = now.saturating_add(cpu.saturating_mul(REST_FROM_LOOK).max(between(interval)));
    }

    /// A burst of the walk has ended, which took so much CPU time.
    pub fn walked(&mut self, now: u64, cpu: u64, complete: bool, held: bool, interval: u64) {
        self.walked |= complete;
        let times = match (held, self.walked) {
            (true, _) => REST_FROM_HOLDING,
            (_, false) => REST_AT_FIRST,
            (_, true) => REST_FROM_WALK,
        };
        let rest = cpu.saturating_mul(times);
        self.walk = now.saturating_add(if complete { rest.max(between(interval)) } else { rest });
    }

    /// When something is due again.
    pub fn next(&self, walks: bool) -> u64 {
        if walks { self.look.min(self.walk) } else { self.look }
    }
}

fn between(interval: u64) -> u64 {
    (interval / 2).clamp(SHORTEST_REST, LONGEST_IDLE)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a look at the threads of a process and a walk of its memory take.
    const LOOK: u64 = 60 * US;
    const WALK: u64 = 120 * US;

    /// When the first and when the second walk of so many processes was complete, and how long
    /// was worked in all.
    fn walks(processes: u64) -> ([u64; 2], u64) {
        let (mut pace, mut now, mut left) = (Pace::default(), 0, processes * WALK);
        let (mut ends, mut worked) = (Vec::new(), 0);
        while ends.len() < 2 {
            if pace.looks(now) {
                let from = now;
                now += processes * LOOK;
                worked += now - from;
                pace.looked(now, now - from, 0);
            }
            if let Some(until) = pace.walks(now) {
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
    fn the_time_of_a_walk_grows_as_the_number_of_processes() {
        for (few, many) in [(500, 5000), (1000, 100_000)] {
            let ((short, _), (long, _)) = (walks(few), walks(many));
            for (short, long) in short.into_iter().zip(long) {
                let linear = short * many / few;
                assert!(
                    (linear * 8 / 10..linear * 12 / 10).contains(&long),
                    "{few} {short:?} {many} {long:?}"
                );
            }
            // A look, and the walk with rests that are as long.
            assert!(long[0] <= many * (LOOK + 2 * WALK) + BURST, "{long:?}");
        }
    }

    #[test]
    fn work_is_a_small_part_of_all_time_and_in_short_bursts() {
        let ([first, second], worked) = walks(5000);
        let share = (worked as f64 - (first / 2) as f64) / second as f64;
        assert!(share < 0.08, "{share}");
        let mut pace = Pace::default();
        pace.walked(10, 10, true, false, 0);
        assert_eq!(
            (pace.walks(10), pace.walks(10 + SHORTEST_REST)),
            (None, Some(10 + SHORTEST_REST + BURST))
        );
        pace.walked(3000, 2000, false, false, 0);
        assert_eq!((pace.walks(40_999), pace.walks(41_000)), (None, Some(41_000 + BURST)));
        pace.walked(10, 10, false, true, 0);
        assert_eq!((pace.walks(9999), pace.walks(10_000)), (None, Some(10_000 + BURST)));
        pace.looked(2 * MS, 2 * MS, 0);
        assert!(!pace.looks(100 * MS - 1) && pace.looks(100 * MS));
        pace.looked(0, 0, 9000 * MS);
        assert_eq!((pace.next(true), pace.next(false)), (10_000, LONGEST_IDLE));
    }
}
