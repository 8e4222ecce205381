//! When the thread that looks at processes works, and how long it rests from that.
//!
//! What it does costs them too, so it rests 19 times as long as it walked memory and 49 times as
//! long as it looked at threads: 5 % of a core for memory, 2 % for threads. Only the first walk is
//! made in one go, so that its values are there as soon as they can be. A walk is interrupted
//! after a slice that is as long as a look at the threads, so that however many processes there
//! are, a walk takes a few looks and its time grows as their number does.

const MS: u64 = 1_000_000;

/// Rest from walking for each time of it.
const REST_FROM_WALK: u64 = 19;

/// The same where the lock of a process was held for long: a thousandth of its time.
const REST_FROM_HOLDING: u64 = 999;

/// Rest from looking at threads for each time of it.
const REST_FROM_LOOK: u64 = 49;

/// The shortest rest.
const SHORTEST_REST: u64 = 20 * MS;

/// The longest rest that is only for want of anybody who reads: CPU time is given to nodes
/// by what is seen, so it is looked often enough.
const LONGEST_IDLE: u64 = 250 * MS;

/// The shortest slice of a walk.
const SLICE: u64 = 50 * MS;

/// When to do what, in monotonic ns.
#[derive(Debug, Clone, Copy, Default)]
pub struct Pace {
    /// A walk was completed.
    walked: bool,
    /// When the walk may go on.
    due: u64,
}

impl Pace {
    /// Until when a walk may go on that begins or continues now, after a look that took so long;
    /// `None` while it rests.
    pub fn slice(&self, now: u64, look: u64) -> Option<u64> {
        if now < self.due {
            return None;
        }
        Some(if self.walked { now.saturating_add(SLICE.max(look)) } else { u64::MAX })
    }

    /// A slice was used from one time to another.
    pub fn used(&mut self, from: u64, to: u64, complete: bool, held: bool) {
        let rest = if held { REST_FROM_HOLDING } else { REST_FROM_WALK };
        self.due = to.saturating_add((to - from).saturating_mul(rest));
        self.walked |= complete;
    }

    /// How long to rest after a look that took so long; values are read at this interval.
    pub fn rest(look: u64, interval: u64) -> u64 {
        let idle = (interval / 2).min(LONGEST_IDLE);
        look.saturating_mul(REST_FROM_LOOK).max(SHORTEST_REST).max(idle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a look at the threads of a process and a walk of its memory take.
    const LOOK: u64 = 60_000;
    const WALK: u64 = 120_000;

    /// When so many processes were walked for the first and for the second time.
    fn walks(processes: u64) -> [u64; 2] {
        let (mut pace, mut now, mut left) = (Pace::default(), 0, processes * WALK);
        let (look, mut ends) = (processes * LOOK, Vec::new());
        while ends.len() < 2 {
            now += look;
            if let Some(until) = pace.slice(now, look) {
                let work = left.min(until - now);
                pace.used(now, now + work, work == left, false);
                (now, left) = (now + work, left - work);
                if left == 0 {
                    ends.push(now);
                    left = processes * WALK;
                }
            }
            now += Pace::rest(look, 0);
        }
        [ends[0], ends[1] - ends[0]]
    }

    #[test]
    fn the_time_of_a_walk_grows_as_the_number_of_processes() {
        for (few, many) in [(500, 5000), (1000, 100_000)] {
            let (short, long) = (walks(few), walks(many));
            assert_eq!(long[0], short[0] * many / few, "the first one is made in one go");
            assert_eq!(long[0], many * (LOOK + WALK));
            assert!(long[1] <= short[1] * many / few * 2, "{few} {short:?} {many} {long:?}");
        }
    }

    #[test]
    fn work_is_a_small_part_of_all_time() {
        let mut pace = Pace::default();
        pace.used(1000, 3000, true, false);
        assert_eq!((pace.slice(40_999, 0), pace.slice(41_000, 7)), (None, Some(41_000 + SLICE)));
        assert_eq!(pace.slice(41_000, 3 * SLICE), Some(41_000 + 3 * SLICE));
        pace.used(0, 10, false, true);
        assert_eq!((pace.slice(9999, 0), pace.slice(10_000, 0)), (None, Some(10_000 + SLICE)));
        assert_eq!(Pace::rest(2 * MS, 0), 98 * MS);
        assert_eq!((Pace::rest(0, 0), Pace::rest(0, 9000 * MS)), (SHORTEST_REST, LONGEST_IDLE));
    }
}
