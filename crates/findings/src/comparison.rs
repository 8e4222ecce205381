//! Two recordings compared: what differs beyond noise, and whether the second one is better.

pub mod bench;
pub mod explained;
mod words;

pub use words::DifferenceWords;

use crate::finding::{Finding, Findings};
use crate::profile::{Measure, Profile};
use numakit_model::numbers::duration;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use words::{difference_words, value_words};

/// Rates and times are equal if they differ by less than this share of the larger one. From one recording of each program, it
/// is not known how much recordings of the same program vary: on a virtual machine, two in a row differed by 16 %.
const RECORDINGS_VARY: f64 = 0.2;
/// Two differences are shown as one line if their values are equal within this share.
const ALIKE: f64 = 0.05;

/// What changed from one recording (A) to another (B): the JSON of `numa show --json A B`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// The answer in three lines.
    pub headline: ComparisonHeadline,
    /// Whether B is better.
    pub outcome: ComparisonOutcome,
    /// A.
    pub before: ComparedRecording,
    /// B.
    pub after: ComparedRecording,
    /// Why the recordings may differ for other reasons than the program.
    pub cautions: Vec<String>,
    /// How long the command ran; none if one of them has no command that ended.
    pub run_time: Option<Difference>,
    /// What differs beyond noise in the observed program. The clearest difference comes first.
    pub program: Vec<Difference>,
    /// What differs beyond noise in the machine, and in what other programs did to the observed one.
    pub machine: Vec<Difference>,
    /// How many values were compared.
    pub compared: usize,
    /// How many values were not compared, since one recording lacks them or has too few of them to tell their noise.
    pub not_compared: usize,
    /// Findings of A that B does not have.
    pub gone: Vec<Finding>,
    /// Findings of B that A does not have.
    pub new: Vec<Finding>,
    /// Findings of B that A has too, or does not have by less than noise.
    pub kept: Vec<Finding>,
}

/// The answer in three lines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ComparisonHeadline {
    /// Whether B is better.
    pub verdict: String,
    /// By how much.
    pub change: String,
    /// What to do next.
    pub action: String,
}

/// Whether B is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ComparisonOutcome {
    /// B is better.
    Better,
    /// B is worse.
    Worse,
    /// B is better in some values and worse in others.
    Both,
    /// A and B differ, and no difference is better or worse.
    Different,
    /// Nothing differs beyond noise.
    Equal,
    /// The recordings do not tell.
    CannotTell,
}

/// One of the recordings.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct ComparedRecording {
    pub host: String,
    pub command: Option<String>,
    pub exit_status: Option<i32>,
    /// Time that the samples cover.
    pub seconds: f64,
    pub problems: usize,
}

/// A value that differs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Difference {
    /// A formula or a series.
    pub name: String,
    /// `%`, `bytes`, `count/s`, `s` and so on.
    pub unit: String,
    /// In A.
    pub before: f64,
    /// In B.
    pub after: f64,
    /// A difference up to this is noise.
    pub noise: f64,
    /// The change as a share of A; of shares, in percentage points. None: from 0.
    pub change_percent: Option<f64>,
    /// The noise in the unit of the change.
    pub noise_percent: Option<f64>,
    /// Whether B is better in this value; none if neither is.
    pub is_better: Option<bool>,
    /// Other values that changed by the same.
    pub alike: Vec<String>,
}

impl Difference {
    fn of(name: &str, unit: &str, (before, after): (f64, f64), noise: f64) -> Self {
        let is_share = unit == "%";
        let percent = |change: f64| match is_share {
            true => Some(change),
            false => (before > 0.0).then(|| 100.0 * change / before),
        };
        Self {
            name: name.to_owned(),
            unit: unit.to_owned(),
            before,
            after,
            noise,
            change_percent: percent(after - before),
            noise_percent: percent(noise),
            is_better: None,
            alike: Vec::new(),
        }
    }

    fn is_beyond_noise(&self) -> bool {
        (self.after - self.before).abs() > self.noise
    }

    /// How many times as large as the noise the difference is.
    fn clearness(&self) -> f64 {
        (self.after - self.before).abs() / self.noise.max(f64::MIN_POSITIVE)
    }

    /// Whether another difference is the same fact in a different form, as a share and its complement are.
    fn is_alike(&self, other: &Self) -> bool {
        let near = |a: f64, b: f64| (a - b).abs() <= ALIKE * a.abs().max(b.abs());
        let is_same = near(self.before, other.before) && near(self.after, other.after);
        let is_rest = self.unit == "%"
            && near(self.before, 100.0 - other.before)
            && near(self.after, 100.0 - other.after);
        self.unit == other.unit && (is_same || is_rest)
    }
}

/// Compares two recordings.
pub fn compare(before: &Profile, after: &Profile) -> Comparison {
    let (all, not_compared) = differences(before, after);
    let run_time = run_time(before, after);
    let has_program = before.has_program && after.has_program;
    let compared = all.len();
    let differs: Vec<(bool, Difference)> = all
        .into_iter()
        .filter(|(_, difference)| difference.is_beyond_noise())
        .map(|(measure, difference)| (measure.is_own && has_program, difference))
        .collect();
    let of = |own: bool| {
        let some = differs.iter().filter(|(is_own, _)| *is_own == own);
        lines(some.map(|(_, difference)| difference.clone()).collect())
    };
    let (gone, new, kept) = matched(before, after);
    let mut comparison = Comparison {
        headline: ComparisonHeadline { verdict: String::new(), change: String::new(), action: String::new() },
        outcome: ComparisonOutcome::CannotTell,
        before: recording(before),
        after: recording(after),
        cautions: cautions(before, after),
        run_time,
        program: of(true),
        machine: of(false),
        compared,
        not_compared,
        gone,
        new,
        kept,
    };
    let ran = comparison.run_time.as_ref().is_some_and(Difference::is_beyond_noise);
    if ran || !before.is_short && !after.is_short && compared > 0 {
        comparison.outcome = outcome(&comparison, has_program);
    }
    comparison.headline = headline(&comparison, before, after, has_program);
    comparison
}

/// All differences of values that both recordings have, and how many other values they name.
fn differences<'a>(before: &'a Profile, after: &Profile) -> (Vec<(&'a Measure, Difference)>, usize) {
    let others: BTreeMap<&str, &Measure> = after.measures.iter().map(|m| (m.name.as_str(), m)).collect();
    let difference = |measure: &'a Measure| {
        let other = others.get(measure.name.as_str()).filter(|other| other.unit == measure.unit)?;
        let spread = measure.noise?.hypot(other.noise?);
        // A share of counts does not depend on the speed of the machine; one of time that a measured cost gives does.
        let varies = match measure.unit.as_str() {
            "%" if measure.scale.is_none() => 0.0,
            _ => RECORDINGS_VARY * measure.value.abs().max(other.value.abs()),
        };
        let noise = spread.max(varies).max(measure.floor.max(other.floor)) + rescaled(measure, other);
        let mut difference =
            Difference::of(&measure.name, &measure.unit, (measure.value, other.value), noise);
        difference.is_better =
            measure.is_good.map(|more_is_better| (other.value > measure.value) == more_is_better);
        Some((measure, difference))
    };
    let all: Vec<(&Measure, Difference)> = before.measures.iter().filter_map(difference).collect();
    let named: BTreeSet<&str> =
        before.measures.iter().map(|m| m.name.as_str()).chain(others.into_keys()).collect();
    let others = named.len() - all.len();
    (all, others)
}

/// How much of a difference comes from what the two recorders measured before the programs ran: the cost of a page fault,
/// for example, may have been different at that moment.
fn rescaled(before: &Measure, after: &Measure) -> f64 {
    match (before.scale, after.scale) {
        (Some(a), Some(b)) if a > 0.0 && b > 0.0 => {
            ((a / b).max(b / a) - 1.0) * before.value.abs().max(after.value.abs())
        }
        _ => 0.0,
    }
}

/// One line for each metric, and for all metrics that changed by the same. The clearest difference comes first.
fn lines(mut all: Vec<Difference>) -> Vec<Difference> {
    // Shares that are better or worse name the line.
    all.sort_by(|a, b| {
        let weight = |d: &Difference| (d.is_better.is_some(), d.clearness());
        weight(b).partial_cmp(&weight(a)).unwrap_or(std::cmp::Ordering::Equal)
    });
    let metric = |name: &str| name.split('@').next().unwrap_or_default().to_owned();
    let mut lines: Vec<Difference> = Vec::new();
    for difference in all {
        let same = |line: &&mut Difference| {
            metric(&line.name) == metric(&difference.name) || line.is_alike(&difference)
        };
        match lines.iter_mut().find(same) {
            Some(line) => line.alike.push(difference.name),
            None => lines.push(difference),
        }
    }
    lines
}

/// The run times. There is one run of each: how much it varies follows from how steadily the program got CPU time.
fn run_time(before: &Profile, after: &Profile) -> Option<Difference> {
    let (before, after) = (before.about.run?, after.about.run?);
    let mut difference = Difference::of("run time", "s", (before.0, after.0), before.1.hypot(after.1));
    difference.is_better = Some(after.0 < before.0);
    Some(difference)
}

fn recording(profile: &Profile) -> ComparedRecording {
    ComparedRecording {
        host: profile.about.host.clone(),
        command: profile.about.command.clone(),
        exit_status: profile.about.status,
        seconds: profile.about.seconds,
        problems: profile.findings.problems.len(),
    }
}

fn cautions(before: &Profile, after: &Profile) -> Vec<String> {
    let (a, b) = (&before.about, &after.about);
    let mut cautions = Vec::new();
    if a.host != b.host || a.cpus != b.cpus {
        let name = |host: &str, cpus: Option<usize>| match cpus {
            Some(cpus) => format!("{host} with {cpus} CPUs"),
            None => host.to_owned(),
        };
        let (before, after) = (name(&a.host, a.cpus), name(&b.host, b.cpus));
        cautions.push(format!("A is of {before}, B of {after}"));
    }
    if a.command.is_some() != b.command.is_some() {
        cautions.push("only one of them has a command: the other one is of the whole machine".to_owned());
    }
    for (name, status) in [("A", a.status), ("B", b.status)] {
        if let Some(status) = status.filter(|status| *status != 0) {
            cautions.push(format!("the command of {name} ended with exit status {status}"));
        }
    }
    if a.command.is_some() && a.command != b.command && b.command.is_some() {
        cautions.push("the command lines differ".to_owned());
    }
    cautions
}

/// Which findings are gone, new and kept. If the value of a finding crossed its threshold by less than noise, the finding is
/// neither gone nor new.
fn matched(before: &Profile, after: &Profile) -> (Vec<Finding>, Vec<Finding>, Vec<Finding>) {
    let has = |findings: &Findings, finding: &Finding| {
        findings.problems.iter().any(|f| f.rule == finding.rule && f.subject == finding.subject)
    };
    let (all, _) = differences(before, after);
    let within_noise = |finding: &Finding| {
        let series = finding.evidence.first().map(|evidence| evidence.series.as_str());
        let compared = all.iter().find(|(measure, _)| Some(measure.name.as_str()) == series);
        compared.is_some_and(|(_, difference)| !difference.is_beyond_noise())
    };
    let (a, b) = (&before.findings, &after.findings);
    let gone = a.problems.iter().filter(|f| !has(b, f) && !within_noise(f)).cloned().collect();
    let (kept, new) = b.problems.iter().cloned().partition(|f| has(a, f) || within_noise(f));
    (gone, new, kept)
}

fn outcome(comparison: &Comparison, has_program: bool) -> ComparisonOutcome {
    let ran = comparison.run_time.as_ref().filter(|run| run.is_beyond_noise());
    if let Some(run) = ran {
        return if run.is_better == Some(true) {
            ComparisonOutcome::Better
        } else {
            ComparisonOutcome::Worse
        };
    }
    let judged = if has_program { &comparison.program } else { &comparison.machine };
    let any = |better: bool| judged.iter().any(|difference| difference.is_better == Some(better));
    match (any(true), any(false)) {
        (true, true) => ComparisonOutcome::Both,
        (true, false) => ComparisonOutcome::Better,
        (false, true) => ComparisonOutcome::Worse,
        (false, false) if judged.is_empty() => ComparisonOutcome::Equal,
        (false, false) => ComparisonOutcome::Different,
    }
}

/// Maximum number of differences that the second line names.
const NAMED: usize = 3;

fn headline(
    comparison: &Comparison,
    before: &Profile,
    after: &Profile,
    has_program: bool,
) -> ComparisonHeadline {
    let judged = if has_program { &comparison.program } else { &comparison.machine };
    let whose = if has_program { "what the program did" } else { "what the machine did" };
    let ran = comparison.run_time.as_ref().filter(|run| run.is_beyond_noise());
    let verdict = match (comparison.outcome, ran) {
        (ComparisonOutcome::Better, Some(run)) | (ComparisonOutcome::Worse, Some(run)) => {
            let word = if run.is_better == Some(true) { "better" } else { "worse" };
            format!("B is {word}: it took {}, A took {}", duration(run.after), duration(run.before))
        }
        (ComparisonOutcome::Better, None) => format!("B is better: {}", of_all(judged, Some(true))),
        (ComparisonOutcome::Worse, None) => format!("B is worse: {}", of_all(judged, Some(false))),
        (ComparisonOutcome::Both, _) => format!(
            "B is better in one respect and worse in another: {}; {}",
            of_all(judged, Some(true)),
            of_all(judged, Some(false))
        ),
        (ComparisonOutcome::Different, _) => {
            format!("A and B differ in {whose}, and no difference is better or worse")
        }
        (ComparisonOutcome::Equal, _) => format!("A and B do not differ beyond noise in {whose}"),
        (ComparisonOutcome::CannotTell, _) if comparison.run_time.is_some() => {
            "B took as long as A within noise; whether it is better otherwise cannot be told".to_owned()
        }
        (ComparisonOutcome::CannotTell, _) => "Whether B is better cannot be told".to_owned(),
    };
    let change = match comparison.outcome {
        ComparisonOutcome::CannotTell => {
            let run = comparison.run_time.iter().map(|run| format!("{}; ", difference_words(run)));
            run.chain([why_not(before, after)]).collect()
        }
        _ => changed(comparison, judged, ran),
    };
    ComparisonHeadline { verdict, change, action: action(comparison, before, after) }
}

fn why_not(before: &Profile, after: &Profile) -> String {
    let short = [("A", before), ("B", after)].into_iter().find(|(_, profile)| profile.is_short);
    match short {
        Some((name, profile)) => format!(
            "{name} covers {}: noise can be told from 0.8 s on, and well from 6 s on",
            duration(profile.about.seconds)
        ),
        None => "no series is in both with enough values to tell its noise".to_owned(),
    }
}

/// The clearest of those differences in which B is better, or worse.
fn of_all(differences: &[Difference], is_better: Option<bool>) -> String {
    differences.iter().find(|difference| difference.is_better == is_better).map_or_else(String::new, |d| {
        format!("{} is {}, {} before", d.name, value_words(&d.unit, d.after), value_words(&d.unit, d.before))
    })
}

fn changed(comparison: &Comparison, judged: &[Difference], ran: Option<&Difference>) -> String {
    let named: Vec<String> = ran.into_iter().chain(judged).take(NAMED).map(difference_words).collect();
    if !named.is_empty() {
        let all = ran.into_iter().chain(judged).count();
        let more = if all > NAMED { format!("; {} more", all - NAMED) } else { String::new() };
        return format!("{}{more}", named.join("; "));
    }
    let run = comparison.run_time.as_ref().map(|run| format!("; {}", difference_words(run)));
    let run = run.unwrap_or_default();
    format!("none of {} compared values differs by more than its noise{run}", comparison.compared)
}

fn action(comparison: &Comparison, before: &Profile, after: &Profile) -> String {
    let left = || after.findings.problems.first().map(|_| after.findings.headline.action.clone());
    match comparison.outcome {
        ComparisonOutcome::Better => match left() {
            Some(action) => format!("keep B; next: {action}"),
            None => "keep B".to_owned(),
        },
        ComparisonOutcome::Worse => match before.findings.problems.first() {
            Some(_) => format!("keep A; next: {}", before.findings.headline.action),
            None => "keep A".to_owned(),
        },
        ComparisonOutcome::Both | ComparisonOutcome::Different => {
            "see which of the differences below matters".to_owned()
        }
        ComparisonOutcome::Equal => left().unwrap_or_else(|| "nothing".to_owned()),
        ComparisonOutcome::CannotTell => {
            "record both for longer, with the same series: numa record COMMAND".to_owned()
        }
    }
}

#[cfg(test)]
mod tests;
