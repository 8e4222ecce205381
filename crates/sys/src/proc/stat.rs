//! `stat` of a process or of a thread.

use super::{digits, printable};
use std::ops::Range;

/// The fields that are used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskStat {
    /// The name of the program: at most 15 arbitrary bytes.
    pub command: Vec<u8>,
    /// It is running or runnable.
    pub runnable: bool,
    /// It sleeps so that a signal wakes it, as no thread does that waits for a disk.
    pub interruptible: bool,
    /// A signal or a debugger has stopped it.
    pub stopped: bool,
    /// It is a zombie: it has exited, and its parent has not waited for it.
    pub exited: bool,
    /// It is dead: its parent has waited for it and has its counts.
    pub reaped: bool,
    /// It is exiting.
    pub exiting: bool,
    /// The parent's PID.
    pub parent: u32,
    /// It is a kernel thread.
    pub kernel: bool,
    /// Its own counts, including threads that have exited.
    pub own: Counts,
    /// The part of its CPU time in user mode, in ticks.
    pub user: u64,
    /// The counts of children that it has waited for, and of their children.
    pub waited: Counts,
    /// The number of threads.
    pub threads: u64,
    /// Its start time, in ticks since boot; together with the PID, it identifies a process.
    pub start: u64,
    /// Mapped addresses in bytes.
    pub mapped: u64,
    /// Resident memory in pages.
    pub resident: u64,
    /// The CPU on which it runs or ran last.
    pub cpu: Option<u32>,
    /// The addresses of its command line, in its memory.
    pub arguments: Option<Range<usize>>,
}

/// Minor faults, major faults, ticks of CPU time.
pub type Counts = [u64; 3];

/// `PF_EXITING` in the flags.
const EXITING: u64 = 4;
/// `PF_KTHREAD`.
const KERNEL_THREAD: u64 = 0x0020_0000;

impl TaskStat {
    /// Parses the line. The name may contain spaces and parentheses, so it ends at the last one.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let open = text.iter().position(|&b| b == b'(')?;
        let close = text.iter().rposition(|&b| b == b')')?;
        let command = text.get(open + 1..close)?.to_vec();
        // The first field after the name is the third in the manual page.
        let mut fields: [&[u8]; 50] = [b""; 50];
        let words = text[close + 1..].split(u8::is_ascii_whitespace).filter(|w| !w.is_empty());
        for (field, word) in fields[3..].iter_mut().zip(words) {
            *field = word;
        }
        let number = |at: usize| match digits(fields[at]) {
            Some((value, [])) => Some(value),
            _ => None,
        };
        let address = |at: usize| number(at).and_then(|n| usize::try_from(n).ok()).filter(|&n| n > 0);
        let [minor, waited_minor, major, waited_major] = [10, 11, 12, 13].map(number);
        let ticks = |a, b| Some(number(a)?.saturating_add(number(b)?));
        let (state, flags) = (*fields[3].first()?, number(9)?);
        Some(Self {
            command,
            runnable: state == b'R',
            interruptible: state == b'S',
            stopped: matches!(state, b'T' | b't'),
            exited: matches!(state, b'Z' | b'X' | b'x'),
            reaped: matches!(state, b'X' | b'x'),
            exiting: flags & EXITING != 0,
            parent: u32::try_from(number(4)?).ok()?,
            kernel: flags & KERNEL_THREAD != 0,
            own: [minor?, major?, ticks(14, 15)?],
            user: number(14)?,
            // Old kernels printed signed numbers.
            waited: [waited_minor?, waited_major?, ticks(16, 17).unwrap_or(0)],
            threads: number(20)?,
            start: number(22)?,
            mapped: number(23).unwrap_or(0),
            resident: number(24).unwrap_or(0),
            cpu: number(39).and_then(|n| u32::try_from(n).ok()),
            arguments: address(48).zip(address(49)).map(|(start, end)| start..end),
        })
    }

    /// Whether a thread of the process still runs, even if its main thread has exited.
    pub fn runs(&self) -> bool {
        !self.exited || self.threads > 1
    }

    /// Whether no thread of the process runs, or its only thread is exiting.
    pub fn has_ended(&self) -> bool {
        (self.exited || self.exiting) && self.threads <= 1
    }

    /// The name of the program, for a terminal.
    pub fn name(&self) -> String {
        printable(&self.command)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_spaces_and_parentheses_are_whole() {
        let text = b"12 (a) S 9 (b) S 7 12 12 0 -1 4194304 101 3 2 4 5 6 7 8 20 -5 3 0 1201104 3133440 413 \
                     18446744073709551615 1 1 1 1 1 0 0 0 0 0 0 0 17 6 0 0 0 0 0 1 2 3 70 90 95 0\n";
        let stat = TaskStat::parse(text).unwrap();
        assert_eq!(stat.command, b"a) S 9 (b");
        assert_eq!((stat.parent, stat.exited, stat.kernel, stat.threads), (7, false, false, 3));
        assert_eq!((stat.own, stat.user, stat.waited), ([101, 2, 11], 5, [3, 4, 15]));
        assert_eq!((stat.start, stat.resident, stat.cpu), (1_201_104, 413, Some(6)));
        assert_eq!((stat.runnable, stat.interruptible, &stat.arguments), (false, true, &Some(70..90)));
        let named = TaskStat { command: b"a\x1b[2J\xff".to_vec(), ..stat };
        assert_eq!(named.name(), "a?[2J\u{fffd}");
    }

    #[test]
    fn state_flags_and_threads_show_whether_it_has_ended() {
        let line = |state: char, flags: u64, threads: u64| {
            let text = format!("7 (x) {state} 1 1 1 0 -1 {flags} 0 0 0 0 0 0 0 0 20 0 {threads} 0 5 0 0\n");
            let stat = TaskStat::parse(text.as_bytes()).unwrap();
            (stat.runs(), stat.has_ended())
        };
        assert_eq!(line('R', 0, 1), (true, false));
        assert_eq!(line('Z', 0, 1), (false, true));
        assert_eq!(line('Z', 0, 2), (true, false));
        assert_eq!(line('R', 4, 1), (true, true));
        assert_eq!(line('X', 4, 0), (false, true));
    }

    #[test]
    fn malformed_lines_are_refused() {
        for text in ["", "12", "12 (a", "12 )a( S", "12 (a) S", "12 (a) S x 1 2 3", "(((())))"] {
            assert_eq!(TaskStat::parse(text.as_bytes()), None, "{text}");
        }
        let line = std::fs::read("/proc/self/stat").unwrap();
        for end in 0..line.len() {
            TaskStat::parse(&line[..end]);
        }
        assert!(TaskStat::parse(&line).unwrap().threads > 0);
    }
}
