//! `numa explain`: where the time went, objects, functions, source lines and contended lines.

mod activity;
mod functions;
mod hint_faults;
mod names;
mod objects;
mod projected;
mod python;
mod ranks;
mod screen;
mod sharing;
mod waits;

use numakit_explain::code::CodeName;
use numakit_explain::contended::{ContendedLine, LineUser, Sharing};
use numakit_explain::traffic::Traffic;
use numakit_explain::waits::{ThreadWaits, WorkingThreads};
use numakit_explain::{ExplainReport, Regime, SeenProcess, TimeShares};
use numakit_findings::activity::{of_cpu_time, spinning};
use numakit_findings::explained::JudgedReport;
use numakit_findings::finding::FindingSubject;
use numakit_model::numbers::{duration, grouped};
use numakit_model::thresholds::MIN_SAMPLES;
use std::fmt::Write;

/// An estimate of traffic from fewer pages than this says little.
const MIN_PAGES: u64 = 500;
/// Loops that wait for other threads are named from this part of the CPU time on.
const MIN_SPINNING: f64 = 0.005;
/// Threads of a contended line that are shown.
const MAX_USERS: usize = 4;
/// Fields of a thread that are shown.
const MAX_FIELDS: usize = 4;

pub use screen::{WIDTH, screen};

/// The whole text; at most `rows` objects, source lines, waits and contended lines each.
pub fn text(judged: &JudgedReport, rows: usize) -> String {
    let report = &judged.report;
    let (first, later) = objects::of_program(&judged.findings);
    let mut out = first;
    for (_, says) in objects::causes(judged).iter().filter(|(of, _)| *of != FindingSubject::Program) {
        // Writing to a string cannot fail.
        _ = writeln!(out, "{says}.");
    }
    out.push_str(&objects::activity(judged));
    out.push_str(&first_lines(report, 0.0));
    out.push_str(&later);
    let explanation = &report.explanation;
    if let Some(traffic) = &explanation.traffic {
        out.push_str(&traffic_lines(traffic));
    }
    out.extend(judged.separated_threads().as_ref().map(sharing::line));
    if report.regime != Regime::Unknown {
        out.push_str(&objects::objects(judged, rows));
        out.push_str(&hint_faults::text(judged, rows));
    }
    if report.regime == Regime::Precise {
        out.push_str(&functions::functions(explanation));
        out.push_str(&functions::source_lines(explanation, rows));
    }
    out.push_str(&python::table(&explanation.python, rows));
    out.push_str(&ranks::table(&explanation.ranks, rows));
    out.push_str(&waits::table(&explanation.waits, rows));
    if report.regime == Regime::Precise {
        explanation.lines.iter().take(rows).for_each(|line| out.push_str(&contended(judged, line)));
    }
    out.push_str(&notes(report));
    let projected = |projection| projected::text(projection, &report.processes, rows);
    judged.projected.iter().for_each(|projection| out.push_str(&projected(projection)));
    out
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// Where the time went; parts of the CPU time with less than `least` are left out.
fn first_lines(report: &ExplainReport, least: f64) -> String {
    let explanation = &report.explanation;
    let mut out = String::new();
    if let Some(time) = &explanation.time {
        out.push_str(&time_line(time, report, least));
    }
    if let Some(far) = &explanation.remote_share {
        let (low, high) = (percent(far.low), percent(far.high));
        // Writing to a string cannot fail.
        _ = writeln!(
            out,
            "Of the time at memory, {} was at memory of other nodes ({low} to {high}).",
            percent(far.share)
        );
    }
    out
}

/// Where the CPU time went, and a line about the time of threads.
fn time_line(time: &TimeShares, report: &ExplainReport, least: f64) -> String {
    let threads = &report.explanation.threads;
    let faults = match threads.faults {
        0 => String::new(),
        faults => format!(" ({} page faults)", grouped(faults as f64)),
    };
    let cpu = (1.0 - time.runnable - time.asleep).max(1e-9);
    let of_cpu = |share: f64| (share / cpu).min(1.0);
    let words = |parts: &[(&str, f64)]| {
        let shown = parts.iter().filter(|(_, share)| of_cpu(*share) >= least);
        shown
            .map(|(what, share)| format!("{what} {}", percent(of_cpu(*share))))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let memory = time.cached + time.local + time.remote + time.unknown + time.contended;
    let has_nodes = report.explanation.remote_share.is_some();
    let outside = match has_nodes {
        true => vec![("local", time.local), ("remote", time.remote)],
        false => vec![("outside", time.local + time.remote)],
    };
    let last = [("unknown", time.unknown), ("contended lines", time.contended)];
    let places: Vec<(&str, f64)> =
        std::iter::once(("in caches", time.cached)).chain(outside).chain(last).collect();
    let running = running(time, &report.explanation.waits);
    let all = duration((threads.user + threads.kernel) as f64 / 1e9);
    // Shares of so few samples would be chance.
    if report.explanation.samples.total < MIN_SAMPLES {
        return format!("CPU time {all}{faults}\n{running}");
    }
    let at_memory = words(&places);
    let colon = if at_memory.is_empty() { "" } else { ": " };
    // Loops that wait for other threads are no computing.
    let spun = spinning(&report.explanation);
    let spins = match spun >= least.max(MIN_SPINNING) {
        true => format!("waiting in loops {}; ", percent(spun)),
        false => String::new(),
    };
    format!(
        "CPU time {all}: computing {}; {spins}memory {}{colon}{at_memory}; kernel {}{faults}\n{running}",
        percent((of_cpu(time.computing) - spun).max(0.0)),
        percent(of_cpu(memory)),
        percent(of_cpu(time.kernel)),
    )
}

/// The parts of the time of all threads, or of those that work, where idle ones would hide what these do.
fn running(time: &TimeShares, waits: &ThreadWaits) -> String {
    let WorkingThreads { threads, times } = waits.working;
    let share = |part: u64| part as f64 / times.total().max(1) as f64;
    let (who, runnable, asleep) = match threads > 0 && threads < waits.threads {
        true => {
            let who = format!("threads that work ({threads} of {})", waits.threads);
            (who, share(times.runnable), share(times.asleep))
        }
        false => ("threads".to_owned(), time.runnable, time.asleep),
    };
    format!(
        "{who}: running {} of their time, runnable without a CPU {}, waiting {}\n",
        percent((1.0 - runnable - asleep).clamp(0.0, 1.0)),
        percent(runnable),
        percent(asleep),
    )
}

fn traffic_lines(traffic: &Traffic) -> String {
    let Some(far) = traffic.remote_share() else { return String::new() };
    let pages: u64 = traffic.pages.iter().map(|cell| cell.pages).sum();
    if pages < MIN_PAGES {
        return format!(
            "Samples of this machine do not say where time goes (it is emulated), and {pages} pages are too few to \
             estimate traffic: observe the program for longer.\n"
        );
    }
    let mut out = format!(
        "Samples of this machine do not say where time goes (it is emulated). Of the pages in use, {} are on \
         other nodes than their users:\n",
        percent(far)
    );
    let mut users: Vec<u32> = traffic.pages.iter().map(|cell| cell.cpu_node).collect();
    users.dedup();
    for user in users {
        let row = traffic.pages.iter().filter(|cell| cell.cpu_node == user);
        let cells = row.map(|cell| format!("node {}: {}", cell.memory_node, grouped(cell.pages as f64)));
        _ = writeln!(out, "  CPUs of node {user}: pages of {}", cells.collect::<Vec<_>>().join(", "));
    }
    out
}

fn named(name: &CodeName) -> String {
    let function = function(name).unwrap_or_else(|| "code without names".to_owned());
    match (&name.file, name.line) {
        (Some(file), Some(line)) => format!("{file}:{line} ({function})"),
        _ => format!("{function} [{}]", name.module),
    }
}

/// A function's name in a table; `None` if it has none. Names of scripts have brackets that belong to them.
fn function(name: &CodeName) -> Option<String> {
    let function = name.function.as_deref()?;
    Some(if name.is_script() { function.to_owned() } else { shortened(function) })
}

/// A function of C++ or Rust without the arguments of templates and of functions, which may fill a page.
fn shortened(name: &str) -> String {
    let name = &name.replace("(anonymous namespace)::", "");
    let (mut short, mut depth) = (String::new(), 0usize);
    let operator = name.find("operator").map_or(0..0, |at| {
        let start = at + "operator".len();
        start..start + name[start..].chars().take_while(|c| "<>=-".contains(*c)).count()
    });
    for (at, letter) in name.char_indices() {
        if operator.contains(&at) {
            short.push(letter);
            continue;
        }
        match letter {
            '<' | '(' => depth += 1,
            '>' | ')' => depth = depth.saturating_sub(1),
            _ if depth == 0 => short.push(letter),
            _ => {}
        }
    }
    short.trim_end().trim_end_matches(" const").to_owned()
}

fn contended(JudgedReport { report, objects, .. }: &JudgedReport, line: &ContendedLine) -> String {
    let what = match line.sharing {
        Sharing::False => "false sharing: each thread uses bytes of its own on one line",
        Sharing::True => "true sharing: threads use the same bytes",
        Sharing::Lock => "a lock or an atomic counter: threads change the same bytes by atomic instructions",
    };
    let nodes = if line.across_nodes { ", across nodes" } else { "" };
    let object = objects.get(line.object as usize);
    let object = object.map_or("unknown mapping", |judged| &judged.object.object.name);
    let share = of_cpu_time(&report.explanation, line.weight);
    let mut out = format!(
        "\ncontended line {:#x} ({object}), {} of the CPU time{nodes}\n  {what}\n",
        line.address,
        percent(share)
    );
    for user in line.users.iter().take(MAX_USERS) {
        _ = writeln!(out, "  {}", user_line(report, user, line.processes.len() > 1));
    }
    if line.users.len() > MAX_USERS {
        _ = writeln!(out, "  {} more threads", line.users.len() - MAX_USERS);
    }
    out
}

/// How a thread uses a line; threads of several processes have their process.
fn user_line(report: &ExplainReport, user: &LineUser, has_processes: bool) -> String {
    let thread = report.threads_sampled.get(user.thread as usize).map_or_else(
        || "thread".to_owned(),
        |thread| {
            let process = if has_processes { format!(" of process {}", thread.pid) } else { String::new() };
            format!("thread {}{process} ({})", thread.tid, thread.name)
        },
    );
    let nodes: Vec<String> = user.nodes.iter().map(u32::to_string).collect();
    let on = if nodes.is_empty() { String::new() } else { format!(" on node {}", nodes.join(", ")) };
    let offsets = user.offsets.iter().map(|(offset, count)| format!("{offset} ({count})"));
    let kinds = [("loads", user.loads), ("stores", user.stores - user.atomics), ("atomic", user.atomics)];
    let kinds =
        kinds.into_iter().filter(|(_, count)| *count > 0).map(|(kind, count)| format!("{count} {kind}"));
    let (kinds, offsets) = (kinds.collect::<Vec<_>>().join(", "), offsets.collect::<Vec<_>>().join(", "));
    format!("{thread}{on}: {kinds}; at offsets {offsets}{}", fields(user))
}

/// What of which object that is.
fn fields(user: &LineUser) -> String {
    let mut names: Vec<&str> = user.fields.iter().map(|field| field.name.as_str()).collect();
    names.dedup();
    let more = names.len().saturating_sub(MAX_FIELDS);
    names.truncate(MAX_FIELDS);
    match (names.as_slice(), more) {
        ([], _) => String::new(),
        (names, 0) => format!(": {}", names.join(", ")),
        (names, more) => format!(": {} and {more} more", names.join(", ")),
    }
}

/// How many processes were observed, where that is more than one.
fn processes(all: &[SeenProcess]) -> String {
    if all.len() < 2 {
        return String::new();
    }
    let mut out = format!("{} processes", all.len());
    let joined = all.iter().filter(|process| process.joined).count();
    let ended = all.iter().filter(|process| process.ended).count();
    for (count, what) in [(joined, "began meanwhile"), (ended, "have ended")] {
        if count > 0 {
            // Writing to a string cannot fail.
            _ = write!(out, ", {count} {what}");
        }
    }
    out + "\n"
}

/// How the samples were taken, and what is missing.
fn notes(report: &ExplainReport) -> String {
    let samples = &report.explanation.samples;
    let regime = match report.regime {
        Regime::Precise => "precise: each names the instruction that waited",
        Regime::Block => "at starts of blocks: only traffic can be estimated",
        Regime::Unknown => {
            "landing elsewhere: time and traffic cannot be told; 'numa doctor --calibrate' says whether they do so on an idle \
             machine too"
        }
    };
    let mut out = format!(
        "\n{} samples {}, {regime}; {} of {} at memory have an address",
        grouped(samples.total as f64),
        report.method,
        grouped(samples.recovered as f64),
        grouped(samples.memory as f64),
    );
    let missing = report.missing;
    for (count, what) in [
        (missing.lost, "lost"),
        (missing.allocations, "allocations were not seen"),
        (missing.faults, "page faults were not seen"),
        (missing.late, "samples in code that was unmapped before it could be read"),
        (missing.thinned, "samples skipped to save time; the others count for them"),
    ] {
        if count > 0 {
            _ = write!(out, "; {} {what}", grouped(count as f64));
        }
    }
    if missing.without_faults > 0 {
        let share = missing.without_faults as f64 / 1e9 / report.seconds.max(1e-9);
        _ = write!(out, "; page faults were not seen for {} of the time", percent(share.min(1.0)));
    }
    out.push('\n');
    out.push_str(&processes(&report.processes));
    if missing.threads > 0 {
        _ = writeln!(out, "{} threads used CPU time and have no sample", missing.threads);
    }
    if let Some(reason) = &report.method_reason {
        _ = writeln!(out, "{reason}");
    }
    out.push_str(&waits::notes(&report.explanation.waits, report.seconds));
    out.push_str(&python::notes(&report.explanation.python, report.seconds));
    out + &names::notes(&report.names, &report.explanation)
}

#[cfg(test)]
mod tests;
