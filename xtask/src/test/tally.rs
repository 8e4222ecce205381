//! Counting results from the output of `cargo test -- --show-output`.

use anyhow::Result;
use std::fmt;

/// A test that cannot run here prints a line that starts so, with the reason.
const SKIPPED: &str = "skipped: ";

/// Results so far.
#[derive(Debug, Default)]
pub struct Tally {
    pub passed: usize,
    pub failed: usize,
    pub skipped: usize,
    hidden: bool,
}

impl Tally {
    /// Counts a check that is not a Rust test.
    pub fn check(&mut self, name: &str, result: Result<()>) {
        match result {
            Ok(()) => self.passed += 1,
            Err(error) => {
                println!("FAILED {name}: {error:#}");
                self.failed += 1;
            }
        }
    }

    /// Takes a line of the output; gives back what a person should see of it.
    pub fn line<'a>(&mut self, line: &'a str) -> Option<&'a str> {
        if let Some(result) = line.strip_prefix("test result: ") {
            self.hidden = false;
            self.passed += count(result, "passed");
            self.failed += count(result, "failed");
            self.skipped += count(result, "ignored");
            return None;
        }
        if line.starts_with(SKIPPED) {
            self.skipped += 1;
            self.passed = self.passed.saturating_sub(1);
            return Some(line);
        }
        match line {
            "successes:" => self.hidden = true,
            "failures:" => self.hidden = false,
            _ => {}
        }
        let dull = line.trim().is_empty() || line.starts_with("running ") || line.ends_with("... ok");
        (!self.hidden && !dull).then_some(line)
    }
}

/// The number before a word, in `ok. 12 passed; 0 failed; 1 ignored; ...`.
fn count(result: &str, word: &str) -> usize {
    let part = result.split([';', '.']).find_map(|part| part.trim().strip_suffix(word));
    part.and_then(|number| number.trim().parse().ok()).unwrap_or(0)
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "\
running 4 tests
test a ... ok
test b ... ok
test c ... ignored, needs hardware
test d ... FAILED

successes:

---- a stdout ----
skipped: captures are not there
---- b stdout ----
chatter

successes:
    a
    b

failures:

---- d stdout ----
left != right

test result: FAILED. 2 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s";

    #[test]
    fn results_add_up_and_only_what_matters_is_shown() {
        let mut tally = Tally { passed: 10, ..Tally::default() };
        let shown: Vec<_> = OUTPUT.lines().filter_map(|line| tally.line(line)).collect();
        assert_eq!(tally.to_string(), "11 passed, 1 failed, 2 skipped");
        assert_eq!(
            shown,
            [
                "test c ... ignored, needs hardware",
                "test d ... FAILED",
                "skipped: captures are not there",
                "failures:",
                "---- d stdout ----",
                "left != right"
            ]
        );
    }
}
