//! A second try, alone, for tests that failed beside others.
//!
//! Tests that measure depend on how much of the processors the machine's other guests leave. One that passes alone
//! counts as passed and is named at the end of the run; many failures are no chance and are not tried again.

use super::console::{Console, Output};
use super::libtest::Report;
use super::programs::Program;
use super::queue;
use super::tally::Tally;
use anyhow::Result;
use std::process::Command;
use std::time::{Duration, Instant};

/// With more failed tests than this there is no second try.
const MOST: usize = 12;
/// A test that prints nothing for this long hangs.
const SILENCE: Duration = Duration::from_secs(20 * 60);

/// Runs the failed tests of each program again, one after the other, and counts those that pass.
pub fn tries(
    console: &Console,
    failed: &[(Program, Vec<String>)],
    command: impl Fn(&Program) -> Command,
) -> Result<()> {
    let count: usize = failed.iter().map(|(_, names)| names.len()).sum();
    if count > MOST {
        let line = format!("{count} tests failed, more than {MOST}: no second try");
        console.lock().progress.say(&line);
        return Ok(());
    }
    for (program, names) in failed {
        let mut again = command(program);
        again.args(["--exact", "--test-threads=1"]).args(names);
        let part = format!("second try of {}: {}", program.name(), names.join(", "));
        console.lock().progress.begin(&part);
        let (started, mut report, mut own) = (Instant::now(), Report::default(), Tally::default());
        queue::followed(&mut again, SILENCE, |line| {
            if let Some(shown) = report.line(&mut own, &line) {
                console.lock().progress.say(&shown);
            }
        })?;
        let Output { progress, tally } = &mut *console.lock();
        progress.took(&part, started.elapsed());
        // One that skips itself now has not passed.
        if report.complete && own.skipped == 0 {
            count_again(tally, &program.name(), names, &report);
        }
    }
    Ok(())
}

/// Moves the tests that passed now from the failed to the passed ones.
fn count_again(tally: &mut Tally, program: &str, names: &[String], report: &Report) {
    let passed = names.iter().filter(|name| !report.failed_names.contains(name));
    for name in passed {
        tally.failed = tally.failed.saturating_sub(1);
        tally.passed += 1;
        tally.unsteady.push(format!("{program} {name}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passes_alone_counts_as_passed_and_is_named() {
        let mut tally = Tally::default();
        (tally.passed, tally.failed) = (5, 2);
        let mut report = Report::default();
        let output = "running 2 tests\ntest a ... ok\ntest b ... FAILED\n\nfailures:\n\n---- b stdout ----\nwhy\n\n\
                      failures:\n    b\n\ntest result: FAILED. 1 passed; 1 failed; 0 ignored";
        output.lines().for_each(|line| _ = report.line(&mut Tally::default(), line));
        count_again(&mut tally, "package target", &["a".to_owned(), "b".to_owned()], &report);
        assert_eq!(
            tally.to_string(),
            "6 passed, 1 failed, 0 skipped, 1 of the passed only at the second try"
        );
        assert_eq!(tally.unsteady, ["package target a"]);
    }
}
