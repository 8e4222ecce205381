//! What a race is given: candidates, the metric, the budget.

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// More candidates are refused.
pub const MAX_CANDIDATES: usize = 1000;
/// Larger advantages are shown as this one, so that every gain is finite: a factor of 10^21.
const MAX_ADVANTAGE: f64 = 50.0;

/// Which values of the metric are better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Better {
    /// Less of it, such as time.
    #[default]
    Less,
    /// More of it, such as transactions in a second.
    More,
}

impl Better {
    /// The logarithm of a metric, of which less is better; `None` if it is no positive number.
    pub(crate) fn cost(self, metric: f64) -> Option<f64> {
        let log = (metric > 0.0 && metric.is_finite()).then(|| metric.ln())?;
        Some(match self {
            Self::Less => log,
            Self::More => -log,
        })
    }

    /// The gain of an advantage: of the cost without a setting less the cost with it.
    pub(crate) fn gain(self, advantage: f64) -> f64 {
        let advantage = advantage.clamp(-MAX_ADVANTAGE, MAX_ADVANTAGE);
        match self {
            Self::Less => -(-advantage).exp_m1(),
            Self::More => advantage.exp_m1(),
        }
    }

    /// The advantage that gives a gain; infinite for a gain of all time.
    pub(crate) fn advantage(self, gain: f64) -> f64 {
        match self {
            Self::Less => -(-gain.min(1.0)).ln_1p(),
            Self::More => gain.ln_1p(),
        }
    }
}

/// A setting in a race. The race knows it by its number; the first one, number 0, is the default.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct RaceCandidate {
    /// How much it asks of the user: among equals the lower one wins. The default is simpler than all others.
    pub rank: u32,
    /// The most that it can gain, as a fraction; `None` if nothing is known.
    pub bound: Option<f64>,
}

/// When a race ends at the latest.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RaceBudget {
    /// Runs, with those that were spoiled.
    pub runs: u32,
    /// Seconds of all runs; `None` for as long as it takes.
    pub seconds: Option<f64>,
}

/// What a race is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RaceGoal {
    /// To find the best candidate, and to confirm its gain in new pairs.
    #[default]
    Prove,
    /// To find those that may be the best, for another race: it ends after the rounds.
    Choose,
}

/// What a race is given.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RaceSettings {
    /// The candidates, the default first.
    pub candidates: Vec<RaceCandidate>,
    /// Which values of the metric are better.
    pub better: Better,
    /// When it ends at the latest.
    pub budget: RaceBudget,
    /// Gains below this one, as a fraction, are not worth a setting.
    pub worth: f64,
    /// The source of the random order.
    pub seed: u64,
    /// What it is for.
    #[serde(default)]
    pub goal: RaceGoal,
}

/// Settings that no race can have.
#[derive(Debug, Clone, Copy, PartialEq, Error)]
pub enum RaceSettingsError {
    /// There is no default, or there are too many candidates.
    #[error("a race has 1 to {MAX_CANDIDATES} candidates, the default first, and not {0}")]
    Candidates(usize),
    /// A bound is no fraction.
    #[error(
        "candidate {candidate} has the bound {bound}; give the most that it can gain as a fraction, such as 0.2"
    )]
    Bound {
        /// Its number.
        candidate: usize,
        /// Its bound.
        bound: f64,
    },
    /// What is worth it is no fraction.
    #[error("a gain cannot be worth it from {0} on; give a fraction above 0 and below 1, such as 0.01")]
    Worth(f64),
    /// The time is none.
    #[error("a race cannot take {0} s; give a positive number of seconds")]
    Seconds(f64),
}

impl RaceSettings {
    pub(crate) fn check(&self) -> Result<(), RaceSettingsError> {
        let count = self.candidates.len();
        if !(1..=MAX_CANDIDATES).contains(&count) {
            return Err(RaceSettingsError::Candidates(count));
        }
        for (candidate, one) in self.candidates.iter().enumerate() {
            if let Some(bound) = one.bound.filter(|bound| !bound.is_finite() || *bound < 0.0) {
                return Err(RaceSettingsError::Bound { candidate, bound });
            }
        }
        if !(self.worth > 0.0 && self.worth < 1.0) {
            return Err(RaceSettingsError::Worth(self.worth));
        }
        match self.budget.seconds {
            Some(seconds) if !(seconds > 0.0 && seconds.is_finite()) => {
                Err(RaceSettingsError::Seconds(seconds))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gains_and_advantages_are_each_others_inverse() {
        for better in [Better::Less, Better::More] {
            for gain in [-0.5, 0.0, 0.01, 0.3, 0.9] {
                assert!((better.gain(better.advantage(gain)) - gain).abs() < 1e-12, "{better:?} {gain}");
            }
            assert!(better.gain(1e9).is_finite() && better.gain(-1e9).is_finite());
            assert_eq!([0.0, -1.0, f64::NAN, f64::INFINITY].map(|metric| better.cost(metric)), [None; 4]);
        }
        assert_eq!(Better::Less.advantage(2.0), f64::INFINITY);
    }
}
