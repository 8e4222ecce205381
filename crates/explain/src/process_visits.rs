//! When to look at processes, where the kernel has to walk all page tables of a process for a look.

/// First at once, for what runs already; then after this time, in ns, when programs have touched some of their memory and set
/// their policies; then ever more seldom, since a program may be started by another one that takes its time; in the end this often,
/// and at most for a part of the time.
const FIRST: u64 = 300_000_000;
const LATER: u64 = 3;
const EACH: u64 = 10_000_000_000;
const SHARE: u64 = 50;

/// The next visit.
#[derive(Debug)]
pub struct ProcessVisits {
    /// The time of the next visit; `None` if there is never one.
    next: Option<u64>,
    /// The least time between the next visit and the one after it.
    pause: u64,
}

impl ProcessVisits {
    /// The first visit is at this time.
    pub fn from(now: u64) -> Self {
        Self { next: Some(now), pause: FIRST }
    }

    /// There is never a visit.
    pub fn never() -> Self {
        Self { next: None, pause: FIRST }
    }

    /// Whether it is time for a visit.
    pub fn is_due(&self, now: u64) -> bool {
        self.next.is_some_and(|next| now >= next)
    }

    /// Notes that a visit took from one time to another, and plans the next one.
    pub fn visited(&mut self, from: u64, to: u64) {
        self.next = Some(to + self.pause.max(to.saturating_sub(from) * SHARE));
        self.pause = (LATER * self.pause).min(EACH);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_visits_are_soon_and_later_ones_seldom() {
        let mut visits = ProcessVisits::from(5);
        assert_eq!((visits.is_due(4), visits.is_due(5)), (false, true));
        visits.visited(5, 10);
        assert_eq!((visits.is_due(9 + FIRST), visits.is_due(10 + FIRST)), (false, true));
        for pause in [3 * FIRST, 9 * FIRST, 27 * FIRST, EACH, EACH] {
            visits.visited(0, 10);
            assert_eq!((visits.is_due(9 + pause), visits.is_due(10 + pause)), (false, true));
        }
        visits.visited(0, EACH);
        assert!(!visits.is_due(EACH * SHARE), "a visit that takes long is rare");
        assert!(!ProcessVisits::never().is_due(u64::MAX));
    }
}
