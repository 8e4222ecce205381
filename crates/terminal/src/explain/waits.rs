//! What threads wait for while they do not run: a table, and the locks.

use super::percent;
use numakit_explain::code::CodeName;
use numakit_explain::waits::{LockHolder, LockTime, ThreadWaits, WaitKind, WaitTime};
use std::fmt::Write;

/// Waits with less of the time of all waits are left out, and locks with less of the time of their threads.
const MIN_SHARE: f64 = 0.005;
const MIN_LOCK: f64 = 0.02;
/// From this number of threads on, on average, a line says that their waiting was not looked at.
const UNSEEN: f64 = 0.05;
/// Functions of a chain that are shown.
pub(super) const FUNCTIONS: usize = 3;
const WHAT_WIDTH: usize = 44;

/// The table, and what there is to say about each lock that costs time.
pub fn table(waits: &ThreadWaits, rows: usize) -> String {
    let all: u64 = waits.rows.iter().map(|row| row.time).sum();
    let share = |row: &WaitTime| row.time as f64 / all.max(1) as f64;
    let shown: Vec<&WaitTime> = waits.rows.iter().filter(|row| share(row) >= MIN_SHARE).take(rows).collect();
    if shown.is_empty() {
        return String::new();
    }
    let mut out = format!("\n  WAIT%  THREADS  {:<14} {:<WHAT_WIDTH$} IN\n", "WAITS FOR", "WHAT, WHOSE");
    for row in shown {
        // Writing to a string cannot fail.
        _ = writeln!(
            out,
            " {:6.1} {:>8}  {:<14} {:<WHAT_WIDTH$} {}",
            share(row) * 100.0,
            row.threads,
            kind(row.kind),
            what(row),
            place(row)
        );
    }
    let costly = |lock: &&LockTime| part(lock) >= MIN_LOCK;
    waits.locks.iter().filter(costly).take(rows).for_each(|found| out.push_str(&lock(found)));
    out
}

/// `for a timer (in tick)`.
pub fn words(row: &WaitTime) -> String {
    words_in(row, 1)
}

/// The same with more of the functions in which threads wait: `for a timer (in tick < main)`.
pub(super) fn words_in(row: &WaitTime, functions: usize) -> String {
    let what = what(row);
    let call = row.call.as_deref().unwrap_or("a call");
    let what = match row.kind {
        WaitKind::Storage if what == "-" => format!(", {call}"),
        WaitKind::Storage => format!(", {call} of {what}"),
        WaitKind::Kernel if what == "-" => format!(", {call}"),
        WaitKind::Stopped => ", being stopped".to_owned(),
        _ if what == "-" => String::new(),
        WaitKind::Events => format!(" of {what}"),
        WaitKind::Connections => format!(" on {what}"),
        WaitKind::Socket => format!(", {what}"),
        _ => format!(" {what}"),
    };
    let place = chain(&row.chain, functions);
    let place = if place.is_empty() { String::new() } else { format!(" (in {place})") };
    format!("for {}{what}{place}", article(row.kind))
}

fn kind(kind: WaitKind) -> &'static str {
    article(kind).trim_start_matches("a ").trim_start_matches("an ").trim_start_matches("the ")
}

fn article(kind: WaitKind) -> &'static str {
    match kind {
        WaitKind::Lock => "a lock",
        WaitKind::Condition => "a condition",
        WaitKind::Semaphore => "a semaphore",
        WaitKind::Barrier => "a barrier",
        WaitKind::Thread => "the end of a thread",
        WaitKind::OtherThread => "another thread",
        WaitKind::File => "a file",
        WaitKind::Storage => "storage",
        WaitKind::Pipe => "a pipe",
        WaitKind::Socket => "a socket",
        WaitKind::Connections => "connections",
        WaitKind::Terminal => "a terminal",
        WaitKind::Events => "events",
        WaitKind::Timer => "a timer",
        WaitKind::Child => "a child process",
        WaitKind::Signal => "a signal",
        WaitKind::PageFault => "a page on disk",
        WaitKind::Stopped => "SIGCONT",
        WaitKind::Kernel => "the kernel",
    }
}

/// What it is, and whose the other end is.
fn what(row: &WaitTime) -> String {
    let peers = if row.peers.is_empty() { String::new() } else { format!("from {}", row.peers.join(", ")) };
    let processes = if row.processes > 1 { format!("in {} processes", row.processes) } else { String::new() };
    let parts = [row.what.clone().unwrap_or_default(), peers, processes];
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    if parts.is_empty() { "-".to_owned() } else { parts.join(" ") }
}

/// The functions, and the call in which they wait.
fn place(row: &WaitTime) -> String {
    let chain = chain(&row.chain, FUNCTIONS);
    match (&row.call, chain.is_empty()) {
        (Some(call), false) => format!("{chain} ({call})"),
        (Some(call), true) => format!("({call})"),
        (None, _) => chain,
    }
}

/// The innermost functions of a chain.
pub(super) fn chain(chain: &[CodeName], functions: usize) -> String {
    let name = |code: &CodeName| {
        let function = code.in_script().or_else(|| super::function(code));
        function.unwrap_or_else(|| format!("[{}]", code.module))
    };
    let mut names: Vec<String> = chain.iter().map(name).collect();
    // Code without names may be many functions.
    names.dedup();
    names.truncate(functions);
    names.join(" < ")
}

/// The part of the time in which its threads had work that they waited for a lock.
pub(super) fn part(lock: &LockTime) -> f64 {
    lock.time as f64 / (lock.time + lock.worked).max(1) as f64
}

fn lock(lock: &LockTime) -> String {
    let threads = if lock.threads == 1 { "1 thread waits" } else { "threads wait" };
    let threads = if lock.threads == 1 { threads.to_owned() } else { format!("{} {threads}", lock.threads) };
    let mut out = format!(
        "\nlock {}, {threads} for it {} of the time in which they have work\n  waits    {}\n",
        lock.what,
        percent(part(lock)),
        chain(&lock.chain, lock.chain.len())
    );
    for LockHolder { thread, name, share, runs, chain: held } in &lock.holders {
        let place = chain(held, held.len());
        let place = if place.is_empty() { String::new() } else { format!(" in {place}") };
        let state = if *runs { "running" } else { "waiting" };
        _ = writeln!(out, "  held by  thread {thread} ({name}) {}, {state}{place}", percent(*share));
    }
    if lock.holders.is_empty() {
        out.push_str("  held by  not known: this kind of lock does not tell\n");
    }
    out
}

/// What the looks cost, and what they did not see.
pub fn notes(waits: &ThreadWaits, seconds: f64) -> String {
    let mut out = String::new();
    if waits.looks > 0 {
        let cost = waits.cost as f64 / 1e9 / seconds.max(1e-9);
        let looks = if waits.looks == 1 { "1 look".to_owned() } else { format!("{} looks", waits.looks) };
        _ = writeln!(out, "{looks} at threads that waited took {:.2} % of a CPU", cost * 100.0);
    }
    let unseen = waits.unseen as f64 / 1e9 / seconds.max(1e-9);
    let threads = format!("the waiting of {unseen:.1} threads");
    match &waits.refused {
        Some(why) => {
            _ = writeln!(
                out,
                "{threads} on average has no cause, since {why}: run the program by numa explain COMMAND, observe \
                 it as root, or allow it by sysctl kernel.yama.ptrace_scope=0 where that is not 0"
            );
        }
        None if unseen >= UNSEEN && waits.looks > 0 => {
            _ = writeln!(out, "{threads} on average was not looked at");
        }
        None => {}
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(function: &str) -> CodeName {
        CodeName { function: Some(function.to_owned()), module: "app".to_owned(), ..CodeName::default() }
    }

    fn row(kind: WaitKind, what: Option<&str>, time: u64) -> WaitTime {
        WaitTime {
            kind,
            what: what.map(ToOwned::to_owned),
            peers: Vec::new(),
            call: Some("read".to_owned()),
            time,
            of_working: 0,
            threads: 2,
            processes: 1,
            chain: vec![code("next_line"), code("main")],
        }
    }

    #[test]
    fn each_wait_is_a_row_with_its_other_end() {
        let mut pipe = row(WaitKind::Pipe, None, 750);
        pipe.peers = vec!["cat (12)".to_owned()];
        let rows = vec![pipe, row(WaitKind::Timer, None, 249), row(WaitKind::File, Some("/x"), 1)];
        let waits = ThreadWaits { rows, ..ThreadWaits::default() };
        let text = table(&waits, 10);
        let lines: Vec<Vec<&str>> =
            text.lines().skip(2).map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[0][..7], ["75.0", "2", "pipe", "from", "cat", "(12)", "next_line"]);
        assert_eq!(lines[0][7..], ["<", "main", "(read)"]);
        assert_eq!(lines[1][..4], ["24.9", "2", "timer", "-"]);
        assert_eq!(lines.len(), 2, "{text}");
        assert_eq!(words(&waits.rows[0]), "for a pipe from cat (12) (in next_line)");
        let said = |kind, what| words(&row(kind, what, 1));
        assert_eq!(said(WaitKind::Storage, Some("/log")), "for storage, read of /log (in next_line)");
        assert_eq!(said(WaitKind::Storage, None), "for storage, read (in next_line)");
        assert_eq!(
            said(WaitKind::Connections, Some("TCP 0.0.0.0:80")),
            "for connections on TCP 0.0.0.0:80 (in next_line)"
        );
        assert_eq!(
            said(WaitKind::Socket, Some("TCP to [::1]:80")),
            "for a socket, TCP to [::1]:80 (in next_line)"
        );
    }

    #[test]
    fn a_lock_has_its_holder_and_both_chains() {
        let holder =
            LockHolder { thread: 7, name: "w".to_owned(), share: 0.5, runs: true, chain: vec![code("grow")] };
        let lock = LockTime {
            what: "total_lock".to_owned(),
            is_gil: false,
            time: 75,
            worked: 25,
            threads: 3,
            looks: 9,
            chain: vec![code("add"), code("worker")],
            holders: vec![holder],
        };
        let rows = vec![row(WaitKind::Lock, Some("total_lock"), 75)];
        let mut waits = ThreadWaits { rows, locks: vec![lock], ..ThreadWaits::default() };
        let expected = "\nlock total_lock, 3 threads wait for it 75.0 % of the time in which they have work\n  waits    add < \
                        worker\n  held by  thread 7 (w) 50.0 %, running in grow\n";
        assert!(table(&waits, 10).ends_with(expected), "{}", table(&waits, 10));
        waits.locks[0].holders.clear();
        assert!(table(&waits, 10).contains("held by  not known"));
        waits.locks[0].worked = 1_000_000;
        assert!(!table(&waits, 10).contains("held by"), "a lock that is nearly free");
    }

    #[test]
    fn what_was_not_seen_is_said_with_the_fix() {
        let rows = vec![row(WaitKind::Timer, None, 50)];
        let mut waits =
            ThreadWaits { rows, unseen: 3_000_000_000, looks: 20, cost: 2_000_000, ..ThreadWaits::default() };
        let said = notes(&waits, 2.0);
        assert!(
            said.starts_with("20 looks at threads that waited took 0.10 % of a CPU\nthe waiting of 1.5 threads on average was not"),
            "{said}"
        );
        waits.refused = Some("/proc/7/task/7/syscall: permission denied".to_owned());
        assert!(notes(&waits, 2.0).contains("permission denied: run the program by"));
        assert_eq!(notes(&ThreadWaits::default(), 2.0), "");
    }
}
