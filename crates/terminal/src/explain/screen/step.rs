//! What to do, and the commands to type.

use super::fit::Part;
use crate::explain::percent;
use numakit_explain::UNKNOWN_COMMAND;
use numakit_findings::explained::JudgedReport;
use numakit_findings::next::{NextKind, NextStep};
use numakit_model::thresholds::MIN_SAMPLES;

/// A second step with more lines would leave no room for the data.
const MAX_SECOND: usize = 5;

/// The steps with what each is worth.
pub(super) fn all(judged: &JudgedReport, width: usize) -> Vec<Part> {
    let steps = judged.next.iter().enumerate().map(|(at, step)| (at, one(step, at == 0, width)));
    let fits =
        |at: usize, parts: &[Part]| at == 0 || parts.iter().map(Part::height).sum::<usize>() <= MAX_SECOND;
    steps.filter(|(at, parts)| fits(*at, parts)).flat_map(|(_, parts)| parts).collect()
}

fn one(step: &NextStep, is_first: bool, width: usize) -> Vec<Part> {
    let label = match (is_first, &step.kind) {
        (true, _) => "next",
        (false, NextKind::Proof | NextKind::Trial) => "then",
        (false, _) => "also",
    };
    let command = Part::command(label, &step.command, width);
    // What else to change is said of the most valuable step alone.
    let change = step.r#do.as_ref().filter(|_| is_first);
    let change = change.map(|change| Part::labelled("do", change, width, 3).dropped(6));
    let (most, early) = if is_first { (3, 6) } else { (1, 7) };
    let (cost, purpose) = (step.worth.as_ref().map(|cost| cost.words()), purpose(&step.kind));
    let why = step.why.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
    let worth = |text: &str| Part::labelled("worth", text, width, most).dropped(early);
    match (cost, &step.kind) {
        // The command tries what is to be changed.
        (Some(cost), NextKind::Remedy { .. } | NextKind::OtherMachine) => {
            let does = if purpose.is_empty() { purpose } else { format!("; {purpose}") };
            [command, worth(&format!("{cost}{does}{why}"))].into_iter().chain(change).collect()
        }
        (cost, _) => {
            let worth = cost.map(|cost| worth(&format!("{cost}{why}")));
            let told = Part::labelled("", &purpose, width, 2).dropped(early);
            change.into_iter().chain(worth).chain([command, told]).collect()
        }
    }
}

/// What a command does.
fn purpose(kind: &NextKind) -> String {
    let of_time = |share: f64| format!("{} of the CPU time", percent(share.min(1.0)));
    match kind {
        NextKind::Remedy { expect, machine, is_incomplete } => {
            let command = is_incomplete.then(|| format!("{UNKNOWN_COMMAND} is the command that runs it"));
            let place = machine.as_ref().map(|machine| format!("to be typed on {machine}"));
            let expect = expect.as_ref().map(|expect| format!("it {expect}"));
            [command, place, expect].into_iter().flatten().collect::<Vec<_>>().join("; ")
        }
        NextKind::Proof => "after the change: says what it changed beyond noise".to_owned(),
        NextKind::Trial => "says what that changes beyond noise".to_owned(),
        NextKind::MoreSamples => format!("while it works: at least {MIN_SAMPLES} samples are needed"),
        NextKind::MoreWork => {
            "with more work to do: it used too little CPU time for any rate of samples".to_owned()
        }
        NextKind::OtherMethod => "says which methods deliver samples here; --method chooses one".to_owned(),
        NextKind::Calibration => "says whether samples land so on an idle machine too".to_owned(),
        NextKind::Privileges => "sees what its threads wait for, which this user may not".to_owned(),
        NextKind::Symbols { share, .. } => {
            format!("gets the names of functions with {}; then observe it again", of_time(*share))
        }
        NextKind::Rebuild { path, share } => {
            format!(
                "names functions with {}, once {path} was built with -g and without strip",
                of_time(*share)
            )
        }
        NextKind::RuntimeNames { share } => format!("names functions with {}", of_time(*share)),
        NextKind::OtherMachine => {
            "it says how much of that would be remote on a machine of several nodes".to_owned()
        }
        NextKind::Placement { machine } => format!("says where its threads run on {machine}"),
        NextKind::CallChains => "draws which chains of calls wait for memory, in flame.time.svg".to_owned(),
        NextKind::Details => "prints all functions, lines, objects and waits".to_owned(),
    }
}
