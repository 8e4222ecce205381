//! A second try for tests that measure: what else runs on the machine may have disturbed them.
//!
//! One that passes now counts as passed, and the run ends with its name: the output of both tries is above, and the reason
//! of the first has to be found. Many failures are no chance and are not tried again.

use super::console::{Console, Output};
use super::libtest::Report;
use super::programs::Job;
use super::queue;
use super::tally::Tally;
use anyhow::Result;
use std::process::Command;
use std::time::Duration;

/// With more failed tests than this there is no second try.
const MOST: usize = 12;
/// A test that prints nothing for this long hangs.
const SILENCE: Duration = Duration::from_secs(20 * 60);

/// Runs the failed tests of each job again, one after the other, and counts those that pass. Prints all that they print.
pub fn tries(
    console: &Console,
    failed: &[(&Job, &Report)],
    command: impl Fn(&Job) -> Result<Command>,
) -> Result<()> {
    let count: usize = failed.iter().map(|(_, report)| report.failed_names.len()).sum();
    if count > MOST {
        let line = format!("{count} tests failed, more than {MOST}: no second try");
        console.lock().progress.say(&line);
        return Ok(());
    }
    for (job, first) in failed {
        let names = &first.failed_names;
        let choice =
            names.iter().cloned().chain(["--exact", "--include-ignored", "--test-threads=1"].map(Into::into));
        let only = Job { choice: choice.collect(), ..(*job).clone() };
        let mut again = command(&only)?;
        let name = job.program.name();
        let part = format!("second try of {name}: {}", names.join(", "));
        let (mut report, mut own) = (Report::default(), Tally::default());
        console.part(&part, || {
            queue::followed(&mut again, SILENCE, |line| {
                report.line(&mut own, &line);
                console.lock().progress.say(&format!("  second try | {line}"));
            })
        })?;
        let Output { tally, .. } = &mut *console.lock();
        // One that skips itself now has not passed.
        if report.complete && own.skipped == 0 {
            count_again(tally, &name, names, &report);
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
        assert_eq!(tally.to_string(), "6 passed, 1 failed, 0 skipped");
        assert_eq!(tally.unsteady, ["package target a"]);
    }
}
