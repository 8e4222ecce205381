//! Counts passed, failed and skipped tests, and checks required kinds.

use numakit_skips::{KINDS, Kind, Skip};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Results so far. Each test counts once: one that skips a part has passed.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    pub passed: usize,
    pub failed: usize,
    pub skipped: usize,
    /// Tests that only run with `--thorough`.
    pub left: usize,
    /// Names of tests that failed first and passed when they ran alone.
    pub unsteady: Vec<String>,
    kinds: BTreeMap<String, Count>,
    lines: BTreeSet<String>,
}

/// Skips of one kind.
#[derive(Debug, Default, Clone, Copy)]
struct Count {
    tests: usize,
    parts: usize,
}

impl Tally {
    /// Counts a skip by kind; the caller counts the test. Returns whether the line is a new one.
    pub fn skip(&mut self, skip: Skip<'_>, line: &str) -> bool {
        let count = self.kinds.entry(skip.kind.to_owned()).or_default();
        *if skip.in_part { &mut count.parts } else { &mut count.tests } += 1;
        self.lines.insert(line.to_owned())
    }

    /// Counts as failures required kinds that were skipped, and kinds that the table does not have.
    pub fn require(&mut self, required: &[&Kind]) -> Vec<String> {
        let unknown = self.kinds.keys().filter(|name| numakit_skips::kind(name).is_none());
        let mut failures: Vec<String> =
            unknown.map(|name| format!("FAILED skipped ({name}): tests/skips has no such kind")).collect();
        for kind in required {
            if let Some(count) = self.kinds.get(kind.name) {
                failures.push(format!("FAILED --require {}: {count} skipped ({})", kind.name, kind.about));
            }
        }
        self.failed += failures.len();
        failures
    }

    /// Skips by kind, for the end of a run.
    pub fn kinds(&self) -> Vec<String> {
        let of = |kind: &numakit_skips::Kind| {
            Some(format!("  {:<11} {} ({})", kind.name, self.kinds.get(kind.name)?, kind.about))
        };
        KINDS.iter().filter_map(of).collect()
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.tests, self.parts) {
            (tests, 0) => write!(f, "{tests}"),
            (0, parts) => write!(f, "{parts} in part"),
            (tests, parts) => write!(f, "{tests}, {parts} in part"),
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skipped(lines: &[&str]) -> Tally {
        let mut tally = Tally::default();
        lines.iter().for_each(|line| _ = tally.skip(Skip::parse(line).unwrap(), line));
        tally
    }

    fn required(names: &str) -> Vec<&'static Kind> {
        names.split(',').map(|name| numakit_skips::kind(name).unwrap()).collect()
    }

    #[test]
    fn a_required_kind_that_was_skipped_fails_the_run() {
        let lines =
            ["skipped (guest): a", "skipped (guest): a", "skipped in part (guest): b", "skipped (root): c"];
        let mut tally = skipped(&lines);
        assert!(tally.require(&required("page,browser")).is_empty());
        assert_eq!(tally.failed, 0);
        let failures = tally.require(&required("guest,page,root"));
        assert!(failures[0].starts_with("FAILED --require guest: 2, 1 in part skipped ("), "{failures:?}");
        assert!(failures[1].starts_with("FAILED --require root: 1 skipped ("), "{failures:?}");
        assert_eq!((failures.len(), tally.failed), (2, 2));
    }

    #[test]
    fn an_undeclared_kind_fails_the_run() {
        let mut tally = skipped(&["skipped (gest): a"]);
        assert_eq!(tally.require(&[]).len(), 1);
        assert_eq!(tally.to_string(), "0 passed, 1 failed, 0 skipped");
    }

    #[test]
    fn a_line_is_new_once() {
        let mut tally = Tally::default();
        let line = "skipped (guest): a";
        assert!(tally.skip(Skip::parse(line).unwrap(), line));
        assert!(!tally.skip(Skip::parse(line).unwrap(), line));
        assert_eq!(tally.kinds(), ["  guest       2 (QEMU with a kernel and busybox: a NUMA guest)"]);
    }
}
