//! Since when a value is at or above a threshold, found in one pass and in constant memory.

/// Up to this many successive values below the threshold do not end a spell.
const TOLERATED: u32 = 3;

/// A value over time compared with a threshold.
#[derive(Debug, Clone)]
pub(crate) struct Onset {
    threshold: f64,
    spell: Option<Spell>,
    below: u32,
    longest: Option<Spell>,
    last: Option<u64>,
    covered: u64,
    above: u64,
    peak: Option<(f64, u64)>,
}

/// A time during which the value was at or above its threshold, in ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Spell {
    pub(crate) from: u64,
    pub(crate) to: u64,
}

impl Spell {
    fn length(self) -> u64 {
        self.to.saturating_sub(self.from)
    }
}

impl Onset {
    pub(crate) fn new(threshold: f64) -> Self {
        Self { threshold, spell: None, below: 0, longest: None, last: None, covered: 0, above: 0, peak: None }
    }

    /// Starts here, unless it has started: the first value covers the time from here.
    pub(crate) fn start(&mut self, time: u64) {
        self.last.get_or_insert(time);
    }

    /// Adds the next value, which covers the time since the value before.
    pub(crate) fn push(&mut self, time: u64, value: f64) {
        let from = self.last.replace(time).unwrap_or(time);
        let length = time.saturating_sub(from);
        self.covered += length;
        if self.peak.is_none_or(|(peak, _)| value > peak) {
            self.peak = Some((value, time));
        }
        if value >= self.threshold {
            self.above += length;
            self.below = 0;
            self.spell.get_or_insert(Spell { from, to: time }).to = time;
        } else {
            self.below += 1;
            if self.below > TOLERATED {
                self.close();
            }
        }
    }

    /// A gap: no value covers the time until the next start.
    pub(crate) fn gap(&mut self) {
        self.close();
        self.last = None;
    }

    fn close(&mut self) {
        if let Some(spell) = self.spell.take() {
            let longer = self.longest.is_none_or(|l| spell.length() > l.length());
            if longer {
                self.longest = Some(spell);
            }
        }
        self.below = 0;
    }

    /// The longest spell; `None` if the value never reached the threshold.
    pub(crate) fn longest(&self) -> Option<Spell> {
        match (self.longest, self.spell) {
            (Some(closed), Some(open)) if open.length() > closed.length() => Some(open),
            (closed, open) => closed.or(open),
        }
    }

    /// Whether the longest spell lasts to the last value.
    pub(crate) fn lasts(&self) -> bool {
        self.spell.is_some() && self.longest() == self.spell
    }

    /// Share of the time at or above the threshold, in percent.
    pub(crate) fn percent_above(&self) -> f64 {
        if self.covered == 0 { 0.0 } else { 100.0 * self.above as f64 / self.covered as f64 }
    }

    /// The highest value, and when it was.
    pub(crate) fn peak(&self) -> Option<(f64, u64)> {
        self.peak
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fed(values: &[f64]) -> Onset {
        let mut onset = Onset::new(50.0);
        (0..).zip(values).for_each(|(at, value)| onset.push(at * 10, *value));
        onset
    }

    #[test]
    fn the_longest_spell_is_found_with_its_start() {
        let onset = fed(&[0.0, 60.0, 0.0, 0.0, 0.0, 0.0, 70.0, 90.0, 80.0]);
        assert_eq!(onset.longest(), Some(Spell { from: 50, to: 80 }));
        assert!(onset.lasts());
        assert_eq!(onset.percent_above(), 50.0);
        assert_eq!(onset.peak(), Some((90.0, 70)));
    }

    #[test]
    fn short_dips_do_not_end_a_spell_and_long_ones_do() {
        let dip = fed(&[0.0, 60.0, 0.0, 0.0, 0.0, 60.0]);
        assert_eq!(dip.longest(), Some(Spell { from: 0, to: 50 }));
        let end = fed(&[0.0, 60.0, 60.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
        assert_eq!(end.longest(), Some(Spell { from: 0, to: 20 }));
        assert!(!end.lasts());
    }

    #[test]
    fn a_gap_separates_two_spells() {
        let mut onset = fed(&[60.0, 60.0]);
        onset.gap();
        onset.push(1000, 60.0);
        onset.push(1005, 60.0);
        assert_eq!(onset.longest(), Some(Spell { from: 0, to: 10 }));
        assert_eq!(onset.percent_above(), 100.0);
    }

    #[test]
    fn a_single_value_covers_the_time_from_the_start() {
        let mut onset = Onset::new(50.0);
        onset.start(100);
        onset.start(900);
        onset.push(1000, 60.0);
        assert_eq!(onset.longest(), Some(Spell { from: 100, to: 1000 }));
        assert_eq!(onset.percent_above(), 100.0);
    }

    #[test]
    fn without_a_value_at_the_threshold_there_is_no_spell() {
        let onset = fed(&[0.0, 49.9]);
        assert_eq!((onset.longest(), onset.lasts(), onset.percent_above()), (None, false, 0.0));
        assert_eq!(fed(&[]).peak(), None);
    }
}
