//! /proc/PID/stat, of a process or of a thread.

use crate::layout::digits;

/// What is used of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stat {
    /// The name of the program, at most 15 bytes, with whatever bytes it has.
    pub command: Vec<u8>,
    /// It has exited; only its parent does not know yet.
    pub exited: bool,
    /// The parent.
    pub parent: u32,
    /// It is a thread of the kernel.
    pub kernel: bool,
    /// What it did itself, with threads that have exited.
    pub own: Counts,
    /// What children did that it has waited for, with those that they have waited for.
    pub waited: Counts,
    /// Threads.
    pub threads: u64,
    /// When it started; with the pid this names a process for ever.
    pub start: u64,
    /// Resident memory in pages.
    pub resident: u64,
    /// The CPU that it is or last was on.
    pub cpu: Option<u32>,
}

impl Stat {
    /// It has not exited, or its main thread has and others run on.
    pub fn runs(&self) -> bool {
        !self.exited || self.threads > 1
    }
}

/// Minor faults, major faults, ticks of CPU time.
pub type Counts = [u64; 3];

/// `PF_KTHREAD` of the field of flags.
const KERNEL_THREAD: u64 = 0x0020_0000;

/// Takes the line apart. The name may hold spaces and parentheses, so it ends at the last one.
pub fn parse(text: &[u8]) -> Option<Stat> {
    let open = text.iter().position(|&b| b == b'(')?;
    let close = text.iter().rposition(|&b| b == b')')?;
    let command = text.get(open + 1..close)?.to_vec();
    // The first field behind the name is the third of the manual page.
    let mut fields: [&[u8]; 40] = [b""; 40];
    let words = text[close + 1..].split(u8::is_ascii_whitespace).filter(|w| !w.is_empty());
    for (field, word) in fields[3..].iter_mut().zip(words) {
        *field = word;
    }
    let number = |at: usize| match digits(fields[at]) {
        Some((value, [])) => Some(value),
        _ => None,
    };
    let [minor, waited_minor, major, waited_major] = [10, 11, 12, 13].map(number);
    let ticks = |a, b| Some(number(a)?.saturating_add(number(b)?));
    Some(Stat {
        command,
        exited: matches!(fields[3].first()?, b'Z' | b'X' | b'x'),
        parent: u32::try_from(number(4)?).ok()?,
        kernel: number(9)? & KERNEL_THREAD != 0,
        own: [minor?, major?, ticks(14, 15)?],
        // Once printed as signed numbers.
        waited: [waited_minor?, waited_major?, ticks(16, 17).unwrap_or(0)],
        threads: number(20)?,
        start: number(22)?,
        resident: number(24).unwrap_or(0),
        cpu: number(39).and_then(|n| u32::try_from(n).ok()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_spaces_and_parentheses_are_whole() {
        let text = b"12 (a) S 9 (b) S 7 12 12 0 -1 4194304 101 3 2 4 5 6 7 8 20 -5 3 0 1201104 3133440 413 \
                     18446744073709551615 1 1 1 1 1 0 0 0 0 0 0 0 17 6 0 0\n";
        let stat = parse(text).unwrap();
        assert_eq!(stat.command, b"a) S 9 (b");
        assert_eq!((stat.parent, stat.exited, stat.kernel, stat.threads), (7, false, false, 3));
        assert_eq!((stat.own, stat.waited), ([101, 2, 11], [3, 4, 15]));
        assert_eq!((stat.start, stat.resident, stat.cpu), (1_201_104, 413, Some(6)));
    }

    #[test]
    fn what_is_no_such_line_is_nothing() {
        for text in ["", "12", "12 (a", "12 )a( S", "12 (a) S", "12 (a) S x 1 2 3", "(((())))"] {
            assert_eq!(parse(text.as_bytes()), None, "{text}");
        }
        let line = std::fs::read("/proc/self/stat").unwrap();
        for end in 0..line.len() {
            parse(&line[..end]);
        }
        assert!(parse(&line).unwrap().threads > 0);
    }
}
