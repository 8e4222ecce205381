//! How much of a process's memory is in huge pages, as the kernel says.

use numakit_sys::proc::TaskDir;
use numakit_sys::{SysRoot, clock};
use std::collections::HashMap;

/// First at once, for what runs already; then after this time, in ns, when programs have touched some of their memory; then
/// this often, and at most for a part of the time: the kernel walks the tables of all pages.
const FIRST: u64 = 300_000_000;
const EACH: u64 = 10_000_000_000;
const SHARE: u64 = 50;

/// The processes, as they were when they were looked at.
#[derive(Debug)]
pub struct HugePageShares {
    of: HashMap<u32, f64>,
    next: u64,
    /// How long after the next visit the one after it is, at least.
    pause: u64,
}

impl HugePageShares {
    /// For an observation that starts now.
    pub fn new(now: u64) -> Self {
        Self { of: HashMap::new(), next: now, pause: FIRST }
    }

    /// Looks at these processes if it is time.
    pub fn visit(&mut self, root: &SysRoot, processes: &[u32], now: u64) {
        if now < self.next {
            return;
        }
        for process in processes {
            let text = TaskDir::of(root, *process).bytes("smaps_rollup").unwrap_or_default();
            self.of.extend(parse(&String::from_utf8_lossy(&text)).map(|share| (*process, share)));
        }
        let end = clock::monotonic();
        self.next = end + self.pause.max(end.saturating_sub(now) * SHARE);
        self.pause = EACH;
    }

    /// The part of a process's memory without file that is in huge pages; `None` if that is not known.
    pub fn of(&self, process: u32) -> Option<f64> {
        self.of.get(&process).copied()
    }
}

/// The part of a text of the kernel; `None` if it has no such memory or does not say.
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
        assert_eq!((shares.of(this), shares.pause), (None, FIRST));
        shares.visit(&SysRoot::host(), &[this], clock::monotonic());
        assert!(shares.of(this).is_none_or(|share| (0.0..=1.0).contains(&share)));
        assert_eq!(shares.pause, EACH);
    }
}
