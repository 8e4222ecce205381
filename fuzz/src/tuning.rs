//! What `numa tune` reads: the file from which it goes on, and the numbers that programs print.

use numakit_trials::{TuneSession, found, pattern, printed};
use std::path::Path;

/// The file of a tuning: what is accepted has a report, which can be shown, and a run that is next unless it is over.
pub fn record(input: &[u8]) -> bool {
    let text = String::from_utf8_lossy(input);
    let Ok(session) = TuneSession::parse(&text, Path::new("tuning.json")) else { return false };
    let report = session.report();
    assert!(
        !numakit_terminal::tune::text(&report, Some("numa tune --resume tuning.json"), Some(80)).is_empty()
    );
    assert!(serde_json::to_string(&report).is_ok());
    assert_eq!(session.tuning.runs().count(), session.runs.len());
    if let Some(next) = session.tuning.next_run() {
        assert!(!session.typed(next.setting).is_empty());
    }
    true
}

/// A pattern in the first line, and what a program printed in the others: what is found is a positive number.
pub fn figures(input: &[u8]) -> bool {
    let text = String::from_utf8_lossy(input);
    let (line, printed_text) = text.split_once('\n').unwrap_or((&text, ""));
    let of_command = printed(printed_text);
    let of_pattern = pattern(line).and_then(|pattern| found(&pattern, printed_text));
    for figure in [&of_command, &of_pattern] {
        assert!(figure.as_ref().map_or_else(
            |error| !error.to_string().is_empty(),
            |figure| *figure > 0.0 && figure.is_finite()
        ));
    }
    of_command.is_ok() || of_pattern.is_ok()
}
