//! The winner against the default, in new pairs of runs.

use super::procedure::{FEW_PAIRS, HOPELESS, PAIRS};
use super::scores::Noise;
use crate::gain::PairedGain;
use crate::settings::Better;

/// Pairs of the default and a candidate.
#[derive(Debug, Clone)]
pub(super) struct Confirmation {
    pub(super) candidate: usize,
    /// Pairs that were begun and have ended.
    pub(super) ended: usize,
    /// Whether the gain was found again; `None` as long as that is open.
    pub(super) holds: Option<bool>,
    /// Whether the candidate is first in the pair that runs.
    candidate_first: bool,
    /// The costs of the pair that runs: of the default, of the candidate.
    costs: [Option<f64>; 2],
    /// By how much the cost with the candidate is below that without it, in each pair.
    advantages: Vec<f64>,
}

/// What a gain is judged by.
#[derive(Debug, Clone, Copy)]
pub(super) struct Demand {
    pub(super) better: Better,
    /// The least gain that is worth it.
    pub(super) worth: f64,
    pub(super) noise: Option<Noise>,
    /// [More standard errors](super::procedure::patience) before it is hopeless.
    pub(super) patience: f64,
}

impl Confirmation {
    pub(super) fn of(candidate: usize, candidate_first: bool) -> Self {
        let (costs, advantages) = ([None; 2], Vec::new());
        Self { candidate, ended: 0, holds: None, candidate_first, costs, advantages }
    }

    /// The runs of a pair. The first one is the other one in the next pair, so that drift cancels.
    pub(super) fn order(&self) -> [usize; 2] {
        if self.candidate_first { [self.candidate, 0] } else { [0, self.candidate] }
    }

    pub(super) fn note(&mut self, candidate: usize, cost: Option<f64>) {
        self.costs[usize::from(candidate > 0)] = cost;
    }

    pub(super) fn gain(&self, better: Better) -> Option<PairedGain> {
        PairedGain::of_advantages(better, &self.advantages)
    }

    /// Ends the pair that runs, and judges all of them.
    pub(super) fn end_pair(&mut self, demand: Demand) {
        let [default, candidate] = std::mem::take(&mut self.costs);
        self.advantages.extend(default.zip(candidate).map(|(default, candidate)| default - candidate));
        self.ended += 1;
        self.candidate_first ^= true;
        self.holds = self.judged(demand);
    }

    fn judged(&self, Demand { better, worth, noise, patience }: Demand) -> Option<bool> {
        let [fewest, most] = PAIRS;
        let is_last = self.ended >= most;
        let Some(gain) = self.gain(better) else { return is_last.then_some(false) };
        let count = self.advantages.len();
        if count >= fewest && gain.low > if is_last { 0.0 } else { worth } && gain.gain >= worth {
            return Some(true);
        }
        let of_pair =
            noise.map_or_else(|| deviation(&self.advantages), |noise| noise.careful * 2.0_f64.sqrt());
        let error = of_pair / (count as f64).sqrt();
        let hoped = better.advantage(gain.gain) + (HOPELESS + patience) * error;
        let is_hopeless = count >= FEW_PAIRS && hoped < better.advantage(worth);
        (is_last || is_hopeless).then_some(false)
    }
}

fn deviation(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (squares / (values.len() as f64 - 1.0)).sqrt()
}
