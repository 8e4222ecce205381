//! What a race says, at its end or before.

use super::{Phase, Race, RunFailure, RunOutcome};
use crate::gain::PairedGain;
use serde::{Deserialize, Serialize};

/// The answer of a race.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RaceAnswer {
    /// This setting is worth it.
    Use {
        /// The number of the candidate.
        candidate: usize,
        /// What it gains, from pairs of runs that had no part in choosing it.
        gain: PairedGain,
    },
    /// No setting is worth it.
    Nothing,
    /// The race is not over, or the budget was too small.
    Open {
        /// The candidate that leads so far, if that is not the default.
        leading: Option<usize>,
        /// What it gains in the pairs of its confirmation so far; `None` before these.
        gain: Option<PairedGain>,
    },
    /// The default does not work, so nothing can be compared with it.
    DefaultFailed(RunFailure),
}

/// Where a candidate is in the race.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CandidateState {
    /// In the race: the default, to the end.
    Racing,
    /// Out, since it does not work.
    Failed(RunFailure),
    /// Out, since it is slower than the best one.
    Slower,
    /// Out, since it gains nothing that is worth it.
    NoGain,
    /// Out, since more than it can gain is won.
    Bounded,
    /// Out, since its gain was not found again in new pairs.
    Refuted,
    /// Its gain was found again in new pairs.
    Confirmed,
}

/// What is known of a candidate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RaceStanding {
    /// Where it is in the race.
    pub state: CandidateState,
    /// Its runs, with those that were spoiled.
    pub runs: u32,
    /// Those that were spoiled.
    pub spoiled: u32,
    /// What it gains in the rounds, in which it was chosen or left out: too much for the one that was chosen. `None` for the default,
    /// and before its first run.
    pub in_rounds: Option<PairedGain>,
    /// What it gains in new pairs: the gain to publish. `None` without these.
    pub confirmed: Option<PairedGain>,
}

impl Race {
    /// The answer, as far as it is known.
    pub fn answer(&self) -> RaceAnswer {
        if let Phase::Failed(failure) = self.phase {
            return RaceAnswer::DefaultFailed(failure);
        }
        let confirmed = self.confirmations.iter().filter(|one| one.holds == Some(true));
        let gains = confirmed.filter_map(|one| Some((one.candidate, one.gain(self.settings.better)?)));
        let best = gains.max_by(|one, other| one.1.gain.total_cmp(&other.1.gain));
        if let Some((candidate, gain)) = best {
            return RaceAnswer::Use { candidate, gain };
        }
        match (self.phase, self.confirmations.last()) {
            (Phase::Over, _) => RaceAnswer::Nothing,
            (Phase::Confirming, Some(one)) => {
                RaceAnswer::Open { leading: Some(one.candidate), gain: one.gain(self.settings.better) }
            }
            _ => RaceAnswer::Open { leading: self.leader().filter(|leader| *leader > 0), gain: None },
        }
    }

    /// What is known of each candidate.
    pub fn standings(&self) -> Vec<RaceStanding> {
        (0..self.states.len()).map(|candidate| self.standing(candidate)).collect()
    }

    fn standing(&self, candidate: usize) -> RaceStanding {
        let better = self.settings.better;
        let runs = self.told.iter().filter(|told| told.candidate == candidate);
        let spoiled = runs.clone().filter(|told| told.outcome == RunOutcome::Spoiled).count() as u32;
        let advantages = self.rounds.iter().filter_map(|round| Some(round[0]? - round[candidate]?));
        let advantages: Vec<f64> = advantages.filter(|_| candidate > 0).collect();
        let confirmation = self.confirmations.iter().rfind(|one| one.candidate == candidate);
        RaceStanding {
            state: self.states[candidate],
            runs: runs.count() as u32,
            spoiled,
            in_rounds: PairedGain::of_advantages(better, &advantages),
            confirmed: confirmation.and_then(|one| one.gain(better)),
        }
    }
}
