//! The findings of a recording and the answer in three lines.

use crate::case::lowered;
use crate::facts::Facts;
use crate::finding::{Finding, FindingSubject, Findings, Headline, Untold};
use crate::rules::{self, RuleKind, remote_use};
use crate::tally::Tally;
use numakit_formulas::Index;
use numakit_model::Instance;
use numakit_model::numbers::{NumberStyle, duration};

/// With fewer samples, the headline says only that the recording is too short.
const MIN_SAMPLES: u64 = 3;
const FAR_USE: &str = "use of remote memory";
/// A program that uses less than this many CPUs is idle.
const IDLE: f64 = 0.02;

/// What part of a source the findings are about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// A recording, or a phase of it.
    Recording,
    /// A range of a history that a viewer chose.
    Range,
}

/// All findings, the most important first.
pub(crate) fn findings(facts: &Facts<'_>, index: &Index<'_>, tally: &Tally, extent: Extent) -> Findings {
    let mut findings = Findings { untold: untold(facts), ..Findings::default() };
    for (kind, finding) in rules::judge(facts, index, tally) {
        match kind {
            RuleKind::Remark => findings.remarks.push(finding),
            RuleKind::Failure | RuleKind::Problem => findings.problems.push(finding),
        }
    }
    findings.headline = match extent {
        Extent::Range if facts.samples < MIN_SAMPLES => short_range(),
        // A viewer sees the times of a range.
        Extent::Range => headline(facts, tally.notes.exit_status, &findings, |worst| worst.cost.words()),
        Extent::Recording => headline(facts, tally.notes.exit_status, &findings, cost_words),
    };
    findings
}

/// What this recording cannot tell.
fn untold(facts: &Facts<'_>) -> Vec<Untold> {
    let mut untold = Vec::new();
    if facts.node_count() == Some(1) {
        untold.push(Untold { what: "remote memory", why: "the machine has one node".into() });
    } else if let Some(why) = missing(facts, &["remote_time_share", "remote_pages_share", "remote_share"]) {
        untold.push(Untold { what: FAR_USE, why });
    } else if let Some(why) = too_few(facts) {
        untold.push(Untold { what: FAR_USE, why });
    }
    if let Some(why) = missing(facts, &["locality"]) {
        untold.push(Untold { what: "where memory is allocated", why });
    }
    if let Some(why) = missing(facts, &["memory_share", "remote_pages_share"]) {
        untold.push(Untold { what: "time at memory", why });
    }
    if let Some(why) = missing(facts, &["dram_util"]) {
        untold.push(Untold { what: "memory bandwidth", why });
    }
    untold
}

/// Why the samples of a program that ran are too few to say whether its memory is far; `None` if they are enough, or if
/// counters of the machine tell it.
fn too_few(facts: &Facts<'_>) -> Option<String> {
    // Of a short run, the CPU time may not be known; but a program that was sampled ran.
    let was_sampled = || {
        let found = |events| facts.sum(events, Instance::Machine).is_some_and(|found| found > 0.0);
        found("uses") || found("used_pages")
    };
    let ran = facts.rate("task_cpu", Instance::Machine).map_or_else(was_sampled, |cpus| cpus >= IDLE);
    let is_counted = facts.rate("remote_share", Instance::Machine).is_some();
    remote_use::too_few(facts).filter(|_| ran && !is_counted && facts.node_count() != Some(1))
}

/// The reason why none of these formulas can be computed; `None` if one can.
fn missing(facts: &Facts<'_>, formulas: &[&str]) -> Option<String> {
    let mut reasons = formulas.iter().map(|name| facts.missing(name, Instance::Machine));
    let first = reasons.next()??;
    reasons.all(|why| why.is_some()).then_some(first)
}

fn short_range() -> Headline {
    Headline {
        verdict: "This range is too short to tell anything".into(),
        cost: "not known".into(),
        action: "show a longer range".into(),
    }
}

fn headline(
    facts: &Facts<'_>,
    status: Option<i32>,
    findings: &Findings,
    cost: fn(&Finding) -> String,
) -> Headline {
    let Some(worst) = findings.problems.first() else { return fine(facts, status, findings) };
    // If the recording has no values of the program itself, nothing tells what is the program's own.
    let is_observed = facts.rate("task_cpu", Instance::Machine).is_some();
    if worst.subject == FindingSubject::Program || !is_observed {
        return Headline { verdict: worst.says.clone(), cost: cost(worst), action: action(worst) };
    }
    let cost = format!("meanwhile on this machine: {}; {}", lowered(&worst.says), cost(worst));
    let action = action(worst);
    Headline { verdict: fine(facts, status, findings).verdict, cost, action }
}

fn fine(facts: &Facts<'_>, status: Option<i32>, findings: &Findings) -> Headline {
    if facts.samples < MIN_SAMPLES {
        return Headline {
            verdict: "The recording is too short to tell anything".into(),
            cost: format!("not known: it has {} samples", facts.samples),
            action: format!("numa record -i 1ms {}", facts.command().unwrap_or("COMMAND")),
        };
    }
    // That nothing was seen does not mean that nothing is wrong, and where memory was allocated does not tell who uses it.
    if let Some(why) = too_few(facts).filter(|_| status.is_none_or(|status| status == 0)) {
        return Headline {
            verdict: format!("Cannot tell yet whether memory is remote: {why}"),
            cost: "not known".into(),
            action: "let it run for longer".into(),
        };
    }
    let unknown: Vec<&str> = findings.untold.iter().map(|untold| untold.what).collect();
    let cost = match unknown.split_last() {
        None => "none".to_owned(),
        Some((only, [])) => format!("none; not known: {only}"),
        Some((last, rest)) => format!("none; not known: {} and {last}", rest.join(", ")),
    };
    let action = match (facts.command(), findings.remarks.first()) {
        (_, Some(remark)) => action(remark),
        (Some(_), None) => "nothing".to_owned(),
        (None, None) => "numa record COMMAND tells about one program".to_owned(),
    };
    Headline { verdict: nothing_wrong(facts, status, findings), cost, action }
}

fn nothing_wrong(facts: &Facts<'_>, status: Option<i32>, findings: &Findings) -> String {
    match status {
        Some(status) if status > 128 => {
            return format!("The program was killed by signal {}; nothing else was found", status - 128);
        }
        Some(status) if status != 0 => {
            return format!("The program ended with exit status {status}; nothing else was found");
        }
        _ => {}
    }
    let own = facts.rate("task_cpu", Instance::Machine);
    if let Some(remark) = findings.remarks.iter().find(|r| r.subject == FindingSubject::Program) {
        return format!("Nothing is wrong. {}", remark.says);
    }
    match (facts.command(), own) {
        (_, Some(cpus)) if cpus < IDLE => {
            "Nothing is wrong with the program: it slept nearly all the time".to_owned()
        }
        (_, Some(cpus)) => format!(
            "Nothing is wrong with the program, as far as this recording tells; it used {} CPUs",
            NumberStyle::Ratio.words(cpus)
        ),
        (Some(_), None) => "Nothing is wrong, as far as this recording tells".to_owned(),
        (None, None) => "Nothing is wrong on this machine, as far as this recording tells".to_owned(),
    }
}

/// The first command of the remedy; if there is none, its words.
fn action(finding: &Finding) -> String {
    finding.remedy.commands.first().unwrap_or(&finding.remedy.words).clone()
}

/// `34 % of the CPU time (17 to 51 %); since 0.2 s to the end`.
pub fn cost_words(finding: &Finding) -> String {
    let until =
        finding.until_seconds.map_or_else(|| "to the end".to_owned(), |s| format!("until {}", duration(s)));
    format!("{}; since {} {until}", finding.cost.words(), duration(finding.since_seconds))
}
