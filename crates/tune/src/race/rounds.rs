//! Rounds, who is left out after them, and whose gain is confirmed.

use super::confirmation::Demand;
use super::procedure::{
    AHEAD, BEHIND, CONFIRMATIONS, EQUAL, FIRST_CUT, GAINLESS, PAIRS, PROMISING, ROUNDS, patience,
};
use super::scores::Scores;
use super::{CandidateState, Confirmation, Phase, Race};
use crate::settings::RaceGoal;

impl Race {
    fn scores(&self) -> Scores {
        Scores::of(&self.rounds, self.states.len())
    }

    fn racing(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.states.len()).filter(|candidate| self.states[*candidate] == CandidateState::Racing)
    }

    /// By how much runs of one candidate differ, as a standard deviation in parts; `None` before two rounds.
    pub fn noise(&self) -> Option<f64> {
        self.scores().noise.map(|noise| noise.deviation)
    }

    /// Those that may win.
    fn racers(&self) -> Vec<usize> {
        self.racing().filter(|candidate| *candidate > 0).collect()
    }

    fn worth(&self) -> f64 {
        self.settings.better.advantage(self.settings.worth)
    }

    pub(super) fn begin_round(&mut self) {
        let mut order: Vec<usize> = self.racing().collect();
        self.random.shuffle(&mut order);
        self.queue = order.into();
        self.rounds.push(vec![None; self.states.len()]);
    }

    /// The best candidate that races, as far as is known.
    pub(super) fn leader(&self) -> Option<usize> {
        self.leader_of(&self.scores(), self.racing())
    }

    /// The best one of these; among equals the simpler one.
    fn leader_of(&self, scores: &Scores, among: impl Iterator<Item = usize>) -> Option<usize> {
        let costs = among.filter_map(|candidate| Some((candidate, scores.locations[candidate]?.expected)));
        let costs: Vec<(usize, f64)> = costs.collect();
        let best = costs.iter().map(|(_, cost)| *cost).fold(f64::INFINITY, f64::min);
        let equal = costs.iter().filter(|(_, cost)| *cost <= best + EQUAL);
        // The default, number 0, is the simplest whatever its rank.
        let simplicity =
            |candidate: &usize| (*candidate > 0, self.settings.candidates[*candidate].rank, *candidate);
        equal.map(|(candidate, _)| *candidate).min_by_key(simplicity)
    }

    pub(super) fn end_round(&mut self) {
        let scores = self.scores();
        if let Some(leader) = self.leader_of(&scores, self.racing()) {
            for candidate in self.racers() {
                if let Some(state) = self.left_out(&scores, leader, candidate) {
                    self.states[candidate] = state;
                }
            }
        }
        self.begin_next(&scores);
    }

    /// Why a candidate is out, if it is.
    fn left_out(&self, scores: &Scores, leader: usize, candidate: usize) -> Option<CandidateState> {
        let (location, best) = (scores.locations[candidate]?, scores.locations[leader]?);
        let behind = location.expected - best.expected;
        let Some(error) = scores.error(candidate) else {
            return (behind > FIRST_CUT.ln()).then_some(CandidateState::Slower);
        };
        if behind > BEHIND * error {
            return Some(CandidateState::Slower);
        }
        let gainless = GAINLESS[usize::from(location.runs > 2)] + patience(self.states.len());
        if scores.advantage(candidate)? + gainless * error < self.worth() {
            return Some(CandidateState::NoGain);
        }
        let won = scores.advantage(leader)? - BEHIND * error;
        let bound = self.settings.better.advantage(self.settings.candidates[candidate].bound?);
        (candidate != leader && bound < won).then_some(CandidateState::Bounded)
    }

    /// Begins the next round, or ends the rounds.
    fn begin_next(&mut self, scores: &Scores) {
        let racers = self.racers();
        let leader = self.leader_of(scores, racers.iter().copied());
        let error = leader.and_then(|leader| scores.error(leader));
        let of_pairs = if self.settings.goal == RaceGoal::Prove { 2 * PAIRS[0] } else { 0 };
        let reserve = racers.len() + 1 + of_pairs;
        let is_settled = racers.len() <= 1 || error.is_some_and(|error| error < EQUAL);
        if !is_settled && self.rounds.len() < ROUNDS && self.runs_left() as usize >= reserve {
            return self.begin_round();
        }
        let leader = leader.or(racers.first().copied());
        match leader
            .filter(|leader| self.settings.goal == RaceGoal::Prove && self.is_promising(scores, *leader))
        {
            Some(leader) => self.begin_confirmation(leader),
            None => self.phase = Phase::Over,
        }
    }

    /// Whether it gains what is worth it, as far as is known. What ran once only is promising: a first run says little.
    fn is_promising(&self, scores: &Scores, candidate: usize) -> bool {
        let gain = scores.advantage(candidate).zip(scores.error(candidate));
        let demanded = PROMISING - patience(self.states.len());
        gain.is_none_or(|(advantage, error)| advantage - demanded * error > self.worth())
    }

    /// The candidates that gain something, as far as is known, the best first; among equals the simpler ones.
    pub fn promising(&self) -> Vec<usize> {
        let scores = self.scores();
        let is_promising = |candidate: &usize| self.is_promising(&scores, *candidate);
        let mut left: Vec<usize> = self.racers().into_iter().filter(is_promising).collect();
        let mut best = Vec::new();
        while let Some(leader) = self.leader_of(&scores, left.iter().copied()) {
            left.retain(|candidate| *candidate != leader);
            best.push(leader);
        }
        best
    }

    /// By how much a candidate gains more than another one in the rounds, as a fraction; `None` unless that is worth it beyond noise.
    pub fn gained_over(&self, candidate: usize, other: usize) -> Option<f64> {
        let scores = self.scores();
        let advantage = scores.locations[other]?.expected - scores.locations[candidate]?.expected;
        let error = scores.error(candidate)?;
        (advantage - PROMISING * error > self.worth()).then(|| self.settings.better.gain(advantage))
    }

    fn begin_confirmation(&mut self, candidate: usize) {
        let confirmation = Confirmation::of(candidate, self.random.below(2) > 0);
        self.phase = Phase::Confirming;
        self.queue = confirmation.order().into();
        self.confirmations.push(confirmation);
    }

    pub(super) fn end_pair(&mut self) {
        let scores = self.scores();
        let demand = Demand {
            better: self.settings.better,
            worth: self.settings.worth,
            noise: scores.noise,
            patience: patience(self.states.len()),
        };
        let Some(confirmation) = self.confirmations.last_mut() else { return };
        let state = &mut self.states[confirmation.candidate];
        if *state == CandidateState::Racing {
            confirmation.end_pair(demand);
            match confirmation.holds {
                Some(true) => *state = CandidateState::Confirmed,
                Some(false) => *state = CandidateState::Refuted,
                None => {
                    self.queue = confirmation.order().into();
                    return;
                }
            }
        } else {
            confirmation.holds = Some(false);
        }
        match self.runner_up(&scores) {
            Some(candidate) => {
                self.states[candidate] = CandidateState::Racing;
                self.begin_confirmation(candidate);
            }
            None => self.phase = Phase::Over,
        }
    }

    /// A candidate whose gain in the rounds is beyond noise above what was confirmed, or worth it if nothing was.
    fn runner_up(&self, scores: &Scores) -> Option<usize> {
        if self.confirmations.len() >= CONFIRMATIONS {
            return None;
        }
        let better = self.settings.better;
        let confirmed = self.confirmations.iter().filter(|one| one.holds == Some(true));
        let gains = confirmed.filter_map(|one| Some(better.advantage(one.gain(better)?.gain)));
        let won = gains.fold(self.worth(), f64::max);
        let is_ahead = |candidate: &usize| {
            use CandidateState::{Bounded, NoGain, Racing, Slower};
            let is_open = matches!(self.states[*candidate], Racing | Slower | NoGain | Bounded);
            let gain = scores.advantage(*candidate).zip(scores.error(*candidate)).filter(|_| is_open);
            gain.is_some_and(|(advantage, error)| advantage - AHEAD * error > won)
        };
        self.leader_of(scores, (1..self.states.len()).filter(is_ahead))
    }
}
