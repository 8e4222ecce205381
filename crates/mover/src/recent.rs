//! What moved recently, so that nothing moves to and fro.

use std::collections::BTreeMap;
use std::ops::Range;

/// Memory is remembered in pieces of this size.
const REGION: u64 = 2 << 20;
/// Nothing moves twice within this time, in ns.
pub const PAUSE: u64 = 30_000_000_000;
/// Nothing moves more than twice within this time, in ns.
const WINDOW: u64 = 600_000_000_000;

/// When regions of memory moved last, and before.
#[derive(Debug, Clone, Default)]
pub struct Recent {
    now: u64,
    regions: BTreeMap<(u32, u64), [Option<u64>; 2]>,
}

impl Recent {
    /// It is now this time, in ns. What moves from now on belongs to one look.
    pub fn look(&mut self, now: u64) {
        self.now = now;
        self.regions.retain(|_, times| times.iter().flatten().any(|time| now < time.saturating_add(WINDOW)));
    }

    /// Notes that this memory of a process moves now.
    pub fn moved(&mut self, process: u32, range: &Range<u64>) {
        self.moved_at(process, range, self.now);
    }

    /// Notes that this memory of a process moved at a time.
    pub fn moved_at(&mut self, process: u32, range: &Range<u64>, time: u64) {
        for region in regions(range) {
            let times = self.regions.entry((process, region)).or_default();
            if times[0] != Some(time) {
                *times = [Some(time), times[0]];
            }
        }
    }

    /// Whether memory of a process may move now.
    pub fn may_move(&self, process: u32, range: &Range<u64>) -> bool {
        let is_within =
            |time: Option<u64>, length: u64| time.is_some_and(|time| self.now < time.saturating_add(length));
        let (first, last) = (range.start / REGION, range.end.saturating_sub(1) / REGION);
        let mut known = self.regions.range((process, first)..=(process, last.max(first)));
        known.all(|(_, times)| !is_within(times[0], PAUSE) && !is_within(times[1], WINDOW))
    }
}

fn regions(range: &Range<u64>) -> impl Iterator<Item = u64> {
    range.start / REGION..range.end.div_ceil(REGION)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn a_page_moves_once_in_30_seconds_and_twice_in_10_minutes() {
        let (mut recent, page) = (Recent::default(), 0x7000_0000..0x7000_1000);
        let mut moves = Vec::new();
        for second in (0..1300).step_by(10) {
            recent.look(second * SECOND);
            if recent.may_move(3, &page) {
                recent.moved(3, &page);
                moves.push(second);
            }
        }
        assert_eq!(moves, [0, 30, 600, 630, 1200, 1230]);
    }

    #[test]
    fn other_memory_and_other_processes_are_free() {
        let mut recent = Recent::default();
        recent.look(SECOND);
        recent.moved(3, &(REGION..2 * REGION));
        assert!(
            !recent.may_move(3, &(0..REGION + 1)) && !recent.may_move(3, &(REGION + 4096..REGION + 8192))
        );
        assert!(recent.may_move(3, &(0..REGION)) && recent.may_move(3, &(2 * REGION..3 * REGION)));
        assert!(recent.may_move(4, &(REGION..2 * REGION)));
        recent.look(1000 * SECOND);
        assert!(recent.regions.is_empty());
    }
}
