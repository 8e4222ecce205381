//! Means of all series over blocks of time, in bounded memory: how sure the mean of a recording is.
//!
//! Neighbouring values depend on each other, so that the mean of many of them is less sure than they seem. Means
//! over blocks that are long enough do not. How long that is, nobody says: so the error is computed with blocks of
//! several lengths, and the largest one is used. The error of a formula, which may be a share, is that of a
//! jackknife: how much it changes if one block is left out.

use crate::tally::SLOT;

/// Maximum number of blocks in the finest division. When there would be more, all blocks become twice as long.
const MAX_BLOCKS: usize = 64;
/// Fewer blocks tell nothing about the error.
const MIN_BLOCKS: usize = 8;

/// Half of the interval, in standard errors, that contains 99.9 % of the values, by degrees of freedom (Student's t):
/// hundreds of values are compared, and of all these hardly one shall seem to differ by chance.
const QUANTILES: [(usize, f64); 6] = [(7, 5.41), (10, 4.59), (15, 4.07), (20, 3.85), (31, 3.63), (47, 3.51)];
const LAST_QUANTILE: f64 = 3.45;

/// Sums of the values of each series in blocks.
#[derive(Debug, Clone)]
pub(crate) struct Blocks {
    series: usize,
    began: Option<u64>,
    length: u64,
    /// By block, then by series: the sum and the number of values.
    sums: Vec<(f64, u32)>,
}

/// The input of a formula: the mean of each series.
type Means = Vec<Option<f64>>;

impl Blocks {
    pub(crate) fn new(series: usize) -> Self {
        Self { series, began: None, length: SLOT.as_nanos() as u64, sums: Vec::new() }
    }

    /// Makes room for values at these times.
    pub(crate) fn reach(&mut self, times: &[u64]) {
        let Some(&first) = times.first() else { return };
        let began = *self.began.get_or_insert(first);
        let last = times.iter().fold(0, |last, time| time.saturating_sub(began).max(last));
        while last / self.length >= MAX_BLOCKS as u64 {
            self.sums = merged(&self.sums, self.series);
            self.length *= 2;
        }
        let blocks = (last / self.length) as usize + 1;
        if self.sums.len() < blocks * self.series {
            self.sums.resize(blocks * self.series, (0.0, 0));
        }
    }

    /// A value of a series at a time that was made room for.
    pub(crate) fn add(&mut self, time: u64, series: usize, value: f64) {
        let block = time.saturating_sub(self.began.unwrap_or(time)) / self.length;
        if let Some((sum, count)) = self.sums.get_mut(block as usize * self.series + series) {
            *sum += value;
            *count += 1;
        }
    }

    /// For each division into blocks: the means without the first block, without the second, and so on.
    fn divisions(&self) -> Vec<Vec<Means>> {
        let mut sums = self.sums.clone();
        let mut divisions = Vec::new();
        loop {
            let left_out = without_one(&sums, self.series);
            if left_out.len() < MIN_BLOCKS {
                return divisions;
            }
            divisions.push(left_out);
            sums = merged(&sums, self.series);
        }
    }
}

/// Blocks of twice the length.
fn merged(sums: &[(f64, u32)], series: usize) -> Vec<(f64, u32)> {
    let add = |pair: &[(f64, u32)]| -> Vec<(f64, u32)> {
        let (one, other) = pair.split_at(series);
        let other = other.iter().copied().chain(std::iter::repeat((0.0, 0)));
        one.iter().zip(other).map(|(a, b)| (a.0 + b.0, a.1.saturating_add(b.1))).collect()
    };
    sums.chunks(2 * series.max(1)).flat_map(add).collect()
}

/// For each block that has values, the means of all other blocks.
fn without_one(sums: &[(f64, u32)], series: usize) -> Vec<Means> {
    let blocks = || sums.chunks(series.max(1)).filter(|block| block.iter().any(|one| one.1 > 0));
    let mut all = vec![(0.0, 0u64); series];
    for block in blocks() {
        all.iter_mut().zip(block).for_each(|(all, one)| *all = (all.0 + one.0, all.1 + u64::from(one.1)));
    }
    let rest = |all: &(f64, u64), one: &(f64, u32)| {
        let count = all.1 - u64::from(one.1);
        (count > 0).then(|| (all.0 - one.0) / count as f64)
    };
    blocks().map(|block| all.iter().zip(block).map(|(all, one)| rest(all, one)).collect()).collect()
}

/// How sure values computed from means of a recording are.
pub(crate) struct Errors {
    divisions: Vec<Vec<Means>>,
}

impl Errors {
    pub(crate) fn of(blocks: &Blocks) -> Self {
        Self { divisions: blocks.divisions() }
    }

    /// Whether the recording is too short to compute any error.
    pub(crate) fn is_unknown(&self) -> bool {
        self.divisions.is_empty()
    }

    /// Half of the interval that contains a value computed from means; `None` if it cannot be told.
    pub(crate) fn half(&self, value: impl Fn(&[Option<f64>]) -> Option<f64>) -> Option<f64> {
        let of_division = |means: &Vec<Means>| -> Option<f64> {
            let values: Vec<f64> = means.iter().map(|means| value(means)).collect::<Option<_>>()?;
            let count = values.len() as f64;
            let mean = values.iter().sum::<f64>() / count;
            let squares = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
            Some(quantile(values.len() - 1) * (squares * (count - 1.0) / count).sqrt())
        };
        let halves: Vec<f64> = self.divisions.iter().map(of_division).collect::<Option<_>>()?;
        halves.into_iter().reduce(f64::max)
    }
}

/// The quantile of the next smaller number of degrees of freedom that the table has: it gives a wider interval.
fn quantile(freedom: usize) -> f64 {
    let smaller = QUANTILES.iter().rev().find(|(least, _)| freedom >= *least);
    match smaller {
        _ if freedom >= MAX_BLOCKS - 1 => LAST_QUANTILE,
        Some((_, quantile)) => *quantile,
        None => QUANTILES[0].1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// One series, a value every 100 ms.
    fn of(values: impl IntoIterator<Item = f64>) -> Blocks {
        let mut blocks = Blocks::new(1);
        for (at, value) in (0u64..).zip(values) {
            blocks.reach(&[at * 100 * MS]);
            blocks.add(at * 100 * MS, 0, value);
        }
        blocks
    }

    /// Numbers between 0 and 1 that repeat every time.
    fn random() -> impl Iterator<Item = f64> {
        let mut state = 88172645463325252u64;
        std::iter::repeat_with(move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) as f64 / (1u64 << 53) as f64
        })
    }

    fn half(blocks: &Blocks) -> Option<f64> {
        Errors::of(blocks).half(|means| means[0])
    }

    #[test]
    fn blocks_stay_bounded_and_keep_all_values() {
        let blocks = of((0..10_000).map(|_| 2.0));
        assert!(blocks.sums.len() <= MAX_BLOCKS);
        assert_eq!(blocks.sums.iter().map(|one| one.1).sum::<u32>(), 10_000);
        assert_eq!(half(&blocks), Some(0.0));
    }

    #[test]
    fn short_recordings_have_no_error() {
        assert_eq!(half(&of([1.0; 7])), None);
        assert!(half(&of([1.0; 9])).is_some());
    }

    #[test]
    fn independent_values_have_the_error_of_their_number() {
        let half = half(&of(random().take(6400))).unwrap();
        let exact = 3.45 / 12f64.sqrt() / 80.0;
        assert!(half > 0.8 * exact && half < 3.0 * exact, "{half} for {exact}");
    }

    #[test]
    fn values_that_depend_on_those_before_are_less_sure() {
        let mut level = 0.0;
        let walk: Vec<f64> = random()
            .take(6400)
            .map(|value| {
                level = 0.99 * level + value - 0.5;
                level
            })
            .collect();
        let deviation = (walk.iter().map(|v| v * v).sum::<f64>() / 6400.0).sqrt();
        let naive = 3.45 * deviation / 80.0;
        assert!(half(&of(walk)).unwrap() > 5.0 * naive);
    }

    #[test]
    fn the_error_of_a_share_is_that_of_both_its_parts() {
        let mut blocks = Blocks::new(2);
        for (at, value) in (0u64..).zip(random().take(640)) {
            blocks.reach(&[at * 100 * MS]);
            blocks.add(at * 100 * MS, 0, value);
            blocks.add(at * 100 * MS, 1, 4.0 * value);
        }
        let share = Errors::of(&blocks).half(|means| Some(means[0]? / means[1]?)).unwrap();
        assert!(share < 1e-9, "{share}");
    }
}
