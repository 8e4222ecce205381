//! `numa tune`: what was found, in words.

use crate::table::page_table;
use crate::wrap::wrap;
use numakit_model::numbers::{ABSENT, counted, duration};
use numakit_trials::{
    CandidateSource, ReportedAnswer, ReportedCandidate, ReportedMetric, TrialMetric, TriedRemedy, TuneReport,
};
use numakit_tune::candidates::TuneNeed;
use numakit_tune::{Better, CandidateState, PairedGain, RaceBudget, RunFailure};
use std::fmt::Write;

/// A command line of more characters is not repeated in each row.
const LONG: usize = 24;
/// Settings that are named where the budget has no time for them.
const MAX_NAMED: usize = 5;
/// Settings that are shown.
const MAX_ROWS: usize = 24;
/// Gains of fewer standard deviations of a run are often not found.
const HIDDEN: f64 = 1.3;
/// Where larger gains than this one are often not found, nothing is said of all settings.
const NOISY: f64 = 0.1;
/// Gains that differ by less from what was promised are as promised.
const AS_PROMISED: f64 = 0.01;

/// The answer in one line, the table of all settings, and what else is to be known. `resume` is the command that goes on, if
/// something is left to run; lines are broken at `width`.
pub fn text(report: &TuneReport, resume: Option<&str>, width: Option<usize>) -> String {
    let mut text = String::new();
    let mut say = |line: &str| wrap(line, width).iter().for_each(|line| text += &format!("{line}\n"));
    say(&answer(report, resume.is_some()));
    details(report).iter().for_each(|line| say(line));
    text += &table(report);
    let mut say = |line: &str| wrap(line, width).iter().for_each(|line| text += &format!("{line}\n"));
    remarks(report, resume.is_some()).iter().for_each(|line| say(line));
    if let Some(resume) = resume {
        text += &format!("to go on: {resume}\n");
    }
    text
}

/// What remedies were measured to gain, beside what was promised.
pub fn tried(remedies: &[TriedRemedy], pairs: u32) -> String {
    let of = |value: Option<String>| value.unwrap_or_else(|| ABSENT.to_owned());
    let row = |remedy: &TriedRemedy| {
        let interval = remedy.gain.as_ref().filter(|gain| gain.pairs > 1);
        vec![
            of(remedy.gain.as_ref().map(|gain| percent(gain.gain))),
            of(interval.map(|gain| format!("{} to {}", percent(gain.again_low), percent(gain.again_high)))),
            of(remedy.cpu.as_ref().map(|gain| percent(gain.gain))),
            of(remedy.bound.map(percent)),
            remedy.gain.as_ref().map_or(0, |gain| gain.pairs).to_string(),
            remedy.command.clone(),
        ]
    };
    let rows: Vec<Vec<String>> = remedies.iter().map(row).collect();
    let mut text = page_table(&["TIME %", "INTERVAL", "CPU %", "AT MOST %", "PAIRS", "<TRIED"], &rows, "");
    for remedy in remedies {
        if let Some(why) = &remedy.why {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{}: {why}", remedy.command);
        }
    }
    if rows.is_empty() {
        return text;
    }
    text += "TIME and CPU: how much less with the remedy, in pairs of runs with it and without it; AT MOST: what was promised\n";
    let helps = |remedy: &TriedRemedy| remedy.gain.as_ref().is_some_and(|gain| gain.low > 0.0);
    if !remedies.iter().any(helps) {
        text += "none of these saves time here, as far as these pairs tell\n";
    }
    let counted_pairs = remedies.iter().filter_map(|remedy| Some(remedy.gain.as_ref()?.pairs));
    if let Some(least) = counted_pairs.min().filter(|least| *least < pairs) {
        let _ = writeln!(
            text,
            "only {least} of {pairs} pairs count: in the others the machine was busy, so try again while it is quiet"
        );
    }
    text
}

/// `29 %`, `0.8 %`.
fn percent(part: f64) -> String {
    let value = 100.0 * part;
    if value.abs() < 9.95 { format!("{value:.1}") } else { format!("{value:.0}") }
}

/// `29 % less time (26 to 31)`.
fn gained(gain: &PairedGain, metric: &ReportedMetric) -> String {
    let more = match metric.better {
        Better::Less => "less",
        Better::More => "more",
    };
    format!(
        "{} % {more} {} ({} to {})",
        percent(gain.gain),
        metric.name,
        percent(gain.again_low),
        percent(gain.again_high)
    )
}

/// The first line.
fn answer(report: &TuneReport, is_interrupted: bool) -> String {
    let tried = report.candidates.iter().filter(|one| one.source != CandidateSource::Default);
    let failed = tried.clone().filter(|one| matches!(one.state, CandidateState::Failed(_))).count();
    let tried = tried.count();
    let runs = counted(report.runs, "run");
    match &report.answer {
        ReportedAnswer::Use { command, gain, .. } => {
            let pairs = counted(gain.pairs as usize, "pair");
            format!("use this: {command}: {}, {pairs}", gained(gain, &report.metric))
        }
        ReportedAnswer::Nothing => {
            let failed = if failed > 0 { format!(", of which {failed} failed") } else { String::new() };
            let tried = format!("{}{failed}", counted(tried, "setting"));
            let hidden = report.noise.map(|noise| (noise, HIDDEN * noise));
            match hidden {
                Some((noise, hidden)) if hidden > NOISY => format!(
                    "it cannot be told whether anything is worth it: runs of one setting differ by {} %, so gains of less than {} % are \
                     hidden; of {tried}, none stood out in {runs}",
                    percent(noise),
                    percent(hidden)
                ),
                _ => {
                    let noise = hidden.map_or_else(String::new, |(noise, hidden)| {
                        let hidden = percent(hidden.max(report.worth));
                        format!(
                            "; runs of one setting differ by {} %, so less than {hidden} % may be missed",
                            percent(noise)
                        )
                    });
                    let worth = percent(report.worth);
                    format!("nothing is worth it: of {tried}, none gains {worth} % or more, in {runs}{noise}")
                }
            }
        }
        ReportedAnswer::Open { leading } => {
            let leads = match leading {
                Some(command) => format!("{command} leads, and its gain is not proved"),
                None => "nothing leads".to_owned(),
            };
            let why = if is_interrupted { "the tuning was interrupted" } else { "the budget is used up" };
            format!("not known yet, after {runs}: {leads}; {why}")
        }
        ReportedAnswer::DefaultFailed { failure, why } => {
            let failed = match failure {
                RunFailure::Failed => "the program fails without a setting, so nothing can be compared",
                RunFailure::Hung => {
                    "the program did not end in time without a setting, so nothing can be compared"
                }
                RunFailure::WrongResult => {
                    "the result of the program is wrong without a setting: see the check"
                }
                RunFailure::NoMetric => "the program does not give the metric without a setting",
            };
            format!("{failed}: {why}")
        }
    }
}

/// What belongs to the answer.
fn details(report: &TuneReport) -> Vec<String> {
    let ReportedAnswer::Use { candidate, gain, costs, needs, bound, .. } = &report.answer else {
        return Vec::new();
    };
    let mut lines = Vec::new();
    let mut of_answer = vec![format!("worst pair: {} %", percent(gain.worst))];
    for (metric, name, cost) in
        [(TrialMetric::WallTime, "time", costs.time), (TrialMetric::CpuTime, "CPU time", costs.cpu)]
    {
        if let Some(cost) = cost.filter(|_| report.metric.of != metric) {
            let more = if cost.gain < 0.0 { "more" } else { "less" };
            of_answer.push(format!("{name}: {} % {more}", percent(cost.gain.abs())));
        }
    }
    if !needs.is_empty() {
        of_answer.push(format!("needs {}", need_words(needs)));
    }
    lines.push(of_answer.join("; "));
    if let Some(bound) = bound {
        let kept = if gain.low > bound + AS_PROMISED { "more than" } else { "within" };
        lines.push(format!("numa explain had promised at most {} %: this is {kept} that", percent(*bound)));
    }
    if gain.worst < 0.0 && gain.low > 0.0 {
        lines.push(format!(
            "in at least one of {} it was slower: look at the worst pair before you rely on it",
            counted(gain.pairs as usize, "pair")
        ));
    }
    let others = report.candidates.iter().enumerate();
    let others = others.filter(|(at, one)| at != candidate && one.source != CandidateSource::Default);
    let second =
        others.filter_map(|(_, one)| Some((one.gain()?.gain, one))).max_by(|a, b| a.0.total_cmp(&b.0));
    if let Some((gain, one)) = second {
        lines.push(match gain >= report.worth {
            true => format!(
                "next to it: {}, {} % in {}",
                one.command,
                percent(gain),
                counted(one.runs as usize, "run")
            ),
            false => format!("nothing else gains {} % or more", percent(report.worth)),
        });
    }
    lines
}

fn need_words(needs: &[TuneNeed]) -> String {
    needs.iter().map(|need| need.words()).collect::<Vec<_>>().join(", ")
}

/// All settings.
fn table(report: &TuneReport) -> String {
    let candidates = &report.candidates;
    let rows: Vec<Vec<String>> = candidates
        .iter()
        .take(MAX_ROWS)
        .map(|candidate| row(candidate, brief(&candidate.command, &report.command)))
        .collect();
    let mut text = page_table(&["GAIN %", "INTERVAL", "WORST %", "RUNS", "STATE", "<COMMAND"], &rows, "");
    if candidates.len() > MAX_ROWS {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "and {} that gain less", counted(candidates.len() - MAX_ROWS, "setting"));
    }
    text
}

/// The command of a setting, of which the command line that is tuned is shown up to its first word if it is long: all rows end with it.
fn brief(command: &str, tuned: &str) -> String {
    let Some(setting) = command.strip_suffix(tuned).filter(|_| tuned.chars().count() > LONG) else {
        return command.to_owned();
    };
    let first = tuned.split(' ').next().unwrap_or_default();
    format!("{setting}{first} ...")
}

fn row(candidate: &ReportedCandidate, command: String) -> Vec<String> {
    let gain = candidate.gain();
    let of = |value: Option<String>| value.unwrap_or_else(|| ABSENT.to_owned());
    let interval = gain.filter(|gain| gain.pairs > 1);
    let promised = candidate
        .bound
        .map_or_else(String::new, |bound| format!(" (promised: at most {} %)", percent(bound)));
    vec![
        of(gain.map(|gain| percent(gain.gain))),
        of(interval.map(|gain| format!("{} to {}", percent(gain.again_low), percent(gain.again_high)))),
        of(gain.map(|gain| percent(gain.worst))),
        candidate.runs.to_string(),
        state(candidate).to_owned(),
        command + &promised,
    ]
}

/// Where it is in the race, in a word or two.
fn state(candidate: &ReportedCandidate) -> &'static str {
    if candidate.source == CandidateSource::Default {
        return "default";
    }
    match candidate.state {
        CandidateState::Racing => "in the race",
        CandidateState::Failed(RunFailure::Failed) => "failed",
        CandidateState::Failed(RunFailure::Hung) => "hung",
        CandidateState::Failed(RunFailure::WrongResult) => "wrong result",
        CandidateState::Failed(RunFailure::NoMetric) => "no metric",
        CandidateState::Slower => "behind",
        CandidateState::NoGain => "no gain",
        CandidateState::Bounded => "cannot win",
        CandidateState::Refuted => "not confirmed",
        CandidateState::Confirmed => "confirmed",
    }
}

/// What else is to be known.
fn remarks(report: &TuneReport, is_interrupted: bool) -> Vec<String> {
    let mut lines = Vec::new();
    for candidate in report.candidates.iter().filter(|one| one.source != CandidateSource::Default) {
        if let Some(why) = &candidate.why {
            lines.push(format!("{}: {why}", candidate.command));
        }
    }
    for (by, count) in &report.spoiled {
        lines.push(format!("{} repeated, since {}", was(*count), by.words()));
    }
    if report.binds_threads {
        lines.push("the program binds its threads itself: settings of cores may not reach them".to_owned());
    }
    if report.binds_unless_placed {
        lines.push(
            "without a setting the program, or what starts it, binds its threads; with 'numa run' they have the cores that it gives"
                .to_owned(),
        );
    }
    if report.leaving > 0 {
        lines.push(format!(
            "{} left processes behind, which were ended: the metric does not say what these would have done",
            counted(report.leaving, "run")
        ));
    }
    if let Some(few) = &report.few_samples {
        lines.push(format!("the observation before says little, so little is advised: {few}"));
    }
    for command in &report.untried {
        lines.push(format!("not tried, since it does more than start the program: {command}"));
    }
    if let Some(budget) = report.budget_for_all.filter(|_| !is_interrupted) {
        let named = report.left_out.iter().take(MAX_NAMED).map(|command| brief(command, &report.command));
        let named = named.collect::<Vec<_>>().join("; ");
        let more = report.left_out.len().saturating_sub(MAX_NAMED);
        let more = if more > 0 { format!("; and {more} more") } else { String::new() };
        lines.push(format!(
            "{} not tried, for which about --budget {} has time: {named}{more}",
            counted(report.left_out.len(), "setting"),
            budget_word(budget)
        ));
    }
    let took = duration(report.seconds);
    lines.push(format!("{} in {took}; all of it: {}", counted(report.runs, "run"), report.file));
    lines
}

/// A budget as it is typed, rounded up.
fn budget_word(budget: RaceBudget) -> String {
    match budget.seconds.map(f64::ceil) {
        None => budget.runs.to_string(),
        Some(seconds) if seconds < 120.0 => format!("{seconds:.0}s"),
        Some(seconds) => format!("{:.0}m", (seconds / 60.0).ceil()),
    }
}

fn was(count: usize) -> String {
    match count {
        1 => "1 run was".to_owned(),
        _ => format!("{count} runs were"),
    }
}
