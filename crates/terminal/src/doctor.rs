//! `numa doctor`: findings as text and as JSON.

use crate::wrap::wrap;
use numakit_model::Fix;
use numakit_sensors::checkup::{CheckupItem, FindingState, HARDWARE_COUNTERS};
use serde_json::{Value, json};
use std::fmt::Write;

/// Column where the text of a finding begins.
const INDENT: usize = 9;

fn word(state: FindingState) -> &'static str {
    match state {
        FindingState::Ok => "ok",
        FindingState::Note => "note",
        FindingState::Missing => "missing",
    }
}

/// How much is missing, then what can be changed here, each with its fix; then what is fine and what this machine does not have, by
/// name. All lines are broken to this width.
pub fn brief(findings: &[CheckupItem], width: Option<usize>) -> String {
    let mut out = format!("{}\n\n", summary(findings));
    let is_possible = |item: &&CheckupItem| {
        item.about == HARDWARE_COUNTERS || item.fix.as_ref().is_some_and(Fix::is_possible_here)
    };
    for state in [FindingState::Missing, FindingState::Note] {
        let of_state = findings.iter().filter(|item| item.state == state);
        of_state
            .filter(|item| state == FindingState::Missing || is_possible(item))
            .for_each(|item| put(&mut out, item, width));
    }
    let is_fine = |item: &&CheckupItem| item.state == FindingState::Ok;
    named(&mut out, ("ok", ""), findings.iter().filter(is_fine), width);
    // Of what is partly there, --all names the other parts.
    let is_there = |item: &CheckupItem| findings.iter().filter(is_fine).any(|fine| name(fine) == name(item));
    let is_elsewhere =
        |item: &&CheckupItem| item.state == FindingState::Note && !is_possible(item) && !is_there(item);
    let heading = ("absent", "not on this machine, with this kernel or this command: ");
    named(&mut out, heading, findings.iter().filter(is_elsewhere), width);
    out
}

/// The names of these items behind a heading, each once; nothing of none.
fn named<'a>(
    out: &mut String,
    (heading, lead): (&str, &str),
    items: impl Iterator<Item = &'a CheckupItem>,
    width: Option<usize>,
) {
    let mut names: Vec<&str> = Vec::new();
    for item in items {
        let name = name(item);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    if !names.is_empty() {
        broken(out, heading, &format!("{lead}{}", names.join(", ")), width);
    }
}

/// The name of an item; what of a sensor it is about follows its name.
fn name(item: &CheckupItem) -> &str {
    item.about.split(": ").next().unwrap_or_default()
}

/// Each finding with its fix, broken to this width, and the number of things that are missing.
pub fn text(findings: &[CheckupItem], width: Option<usize>) -> String {
    let mut out = String::new();
    findings.iter().for_each(|item| put(&mut out, item, width));
    // Writing to a string cannot fail.
    _ = writeln!(out, "\n{}", summary(findings));
    out
}

/// A finding with its fix.
fn put(out: &mut String, finding: &CheckupItem, width: Option<usize>) {
    broken(out, word(finding.state), &format!("{}: {}", finding.about, finding.seen), width);
    if let Some(fix) = &finding.fix {
        broken(out, "", &format!("fix: {fix}"), width);
    }
}

/// Lines behind a heading.
fn broken(out: &mut String, heading: &str, text: &str, width: Option<usize>) {
    let inner = width.map(|width| width.saturating_sub(INDENT).max(20));
    for (at, line) in wrap(text, inner).iter().enumerate() {
        let heading = if at == 0 { heading } else { "" };
        // Writing to a string cannot fail.
        _ = writeln!(out, "{heading:<INDENT$}{line}");
    }
}

fn summary(findings: &[CheckupItem]) -> String {
    match count(findings, FindingState::Missing) {
        0 => "Nothing is missing that this machine can provide.".to_owned(),
        1 => "1 thing is missing that this machine can provide.".to_owned(),
        n => format!("{n} things are missing that this machine can provide."),
    }
}

/// The same as JSON, as `numa doctor --help` describes.
pub fn json(findings: &[CheckupItem]) -> Value {
    let one = |f: &CheckupItem| {
        let fix = f.fix.as_ref().map_or_else(String::new, ToString::to_string);
        json!({"state": word(f.state), "about": f.about, "seen": f.seen, "fix": fix})
    };
    json!({
        "missing": count(findings, FindingState::Missing),
        "findings": findings.iter().map(one).collect::<Vec<_>>(),
    })
}

/// How many findings are in this state.
pub fn count(findings: &[CheckupItem], state: FindingState) -> usize {
    findings.iter().filter(|f| f.state == state).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings() -> Vec<CheckupItem> {
        vec![
            CheckupItem::ok("vmstat", "187 series"),
            CheckupItem::lacking("real-time priority", "not permitted", Fix::command("ulimit -r 1")),
        ]
    }

    #[test]
    fn findings_have_their_fix_below_them() {
        let expected = "ok       vmstat: 187 series\n\
                        missing  real-time priority: not permitted\n         fix: ulimit -r 1\n\n\
                        1 thing is missing that this machine can provide.\n";
        assert_eq!(text(&findings(), None), expected);
        assert!(text(&findings(), Some(30)).lines().take(5).all(|l| l.chars().count() <= 30));
        assert!(
            text(&findings()[..1], None).ends_with("Nothing is missing that this machine can provide.\n")
        );
    }

    #[test]
    fn the_answer_comes_first_and_what_can_be_changed_here_has_its_fix() {
        let mut all = findings();
        all.push(CheckupItem::ok("self", "6 series"));
        all.push(CheckupItem::note("vmstat", "balancing is off", Fix::command("sysctl")));
        for what in ["cycles", "instructions"] {
            all.push(CheckupItem::note(
                format!("perf: {what}"),
                "no PMU",
                Fix::OtherMachine("another".to_owned()),
            ));
        }
        let expected = "1 thing is missing that this machine can provide.\n\n\
                        missing  real-time priority: not permitted\n         fix: ulimit -r 1\n\
                        note     vmstat: balancing is off\n         fix: sysctl\n\
                        ok       vmstat, self\n\
                        absent   not on this machine, with this kernel or this command: perf\n";
        assert_eq!(brief(&all, None), expected);
        assert!(brief(&[], None).starts_with("Nothing is missing"));
        all.push(CheckupItem::ok("perf", "7 series"));
        all.push(CheckupItem::note(HARDWARE_COUNTERS, "none", Fix::OtherMachine("another".to_owned())));
        let partly = brief(&all, None);
        assert!(partly.contains("self, perf\n") && !partly.contains("absent"), "{partly}");
        assert!(
            partly.contains("note     hardware counters: none\n         fix: run on another\n"),
            "{partly}"
        );
    }

    #[test]
    fn json_has_the_same() {
        let value = json(&findings());
        assert_eq!(value["missing"], 1);
        assert_eq!(value["findings"][1]["fix"], "ulimit -r 1");
        assert_eq!(value["findings"][0]["state"], "ok");
    }
}
