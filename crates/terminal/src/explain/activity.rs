//! The first line: what the program does, by the time that matters.

use super::{named, percent, waits};
use numakit_findings::activity::{ProgramActivity, TimePart};
use std::fmt::Write;

/// From this part of the time in which threads could run on, it is said that they had no CPU.
const WITHOUT_CPU: f64 = 0.2;

/// The sentence, without its begin in capitals and its end.
pub fn sentence(activity: &ProgramActivity<'_>) -> String {
    if activity.is_busy { busy(activity) } else { waiting(activity) }
}

fn busy(activity: &ProgramActivity<'_>) -> String {
    let ProgramActivity { threads, busy, part, function, script, kernel, without_cpu, stored, .. } = activity;
    let mut out = match (threads, busy) {
        (0, _) => "of its CPU time".to_owned(),
        (1, 1) => "its one thread is busy; of its CPU time".to_owned(),
        (1, _) => "of its CPU time".to_owned(),
        (_, 0) => format!(
            "none of its {threads} threads is busy for long, together {:.1} CPUs; of their CPU time",
            activity.cpus
        ),
        (_, 1) => format!("1 of {threads} threads is busy; of its CPU time"),
        _ => format!("{busy} of {threads} threads are busy; of their CPU time"),
    };
    let mut parts = Vec::new();
    let kernel = kernel.filter(|_| matches!(part, Some((TimePart::Kernel, _))));
    if let Some((part, share)) = part {
        let call = kernel
            .map_or_else(String::new, |(name, share)| format!(" ({} for {})", percent(share), named(name)));
        let (share_words, part) = (percent(*share), part_words(*part));
        parts.push(match ProgramActivity::dominates(*share) {
            true => format!("{share_words} is {part}{call}"),
            false => format!("the largest part, {share_words}, is {part}{call}"),
        });
    }
    match function {
        Some((name, share)) => parts.push(format!("{} is in {}", percent(*share), named(name))),
        None if kernel.is_some() => {}
        None if part.is_some() => parts.push("no function has much".to_owned()),
        None => parts.push("nothing is known".to_owned()),
    }
    if let Some((name, share)) = script {
        parts.push(format!("{} is in Python's {}", percent(*share), named(name)));
    }
    // Writing to a string cannot fail.
    _ = write!(out, " {}", parts.join(", "));
    if let Some(without) = without_cpu.filter(|part| *part >= WITHOUT_CPU) {
        let it = if *threads > 1 && *busy != 1 { "they" } else { "it" };
        _ = write!(out, "; for {} of the time in which {it} could run {it} had no CPU", percent(without));
    }
    if let Some((row, share)) = stored {
        _ = write!(out, "; for {} of the time a thread waits {}", percent(*share), waits::words(row));
    }
    out
}

fn part_words(part: TimePart) -> &'static str {
    match part {
        TimePart::Computing => "computing",
        TimePart::Caches => "use of memory that fits the caches",
        TimePart::Memory => "waiting for memory outside of the caches",
        TimePart::Contended => "waiting for lines that other threads use",
        TimePart::Spinning => "waiting for other threads in loops",
        TimePart::Kernel => "in the kernel",
    }
}

fn waiting(activity: &ProgramActivity<'_>) -> String {
    let ProgramActivity { threads, cpus, waits, cpu_wait, working, .. } = activity;
    let mut out = match threads {
        1 => format!("its one thread is not busy ({} of a CPU)", percent(*cpus)),
        _ => format!("none of its {threads} threads is busy (together {} of a CPU)", percent(*cpus)),
    };
    let for_cpu = cpu_wait.map(|share| (share, "for a CPU".to_owned()));
    let mut all: Vec<(f64, String)> =
        waits.iter().map(|(row, share)| (*share, waits::words(row))).chain(for_cpu).collect();
    all.sort_by(|a, b| b.0.total_cmp(&a.0));
    let words: Vec<String> = all.iter().map(|(share, what)| format!("{} {what}", percent(*share))).collect();
    let who = match working {
        0 => "it waits".to_owned(),
        working if working == threads => "it waits".to_owned(),
        1 => "the one that works waits".to_owned(),
        working => format!("the {working} that work wait"),
    };
    if !words.is_empty() {
        _ = write!(out, "; {who}: {}", words.join(", "));
    }
    out
}
