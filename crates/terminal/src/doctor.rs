//! `numa doctor`: findings as text and as JSON.

use crate::wrap::wrap;
use numakit_sensors::checkup::{CheckupItem, FindingState};
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

/// Each finding with its fix, broken to this width, and the number of things that are missing.
pub fn text(findings: &[CheckupItem], width: Option<usize>) -> String {
    let mut out = String::new();
    let inner = width.map(|w| w.saturating_sub(INDENT).max(20));
    for finding in findings {
        let mut state = word(finding.state);
        let mut put = |text: &str| {
            for line in wrap(text, inner) {
                _ = writeln!(out, "{state:<INDENT$}{line}");
                state = "";
            }
        };
        put(&format!("{}: {}", finding.about, finding.seen));
        if let Some(fix) = &finding.fix {
            put(&format!("fix: {fix}"));
        }
    }
    let missing = count(findings, FindingState::Missing);
    _ = match missing {
        0 => writeln!(out, "\nNothing is missing that this machine can provide."),
        1 => writeln!(out, "\n1 thing is missing that this machine can provide."),
        n => writeln!(out, "\n{n} things are missing that this machine can provide."),
    };
    out
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
    use numakit_model::Fix;

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
    fn json_has_the_same() {
        let value = json(&findings());
        assert_eq!(value["missing"], 1);
        assert_eq!(value["findings"][1]["fix"], "ulimit -r 1");
        assert_eq!(value["findings"][0]["state"], "ok");
    }
}
