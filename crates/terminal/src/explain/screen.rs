//! The answer on one screen: what costs, which data, whose line, and what to type next.

mod fit;
mod step;
mod tables;

use super::{first_lines, objects, percent, projected, sharing, traffic_lines, waits};
use fit::{Part, fitted};
use numakit_explain::Regime;
use numakit_explain::waits::{LockTime, WaitTime};
use numakit_findings::explained::JudgedReport;
use numakit_model::numbers::{duration, grouped};

/// Lines of at most this many columns are printed, however wide the terminal is.
pub const WIDTH: usize = 100;
/// The lines of the smallest terminal without the one of the prompt.
const HEIGHT: usize = 23;
/// Narrower lines would have more breaks than words.
const MIN_WIDTH: usize = 40;
/// Locks with less of the time of their threads are left out.
const MIN_LOCK: f64 = 0.05;
const MAX_LOCKS: usize = 2;
/// What busy threads wait for is shown from this part of their time on.
const MIN_WAITS: f64 = 0.3;
/// Parts of the CPU time with less are left out.
const MIN_PART: f64 = 0.005;

/// The screen, of lines of at most `width` columns, unless a word of a command is longer. `is_kept` says whether `numa show`
/// prints the rest.
pub fn screen(judged: &JudgedReport, width: usize, is_kept: bool) -> String {
    let width = width.clamp(MIN_WIDTH, WIDTH);
    let mut parts = head(judged, width);
    parts.push(Part::space());
    parts.extend(tables::data(judged, width));
    parts.extend(tables::code(judged, width));
    parts.extend(waiting(judged, width));
    parts.push(Part::space());
    parts.extend(step::all(judged, width));
    parts.push(Part::space());
    parts.push(last(judged, is_kept, width));
    fitted(parts, HEIGHT)
}

/// What costs, what the program does, and the parts of its time.
fn head(judged: &JudgedReport, width: usize) -> Vec<Part> {
    let mut parts = Vec::new();
    if let Some(there) = &judged.projected {
        // What would be elsewhere was asked for.
        parts.push(Part::prose(&projected::sentence(&there.projection), width, 5).needing(3).dropped(1));
    }
    for (_, says) in objects::causes(judged) {
        parts.push(Part::prose(&brief(&format!("{says}.")), width, 4).needing(2));
    }
    let activity = brief(&objects::activity(judged));
    parts.extend(activity.lines().map(|line| Part::prose(line, width, 4).needing(2).dropped(2)));
    let report = &judged.report;
    let traffic = report.explanation.traffic.as_ref().map(traffic_lines).unwrap_or_default();
    parts.extend(traffic.lines().map(|line| Part::prose(line, width, 2).dropped(4)));
    let separated = judged.separated_threads().map(|threads| sharing::line(&threads));
    parts.extend(separated.map(|line| Part::prose(line.trim_end(), width, 3).needing(2).dropped(3)));
    // With an estimate of another machine, the parts of the time here are known from before.
    if judged.projected.is_none() {
        let times = first_lines(report, MIN_PART);
        parts.extend(times.lines().map(|line| Part::prose(line, width, 3).needing(0).dropped(5)));
    }
    if report.regime == Regime::Unknown {
        let why = "Samples of this machine land elsewhere than at the instruction that waited: time and traffic cannot be told.";
        parts.push(Part::prose(why, width, 2).needing(2));
    }
    parts
}

/// The text without the folders of source files with lines, as in `/src/app.c:7`.
fn brief(text: &str) -> String {
    let word = |word: &str| {
        let Some(slash) = word.rfind('/') else { return word.to_owned() };
        let line = word[slash..].split(':').nth(1);
        let has_line = line.is_some_and(|line| line.starts_with(|c: char| c.is_ascii_digit()));
        let start = word.find(|c: char| !"(['".contains(c)).unwrap_or(0);
        if has_line { format!("{}{}", &word[..start], &word[slash + 1..]) } else { word.to_owned() }
    };
    text.split_inclusive([' ', '\n']).map(word).collect()
}

/// What threads that work wait for, and the locks and who holds them, unless the first sentences have said it.
fn waiting(judged: &JudgedReport, width: usize) -> Option<Part> {
    const SAID: [&str; 2] = ["contended-lock", "contended-gil"];
    let cause = judged.cause().map(|place| judged.findings[place].rule);
    let of_cause = judged.report.explanation.waits.locks.iter();
    let shown = of_cause
        .filter(|lock| lock.threads > 1 && waits::part(lock) >= MIN_LOCK)
        .filter(|lock| cause != Some(SAID[usize::from(lock.is_gil)]));
    let mut lines: Vec<String> = shown.take(MAX_LOCKS).map(lock).collect();
    let activity = judged.activity();
    if activity.is_busy && activity.working_waits.iter().map(|(_, share)| share).sum::<f64>() >= MIN_WAITS {
        let who = match activity.working {
            1 => "what its thread that works waits for, as parts of its time:".to_owned(),
            count => format!("what its {count} threads that work wait for, as parts of their time:"),
        };
        let words = |(row, share): &(&WaitTime, f64)| {
            format!("{} {}", percent(*share), waits::words_in(row, waits::FUNCTIONS))
        };
        let all = activity.working_waits.iter().map(words);
        lines.splice(0..0, std::iter::once(who).chain(all));
    }
    (!lines.is_empty()).then(|| Part::items("waits", &lines, width).needing(0).dropped(5))
}

fn lock(lock: &LockTime) -> String {
    let held = lock.holders.first().map_or_else(String::new, |holder| {
        let chain = waits::chain(&holder.chain, 1);
        let place = if chain.is_empty() { String::new() } else { format!(", in {chain}") };
        format!("; thread {} ({}) holds it{place}", holder.thread, holder.name)
    });
    format!(
        "{} for {}: {} threads in {}{held}",
        percent(waits::part(lock)),
        lock.what,
        lock.threads,
        waits::chain(&lock.chain, 1)
    )
}

/// On what all of this rests, and where the rest is.
fn last(judged: &JudgedReport, is_kept: bool, width: usize) -> Part {
    let report = &judged.report;
    let processes = match report.processes.len() {
        0 | 1 => String::new(),
        count => format!(" of {count} processes"),
    };
    let (samples, time) = (grouped(report.explanation.samples.total as f64), duration(report.seconds));
    let basis = format!("{samples} samples {}{processes} in {time}", report.method);
    let rest = format!("all of it: {}", if is_kept { "numa show" } else { "the same with --all" });
    let both = format!("{basis}; {rest}");
    match both.chars().count() <= width {
        true => Part::new(vec![both]),
        false => Part::new(vec![basis, rest]).needing(2),
    }
}

#[cfg(test)]
mod tests;
