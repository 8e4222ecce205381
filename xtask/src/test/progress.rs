//! Progress output of tests: on a terminal one line that changes, elsewhere a line per part.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// Number of parts and of tests in the summary.
const SHOWN: usize = 20;

/// Shows what runs, and stores the duration of each part.
#[derive(Debug)]
pub struct Progress {
    terminal: bool,
    started: Instant,
    parts: Vec<(String, Duration)>,
    tests: Vec<(String, Duration)>,
    status: bool,
}

impl Progress {
    /// For the current standard output.
    pub fn new() -> Self {
        let terminal = std::io::stdout().is_terminal();
        Self { terminal, started: Instant::now(), parts: Vec::new(), tests: Vec::new(), status: false }
    }

    /// Prints a line.
    pub fn say(&mut self, line: &str) {
        self.clear();
        println!("{line}");
    }

    /// Prints the name of a part before it starts.
    pub fn begin(&mut self, name: &str) {
        self.say(&format!("{:>6}  {name}", clock(self.started.elapsed())));
    }

    /// The same for a part whose progress [`Self::status`] shows on a terminal.
    pub fn begin_quietly(&mut self, name: &str) {
        if !self.terminal {
            self.begin(name);
        }
    }

    /// Replaces the progress line.
    pub fn status(&mut self, line: &str) {
        if self.terminal {
            let columns = std::env::var("COLUMNS").ok().and_then(|c| c.parse().ok()).unwrap_or(100);
            let line: String = format!("{:>6}  {line}", clock(self.started.elapsed()));
            print!("\r\x1b[K{}", line.chars().take(columns).collect::<String>());
            let _ = std::io::stdout().flush();
            self.status = true;
        }
    }

    /// Removes the progress line, so that other output can follow.
    pub fn clear(&mut self) {
        if std::mem::take(&mut self.status) {
            print!("\r\x1b[K");
            let _ = std::io::stdout().flush();
        }
    }

    /// Notes the duration of a part.
    pub fn took(&mut self, name: &str, time: Duration) {
        self.parts.push((name.to_owned(), time));
    }

    /// Notes the duration of a test. Where tests of its program run at the same time, it is the time since one of them ended.
    pub fn took_test(&mut self, name: String, time: Duration) {
        self.tests.push((name, time));
    }

    /// The parts and the tests that took longest.
    pub fn summary(&mut self) -> Vec<String> {
        let mut lines = vec![format!("{} in all; the longest parts:", clock(self.started.elapsed()))];
        lines.extend(longest(&mut self.parts).take(SHOWN));
        lines.push("the longest tests:".to_owned());
        lines.extend(longest(&mut self.tests).take(SHOWN));
        lines
    }

    /// All parts and tests with their seconds, longest first.
    pub fn times(&mut self) -> String {
        let all = longest_first(&mut self.parts).iter().chain(longest_first(&mut self.tests));
        all.map(|(name, time)| format!("{:.2} {name}\n", time.as_secs_f64())).collect()
    }
}

fn longest_first(parts: &mut [(String, Duration)]) -> &[(String, Duration)] {
    parts.sort_by_key(|(_, time)| std::cmp::Reverse(*time));
    parts
}

fn longest(parts: &mut [(String, Duration)]) -> impl Iterator<Item = String> {
    let shown = longest_first(parts).iter().filter(|(_, time)| time.as_secs() > 0);
    shown.map(|(name, time)| format!("{:>6}  {name}", clock(*time)))
}

/// Minutes and seconds.
fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    format!("{}:{:02}", seconds / 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_parts_come_first() {
        let part = |name: &str, seconds| (name.to_owned(), Duration::from_secs(seconds));
        let mut parts = vec![part("short", 0), part("guest", 125), part("build", 361)];
        let lines: Vec<String> = longest(&mut parts).collect();
        assert_eq!(lines, ["  6:01  build", "  2:05  guest"]);
    }
}
