//! Each remedy against none, in pairs of runs.

use crate::explained::AdvisedRemedy;
use crate::runner::{TrialEnd, TrialError, TrialRun, TrialRunner};
use numakit_sys::signal::Signal;
use numakit_tune::candidates::TuneSetting;
use numakit_tune::{Better, PairedGain, RunOutcome};
use serde::Serialize;

/// A run that was spoiled is repeated this many times.
const TRIES: usize = 3;

/// What a remedy was measured to gain.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TriedRemedy {
    /// As it is typed.
    pub command: String,
    /// What the finding says.
    pub says: Option<String>,
    /// The most that it can gain, as a fraction, if that was known.
    pub bound: Option<f64>,
    /// What it gains of the time; `None` if no pair was left.
    pub gain: Option<PairedGain>,
    /// What it gains of the CPU time.
    pub cpu: Option<PairedGain>,
    /// Why it failed.
    pub why: Option<String>,
}

/// Times of runs: without a remedy, with it.
#[derive(Debug, Default)]
struct Pairs {
    wall: Vec<(f64, f64)>,
    cpu: Vec<(f64, f64)>,
}

/// Runs each remedy in this many pairs with the program as it is, each first in every other pair. `before` is told of each run. The
/// remedies that were tried come with the signal that ended it, if one did.
pub fn try_remedies(
    runner: &mut TrialRunner,
    remedies: &[AdvisedRemedy],
    pairs: u32,
    typed: impl Fn(&TuneSetting) -> String,
    mut before: impl FnMut(&str),
) -> Result<(Vec<TriedRemedy>, Option<Signal>), TrialError> {
    let default = TuneSetting::default();
    let mut tried = Vec::new();
    for AdvisedRemedy { remedy, says } in remedies {
        let (mut found, mut why) = (Pairs::default(), None);
        let settings = [&default, &remedy.setting];
        'pairs: for pair in 0..=pairs {
            let mut of_pair = [None, None];
            let first = (pair % 2) as usize;
            for side in [first, 1 - first] {
                before(&typed(settings[side]));
                match run(runner, settings[side])? {
                    RunTried::Ran(run) => of_pair[side] = run,
                    RunTried::Interrupted(signal) => return Ok((tried, Some(signal))),
                    RunTried::Failed(words) => {
                        why = Some(words);
                        break 'pairs;
                    }
                }
            }
            // In the first pair nothing is cached.
            let [without, with] = of_pair;
            if let Some((without, with)) = without.zip(with).filter(|_| pair > 0) {
                found.wall.push((without.wall, with.wall));
                found.cpu.extend(without.cpu.zip(with.cpu));
            }
        }
        tried.push(TriedRemedy {
            command: typed(&remedy.setting),
            says: says.clone(),
            bound: remedy.bound,
            gain: PairedGain::of_pairs(Better::Less, &found.wall),
            cpu: PairedGain::of_pairs(Better::Less, &found.cpu),
            why,
        });
    }
    Ok((tried, None))
}

enum RunTried {
    /// It ran; `None` if it was spoiled each time.
    Ran(Option<TrialRun>),
    Failed(String),
    Interrupted(Signal),
}

fn run(runner: &mut TrialRunner, setting: &TuneSetting) -> Result<RunTried, TrialError> {
    for _ in 0..TRIES {
        let run = match runner.run(setting, None)? {
            TrialEnd::Ran(run) => *run,
            TrialEnd::Interrupted(signal) => return Ok(RunTried::Interrupted(signal)),
        };
        match run.outcome {
            RunOutcome::Metric(_) => return Ok(RunTried::Ran(Some(run))),
            RunOutcome::Failed(_) => return Ok(RunTried::Failed(run.why.unwrap_or_default())),
            RunOutcome::Spoiled => {}
        }
    }
    Ok(RunTried::Ran(None))
}
