//! Counts results in the output of Node's test runner with its reporter 'spec'.

use super::tally::Tally;
use numakit_skips::Skip;

/// Parses the output of one run.
#[derive(Debug, Default)]
pub struct Report {
    /// Whether the final list of failures, with all details, has started.
    failures: bool,
    /// Number of failed tests.
    pub failed: usize,
    /// Tests that only run with `--thorough`.
    thorough: usize,
}

impl Report {
    /// Parses a line of the output; returns what is shown of it: output of tests, skips and
    /// failures.
    pub fn line(&mut self, tally: &mut Tally, line: &str) -> Option<String> {
        if let Some((word, count)) = line.strip_prefix("ℹ ").and_then(|rest| rest.split_once(' ')) {
            let count = count.parse().unwrap_or(0);
            match word {
                "pass" => tally.passed += count,
                "fail" | "cancelled" => {
                    tally.failed += count;
                    self.failed += count;
                }
                "skipped" => {
                    tally.skipped += count.saturating_sub(self.thorough);
                    tally.left += std::mem::take(&mut self.thorough).min(count);
                }
                _ => {}
            }
            return None;
        }
        if let Some(skip) = Skip::parse(line) {
            return tally.skip(skip, line).then(|| line.to_owned());
        }
        self.thorough += usize::from(line.trim_start().starts_with('﹣') && line.contains(" # thorough: "));
        let failed = line.starts_with('✖');
        self.failures |= line == "✖ failing tests:";
        let dull = line.trim().is_empty() || line.starts_with(['✔', '▶', ' ', '﹣']);
        (self.failures || failed || !dull).then(|| line.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "\
✔ a (12.5ms)
opened in 0.8 s
skipped (captures): no captures
﹣ b (0.1ms) # no captures
﹣ d (0.1ms) # thorough: other sizes
✖ c (3.5ms)
  AssertionError: 1 !== 2

ℹ tests 4
ℹ suites 0
ℹ pass 1
ℹ fail 1
ℹ cancelled 1
ℹ skipped 2
ℹ duration_ms 25.125

✖ failing tests:

test at dist-e2e/c.e2e.js:778:53
✖ c (3.5ms)
  AssertionError: 1 !== 2";

    #[test]
    fn results_add_up_and_only_what_matters_is_shown() {
        let mut tally = Tally::default();
        let mut report = Report::default();
        let shown: Vec<_> = OUTPUT.lines().filter_map(|line| report.line(&mut tally, line)).collect();
        assert_eq!(tally.to_string(), "1 passed, 2 failed, 1 skipped");
        assert_eq!((tally.kinds().len(), tally.left), (1, 1));
        let place = "test at dist-e2e/c.e2e.js:778:53";
        let failure = ["✖ failing tests:", "", place, "✖ c (3.5ms)", "  AssertionError: 1 !== 2"];
        assert_eq!(shown[..3], ["opened in 0.8 s", "skipped (captures): no captures", "✖ c (3.5ms)"]);
        assert_eq!(shown[3..], failure);
    }
}
