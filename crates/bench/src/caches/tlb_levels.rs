//! Where the cost of loads jumps as the number of pages grows.

use std::ops::Range;

/// A cost differs from the one before if it is larger by this factor, and by this share of the time of a hit in the first
/// cache.
const FACTOR: f64 = 2.0;
const OF_HIT: f64 = 0.5;
/// Costs that rise do so until this many times as many pages.
const BEYOND: f64 = 1.5;
/// The share of a number of pages to which a reach is found.
const FINEST: usize = 16;

/// What loads cost with a number of pages.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Cost {
    pub pages: usize,
    /// The time beyond that of lines side by side.
    pub more: f64,
    /// The time of a load that hits everything.
    pub hit: f64,
}

/// A level of the TLB, or of the tables that it asks when it misses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Level {
    /// The most pages with which loads cost no more than with fewer.
    pub reach: usize,
    /// The costs after the jump that follows, until the next one.
    pub plateau: Range<usize>,
}

/// Levels, nearest first, of costs by ascending numbers of pages.
pub(crate) fn levels(costs: &[Cost]) -> Vec<Level> {
    let costs = &rising(costs);
    let mut levels: Vec<Level> = Vec::new();
    let mut first = 0;
    while first < costs.len() {
        let end = end_of_plateau(costs, first);
        if let Some(level) = levels.last_mut() {
            level.plateau = first..end;
        }
        let Some(jump) = largest_step(costs, end) else { break };
        let reach = costs[jump - 1].pages;
        let beyond = costs.partition_point(|cost| (cost.pages as f64) < BEYOND * reach as f64);
        first = beyond.clamp(jump, costs.len() - 1);
        levels.push(Level { reach, plateau: first..costs.len() });
        if first + 1 >= costs.len() {
            break;
        }
    }
    levels
}

/// The costs, of which each is at most the cost with more pages: other programs make loads slower, never faster, so a larger
/// one was disturbed.
fn rising(costs: &[Cost]) -> Vec<Cost> {
    let mut costs = costs.to_vec();
    for at in (1..costs.len()).rev() {
        costs[at - 1].more = costs[at - 1].more.min(costs[at].more);
    }
    costs
}

/// The place from `from` on at which costs rise most, within one jump; `None` after the last one.
fn largest_step(costs: &[Cost], from: usize) -> Option<usize> {
    let most = BEYOND * costs.get(from)?.pages as f64;
    let near = (from..costs.len()).take_while(|at| costs[*at].pages as f64 <= most);
    let step = |at: &usize| costs[*at].more - costs[at.saturating_sub(1)].more;
    near.max_by(|one, other| step(one).total_cmp(&step(other)))
}

/// The first cost that, like the one after it, is larger than the costs from `first` on. A single larger cost was disturbed.
fn end_of_plateau(costs: &[Cost], first: usize) -> usize {
    let is_more = |at: usize, than: f64| costs.get(at).is_some_and(|cost| is_above(*cost, than));
    for end in first + 1..costs.len() {
        let mut before: Vec<f64> = costs[first..end].iter().map(|cost| cost.more).collect();
        before.sort_by(f64::total_cmp);
        let middle = before[before.len() / 2];
        if is_more(end, middle) && is_more(end + 1, middle) {
            return end;
        }
    }
    costs.len()
}

fn is_above(cost: Cost, other: f64) -> bool {
    cost.more > FACTOR * other.max(0.0) + OF_HIT * cost.hit
}

/// A number of pages between the reach of a level and the next measured number; `None` if all reaches are known well enough.
pub(crate) fn next_pages(costs: &[Cost]) -> Option<usize> {
    let next = |level: Level| {
        let over = costs.iter().map(|cost| cost.pages).find(|pages| *pages > level.reach)?;
        let middle = level.reach + (over - level.reach) / 2;
        (over - level.reach > (level.reach / FINEST).max(1)).then_some(middle)
    };
    levels(costs).into_iter().find_map(next)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A TLB with 96 entries and a second one with 4096, with some noise, of a CPU that hits in 1 ns.
    fn cost(pages: usize) -> Cost {
        let noise = if pages.is_multiple_of(3) { 0.1 } else { -0.1 };
        let more = match pages {
            0..=96 => 0.0,
            97..=104 => 1.5,
            105..=4096 => 2.0,
            _ => 12.0,
        };
        Cost { pages, more: more + noise, hit: 1.0 }
    }

    fn found(measure: impl Fn(usize) -> Cost) -> Vec<Cost> {
        let powers = (3..14).flat_map(|power| [1 << power, 3 << (power - 1)]);
        let mut costs: Vec<Cost> = powers.map(&measure).collect();
        for _ in 0..20 {
            let Some(pages) = next_pages(&costs) else { break };
            assert!(costs.iter().all(|cost| cost.pages != pages), "{pages} again");
            costs.push(measure(pages));
            costs.sort_by_key(|cost| cost.pages);
        }
        costs
    }

    #[test]
    fn reaches_and_costs_of_two_levels_are_found() {
        let costs = found(cost);
        let levels = levels(&costs);
        let reaches: Vec<usize> = levels.iter().map(|level| level.reach).collect();
        assert!(reaches.len() == 2 && (90..=96).contains(&reaches[0]), "{reaches:?}");
        assert!((3840..=4096).contains(&reaches[1]), "{reaches:?}");
        for (level, more) in levels.iter().zip([2.0, 12.0]) {
            let plateau = &costs[level.plateau.clone()];
            assert!(
                !plateau.is_empty() && plateau.iter().all(|cost| (cost.more - more).abs() < 0.7),
                "{costs:?}"
            );
        }
    }

    #[test]
    fn a_rise_that_does_not_hold_is_no_level() {
        // As measured beside others: the costs of two numbers of pages at the end are again those of fewer.
        let measured = [
            (8, 0.0),
            (64, 0.0),
            (72, 0.1),
            (76, 1.9),
            (96, 1.9),
            (512, 2.0),
            (2304, 2.4),
            (2688, 9.8),
            (2944, 3.3),
            (3200, 6.5),
            (4096, 15.5),
            (8192, 25.4),
            (16384, 37.7),
            (23552, 37.1),
            (24576, 35.9),
            (32768, 42.2),
            (36864, 113.2),
            (40960, 182.0),
            (49152, 44.9),
            (65536, 51.4),
        ];
        let costs: Vec<Cost> =
            measured.iter().map(|&(pages, more)| Cost { pages, more, hit: 1.09 }).collect();
        let reaches: Vec<usize> = levels(&costs).iter().map(|level| level.reach).collect();
        assert_eq!(reaches, [72, 3200]);
        // The same rise holds where no cost is less again.
        let reaches: Vec<usize> = levels(&costs[..18]).iter().map(|level| level.reach).collect();
        assert_eq!(reaches, [72, 3200, 32768]);
    }

    #[test]
    fn one_value_that_is_too_high_is_no_level() {
        let disturbed = |pages| if pages == 1024 { Cost { more: 50.0, ..cost(pages) } } else { cost(pages) };
        let reaches: Vec<usize> = levels(&found(disturbed)).iter().map(|level| level.reach).collect();
        assert!(reaches.len() == 2 && (90..=96).contains(&reaches[0]) && reaches[1] >= 3840, "{reaches:?}");
        let mut last = found(cost);
        last.push(Cost { pages: 1 << 14, more: 90.0, hit: 1.0 });
        assert_eq!(levels(&last).len(), 2);
        assert_eq!(levels(&[]), []);
        assert_eq!(levels(&[cost(8), cost(16), cost(24)]), []);
    }
}
