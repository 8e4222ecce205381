//! `numa move`: what was decided and done, in words.

use crate::table::page_table;
use numakit_model::numbers::{ABSENT, NumberStyle, counted, duration, grouped};
use numakit_mover::{
    LeftPages, MoveReport, NotCured, PartMoved, PartPurpose, RemoteSamples, Restored, StoppedBy,
    ThreadDecision, ThreadReason,
};
use std::fmt::Write;

/// Maximum number of rows of threads and of parts.
const MAX_ROWS: usize = 40;
/// Objects and files that are named in one sentence.
const MAX_NAMED: usize = 3;

/// What was decided and done. `undo` is the command that undoes it.
pub fn text(report: &MoveReport, undo: &str) -> String {
    let mut text = head(report);
    if report.too_few {
        return text;
    }
    let threads: Vec<Vec<String>> = report.threads.iter().take(MAX_ROWS).map(thread_row).collect();
    text += &page_table(&["THREAD", "NAME", "SAMPLES", "FROM", "TO", "<WHY"], &threads, "");
    more(&mut text, report.threads.len(), "thread");
    let of_several = report.parts.windows(2).any(|two| two[0].part.process != two[1].part.process);
    let row = |part| part_row(part, report.dry_run, of_several);
    let parts: Vec<Vec<String>> = report.parts.iter().take(MAX_ROWS).map(row).collect();
    let last = if report.dry_run { "TO MOVE" } else { "MOVED" };
    text += &page_table(&["MEMORY", "FROM", "TO", "ELSEWHERE", last, "<WHY"], &parts, "");
    more(&mut text, report.parts.len(), "part");
    remarks(report, &mut text);
    summary(report, undo, &mut text);
    text
}

/// The first line: what was observed.
fn head(report: &MoveReport) -> String {
    let samples = counted(report.samples as usize, "sample");
    let time = duration(report.observed.as_secs_f64());
    if report.too_few {
        return format!(
            "{samples} in {time}, which is too little to decide anything: nothing was changed. Observe the program while it \
             is busy, or longer with --for\n"
        );
    }
    format!("{samples} in {time}; {}\n", remote(&report.before))
}

fn remote(samples: &RemoteSamples) -> String {
    match samples.share() {
        Some(share) => format!("{:.1} % of those of memory were remote", share * 100.0),
        None => "none was of memory whose node is known".to_owned(),
    }
}

/// Says how many rows are not shown.
fn more(text: &mut String, count: usize, noun: &str) {
    if count > MAX_ROWS {
        line(text, format_args!("and {}", counted(count - MAX_ROWS, noun)));
    }
}

fn line(text: &mut String, what: impl std::fmt::Display) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{what}");
}

fn thread_row(thread: &ThreadDecision) -> Vec<String> {
    let place = |cpu: Option<u32>, node: Option<u32>| match (cpu, node) {
        (Some(cpu), Some(node)) => format!("CPU {cpu}, node {node}"),
        (Some(cpu), None) => format!("CPU {cpu}"),
        _ => ABSENT.to_owned(),
    };
    let why = match thread.reason {
        ThreadReason::Stays if thread.cpu.is_some() && thread.changes => "alone there; is bound to its CPU",
        ThreadReason::Stays => "stays",
        ThreadReason::NearItsPages => "near its pages",
        ThreadReason::CoreWasShared => "its core has a busier thread",
        ThreadReason::CoreNotFree => {
            "its core is not for it: held by others, or on another node than asked for"
        }
        ThreadReason::StartsOthers => {
            "left as it is: processes of its program that it starts would inherit its CPU"
        }
        ThreadReason::MoreThreads => "more threads are busy than cores are free: left as it is",
        ThreadReason::NoCore => "no core is free among those that it may use: left as it is",
    };
    let to = thread.cpu.map_or_else(|| ABSENT.to_owned(), |cpu| place(Some(cpu), thread.node));
    let samples = grouped(thread.samples as f64);
    vec![
        thread.thread.to_string(),
        thread.name.clone(),
        samples,
        place(thread.from_cpu, thread.from_node),
        to,
        why.to_owned(),
    ]
}

fn bytes(bytes: u64) -> String {
    let text = NumberStyle::Bytes.words(bytes as f64);
    if text.ends_with('B') { text } else { format!("{text} bytes") }
}

fn part_row(moved: &PartMoved, dry_run: bool, of_several: bool) -> Vec<String> {
    let part = &moved.part;
    let name = match part.purpose {
        PartPurpose::OwnOf(_) => part.name.clone(),
        _ if of_several => format!("{} of process {}", part.name, part.process),
        _ => part.name.clone(),
    };
    let from = part.homes.keys().filter(|home| **home != part.node).map(u32::to_string);
    let from: Vec<String> = from.collect();
    let from = if from.is_empty() { ABSENT.to_owned() } else { format!("node {}", from.join(",")) };
    let why = match part.purpose {
        PartPurpose::OwnOf(_) => "the thread's own".to_owned(),
        PartPurpose::OfCure => "by the cure".to_owned(),
        PartPurpose::OnlyNode => "no other node was asked for".to_owned(),
        PartPurpose::UsedByNode => {
            let share = part.near as f64 / part.samples.max(1) as f64 * 100.0;
            let samples = counted(part.samples as usize, "sample");
            format!("{share:.0} % of its {samples} are of node {}", part.node)
        }
    };
    let last = if dry_run { moved.elsewhere } else { moved.moved };
    let to = format!("node {}", part.node);
    vec![name, from, to, bytes(moved.elsewhere), bytes(last), why]
}

/// What stays, and what works against it.
fn remarks(report: &MoveReport, text: &mut String) {
    report.warnings.iter().for_each(|warning| line(text, format_args!("warning: {warning}")));
    if report.nodes == 1 {
        line(text, "This machine has one node: nothing is far, and only threads are moved.");
    }
    let named = |name: &str, samples: u64| format!("{name} ({})", counted(samples as usize, "sample"));
    let shared: Vec<String> =
        report.shared.iter().take(MAX_NAMED).map(|range| named(&range.name, range.samples)).collect();
    let strangers: Vec<String> =
        report.strangers.iter().take(MAX_NAMED).map(|(name, samples)| named(name, *samples)).collect();
    if !shared.is_empty() {
        let shared = shared.join(", ");
        line(text, format_args!("Threads of several nodes use the same parts, which stay: {shared}."));
    }
    if !strangers.is_empty() {
        let strangers = strangers.join(", ");
        line(
            text,
            format_args!(
                "Other processes, which were not chosen, share memory that stays: {strangers}. Choose them too: the first \
                 process of a server chooses all that it started."
            ),
        );
    }
    report.not_cured.iter().for_each(|not| not_cured(not, text));
    if let Some((file, samples)) = report.files.first() {
        let samples = counted(*samples as usize, "remote sample");
        let process = report.processes.first().copied().unwrap_or(0);
        line(
            text,
            format_args!(
                "{samples} are of the page cache of {file}; 'numa file spread --by-use --pid {process} {file}' moves that."
            ),
        );
    }
    if report.balancing && report.nodes > 1 {
        line(
            text,
            "The kernel's NUMA balancing is switched on, and also moves pages: 'sysctl kernel.numa_balancing=0' as root \
             switches it off.",
        );
    }
}

/// What of a cure does nothing here.
fn not_cured(not: &NotCured, text: &mut String) {
    let reasons = [
        (&not.blocks, "blocks, which cannot be told apart in a running process; samples decide about them"),
        (&not.absent, "not found: no process has loaded the build of its file that was observed"),
        (&not.at_start, "only from the start of the program on: 'numa run --apply'"),
    ];
    for (names, why) in reasons.into_iter().filter(|(names, _)| !names.is_empty()) {
        let shown: Vec<&str> = names.iter().take(MAX_NAMED).map(String::as_str).collect();
        let rest = names.len() - shown.len();
        let rest = if rest > 0 { format!(" and {rest} more") } else { String::new() };
        line(text, format_args!("{}{rest}: {why}.", shown.join(", ")));
    }
    not.unfit.iter().for_each(|(name, why)| line(text, format_args!("{name} stays: {why}.")));
}

/// The last lines: before and after, and what did not move.
fn summary(report: &MoveReport, undo: &str, text: &mut String) {
    if !report.changes() {
        let ended = report.stopped == Some(StoppedBy::Signal);
        line(text, if ended { "A signal ended it; nothing was changed." } else { "Nothing is to be moved." });
        return;
    }
    left(&report.left, text);
    if report.dry_run {
        line(text, "Nothing was changed: without --dry-run, this is done.");
        return;
    }
    let share = |samples: &RemoteSamples| {
        samples.share().map_or_else(|| ABSENT.to_owned(), |share| format!("{:.1} %", share * 100.0))
    };
    let after = report.after.as_ref().map_or_else(|| "not observed".to_owned(), share);
    let bound = report.threads.iter().filter(|thread| thread.changes).count();
    let mut parts = vec![format!("remote {} -> {after}", share(&report.before))];
    parts.push(format!("{} bound", counted(bound, "thread")));
    if report.nodes > 1 {
        let pages = counted(report.moved_pages as usize, "page");
        parts.push(format!("{pages} ({}) moved", bytes(report.moved_bytes)));
    }
    if report.moved_pages > 0 {
        parts.push(format!(
            "{}, longest piece {}",
            duration(report.took.as_secs_f64()),
            duration(report.longest.as_secs_f64())
        ));
    }
    line(text, parts.join("; "));
    if report.huge > 0 || report.split > 0 {
        line(
            text,
            format_args!(
                "{} moved whole; {} were split",
                counted(report.huge as usize, "huge page"),
                report.split
            ),
        );
    }
    match report.stopped {
        Some(StoppedBy::Signal) => line(text, "A signal ended it; what has moved stays where it is."),
        Some(StoppedBy::Ended) => line(text, "The process has ended."),
        Some(StoppedBy::Busy) => {
            line(text, "Pages stayed where they are, piece after piece, so that moving ended early.");
        }
        None => {}
    }
    if report.forgotten > 0 {
        let forgotten = bytes(report.forgotten);
        line(
            text,
            format_args!("{forgotten} will not move back: their nodes change too often to be written down."),
        );
    }
    line(text, format_args!("undo: {undo}"));
}

/// What did not move, by reason.
fn left(left: &LeftPages, text: &mut String) {
    let reasons = [
        (left.mapped, "other processes map them too (EACCES); as root they move"),
        (left.busy, "in use (EBUSY)"),
        (left.full, "no free memory on their node (ENOMEM)"),
        (left.gone, "not there any more (ENOENT)"),
        (left.reserve, "their node would have too little free memory"),
        (
            left.cpuset,
            "the cpuset of the process lacks their node; add it to cpuset.mems of its control group",
        ),
        (left.stopped, "moving ended before their turn"),
    ];
    for (count, why) in reasons.into_iter().filter(|(count, _)| *count > 0) {
        line(text, format_args!("{} stay: {why}", bytes(count)));
    }
}

/// What was restored.
pub fn restored(restored: &Restored) -> String {
    let mut text = String::new();
    let process = restored.process;
    match restored.threads {
        0 => line(&mut text, format_args!("process {process}: no thread of it had another CPU mask")),
        threads => {
            let threads = counted(threads as usize, "thread");
            line(&mut text, format_args!("process {process}: the CPU masks of {threads} are as before"));
        }
    }
    if restored.inherited > 0 {
        let young = counted(restored.inherited as usize, "younger thread");
        line(&mut text, format_args!("{young} had inherited a CPU and may run on the CPUs of all"));
    }
    if restored.ended > 0 {
        line(
            &mut text,
            format_args!("{} of the record ended meanwhile", counted(restored.ended as usize, "thread")),
        );
    }
    if restored.elsewhere > 0 {
        let (moved, all) = (bytes(restored.moved), bytes(restored.elsewhere));
        let longest = duration(restored.longest.as_secs_f64());
        line(&mut text, format_args!("{moved} of {all} are back on their nodes; longest piece {longest}"));
    }
    left(&restored.left, &mut text);
    if restored.forgotten > 0 {
        line(&mut text, format_args!("{} have no node in the record", bytes(restored.forgotten)));
    }
    if !restored.is_complete {
        line(&mut text, "A signal ended it; the same command goes on.");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use numakit_mover::{MovablePart, SharedRange};
    use std::time::Duration;

    fn report() -> MoveReport {
        let thread = |thread, reason, cpu: Option<u32>| ThreadDecision {
            process: 40,
            thread,
            name: "worker".to_owned(),
            from_cpu: Some(0),
            from_node: Some(0),
            cpu,
            node: cpu.map(|cpu| cpu / 2),
            reason,
            changes: cpu.is_some(),
            samples: 900,
        };
        let part = MovablePart {
            process: 40,
            ranges: std::iter::once(0x7000..0x9000).collect(),
            node: 1,
            name: "a".to_owned(),
            purpose: PartPurpose::UsedByNode,
            homes: [(0, 9), (1, 1)].into(),
            samples: 10,
            near: 9,
            hot: Vec::new(),
        };
        MoveReport {
            processes: vec![40],
            nodes: 2,
            samples: 1800,
            observed: Duration::from_secs(5),
            before: RemoteSamples { all: 1000, remote: 621 },
            after: Some(RemoteSamples { all: 900, remote: 9 }),
            threads: vec![
                thread(41, ThreadReason::NearItsPages, Some(2)),
                thread(42, ThreadReason::NoCore, None),
            ],
            parts: vec![PartMoved { part, elsewhere: 8192, moved: 4096 }],
            shared: vec![SharedRange { name: "table".to_owned(), samples: 70, nodes: [0, 1].into() }],
            moved_bytes: 4096,
            moved_pages: 1,
            left: LeftPages { busy: 4096, ..LeftPages::default() },
            took: Duration::from_millis(20),
            longest: Duration::from_micros(900),
            balancing: true,
            ..MoveReport::default()
        }
    }

    #[test]
    fn what_was_done_has_its_reason_and_the_way_back() {
        let shown = text(&report(), "numa move --pid 40 --back");
        let expected = "\
1,800 samples in 5 s; 62.1 % of those of memory were remote
THREAD    NAME  SAMPLES           FROM             TO  WHY
41      worker      900  CPU 0, node 0  CPU 2, node 1  near its pages
42      worker      900  CPU 0, node 0              -  no core is free among those that it may use: left as it is
MEMORY    FROM      TO  ELSEWHERE     MOVED  WHY
a       node 0  node 1   8.00 KiB  4.00 KiB  90 % of its 10 samples are of node 1
Threads of several nodes use the same parts, which stay: table (70 samples).
The kernel's NUMA balancing is switched on, and also moves pages: 'sysctl kernel.numa_balancing=0' as root switches it off.
4.00 KiB stay: in use (EBUSY)
remote 62.1 % -> 1.0 %; 1 thread bound; 1 page (4.00 KiB) moved; 20 ms, longest piece 900 us
undo: numa move --pid 40 --back
";
        assert_eq!(shown, expected);
    }

    #[test]
    fn a_dry_run_has_the_same_rows_and_says_that_nothing_changed() {
        let done = text(&report(), "undo");
        let dry = text(&MoveReport { dry_run: true, ..report() }, "undo");
        assert!(dry.contains("Nothing was changed") && !dry.contains("undo"), "{dry}");
        assert_eq!(dry.lines().nth(1), done.lines().nth(1));
        assert!(dry.contains("TO MOVE") && dry.contains("8.00 KiB  8.00 KiB"), "{dry}");
    }

    #[test]
    fn what_a_cure_does_not_do_is_named() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let not_cured = Some(NotCured {
            blocks: names(&["list"]),
            absent: names(&["a", "b", "c", "d"]),
            unfit: [("p".to_owned(), "no order".to_owned())].into(),
            ..NotCured::default()
        });
        let shown = text(&MoveReport { not_cured, ..report() }, "undo");
        for expected in [
            "list: blocks, which cannot be told apart in a running process; samples decide about them.\n",
            "a, b, c and 1 more: not found: no process has",
            "p stays: no order.\n",
        ] {
            assert!(shown.contains(expected), "{shown}");
        }
    }

    #[test]
    fn too_few_samples_and_nothing_to_do_are_said() {
        let few = text(&MoveReport { samples: 3, too_few: true, ..MoveReport::default() }, "undo");
        assert!(few.starts_with("3 samples in 0 s, which is too little"), "{few}");
        assert_eq!(few.lines().count(), 1);
        let idle = MoveReport { samples: 300, nodes: 1, ..MoveReport::default() };
        let shown = text(&idle, "undo");
        assert!(shown.contains("has one node") && shown.ends_with("Nothing is to be moved.\n"), "{shown}");
    }

    #[test]
    fn what_is_back_is_told() {
        let restored = Restored {
            process: 40,
            threads: 2,
            inherited: 1,
            elsewhere: 8192,
            moved: 8192,
            longest: Duration::from_millis(1),
            is_complete: true,
            ..Restored::default()
        };
        let shown = super::restored(&restored);
        assert_eq!(
            shown,
            "process 40: the CPU masks of 2 threads are as before\n\
             1 younger thread had inherited a CPU and may run on the CPUs of all\n\
             8.00 KiB of 8.00 KiB are back on their nodes; longest piece 1 ms\n"
        );
    }
}
