//! What a setting gains, from pairs of runs: one with it and one without it.

use crate::settings::Better;
use numakit_model::interval::ValueInterval;
use numakit_model::share::Z;
use serde::{Deserialize, Serialize};

/// The probability with which the interval of a gain from six pairs or more contains the true one.
pub const CONFIDENCE: f64 = 0.95;

/// With fewer pairs, the interval is from the worst to the best of them.
const FEW: usize = 6;

/// New pairs in which a gain is looked at again.
const AGAIN: f64 = 10.0;

/// A gain as fractions: 0.29 is 29 % less of a metric of which less is better, or 29 % more of one of which more is better.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PairedGain {
    /// The gain: the mean without the best and the worst pair, or of fewer than six pairs the middle one.
    pub gain: f64,
    /// The low end of the interval of the true gain.
    pub low: f64,
    /// The high end of that interval.
    pub high: f64,
    /// The low end of the interval in which the median gain of ten new pairs is, with the same probability: that differs from the truth too.
    pub again_low: f64,
    /// The high end of that interval.
    pub again_high: f64,
    /// The probability with which such an interval contains the true gain: [`CONFIDENCE`]; with fewer than six pairs that of the
    /// interval from the worst pair to the best one.
    pub confidence: f64,
    /// The gain of the worst pair.
    pub worst: f64,
    /// The number of pairs.
    pub pairs: u32,
}

impl PairedGain {
    /// Where it lies.
    pub fn interval(&self) -> ValueInterval {
        ValueInterval { low: self.low, high: self.high }
    }

    /// The gain of pairs of a metric: without the setting, with it. `None` without pairs, or if a value is no positive number.
    pub fn of_pairs(better: Better, pairs: &[(f64, f64)]) -> Option<Self> {
        let of_pair = |&(without, with): &(f64, f64)| Some(better.cost(without)? - better.cost(with)?);
        let advantages: Option<Vec<f64>> = pairs.iter().map(of_pair).collect();
        Self::of_advantages(better, &advantages?)
    }

    /// The gain of pairs that are given by their [advantages](Better::gain).
    pub(crate) fn of_advantages(better: Better, advantages: &[f64]) -> Option<Self> {
        let (estimate, [low, high], confidence) = trimmed(advantages)?;
        let worst = advantages.iter().copied().fold(f64::INFINITY, f64::min);
        // The variance of the difference to a mean of new pairs. With few pairs the interval is no multiple of an error, and stays.
        let pairs = advantages.len();
        let wider = if pairs < FEW { 1.0 } else { (1.0 + pairs as f64 / AGAIN).sqrt() };
        let again = |end: f64| better.gain(estimate + (end - estimate) * wider);
        let (again_low, again_high) = (again(low), again(high));
        let [gain, low, high, worst] = [estimate, low, high, worst].map(|advantage| better.gain(advantage));
        Some(Self { gain, low, high, again_low, again_high, confidence, worst, pairs: pairs as u32 })
    }
}

/// The mean without the tenth of the values at each end, its interval (Tukey and McLaughlin), and the confidence of that: with six
/// values and more, one of them at each end may be anything. With fewer, the interval has all values, and the confidence is that of
/// a sign test.
fn trimmed(advantages: &[f64]) -> Option<(f64, [f64; 2], f64)> {
    let mut values = advantages.to_vec();
    values.sort_by(f64::total_cmp);
    let (count, last) = (values.len(), values.len().checked_sub(1)?);
    if count < FEW {
        let middle = f64::midpoint(values[last / 2], values[count / 2]);
        return Some((middle, [values[0], values[last]], 1.0 - 0.5_f64.powi(last as i32)));
    }
    let cut = (count / 10).max(1);
    let kept = &values[cut..count - cut];
    let mean = kept.iter().sum::<f64>() / kept.len() as f64;
    let (low, high) = (kept[0], kept[kept.len() - 1]);
    let winsorized: Vec<f64> = values.iter().map(|value| value.clamp(low, high)).collect();
    let middle = winsorized.iter().sum::<f64>() / count as f64;
    let squares: f64 = winsorized.iter().map(|value| (value - middle).powi(2)).sum();
    let deviation = (squares / last as f64).sqrt();
    let part_kept = kept.len() as f64 / count as f64;
    let half = student(kept.len() - 1) * deviation / (part_kept * (count as f64).sqrt());
    Some((mean, [mean - half, mean + half], CONFIDENCE))
}

/// How many standard errors an interval of [`CONFIDENCE`] has on each side, if the error is estimated with these degrees of freedom: the
/// expansion of Cornish and Fisher, which is right within 1 % from three on.
fn student(freedom: usize) -> f64 {
    let [z1, z3, z5, z7] = [1, 3, 5, 7].map(|power| Z.powi(power));
    let per = 1.0 / freedom as f64;
    let [first, second, third] = [
        (z3 + z1) / 4.0,
        (5.0 * z5 + 16.0 * z3 + 3.0 * z1) / 96.0,
        (3.0 * z7 + 19.0 * z5 + 17.0 * z3 - 15.0 * z1) / 384.0,
    ];
    z1 + per * (first + per * (second + per * third))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gain(advantages: &[f64]) -> PairedGain {
        PairedGain::of_advantages(Better::Less, advantages).unwrap()
    }

    #[test]
    fn errors_are_those_of_the_published_table() {
        for (freedom, errors) in [(3, 3.182), (4, 2.776), (5, 2.571), (7, 2.365), (10, 2.228), (30, 2.042)] {
            assert!((student(freedom) / errors - 1.0_f64).abs() < 0.01, "{freedom}: {}", student(freedom));
        }
    }

    #[test]
    fn a_gain_is_a_part_of_what_it_was() {
        let half = PairedGain::of_pairs(Better::Less, &[(2.0, 1.0); 6]).unwrap();
        assert_eq!((half.gain, half.low, half.high, half.worst, half.pairs), (0.5, 0.5, 0.5, 0.5, 6));
        let twice = PairedGain::of_pairs(Better::More, &[(1.0, 2.0); 6]).unwrap();
        assert!((twice.gain - 1.0).abs() < 1e-12, "{twice:?}");
        assert_eq!(PairedGain::of_pairs(Better::More, &[(1.0, 0.0)]), None);
        assert_eq!(PairedGain::of_pairs(Better::More, &[]), None);
    }

    #[test]
    fn one_bad_pair_moves_the_worst_pair_and_not_the_gain() {
        let mut advantages = vec![0.10, 0.11, 0.09, 0.10, 0.12, 0.10, 0.11, 0.09, 0.10];
        let without = gain(&advantages);
        advantages.push(-0.6);
        let with = gain(&advantages);
        assert!((with.gain - without.gain).abs() < 0.01 && with.low > 0.0, "{with:?}");
        assert!(with.worst < -0.8 && without.worst > 0.08, "{with:?} {without:?}");
    }

    #[test]
    fn few_pairs_say_how_little_they_are_worth() {
        let three = gain(&[0.1, 0.2, 0.3]);
        assert_eq!((three.confidence, three.pairs), (0.75, 3));
        assert!(three.interval().low < three.gain && three.worst == three.low, "{three:?}");
    }
}
