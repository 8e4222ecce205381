//! `numa bench compare`: what differs between two results.

use super::{lines, number};
use crate::table::page_table;
use numakit_findings::comparison::bench::{BenchChange, BenchComparison, UnmatchedValues};
use numakit_model::numbers::{ABSENT, grouped};
use std::fmt::Write;

/// The whole text; at most `rows` changes.
pub fn text(comparison: &BenchComparison, rows: usize, width: usize) -> String {
    let mut text = String::new();
    if !comparison.same_machine {
        text += &lines("the results are of two machines", "", width);
    }
    for unlike in &comparison.unlike {
        let of = |value: &str| if value.is_empty() { "unknown".to_owned() } else { value.to_owned() };
        let (first, second) = (of(&unlike.first), of(&unlike.second));
        text += &lines(&format!("{} differs: {first} before, {second} after", unlike.what), "", width);
    }
    for (when, doubts) in ["before", "after"].into_iter().zip(&comparison.doubts) {
        let mut names: Vec<&str> = doubts.iter().map(|doubt| doubt.benchmark.as_str()).collect();
        names.dedup();
        if !names.is_empty() {
            let names = names.join(", ");
            text +=
                &lines(&format!("warnings {when} of {names}; 'numa bench show FILE' has them"), "", width);
        }
    }
    if let Some(unknown) = unknown_noise(comparison.runs) {
        text += &lines(&unknown, "", width);
    }
    if !text.is_empty() {
        text.push('\n');
    }
    text += &changes(comparison, rows, width);
    for (when, only) in [("before", &comparison.only_first), ("after", &comparison.only_second)] {
        only.iter().for_each(|one| text += &lines(&unmatched(one, when), "", width));
    }
    text
}

/// Which of the results cannot say how much runs differ.
fn unknown_noise(runs: [u32; 2]) -> Option<String> {
    let (which, where_to) = match runs.map(|runs| runs == 1) {
        [true, true] => ("before and after are one run each", "measure both"),
        [true, false] => ("before is one run", "measure it"),
        [false, true] => ("after is one run", "measure it"),
        [false, false] => return None,
    };
    Some(format!("{which}: how much runs differ from each other is not known; {where_to} with '--runs 5'"))
}

fn changes(comparison: &BenchComparison, rows: usize, width: usize) -> String {
    let compared = grouped(comparison.compared as f64);
    if comparison.changes.is_empty() {
        return match comparison.compared {
            0 => "nothing can be compared: no value is in both results\n".to_owned(),
            _ => format!(
                "no change beyond {}: the intervals of all {compared} compared values overlap\n",
                noise(comparison.runs)
            ),
        };
    }
    let shown: Vec<Vec<String>> = comparison.changes.iter().take(rows).map(row).collect();
    let mut text = page_table(&["", "before", "after", "change", "unit", "<"], &shown, "  ");
    if comparison.changes.len() > shown.len() {
        _ = writeln!(
            text,
            "  {} more; --rows shows more, --json all",
            comparison.changes.len() - shown.len()
        );
    }
    let count = |is: Option<bool>| comparison.changes.iter().filter(|change| change.is_better == is).count();
    let summary = format!(
        "{} of {compared} compared values differ beyond {} ({} better, {} worse): their intervals from the 10 % to the \
         90 % quantile do not overlap",
        comparison.changes.len(),
        noise(comparison.runs),
        count(Some(true)),
        count(Some(false))
    );
    text.push('\n');
    text += &lines(&summary, "", width);
    text
}

/// Which noise the intervals cover.
fn noise(runs: [u32; 2]) -> String {
    match runs {
        [1, _] | [_, 1] => "the noise within a run".to_owned(),
        [before, after] if before == after => format!("the noise of {before} runs each"),
        [before, after] => format!("the noise of {before} runs before and {after} after"),
    }
}

fn row(change: &BenchChange) -> Vec<String> {
    let place = if change.place.is_empty() { String::new() } else { format!(", {}", change.place) };
    let percent = change.change_percent.map_or_else(|| ABSENT.to_owned(), |change| format!("{change:+.1} %"));
    let verdict = match change.is_better {
        Some(true) => "better",
        Some(false) => "worse",
        None => "",
    };
    vec![
        format!("{}: {}{place}", change.benchmark, change.name),
        number(change.first.median),
        number(change.second.median),
        percent,
        change.unit.clone(),
        verdict.to_owned(),
    ]
}

fn unmatched(one: &UnmatchedValues, when: &str) -> String {
    let UnmatchedValues { benchmark, name, count, of } = one;
    match count == of {
        true => format!("only {when}: {benchmark}: {name}"),
        false => format!("only {when}: {benchmark}: {name}, {count} of {of} values"),
    }
}
