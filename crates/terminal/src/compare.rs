//! `numa explain A B`: what changed between two results.

use numakit_explain::contended::Sharing;
use numakit_explain::share::ShareEstimate;
use numakit_findings::comparison::explained::{
    ChangedShare, ComparedFinding, ResultComparison, ShareChange, UnlikeResults,
};
use numakit_model::numbers::grouped;
use std::fmt::Write;

const NS_PER_S: f64 = 1e9;

/// The whole text; at most `rows` changes.
pub fn text(comparison: &ResultComparison, rows: usize) -> String {
    let mut out = String::new();
    for unlike in &comparison.unlike {
        // Writing to a string cannot fail.
        _ = writeln!(out, "{}", caution(unlike));
    }
    out.push_str(&gain(comparison));
    for (title, findings) in [
        ("Findings of BEFORE that are gone in AFTER", &comparison.gone),
        ("Findings that are new in AFTER", &comparison.new),
    ] {
        out.push_str(&found(title, findings));
    }
    out.push_str(&changes(comparison, rows));
    for absent in &comparison.absent {
        _ = writeln!(out, "not compared: {absent}; at least one of the results does not tell it");
    }
    out
}

/// The CPU time, which is what a change of the program is worth.
fn gain(comparison: &ResultComparison) -> String {
    let ((before, after), (cpu_before, cpu_after)) = (comparison.seconds, comparison.cpu_time);
    let (cpu_before, cpu_after) = (cpu_before as f64 / NS_PER_S, cpu_after as f64 / NS_PER_S);
    let part = match comparison.cpu_factor() {
        _ if comparison.is_as_fast() => "AFTER takes about the same CPU time".to_owned(),
        Some(factor) if factor > 1.0 => format!("AFTER takes {factor:.2} times the CPU time"),
        Some(factor) => format!("AFTER takes {factor:.2} of the CPU time"),
        None => "AFTER takes CPU time, and BEFORE took none".to_owned(),
    };
    format!(
        "{part} ({cpu_before:.2} s -> {cpu_after:.2} s; one run each: how much such times vary is not known); observed {before:.1} s \
         before, {after:.1} s after\n"
    )
}

fn found(title: &str, findings: &[ComparedFinding]) -> String {
    if findings.is_empty() {
        return String::new();
    }
    let object = |of: &ComparedFinding| of.object.as_ref().map_or(String::new(), |name| format!("{name}: "));
    let lines: String =
        findings.iter().map(|finding| format!("  - {}{}\n", object(finding), finding.says)).collect();
    format!("\n{title}:\n{lines}")
}

fn changes(comparison: &ResultComparison, rows: usize) -> String {
    let compared = grouped(comparison.compared as f64);
    if comparison.changes.is_empty() {
        return match comparison.compared {
            0 => "nothing can be compared\n".to_owned(),
            _ if comparison.is_as_fast() => format!(
                "\nno share changed beyond noise: the intervals of all {compared} compared shares overlap\n"
            ),
            _ => format!(
                "\nAs far as samples tell, all of its parts changed alike: the intervals of all {compared} compared shares overlap\n"
            ),
        };
    }
    let shown: Vec<(String, String, String)> = comparison.changes.iter().take(rows).map(row).collect();
    let width = |of: fn(&(String, String, String)) -> &str, heading: &str| {
        shown.iter().map(|row| of(row).len()).max().unwrap_or(0).max(heading.len())
    };
    let (first, second) = (width(|row| &row.0, "BEFORE"), width(|row| &row.1, "AFTER"));
    let mut out = format!("\n  {:>first$}  {:>second$}  CHANGED\n", "BEFORE", "AFTER");
    for (before, after, what) in &shown {
        _ = writeln!(out, "  {before:>first$}  {after:>second$}  {what}");
    }
    if comparison.changes.len() > shown.len() {
        _ = writeln!(out, "  {} more", comparison.changes.len() - shown.len());
    }
    _ = writeln!(
        out,
        "\n{} of {compared} compared shares changed beyond noise: their 95 % intervals do not overlap",
        comparison.changes.len()
    );
    out
}

fn row(change: &ShareChange) -> (String, String, String) {
    (estimate(&change.before), estimate(&change.after), name(&change.what))
}

fn estimate(of: &ShareEstimate) -> String {
    let percent = |share: f64| share * 100.0;
    format!("{:.1} % ({:.0} to {:.0})", percent(of.share), percent(of.low), percent(of.high))
}

fn name(what: &ChangedShare) -> String {
    match what {
        ChangedShare::Time(part) => format!("{part}, of the CPU time"),
        ChangedShare::Threads(part) => format!("{part}, of the time of all threads"),
        ChangedShare::Far => "remote share of the time at memory".to_owned(),
        ChangedShare::Object(name) => format!("{name}, of the time at memory"),
        ChangedShare::Remote(name) => format!("remote part of {name}"),
        ChangedShare::Line(object, sharing) => {
            let kind = match sharing {
                Sharing::False => "false sharing",
                Sharing::True => "true sharing",
                Sharing::Lock => "lock or atomic counter",
            };
            format!("contended lines of {object} ({kind}), of the CPU time")
        }
        ChangedShare::Function(name) => format!("{name}(), of the CPU time"),
    }
}

fn caution(unlike: &UnlikeResults) -> String {
    match unlike {
        UnlikeResults::Program(before, after) => {
            format!("caution: the command lines differ: '{before}' before, '{after}' after")
        }
        UnlikeResults::Machine(before, after) => {
            format!("caution: another machine: {before} before, {after} after")
        }
        UnlikeResults::Regime => {
            "caution: samples mean something else in one of the results (real or emulated processor): only \
                                  what both tell is compared"
                .to_owned()
        }
        UnlikeResults::Method(before, after) => {
            format!("caution: samples were taken in different ways: {before} before, {after} after")
        }
        UnlikeResults::Nodes => {
            "caution: local and remote memory are distinguished in one of the results only".to_owned()
        }
        UnlikeResults::Incomplete(before, after) => {
            let which = match (before, after) {
                (false, false) => "both observations",
                (false, true) => "the observation before",
                _ => "the observation after",
            };
            format!("caution: {which} had not ended when the file was written")
        }
    }
}

#[cfg(test)]
mod tests;
