//! What to do, and the commands to type.

use super::brief;
use super::fit::Part;
use crate::explain::percent;
use numakit_explain::{UNKNOWN_ARGUMENTS, UNKNOWN_COMMAND};
use numakit_findings::explained::JudgedReport;
use numakit_findings::next::{NextKind, NextStep};
use numakit_model::thresholds::MIN_SAMPLES;

/// A second command with more lines would leave no room for the data.
const MAX_SECOND: usize = 3;

/// The steps: what to do, what that is worth, and the command. Of two steps with one command, it stands once.
pub(super) fn all(judged: &JudgedReport, width: usize) -> Vec<Part> {
    let steps = &judged.next;
    let fits = |step: &NextStep| Part::command("", &step.command, width).height() <= MAX_SECOND;
    let shown = steps.iter().enumerate().filter(|(at, step)| *at == 0 || fits(step));
    let one = |(at, step): (usize, &NextStep)| {
        let is_shared = steps.get(at + 1).is_some_and(|next| next.command == step.command);
        one(step, at == 0, is_shared && fits(step), width)
    };
    shown.flat_map(one).collect()
}

fn one(step: &NextStep, is_first: bool, is_shared: bool, width: usize) -> Vec<Part> {
    let label = match (is_first, &step.kind) {
        (true, _) => "next",
        (false, NextKind::Proof | NextKind::Trial) => "then",
        (false, _) => "also",
    };
    let (most, early) = if is_first { (6, 6) } else { (3, 7) };
    // What a command tries is said by the command.
    let is_said = !is_first && matches!(step.kind, NextKind::Remedy { .. });
    let change = step.r#do.as_ref().filter(|_| !is_said);
    let change = change.map(|change| Part::labelled("do", &brief(change), width, most).dropped(early - 3));
    let why = step.why.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
    // What is at memory is no gain.
    let is_gain = !matches!(step.kind, NextKind::OtherMachine);
    let worth =
        step.worth.as_ref().filter(|_| is_gain).map(|cost| {
            Part::labelled("worth", &format!("{}{why}", cost.words()), width, most).dropped(early)
        });
    let told = Some(purpose(step)).filter(|purpose| !purpose.is_empty());
    let told = told.map(|told| Part::labelled("", &told, width, 2).dropped(early));
    let command = [Some(Part::command(label, &step.command, width)), told];
    let command = command.into_iter().filter(|_| !is_shared).flatten();
    change.into_iter().chain(worth).chain(command).collect()
}

/// What a command does.
fn purpose(step: &NextStep) -> String {
    let of_time = |share: f64| format!("{} of the CPU time", percent(share.min(1.0)));
    match &step.kind {
        NextKind::Remedy { expect, machine, is_incomplete, is_in_container } => {
            let unknown = if step.command.ends_with(UNKNOWN_ARGUMENTS) {
                format!("{UNKNOWN_ARGUMENTS} are its arguments, which its title hides")
            } else {
                format!("{UNKNOWN_COMMAND} is the command that runs it")
            };
            let command = is_incomplete.then_some(unknown);
            let inside =
                is_in_container.then(|| "in the container, in place of the command of its image".to_owned());
            let place = machine.as_ref().map(|machine| format!("to be typed on {machine}"));
            let expect = expect.as_ref().map(|expect| format!("it {expect}"));
            [inside, command, place, expect].into_iter().flatten().collect::<Vec<_>>().join("; ")
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
            let waits = step.worth.as_ref().map(|cost| format!("{} waits for memory: ", cost.words()));
            format!(
                "{}it says how much of that would be remote on a machine of several nodes",
                waits.unwrap_or_default()
            )
        }
        NextKind::Placement { machine } => format!("says where its threads run on {machine}"),
        NextKind::CallChains => "draws which chains of calls wait for memory, in flame.time.svg".to_owned(),
        NextKind::Details => "prints all functions, lines, objects and waits".to_owned(),
    }
}
