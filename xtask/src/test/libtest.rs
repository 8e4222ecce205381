//! Results from the output of Rust's test harness, `--show-output`.

use super::tally::Tally;
use numakit_skips::Skip;

/// Parses the output of a test program, line by line.
#[derive(Debug, Default)]
pub struct Report {
    section: Section,
    /// Number of ended tests.
    pub ended: usize,
    /// Name of the last ended test.
    pub last: String,
    /// Whether the current test's output says that it was skipped.
    skipped_whole: bool,
    /// Number of skipped tests.
    skipped: usize,
    /// Indented lines after the last "failures:".
    listed: Vec<String>,
    /// Number of failed tests.
    pub failed: usize,
    /// Their names.
    pub failed_names: Vec<String>,
    /// Whether the harness printed its totals.
    pub complete: bool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Section {
    #[default]
    Running,
    Successes,
    Failures,
}

impl Report {
    /// Parses a line of the output; returns what is shown of it: failures, and reasons of skips that
    /// were not shown before.
    pub fn line(&mut self, tally: &mut Tally, line: &str) -> Option<String> {
        if let Some(result) = line.strip_prefix("test result: ") {
            return self.totals(tally, result);
        }
        match line {
            "successes:" => self.section = Section::Successes,
            "failures:" => {
                // The second time it begins the list of names.
                self.section = Section::Failures;
                self.listed.clear();
            }
            _ if line.starts_with("---- ") && line.ends_with(" stdout ----") => self.skipped_whole = false,
            _ if self.section == Section::Running => return self.running(tally, line),
            _ => {}
        }
        match self.section {
            Section::Failures if !line.is_empty() => {
                self.listed.extend(line.strip_prefix("    ").map(str::to_owned));
                Some(line.to_owned())
            }
            Section::Successes => self.skip(tally, line),
            _ => None,
        }
    }

    /// A line while tests run: results, and output that bypasses the harness.
    fn running(&mut self, tally: &mut Tally, line: &str) -> Option<String> {
        if let Some((name, result)) = line.strip_prefix("test ").and_then(|rest| rest.rsplit_once(" ... ")) {
            self.ended += 1;
            self.last = name.to_owned();
            return (result == "FAILED").then(|| line.to_owned());
        }
        if Skip::parse(line).is_some() {
            return self.skip(tally, line);
        }
        let dull = line.trim().is_empty() || line.starts_with("running ");
        (!dull).then(|| line.to_owned())
    }

    fn skip(&mut self, tally: &mut Tally, line: &str) -> Option<String> {
        let mut skip = Skip::parse(line)?;
        // It is unknown which test printed this line.
        skip.in_part |= self.section == Section::Running;
        if !skip.in_part && !self.skipped_whole {
            self.skipped_whole = true;
            self.skipped += 1;
        }
        tally.skip(skip, line).then(|| line.to_owned())
    }

    fn totals(&mut self, tally: &mut Tally, result: &str) -> Option<String> {
        tally.passed += count(result, "passed").saturating_sub(self.skipped);
        let failed = count(result, "failed");
        tally.failed += failed;
        tally.skipped += self.skipped;
        let (ended, last) = (self.ended, std::mem::take(&mut self.last));
        let mut failed_names = std::mem::take(&mut self.failed_names);
        failed_names.append(&mut self.listed);
        let failed = self.failed + failed;
        *self = Self { ended, last, failed, failed_names, complete: true, ..Self::default() };
        None
    }
}

/// The number before a word, in `ok. 12 passed; 0 failed; 1 ignored; ...`.
fn count(result: &str, word: &str) -> usize {
    let part = result.split([';', '.']).find_map(|part| part.trim().strip_suffix(word));
    part.and_then(|number| number.trim().parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "\
running 6 tests
test a ... ok
test b ... ok
test c ... ignored, needs hardware
test d ... FAILED
test e ... ok
test f ... ok

successes:

---- a stdout ----
skipped (captures): captures are not there
skipped (captures): captures are not there
---- b stdout ----
chatter
---- e stdout ----
skipped in part (compilers): no gfortran
skipped in part (servers): no nginx
---- f stdout ----
skipped (captures): captures are not there

successes:
    a
    b
    e
    f

failures:

---- d stdout ----
skipped (guest): no QEMU
left != right
    0: rust_begin_unwind


failures:
    d

test result: FAILED. 4 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s";

    #[test]
    fn each_test_counts_once_and_only_what_matters_is_shown() {
        let mut tally = Tally::default();
        tally.passed += 10;
        let mut report = Report::default();
        let shown: Vec<_> = OUTPUT.lines().filter_map(|line| report.line(&mut tally, line)).collect();
        assert_eq!(tally.to_string(), "12 passed, 1 failed, 2 skipped");
        assert_eq!((report.ended, report.complete), (6, true));
        assert_eq!(report.failed_names, ["d"]);
        assert_eq!(
            shown,
            [
                "test d ... FAILED",
                "skipped (captures): captures are not there",
                "skipped in part (compilers): no gfortran",
                "skipped in part (servers): no nginx",
                "failures:",
                "---- d stdout ----",
                "skipped (guest): no QEMU",
                "left != right",
                "    0: rust_begin_unwind",
                "failures:",
                "    d"
            ]
        );
    }

    #[test]
    fn a_failure_is_shown_at_once() {
        let (mut tally, mut report) = (Tally::default(), Report::default());
        assert_eq!(report.line(&mut tally, "test a::b ... ok"), None);
        assert_eq!(report.line(&mut tally, "test a::c ... FAILED").as_deref(), Some("test a::c ... FAILED"));
        assert_eq!((report.ended, report.last.as_str(), report.complete), (2, "a::c", false));
    }

    #[test]
    fn results_of_several_programs_add_up() {
        let (mut tally, mut report) = (Tally::default(), Report::default());
        for line in OUTPUT.lines().chain(OUTPUT.lines()) {
            report.line(&mut tally, line);
        }
        assert_eq!(tally.to_string(), "4 passed, 2 failed, 4 skipped");
        assert_eq!(report.ended, 12);
    }
}
