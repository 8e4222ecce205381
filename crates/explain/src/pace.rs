//! How many samples are looked at, by the time that it takes.

/// The whole time of one CPU, in the unit of shares.
const WHOLE: u64 = 10_000;
/// The observer may use this much of the time of each CPU, and of one CPU at most half; above, it looks at fewer
/// samples. An emulated processor takes milliseconds for what a real one does in microseconds.
const SHARE_OF_EACH: u64 = 500;
const MAX_SHARE: u64 = 5000;
/// How much of one CPU an observer may use that was given a whole CPU. The rest is left so that it still sees
/// that more samples come than it can look at.
const WHOLE_CPU: u64 = 9000;
/// Time between two looks at what the observer used, in ns, and where few samples come, of which one may cost as much as many.
const CHECKED: u64 = 200_000_000;
const CHECKED_OF_FEW: u64 = 5_000_000_000;
/// One in this many samples is looked at in any case.
const MAX_PACE: u64 = 256;
/// By how much the pace changes at once, at most: the first samples of new code cost more than those that follow.
const MAX_STEP: u64 = 4;

/// The pace: one in how many samples is looked at.
#[derive(Debug)]
pub struct SamplePace {
    /// One in this many.
    each: u64,
    /// The share of one CPU's time that the observer may use, in ten-thousandths.
    limit: u64,
    period: u64,
    checked: u64,
    busy: u64,
}

impl SamplePace {
    /// A pace that begins at this time, on a machine with this number of CPUs.
    pub fn new(now: u64, cpus: usize) -> Self {
        let limit = (cpus as u64 * SHARE_OF_EACH).clamp(SHARE_OF_EACH, MAX_SHARE);
        Self::of_share(now, limit)
    }

    /// A pace that begins at this time, of an observer of few samples that may use this many ten-thousandths of the time of one CPU.
    pub fn of_few(now: u64, limit: u64) -> Self {
        Self { period: CHECKED_OF_FEW, ..Self::of_share(now, limit.min(WHOLE_CPU)) }
    }

    fn of_share(now: u64, limit: u64) -> Self {
        Self { each: 1, limit: limit.max(1), period: CHECKED, checked: now, busy: 0 }
    }

    /// A pace that begins at this time, for an observation of a few seconds that somebody waits for: the observer may use
    /// one CPU.
    pub fn of_one_cpu(now: u64) -> Self {
        Self::of_share(now, WHOLE_CPU)
    }

    /// Notes that the observer worked from one time to another; returns the new pace if it changes.
    pub fn worked(&mut self, from: u64, to: u64) -> Option<u64> {
        self.busy += to - from;
        let elapsed = to.saturating_sub(self.checked);
        if elapsed < self.period {
            return None;
        }
        // The time that the observer takes is proportional to the number of samples that it looks at.
        let wanted = (self.each * self.busy * WHOLE).div_ceil(elapsed * self.limit);
        (self.busy, self.checked) = (0, to);
        let each = wanted.clamp(self.each.div_ceil(MAX_STEP), self.each * MAX_STEP).clamp(1, MAX_PACE);
        (std::mem::replace(&mut self.each, each) != each).then_some(each)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pace_follows_the_time_that_it_takes() {
        let mut pace = SamplePace::new(0, 2);
        assert_eq!(pace.worked(0, CHECKED / 4), None);
        // 35 % of the time of one CPU, where 10 % of two are allowed.
        assert_eq!(pace.worked(CHECKED, CHECKED + CHECKED / 8), Some(4));
        let time = |n: u64| CHECKED * (2 * n + 1);
        assert_eq!(pace.worked(time(1), time(1) + CHECKED / 4), Some(5));
        assert_eq!(pace.worked(time(2), time(2) + CHECKED / 1000), Some(2));
        for n in 3..40 {
            pace.worked(time(n), time(n) + CHECKED);
        }
        assert_eq!(pace.each, MAX_PACE);
        let mut few = SamplePace::of_few(0, 20);
        assert_eq!(few.worked(0, 30_000_000), None);
        // 0.6 % of one CPU, where 0.2 % are allowed.
        assert_eq!(few.worked(CHECKED_OF_FEW, CHECKED_OF_FEW), Some(3));
        assert_eq!(
            (SamplePace::new(0, 0).limit, SamplePace::new(0, 8).limit, SamplePace::new(0, 4096).limit),
            (500, 4000, 5000)
        );
        assert_eq!(
            (SamplePace::of_few(0, 20).limit, SamplePace::of_few(0, 90_000).limit),
            (20, WHOLE_CPU),
            "one thread looks at samples"
        );
    }
}
