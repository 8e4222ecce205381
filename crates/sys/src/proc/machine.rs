//! Files about the whole machine, and parsers of numbers.

use crate::{ReadError, SysRoot};
use numakit_model::cpuset::MAX_ID;

/// Leading decimal digits and what follows them. `None` without any, or beyond 64 bits.
#[inline]
pub fn digits(text: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0u64;
    let mut at = 0;
    while let Some(digit) = text.get(at).map(|b| b.wrapping_sub(b'0')).filter(|&d| d < 10) {
        value = value.checked_mul(10)?.checked_add(u64::from(digit))?;
        at += 1;
    }
    (at > 0).then(|| (value, &text[at..]))
}

/// The numbers of a line, separated by spaces, up to the first word that is not a number.
#[inline]
pub fn numbers(mut text: &[u8]) -> impl Iterator<Item = u64> {
    std::iter::from_fn(move || {
        let start = text.iter().position(|&b| b != b' ')?;
        let (value, rest) = digits(&text[start..])?;
        text = rest;
        Some(value)
    })
}

/// A line of /proc/stat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatLine<'a> {
    /// One CPU, and its counters as text.
    Cpu(u32, &'a [u8]),
    /// The first word of another line, and the rest.
    Other(&'a [u8], &'a [u8]),
}

/// Parses a line of /proc/stat (without its newline).
#[inline]
pub fn stat_line(text: &[u8]) -> StatLine<'_> {
    let space = text.iter().position(|&b| b == b' ').unwrap_or(text.len());
    let (word, rest) = text.split_at(space);
    match word.strip_prefix(b"cpu").and_then(digits) {
        Some((id, [])) if id <= u64::from(MAX_ID) => StatLine::Cpu(id as u32, rest),
        _ => StatLine::Other(word, rest),
    }
}

/// /proc/loadavg.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LoadAverage {
    /// The load average of the last minute.
    pub minute: f64,
    /// Runnable threads now, including the reader.
    pub running: u32,
}

impl LoadAverage {
    /// Reads it.
    pub fn read(root: &SysRoot) -> Option<Self> {
        Self::parse(&root.text("/proc/loadavg").ok()?)
    }

    /// Parses a line such as `0.05 0.10 0.20 1/300 4711`.
    pub fn parse(text: &str) -> Option<Self> {
        let mut words = text.split_ascii_whitespace();
        let minute = words.next()?.parse().ok()?;
        let running = words.nth(2)?.split('/').next()?.parse().ok()?;
        Some(Self { minute, running })
    }
}

/// The slack of timers of this process, in ns, which it has from the one that started it; `None` where the kernel does not tell it.
pub fn timer_slack(root: &SysRoot) -> Option<u64> {
    root.text("/proc/self/timerslack_ns").ok()?.trim().parse().ok()
}

/// The part of the last minute, in percent, in which at least one thread waited for `cpu`, `memory` or `io`; `None` where the kernel
/// does not count it.
pub fn waited_minute(root: &SysRoot, resource: &str) -> Option<f64> {
    let text = root.text(&format!("/proc/pressure/{resource}")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("some "))?;
    line.split_ascii_whitespace().find_map(|word| word.strip_prefix("avg60="))?.parse().ok()
}

/// The name of the machine.
pub fn host_name(root: &SysRoot) -> Result<String, ReadError> {
    root.text("/proc/sys/kernel/hostname").map(|name| name.trim().to_owned())
}

/// The release of its kernel, as in `6.12.3-amd64`.
pub fn kernel_release(root: &SysRoot) -> Result<String, ReadError> {
    root.text("/proc/sys/kernel/osrelease").map(|release| release.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_are_a_mean_and_a_count() {
        let load = LoadAverage::parse("0.05 0.9 0.8 3/300 5\n").unwrap();
        assert_eq!((load.minute, load.running), (0.05, 3));
        for text in ["", "x 1 1 1/2 3", "0.1 0.1", "0.1 0.1 0.1 /2 3", "0.1 0.1 0.1 -1/2 3"] {
            assert_eq!(LoadAverage::parse(text), None, "{text}");
        }
        assert!(LoadAverage::read(&SysRoot::host()).unwrap().running >= 1);
    }

    #[test]
    fn pressure_of_a_minute_is_that_of_some_threads() {
        let text = "some avg10=92.57 avg60=44.31 avg300=19.53 total=20644379250\nfull avg10=1.00 avg60=2.00 avg300=0.00 total=0\n";
        let mut tree = crate::root::FileTree::new();
        tree.file("/proc/pressure/cpu", text).file("/proc/pressure/io", "full avg60=1.0\n");
        let root = SysRoot::of_tree(tree);
        assert_eq!(waited_minute(&root, "cpu"), Some(44.31));
        assert_eq!((waited_minute(&root, "io"), waited_minute(&root, "memory")), (None, None));
    }

    #[test]
    fn lines_of_cpus_are_recognised() {
        assert_eq!(stat_line(b"cpu12 3 4"), StatLine::Cpu(12, b" 3 4"));
        assert_eq!(stat_line(b"cpu  3 4"), StatLine::Other(b"cpu", b"  3 4"));
        assert_eq!(stat_line(b"cpufreq 1"), StatLine::Other(b"cpufreq", b" 1"));
        assert_eq!(stat_line(b""), StatLine::Other(b"", b""));
        assert!(matches!(stat_line(b"cpu99999999999 1"), StatLine::Other(..)));
        assert_eq!(numbers(b"  3 4 x 5").collect::<Vec<_>>(), [3, 4]);
    }

    #[test]
    fn digits_end_where_they_end() {
        assert_eq!(digits(b"12 kB"), Some((12, b" kB".as_slice())));
        assert_eq!(digits(b"18446744073709551615"), Some((u64::MAX, b"".as_slice())));
        assert_eq!((digits(b"18446744073709551616"), digits(b"-1"), digits(b"")), (None, None, None));
    }

    #[test]
    fn the_kernel_names_the_machine() {
        let host = SysRoot::host();
        assert!(!host_name(&host).unwrap().contains('\n'));
        assert!(kernel_release(&host).unwrap().starts_with(|c: char| c.is_ascii_digit()));
    }
}
