//! Which data, and whose line: the first rows of the tables of objects and of code.

use super::brief;
use super::fit::Part;
use crate::explain::objects::{cut_to, nodes, size};
use crate::explain::{named, percent};
use numakit_explain::code::{CodeName, CodeTime, PlaceTimes};
use numakit_explain::object_use::NodeShare;
use numakit_explain::python::ScriptFunction;
use numakit_explain::{ExplainedObject, Explanation, Regime};
use numakit_findings::activity::{ProgramActivity, TimePart, of_cpu_time};
use numakit_findings::explained::{JudgedObject, JudgedReport};
use std::collections::BTreeSet;

const ROWS: usize = 3;
/// Objects and code with less are left out.
const MIN_SHARE: f64 = 0.02;
/// Source lines are named if they are known of this part of the time, else functions.
const MOST: f64 = 0.5;
/// A name has at least this width.
const MIN_NAME: usize = 16;

/// The objects that cost most; those of the other machine, if there is one.
pub(super) fn data(judged: &JudgedReport, width: usize) -> Option<Part> {
    let mut shown = costly(judged);
    if has_code(judged) {
        shown.retain(|object| !object.is_unknown());
    }
    if shown.is_empty() || judged.report.regime == Regime::Unknown || judged.has_few_at_memory() {
        return None;
    }
    let used = |judged: &&JudgedObject| {
        let parts = judged.object.home.iter().chain(&judged.object.used_from);
        parts.map(|part| part.node).collect::<Vec<u32>>()
    };
    let has_nodes = shown.iter().flat_map(used).collect::<BTreeSet<u32>>().len() > 1;
    let widest = |heading: &str, parts: fn(&ExplainedObject) -> &[NodeShare]| {
        let words = shown.iter().map(|judged| nodes(parts(&judged.object)).len());
        words.max().unwrap_or(0).max(heading.len())
    };
    let (home, from) =
        (widest("HOME", |object| &object.home), widest("USED FROM", |object| &object.used_from));
    let places = |at: &str, by: &str| match has_nodes {
        true => format!("{at:<home$}  {by:<from$}  "),
        false => String::new(),
    };
    let verdict = |judged: &JudgedObject| judged.finding.as_ref().map_or("-", |finding| finding.rule);
    let behind = shown.iter().map(|judged| verdict(judged).len()).max().unwrap_or(0).max("VERDICT".len());
    let before = format!("{:6} {:>8}  ", "", "").len();
    let name = width.saturating_sub(before + 2 + places("", "").len() + behind).max(MIN_NAME);
    let longest = shown.iter().map(|judged| cut_to(&judged.object.object.name, name).chars().count()).max();
    let name = longest.unwrap_or(0).max("DATA".len());
    let part = if judged.report.regime == Regime::Precise { "MEM%" } else { "PAGES%" };
    let heading =
        format!("{part:>6} {:>8}  {:<name$}  {}VERDICT", "SIZE", "DATA", places("HOME", "USED FROM"));
    let row = |judged: &&JudgedObject| {
        let object = &judged.object;
        format!(
            "{:6.1} {:>8}  {:<name$}  {}{}",
            object.time_share * 100.0,
            size(object),
            cut_to(&object.object.name, name),
            places(&nodes(&object.home), &nodes(&object.used_from)),
            verdict(judged)
        )
    };
    let lines = std::iter::once(heading).chain(shown.iter().map(row));
    Some(Part::new(lines.map(|line| cut_end(&line, width)).collect()).needing(2).dropped(4))
}

/// The objects that cost most, with those of which nothing is known.
fn costly(judged: &JudgedReport) -> Vec<&JudgedObject> {
    let objects = judged.projected.as_ref().map_or(&judged.objects, |there| &there.objects);
    objects.iter().filter(|judged| judged.object.time_share >= MIN_SHARE).take(ROWS).collect()
}

/// Whether samples say in which code the time goes.
fn has_code(judged: &JudgedReport) -> bool {
    let Explanation { functions, .. } = &judged.report.explanation;
    judged.report.regime == Regime::Precise && judged.few_samples().is_none() && !functions.is_empty()
}

/// The source lines with most of the time, or the functions where lines are not known.
pub(super) fn code(judged: &JudgedReport, width: usize) -> Option<Part> {
    let explanation = &judged.report.explanation;
    let activity = judged.activity();
    // In place of data of which nothing is known there is more code.
    let most = ROWS + costly(judged).iter().filter(|object| object.is_unknown()).count();
    let scripts = scripts(judged, &activity, most);
    let (heading, rows) = match activity.part {
        _ if judged.report.regime != Regime::Precise || judged.few_samples().is_some() => return None,
        _ if !scripts.is_empty() => ("PYTHON FUNCTION", scripts),
        Some((TimePart::Kernel, _)) if !explanation.kernel.is_empty() => {
            ("THE KERNEL WORKS FOR", kernel(explanation, most))
        }
        part => sampled(explanation, part.map(|(part, _)| part), most),
    };
    let row = |(share, words): &(f64, String)| format!("{:6.1}  {words}", 100.0 * share);
    let rows: Vec<String> = rows.iter().filter(|(share, _)| *share >= MIN_SHARE).map(row).collect();
    if rows.is_empty() {
        return None;
    }
    let heading = format!("{:>6}  {heading}", "CPU%");
    let lines = std::iter::once(heading).chain(rows).map(|line| cut_end(&line, width)).collect();
    Some(Part::new(lines).needing(2).dropped(5))
}

/// A line of a table in the width of the screen. The beginning has the name.
fn cut_end(line: &str, width: usize) -> String {
    match line.chars().count() > width {
        true => line.chars().take(width.saturating_sub(3)).collect::<String>() + "...",
        false => line.to_owned(),
    }
}

/// The functions of Python in which threads were, if they are much.
fn scripts(judged: &JudgedReport, activity: &ProgramActivity<'_>, most: usize) -> Vec<(f64, String)> {
    let python = &judged.report.explanation.python;
    let share = |function: &ScriptFunction| python.shares(function)[0];
    if activity.script.is_none() {
        return Vec::new();
    }
    python.functions.iter().take(most).map(|function| (share(function), short(&function.name))).collect()
}

/// The functions for which the kernel worked.
fn kernel(explanation: &Explanation, most: usize) -> Vec<(f64, String)> {
    let times = explanation.threads;
    let part = times.kernel as f64 / (times.user + times.kernel).max(1) as f64;
    explanation.kernel.iter().take(most).map(|code| (code.share * part, named(&code.name))).collect()
}

/// The code that samples hit. Where memory is waited for, what waits most comes first.
fn sampled(
    explanation: &Explanation,
    part: Option<TimePart>,
    most: usize,
) -> (&'static str, Vec<(f64, String)>) {
    let total = |all: &[CodeTime]| all.iter().map(|code| code.time.total()).sum::<u64>();
    let sum = total(&explanation.functions);
    let has_lines = total(&explanation.source_lines) as f64 >= MOST * sum as f64;
    let (heading, all) = match has_lines {
        true => ("LINE", &explanation.source_lines),
        false => ("FUNCTION", &explanation.functions),
    };
    let waits = matches!(part, Some(TimePart::Memory | TimePart::Contended));
    let mut all: Vec<&CodeTime> = all.iter().collect();
    all.sort_by_key(|code| std::cmp::Reverse(if waits { waited(&code.time) } else { code.time.total() }));
    let share = |time: u64| of_cpu_time(explanation, time);
    let row = |code: &&CodeTime| {
        let at_memory = share(waited(&code.time));
        let words = match at_memory >= MIN_SHARE {
            true => format!("{}, waiting {}", short(&code.name), percent(at_memory)),
            false => short(&code.name),
        };
        (share(code.time.total()), words)
    };
    (heading, all.iter().take(most).map(row).collect())
}

/// The time outside of the caches.
fn waited(time: &PlaceTimes) -> u64 {
    time.local + time.remote + time.unknown + time.contended
}

/// A name whose source file has no folders.
fn short(name: &CodeName) -> String {
    brief(&named(name))
}
