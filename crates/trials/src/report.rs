//! What a tuning found, as values: the JSON of `numa tune`.

use crate::disturbance::SpoiledBy;
use crate::explained::AdvisedRemedy;
use crate::metric::TrialMetric;
use crate::request::TrialScene;
use crate::runner::TrialRun;
use crate::session::{KeptRun, TuneSession};
use numakit_tune::candidates::{TuneNeed, TuneSetting};
use numakit_tune::tuning::TuneAnswer;
use numakit_tune::{Better, CandidateState, PairedGain, RaceBudget, RunFailure, RunOutcome, RunPurpose};
use serde::Serialize;
use std::collections::BTreeMap;

/// What a tuning found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TuneReport {
    /// The command line that was tuned.
    pub command: String,
    /// What was compared.
    pub metric: ReportedMetric,
    /// Gains below this one, as a fraction, are not worth a setting.
    pub worth: f64,
    /// The answer.
    pub answer: ReportedAnswer,
    /// All settings that ran, the best first, the default before all.
    pub candidates: Vec<ReportedCandidate>,
    /// Settings that the budget had no time for.
    pub left_out: Vec<String>,
    /// The budget that has time for these too, judged by the runs so far; `None` if nothing is left out.
    pub budget_for_all: Option<RaceBudget>,
    /// Commands that the observation advises and that were not tried, since they do more than start the program.
    pub untried: Vec<String>,
    /// Why the observation of the program says little, if it does.
    pub few_samples: Option<String>,
    /// Runs, with those that were spoiled.
    pub runs: usize,
    /// Seconds of all runs.
    pub seconds: f64,
    /// By how much runs with the same setting differ, as a standard deviation in parts; `None` before two rounds.
    pub noise: Option<f64>,
    /// How many runs were spoiled, by what.
    pub spoiled: BTreeMap<SpoiledBy, usize>,
    /// Whether the program binds its threads itself, so that settings of cores may not reach them.
    pub binds_threads: bool,
    /// Whether it, or what starts it, binds its threads only without `numa run`.
    pub binds_unless_placed: bool,
    /// Runs with a metric that left processes behind, which were ended.
    pub leaving: usize,
    /// The file in which all runs are kept.
    pub file: String,
}

/// What was compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReportedMetric {
    /// Its name.
    pub name: String,
    /// Which values are better.
    pub better: Better,
    /// What it is: times that are the metric are printed once.
    #[serde(skip)]
    pub of: TrialMetric,
}

/// The answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum ReportedAnswer {
    /// This is worth it.
    Use {
        /// Its place in the list of candidates.
        candidate: usize,
        /// What is typed.
        command: String,
        /// What it gains.
        gain: PairedGain,
        /// What it gains of other costs in the same pairs.
        #[serde(flatten)]
        costs: Box<ReportedCosts>,
        /// What it needs beyond numa.
        needs: Vec<TuneNeed>,
        /// The most that the observation had promised, as a fraction.
        bound: Option<f64>,
    },
    /// Nothing is worth it.
    Nothing,
    /// It is not known: the tuning is not over, or its budget was too small.
    Open {
        /// What leads so far.
        leading: Option<String>,
    },
    /// The program does not work without a setting.
    DefaultFailed {
        /// How it failed.
        failure: RunFailure,
        /// In words.
        why: String,
    },
}

/// What a setting gains beside the metric.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ReportedCosts {
    /// Of the time of a run; `None` where that is fixed.
    pub time: Option<PairedGain>,
    /// Of the CPU time; `None` where that is not known.
    pub cpu: Option<PairedGain>,
}

/// Where a candidate comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CandidateSource {
    /// The program as it is.
    Default,
    /// A remedy of what was found in it.
    Verdict,
    /// A setting that the user gave.
    Given,
    /// A setting that may make any program faster.
    Generic,
}

/// A setting that ran.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReportedCandidate {
    /// As it is typed.
    pub command: String,
    /// Where it comes from.
    pub source: CandidateSource,
    /// What was found in the program, if it is a remedy.
    pub says: Option<String>,
    /// The most that it can gain, as a fraction, if that is known.
    pub bound: Option<f64>,
    /// What it needs beyond numa.
    pub needs: Vec<TuneNeed>,
    /// Where it was in its last race.
    pub state: CandidateState,
    /// Its runs in all races.
    pub runs: u32,
    /// Those that were spoiled.
    pub spoiled: u32,
    /// What it gained in the rounds of its last race.
    pub in_rounds: Option<PairedGain>,
    /// What it gained in new pairs.
    pub confirmed: Option<PairedGain>,
    /// How it failed, in words.
    pub why: Option<String>,
}

impl ReportedCandidate {
    /// What it gained, as far as is known: in new pairs, else in rounds.
    pub fn gain(&self) -> Option<&PairedGain> {
        self.confirmed.as_ref().or(self.in_rounds.as_ref())
    }
}

impl TuneSession {
    /// What was found so far.
    pub fn report(&self) -> TuneReport {
        let candidates = self.candidates();
        let mut spoiled = BTreeMap::new();
        for by in self.runs.iter().filter_map(|kept| kept.run.spoiled) {
            *spoiled.entry(by).or_default() += 1;
        }
        let stages = self.tuning.stages();
        // What was left of a run that hung or failed is no part of a metric.
        let has_left =
            |kept: &&KeptRun| kept.run.left > 0 && !matches!(kept.run.outcome, RunOutcome::Failed(_));
        let left_out = self.tuning.left_out();
        TuneReport {
            command: self.request.scene.typed(),
            metric: ReportedMetric {
                name: self.request.metric.to_string(),
                better: self.request.better,
                of: self.request.metric.clone(),
            },
            worth: self.request.worth,
            answer: self.answer(&candidates),
            left_out: left_out.settings.iter().map(|setting| self.typed(setting)).collect(),
            budget_for_all: (!left_out.settings.is_empty()).then(|| self.with_more(left_out.more)),
            untried: self.advised.untried.clone(),
            few_samples: self.advised.few.clone(),
            runs: self.runs.len(),
            seconds: self.runs.iter().map(|kept| kept.run.seconds).sum(),
            noise: stages.iter().rev().find_map(|stage| stage.race.noise()),
            spoiled,
            binds_threads: self.seen.evades_cores(),
            binds_unless_placed: self.seen.binds_threads && !self.seen.evades_cores(),
            leaving: self.runs.iter().filter(has_left).count(),
            file: self.file.display().to_string(),
            candidates,
        }
    }

    /// The budget and more.
    fn with_more(&self, more: RaceBudget) -> RaceBudget {
        let RaceBudget { runs, seconds } = self.request.budget;
        let seconds = seconds.map(|seconds| seconds + more.seconds.unwrap_or(0.0));
        RaceBudget { runs: runs.saturating_add(more.runs), seconds }
    }

    fn answer(&self, candidates: &[ReportedCandidate]) -> ReportedAnswer {
        match self.tuning.answer() {
            TuneAnswer::Use { setting, gain } => {
                let command = self.typed(setting);
                let place = candidates.iter().position(|candidate| candidate.command == command);
                let bound = place.and_then(|place| candidates[place].bound);
                let is_fixed = matches!(self.request.scene, TrialScene::Running { .. });
                ReportedAnswer::Use {
                    candidate: place.unwrap_or(0),
                    command,
                    gain,
                    costs: Box::new(ReportedCosts {
                        time: self.gain_of(setting, |run| (!is_fixed).then_some(run.wall)),
                        cpu: self.gain_of(setting, |run| run.cpu),
                    }),
                    needs: setting.needs(),
                    bound,
                }
            }
            TuneAnswer::Nothing => ReportedAnswer::Nothing,
            TuneAnswer::Open { leading } => {
                let leading = leading.map(|setting| self.typed(setting));
                let gains = |command: &String| {
                    let candidate = candidates.iter().find(|candidate| candidate.command == *command);
                    candidate.and_then(ReportedCandidate::gain).is_some_and(|gain| gain.gain > 0.0)
                };
                ReportedAnswer::Open { leading: leading.filter(gains) }
            }
            TuneAnswer::DefaultFailed(failure) => {
                let why = self.runs.iter().rev().find_map(|kept| kept.run.why.clone());
                ReportedAnswer::DefaultFailed { failure, why: why.unwrap_or_default() }
            }
        }
    }

    /// All settings that are in a race, each once, the best first.
    fn candidates(&self) -> Vec<ReportedCandidate> {
        let mut settings: Vec<&TuneSetting> = Vec::new();
        for candidate in self.tuning.stages().iter().flat_map(|stage| &stage.candidates) {
            if !settings.contains(&&candidate.setting) {
                settings.push(&candidate.setting);
            }
        }
        let mut all: Vec<ReportedCandidate> =
            settings.iter().map(|setting| self.candidate(setting)).collect();
        all.retain(|candidate| candidate.runs > 0 || candidate.source == CandidateSource::Default);
        let gain = |candidate: &ReportedCandidate| {
            let gain = candidate.gain().map_or(f64::NEG_INFINITY, |gain| gain.gain);
            (candidate.confirmed.is_some() && candidate.state == CandidateState::Confirmed, gain)
        };
        all.sort_by(|one, other| {
            let is_default = |one: &ReportedCandidate| one.source == CandidateSource::Default;
            let ((proved, gained), (other_proved, other_gained)) = (gain(one), gain(other));
            let by_gain = other_proved.cmp(&proved).then(other_gained.total_cmp(&gained));
            is_default(other).cmp(&is_default(one)).then(by_gain)
        });
        all
    }

    fn candidate(&self, setting: &TuneSetting) -> ReportedCandidate {
        let remedy = self.advised.remedies.iter().find(|advised| advised.remedy.setting == *setting);
        let mut found = ReportedCandidate {
            command: self.typed(setting),
            source: match remedy {
                _ if *setting == TuneSetting::default() => CandidateSource::Default,
                Some(AdvisedRemedy { says: None, .. }) => CandidateSource::Given,
                Some(_) => CandidateSource::Verdict,
                None => CandidateSource::Generic,
            },
            says: remedy.and_then(|advised| advised.says.clone()),
            bound: remedy.and_then(|advised| advised.remedy.bound),
            needs: setting.needs(),
            state: CandidateState::Racing,
            runs: 0,
            spoiled: 0,
            in_rounds: None,
            confirmed: None,
            why: None,
        };
        for (number, stage) in self.tuning.stages().iter().enumerate() {
            let place = stage.candidates.iter().position(|candidate| candidate.setting == *setting);
            let Some(place) = place else { continue };
            let standing = stage.race.standings()[place];
            found.state = standing.state;
            found.runs += standing.runs;
            found.spoiled += standing.spoiled;
            found.in_rounds = standing.in_rounds.or(found.in_rounds);
            found.confirmed = standing.confirmed.or(found.confirmed);
            let failed = |kept: &&KeptRun| {
                (kept.stage, kept.candidate) == (number, place)
                    && matches!(kept.run.outcome, RunOutcome::Failed(_))
            };
            found.why = self.runs.iter().find(failed).and_then(|kept| kept.run.why.clone()).or(found.why);
        }
        found
    }

    /// What a setting gains of a cost, such as the CPU time, in the pairs that confirmed it.
    fn gain_of(&self, setting: &TuneSetting, cost: impl Fn(&TrialRun) -> Option<f64>) -> Option<PairedGain> {
        let stage = self.tuning.stages().len().checked_sub(1)?;
        let candidates = &self.tuning.stages()[stage].candidates;
        let place = candidates.iter().position(|candidate| candidate.setting == *setting)?;
        // Of each pair: its number, the candidate that ran with the default, and what both cost.
        let mut pairs: Vec<(usize, usize, [Option<f64>; 2])> = Vec::new();
        for kept in self.runs.iter().filter(|kept| kept.stage == stage) {
            let RunPurpose::Pair(number) = kept.purpose else { continue };
            if pairs.last().is_none_or(|(last, ..)| *last != number) {
                pairs.push((number, 0, [None; 2]));
            }
            let Some((_, candidate, costs)) = pairs.last_mut() else { continue };
            *candidate = kept.candidate.max(*candidate);
            if matches!(kept.run.outcome, RunOutcome::Metric(_)) {
                costs[usize::from(kept.candidate != 0)] = cost(&kept.run);
            }
        }
        let own = pairs.into_iter().filter(|(_, candidate, _)| *candidate == place);
        let own: Vec<(f64, f64)> = own.filter_map(|(_, _, [without, with])| without.zip(with)).collect();
        PairedGain::of_pairs(Better::Less, &own)
    }
}
