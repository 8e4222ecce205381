//! How much of a process's memory is in huge pages, as the kernel says.

use crate::process_visits::ProcessVisits;
use numakit_sys::proc::TaskDir;
use numakit_sys::{SysRoot, clock};
use std::collections::HashMap;

/// The share of each process's memory in huge pages, as it was when the process was looked at last.
#[derive(Debug)]
pub struct HugePageShares {
    of: HashMap<u32, f64>,
    visits: ProcessVisits,
}

impl HugePageShares {
    /// Makes an empty table, for an observation that starts now.
    pub fn new(now: u64) -> Self {
        Self { of: HashMap::new(), visits: ProcessVisits::from(now) }
    }

    /// Looks at these processes if it is time.
    pub fn visit(&mut self, root: &SysRoot, processes: &[u32], now: u64) {
        if !self.visits.is_due(now) {
            return;
        }
        for process in processes {
            let text = TaskDir::of(root, *process).bytes("smaps_rollup").unwrap_or_default();
            self.of.extend(parse(&String::from_utf8_lossy(&text)).map(|share| (*process, share)));
        }
        self.visits.visited(now, clock::monotonic());
    }

    /// The part of a process's memory without file that is in huge pages; `None` if that is not known.
    pub fn of(&self, process: u32) -> Option<f64> {
        self.of.get(&process).copied()
    }
}

/// The part of the memory without file that is in huge pages, from a text of `smaps_rollup`; `None` if the process has no
/// such memory or the kernel does not say.
fn parse(text: &str) -> Option<f64> {
    let field = |name: &str| -> Option<f64> {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        line.trim().strip_suffix("kB")?.trim().parse().ok()
    };
    let all = field("Anonymous").filter(|all| *all > 0.0)?;
    Some((field("AnonHugePages")? / all).clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_says_how_much_is_in_huge_pages() {
        assert_eq!(parse("Rss: 9 kB\nAnonymous:  8192 kB\nAnonHugePages:    2048 kB\n"), Some(0.25));
        assert_eq!(parse("Anonymous: 0 kB\nAnonHugePages: 0 kB\n"), None);
        assert_eq!(parse("Rss: 9 kB\n"), None);
    }

    #[test]
    fn this_process_is_looked_at_when_it_is_time() {
        let mut shares = HugePageShares::new(1);
        let this = std::process::id();
        shares.visit(&SysRoot::host(), &[this], 0);
        assert_eq!(shares.of(this), None);
        assert!(shares.visits.is_due(1));
        let now = clock::monotonic();
        shares.visit(&SysRoot::host(), &[this], now);
        assert!(shares.of(this).is_none_or(|share| (0.0..=1.0).contains(&share)));
        assert!(!shares.visits.is_due(now));
    }
}
