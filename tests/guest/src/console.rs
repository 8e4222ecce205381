//! What the guest's console tells: how far it is, and what went wrong.

use std::collections::VecDeque;

/// What the guest's own script says of itself begins so.
const OURS: &str = "numakit-guest: ";
/// Maximum number of lines that are shown.
const SHOWN: usize = 20;
/// The kernel gave up, or will not get far.
const FATAL: [&str; 8] = [
    "Kernel panic - not syncing",
    "BUG: ",
    "kernel BUG at",
    "Oops: ",
    "general protection fault",
    "soft lockup",
    "hard LOCKUP",
    "EXT4-fs error",
];
/// The kernel kills for want of memory. The last two are panics for the same reason. A control group of which the memory ends is
/// a step's own.
const MEMORY: [&str; 3] = ["Out of memory: Killed process", "deadlocked on memory", "panic_on_oom"];

/// How far a guest is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Stage {
    /// The kernel and our script start.
    #[default]
    Starting,
    /// Steps may begin.
    Ready,
    /// In this step, or between it and the next.
    Step(usize),
    /// After all steps.
    Done,
}

/// A line that tells that something went wrong, and when it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    pub line: String,
    pub stage: Stage,
}

/// The console so far.
#[derive(Debug, Default)]
pub struct Watch {
    partial: String,
    last: VecDeque<String>,
    /// How far the guest is.
    pub stage: Stage,
    /// The first sign of a kernel that gave up.
    pub fatal: Option<Trouble>,
    /// The first sign of exhausted memory.
    pub memory: Option<Trouble>,
}

impl Watch {
    /// Takes what came since the last time; lines may be cut anywhere.
    pub fn take(&mut self, bytes: &[u8]) {
        self.partial += &String::from_utf8_lossy(bytes);
        while let Some(end) = self.partial.find('\n') {
            let line: String = self.partial.drain(..=end).collect();
            self.line(line.trim_end());
        }
    }

    fn line(&mut self, line: &str) {
        // Kernel messages may stand before ours in the same line.
        if let Some((_, said)) = line.split_once(OURS) {
            self.stage = match said.split_once(' ') {
                Some(("step", number)) => number.parse().map_or(self.stage, Stage::Step),
                None if said == "ready" => Stage::Ready,
                None if said == "done" => Stage::Done,
                _ => self.stage,
            };
        }
        let tells = |signs: &[&str]| signs.iter().any(|sign| line.contains(sign));
        let trouble = || Trouble { line: line.to_owned(), stage: self.stage };
        if tells(&MEMORY) {
            self.memory.get_or_insert_with(trouble);
        } else if tells(&FATAL) {
            self.fatal.get_or_insert_with(trouble);
        }
        if self.last.len() == SHOWN {
            self.last.pop_front();
        }
        self.last.push_back(line.to_owned());
    }

    /// The last lines, an unfinished one too.
    pub fn last_lines(&self) -> Vec<String> {
        let unfinished = Some(self.partial.trim_end().to_owned()).filter(|line| !line.is_empty());
        self.last.iter().cloned().chain(unfinished).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watch(text: &str) -> Watch {
        let mut watch = Watch::default();
        // In small pieces, as they come from a file that grows.
        text.as_bytes().chunks(7).for_each(|piece| watch.take(piece));
        watch
    }

    #[test]
    fn the_guest_tells_how_far_it_is() {
        let mut seen = watch("[ 1.0] x: y\r\nnumakit-guest: ready\r\nnumakit-guest: step 0003\r\n");
        assert_eq!(seen.stage, Stage::Step(3));
        seen.take(b"[ 2.0] late numakit-guest: done\r\n");
        assert_eq!((seen.stage, seen.fatal), (Stage::Done, None));
        assert_eq!(watch("numakit-guest: ready\n").stage, Stage::Ready);
    }

    #[test]
    fn what_went_wrong_is_told_by_its_first_line() {
        let panic = "[    4.93] sysrq: Trigger a crash\r\n\
                     [    4.94] Kernel panic - not syncing: sysrq triggered crash\r\n\
                     [    4.95] BUG: later\r\n";
        let seen = watch(panic);
        assert!(seen.fatal.unwrap().line.ends_with("Kernel panic - not syncing: sysrq triggered crash"));
        for line in [
            "watchdog: BUG: soft lockup - CPU#1 stuck for 67s! [cat:99]",
            "BUG: unable to handle page fault for address: 0000000000001000",
            "Oops: 0002 [#1] PREEMPT SMP NOPTI",
            "kernel BUG at mm/slub.c:435!",
        ] {
            let seen = watch(&format!("numakit-guest: step 0001\n[ 9.9] {line}\nnumakit-guest: done\n"));
            let expected = Trouble { line: format!("[ 9.9] {line}"), stage: Stage::Step(1) };
            assert_eq!(seen.fatal, Some(expected));
        }
    }

    #[test]
    fn exhausted_memory_is_told_apart_from_a_panic() {
        let killed = "[ 7.1] Out of memory: Killed process 71 (touch) total-vm:1001000kB, anon-rss:9kB\n";
        let seen = watch(killed);
        assert_eq!((seen.memory.unwrap().line.as_str(), seen.fatal), (killed.trim_end(), None));
        let of_group = "[ 7.1] Memory cgroup out of memory: Killed process 71 (touch) total-vm:1001000kB\n";
        assert_eq!(watch(of_group).memory, None);
        let seen = watch("[ 7.2] Kernel panic - not syncing: System is deadlocked on memory\n");
        assert!(seen.memory.is_some() && seen.fatal.is_none());
    }

    #[test]
    fn only_the_last_lines_are_kept() {
        let text: String = (0..100).map(|n| format!("line {n}\n")).collect();
        let lines = watch(&(text + "cut off")).last_lines();
        assert_eq!((lines.len(), lines[0].as_str(), lines[20].as_str()), (21, "line 80", "cut off"));
    }
}
