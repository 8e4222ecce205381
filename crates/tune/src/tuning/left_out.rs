//! What the budget had no time for, and how much more of it would have been enough.

use super::stages::{FEW_RUNS, FOR_PROOF, ROUNDS_OF_CANDIDATE};
use super::{TuneStage, Tuning};
use crate::candidates::TuneSetting;
use crate::settings::RaceBudget;

/// Settings that no race had time for.
#[derive(Debug, Clone, PartialEq)]
pub struct LeftOutSettings<'a> {
    /// The settings, each once.
    pub settings: Vec<&'a TuneSetting>,
    /// What the budget would need in addition, judged by how long runs took; no seconds if it has no end in time.
    pub more: RaceBudget,
}

impl Tuning {
    /// What the budget had no time for.
    pub fn left_out(&self) -> LeftOutSettings<'_> {
        let raced = |setting: &TuneSetting| {
            self.stages.iter().any(|stage| stage.candidates.iter().any(|one| one.setting == *setting))
        };
        let mut settings: Vec<&TuneSetting> = Vec::new();
        let mut runs = 0;
        for (number, stage) in self.stages.iter().enumerate() {
            let before = settings.len();
            let left = stage.left_out.iter().filter(|setting| !raced(setting));
            left.for_each(|setting| {
                if !settings.contains(&setting) {
                    settings.push(setting);
                }
            });
            if settings.len() > before {
                runs += self.missing(number, stage);
            }
        }
        let seconds = self.plan.budget.seconds.map(|_| f64::from(runs) * self.seconds_of_run());
        LeftOutSettings { settings, more: RaceBudget { runs, seconds } }
    }

    /// Runs that a race would have needed in addition.
    fn missing(&self, number: usize, stage: &TuneStage) -> u32 {
        let raced = stage.candidates.len() as u32;
        // The last ones may have been dropped for a part of a round.
        let more = ROUNDS_OF_CANDIDATE * (stage.left_out.len() as u32 + 1);
        if number > 0 {
            return more;
        }
        let of_race = ROUNDS_OF_CANDIDATE * raced + more;
        let is_halved = self.plan.machine.is_some() && FOR_PROOF + of_race >= FEW_RUNS;
        let needed = FOR_PROOF + if is_halved { 2 * of_race } else { of_race };
        let had = match self.plan.budget {
            RaceBudget { runs, seconds: Some(seconds) } => {
                runs.min((seconds / self.seconds_of_run().max(1e-6)) as u32)
            }
            RaceBudget { runs, seconds: None } => runs,
        };
        needed.saturating_sub(had).max(ROUNDS_OF_CANDIDATE)
    }
}
