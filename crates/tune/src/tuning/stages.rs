//! Which races there are, and with which candidates.

use super::{StageCandidate, TuneStage, Tuning};
use crate::candidates::{TuneSetting, around, placements, products};
use crate::race::{Race, RaceAnswer};
use crate::settings::{MAX_CANDIDATES, RaceBudget, RaceCandidate, RaceGoal, RaceSettings, RaceSettingsError};

/// Runs that are kept for the last race: a few rounds of what won, and pairs.
pub(super) const FOR_PROOF: u32 = 24;
/// Rounds that a candidate takes part in, on average.
pub(super) const ROUNDS_OF_CANDIDATE: u32 = 3;
/// With fewer runs there is one race.
pub(super) const FEW_RUNS: u32 = 60;
/// With fewer runs left nothing more is tried.
const FEW_LEFT: u32 = 10;
/// Settings that get one option more.
const BEST: usize = 2;
/// Winners of a race that go on to the last one.
const WINNERS: usize = 3;
/// Products of one setting that are tried.
const PRODUCTS: usize = 3;

impl Tuning {
    /// Begins the next race, or ends the tuning.
    pub(super) fn begin_next(&mut self) -> Result<(), RaceSettingsError> {
        let RaceBudget { runs, seconds } = self.budget_left();
        if !self.stages.is_empty() && (runs == 0 || seconds.is_some_and(|seconds| seconds <= 0.0)) {
            self.is_over = self.is_settled();
            return Ok(());
        }
        let stage = match self.stages.len() {
            0 => Some(self.first()?),
            _ if self.is_settled() => self.rest()?,
            1 => match self.second()? {
                Some(stage) => Some(stage),
                None => self.last()?,
            },
            2 => self.last()?,
            _ => None,
        };
        self.is_over = stage.is_none();
        self.stages.extend(stage);
        Ok(())
    }

    /// Whether the race that has ended is the last one.
    fn is_settled(&self) -> bool {
        self.stages.last().is_some_and(|stage| {
            let has_failed = matches!(stage.race.answer(), RaceAnswer::DefaultFailed(_));
            has_failed || stage.race.settings().goal == RaceGoal::Prove
        })
    }

    /// Runs that the budget has left, judged by how long runs take.
    fn runs_left(&self) -> u32 {
        let RaceBudget { runs, seconds } = self.budget_left();
        // A conversion to integers ends at the largest one.
        seconds.map_or(runs, |seconds| runs.min((seconds / self.seconds_of_run().max(1e-6)) as u32))
    }

    /// How long a run takes, in seconds.
    pub(super) fn seconds_of_run(&self) -> f64 {
        let count = self.runs().count();
        let used: f64 = self.runs().map(|run| run.seconds).sum();
        if count > 0 { used / count as f64 } else { self.plan.seconds_per_run }
    }

    /// The default, the remedies, all remedies together, and the placements.
    fn first(&self) -> Result<TuneStage, RaceSettingsError> {
        let mut candidates: Vec<StageCandidate> = Vec::new();
        for (number, remedy) in self.plan.remedies.iter().enumerate() {
            add(&mut candidates, remedy.setting.clone(), Some(number));
        }
        let remedies: Vec<&TuneSetting> = self.plan.remedies.iter().map(|one| &one.setting).collect();
        let all = TuneSetting::together(&remedies).filter(|_| remedies.len() > 1);
        all.into_iter().for_each(|all| add(&mut candidates, all, None));
        for setting in self.plan.machine.iter().flat_map(placements) {
            add(&mut candidates, setting, None);
        }
        let left = self.runs_left();
        if left < FEW_RUNS || self.plan.machine.is_none() {
            return self.stage(candidates, left.saturating_sub(FOR_PROOF), RaceGoal::Prove);
        }
        self.stage(candidates, (left - FOR_PROOF) / 2, RaceGoal::Choose)
    }

    /// What the last race had no time for, if nothing came of it and there is time after all.
    fn rest(&self) -> Result<Option<TuneStage>, RaceSettingsError> {
        let Some(TuneStage { left_out, race, .. }) = self.stages.last() else { return Ok(None) };
        let runs = self.runs_left();
        if left_out.is_empty() || race.answer() != RaceAnswer::Nothing || runs < FEW_LEFT {
            return Ok(None);
        }
        let candidate =
            |setting: &TuneSetting| StageCandidate { remedy: self.remedy(setting), setting: setting.clone() };
        let candidates = left_out.iter().map(candidate).collect();
        self.stage(candidates, runs.saturating_sub(FOR_PROOF), RaceGoal::Prove).map(Some)
    }

    /// One option more for the best settings of the first race.
    fn second(&self) -> Result<Option<TuneStage>, RaceSettingsError> {
        let Some(machine) = &self.plan.machine else { return Ok(None) };
        let mut best = self.won(0);
        best.truncate(BEST);
        if best.is_empty() {
            best.push(TuneSetting::default());
        }
        let runs = self.runs_left().saturating_sub(FOR_PROOF);
        let mut candidates = Vec::new();
        // The best themselves run again, so that each is compared with what it is with one option more.
        let all = best.iter().cloned().chain(around(machine, &best));
        all.for_each(|setting| add(&mut candidates, setting, None));
        let is_too_late = runs < 2 * ROUNDS_OF_CANDIDATE;
        (!is_too_late).then(|| self.stage(candidates, runs, RaceGoal::Choose)).transpose()
    }

    /// What won, and what of it can be had together, against the default.
    fn last(&self) -> Result<Option<TuneStage>, RaceSettingsError> {
        let mut candidates = Vec::new();
        self.together().into_iter().for_each(|both| add(&mut candidates, both, None));
        let (first, second) = (self.won(0), self.won(1));
        for setting in second.iter().take(WINNERS).chain(first.iter().take(BEST)) {
            add(&mut candidates, setting.clone(), self.remedy(setting));
        }
        let runs = self.runs_left().saturating_sub(FOR_PROOF - 2 * ROUNDS_OF_CANDIDATE);
        let is_left = !candidates.is_empty() && self.runs_left() > 0;
        is_left.then(|| self.stage(candidates, runs, RaceGoal::Prove)).transpose()
    }

    /// For each setting of the second race that got options: those options that gained beyond it, together.
    fn together(&self) -> Vec<TuneSetting> {
        let Some(TuneStage { candidates, race, .. }) = self.stages.get(1) else { return Vec::new() };
        let mut all = Vec::new();
        for (number, base) in candidates.iter().enumerate() {
            let gain = |(other, candidate): (usize, &StageCandidate)| {
                let is_beyond = candidate.setting.extends(&base.setting);
                let gain = is_beyond.then(|| race.gained_over(other, number)).flatten()?;
                Some((gain, candidate.setting.clone()))
            };
            let mut beyond: Vec<(f64, TuneSetting)> =
                candidates.iter().enumerate().filter_map(gain).collect();
            beyond.sort_by(|one, other| other.0.total_cmp(&one.0));
            let beyond: Vec<TuneSetting> = beyond.into_iter().map(|(_, setting)| setting).collect();
            all.extend(products(&base.setting, &beyond).into_iter().take(PRODUCTS));
        }
        all
    }

    /// The settings that gained something in a race, the best first.
    fn won(&self, stage: usize) -> Vec<TuneSetting> {
        let Some(stage) = self.stages.get(stage) else { return Vec::new() };
        let setting = |candidate: usize| stage.candidates[candidate].setting.clone();
        stage.race.promising().into_iter().map(setting).collect()
    }

    /// The remedy that a setting is.
    fn remedy(&self, setting: &TuneSetting) -> Option<usize> {
        self.plan.remedies.iter().position(|remedy| remedy.setting == *setting)
    }

    /// A race of as many of these candidates as this many runs are enough for.
    fn stage(
        &self,
        mut candidates: Vec<StageCandidate>,
        runs: u32,
        goal: RaceGoal,
    ) -> Result<TuneStage, RaceSettingsError> {
        let most = (runs / ROUNDS_OF_CANDIDATE).saturating_sub(1).max(1) as usize;
        let left_out = candidates.split_off(most.min(candidates.len()).min(MAX_CANDIDATES - 1));
        candidates.insert(0, StageCandidate { setting: TuneSetting::default(), remedy: None });
        let of_race = |candidate: &StageCandidate| RaceCandidate {
            rank: candidate.setting.rank(),
            bound: candidate.remedy.and_then(|number| self.plan.remedies[number].bound),
        };
        let budget = self.budget_left();
        let race = Race::new(RaceSettings {
            candidates: candidates.iter().map(of_race).collect(),
            better: self.plan.better,
            budget: match goal {
                RaceGoal::Prove => budget,
                RaceGoal::Choose => RaceBudget { runs: budget.runs.min(runs.max(2)), ..budget },
            },
            worth: self.plan.worth,
            seed: self.plan.seed.wrapping_add(self.stages.len() as u64),
            goal,
        })?;
        let left_out = left_out.into_iter().map(|candidate| candidate.setting).collect();
        Ok(TuneStage { candidates, left_out, race })
    }
}

/// Adds a setting that is neither the default nor there.
fn add(candidates: &mut Vec<StageCandidate>, setting: TuneSetting, remedy: Option<usize>) {
    let is_new = setting != TuneSetting::default() && candidates.iter().all(|known| known.setting != setting);
    candidates.extend(is_new.then_some(StageCandidate { setting, remedy }));
}
