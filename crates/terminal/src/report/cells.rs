//! Phrases and table cells of the page.

use numakit_findings::report::*;
use numakit_model::numbers::{NumberStyle, duration, grouped};

/// Number of absent metrics that are listed by name.
const MAX_NAMES: usize = 3;

pub(super) fn machine(report: &Report) -> String {
    let mut parts = Vec::new();
    if let Some(machine) = &report.machine {
        let counts = [
            (machine.nodes, "node"),
            (machine.packages, "package"),
            (machine.cores, "core"),
            (machine.cpus, "CPU"),
        ];
        parts.extend(counts.into_iter().filter(|c| c.0 > 0).map(|(n, what)| counted(n as u64, what)));
        parts.extend(machine.memory_bytes.map(|b| NumberStyle::Bytes.words(b as f64)));
    }
    if !report.recording.kernel.is_empty() {
        parts.push(format!("kernel {}", report.recording.kernel));
    }
    if !report.recording.host.is_empty() {
        parts.push(format!("host {}", report.recording.host));
    }
    if parts.is_empty() { "not in the recording".to_owned() } else { parts.join(", ") }
}

pub(super) fn node_row(node: &NodeLocality) -> Vec<String> {
    let count = |v| value(NumberStyle::Count, v);
    let verdict = match node.verdict.grade {
        Grade::CannotTell => format!("{}: {}", node.verdict.word, node.verdict.because),
        Grade::Fine | Grade::Notable => node.verdict.word.clone(),
    };
    let percent = value(NumberStyle::Percent, node.verdict.percent);
    vec![
        node.node.to_string(),
        count(node.local),
        count(node.remote),
        count(node.miss),
        count(node.foreign),
        percent,
        verdict,
    ]
}

pub(super) fn mover_row(mover: &Mover) -> Vec<String> {
    let name = match mover.alike.len() {
        0 => mover.series.clone(),
        more => format!("{} and {more} alike", mover.series),
    };
    match mover.change {
        SeriesChange::Rate { unit, quiet, peak, peak_at_seconds, active_percent } => {
            let rate = |v: f64| match unit {
                "%" => NumberStyle::Percent.words(v),
                "count" | "pages" => NumberStyle::Rate.words(v),
                "bytes" => format!("{}B/s", NumberStyle::Rate.field(Some(v), 5).trim()),
                _ => format!("{} {unit}/s", NumberStyle::Rate.field(Some(v), 5).trim()),
            };
            let active = NumberStyle::Percent.words(active_percent);
            let (change, noise) = (change_words(mover), noise_words(mover, rate));
            vec![name, rate(quiet), rate(peak), change, noise, duration(peak_at_seconds), active]
        }
        SeriesChange::Level { unit, begin, end, least, most } => {
            let level = |v: f64| match unit {
                "bytes" => NumberStyle::Bytes.words(v),
                "count" => grouped(v),
                _ => format!("{} {unit}", grouped(v)),
            };
            let (change, noise) = (change_words(mover), noise_words(mover, level));
            vec![name, level(begin), level(end), level(least), level(most), change, noise]
        }
    }
}

/// A change in percent with its sign; more than tenfold as a factor.
fn change_words(mover: &Mover) -> String {
    match mover.change_percent {
        None => "from 0".to_owned(),
        Some(percent) if percent >= 1000.0 => {
            format!("x {}", NumberStyle::Ratio.words(1.0 + percent / 100.0))
        }
        Some(percent) => signed(NumberStyle::Percent, percent),
    }
}

fn noise_words(mover: &Mover, words: impl Fn(f64) -> String) -> String {
    mover.noise.map_or_else(|| "-".to_owned(), words)
}

/// A number with its sign.
fn signed(style: NumberStyle, value: f64) -> String {
    let sign = if value > 0.0 { "+" } else { "" };
    format!("{sign}{}", style.words(value))
}

pub(super) fn value(quantity: NumberStyle, value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |v| quantity.words(v))
}

pub(super) fn place(node: Option<u32>) -> String {
    node.map_or_else(|| "all".to_owned(), |n| n.to_string())
}

pub(super) fn counted(n: u64, what: &str) -> String {
    format!("{} {what}{}", grouped(n as f64), if n == 1 { "" } else { "s" })
}

pub(super) fn times(n: u64) -> String {
    if n == 1 { "once".to_owned() } else { format!("{} times", grouped(n as f64)) }
}

pub(super) fn names(all: &[String]) -> String {
    let shown = all.iter().take(MAX_NAMES).cloned().collect::<Vec<_>>().join(", ");
    match all.len().saturating_sub(MAX_NAMES) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// The name of a phase for a table: one line, at most 27 characters.
pub(super) fn shortened(name: &str) -> String {
    let visible: String = name.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    match visible.char_indices().nth(24) {
        None => visible,
        Some((at, _)) => format!("{}...", &visible[..at]),
    }
}

/// What is there for a short time is not there for 0 % of it.
fn share_of_time(percent: f64) -> String {
    if percent < 0.05 { "less than 0.1 %".to_owned() } else { NumberStyle::Percent.words(percent) }
}

/// `node 2 loads from remote memory: 63 % of its loads from memory, ...`.
pub(super) fn bottleneck_words(b: &Bottleneck) -> String {
    let percent = |v: f64| NumberStyle::Percent.words(v);
    let amount = b.per_second.map_or_else(String::new, |v| format!(", {}B/s", NumberStyle::Ratio.words(v)));
    let until = b.until_seconds.map_or_else(|| "to the end".to_owned(), |v| format!("until {}", duration(v)));
    format!(
        "{} {}: {} {}{amount}; peak {} at {}; since {} {until}, {} of the time",
        b.who,
        b.does,
        percent(b.percent),
        b.of,
        percent(b.peak_percent),
        duration(b.peak_at_seconds),
        duration(b.since_seconds),
        share_of_time(b.time_percent),
    )
}

/// `node 0 at 41.0 GB/s, 63.1 % of its measured 65.0 GB/s; loads take about 130 ns there, 82 ns idle`.
pub(super) fn traffic_words(place: &PlaceTraffic) -> String {
    let peak = place.peak_per_second.map(byte_rate);
    let idle = place.idle_load_seconds.map(duration);
    let Some(traffic) = place.per_second else {
        let peak = peak.map(|peak| format!("peak {peak}"));
        let known: Vec<String> =
            peak.into_iter().chain(idle.map(|idle| format!("idle latency {idle}"))).collect();
        return format!("{}: measured {}", place.who, known.join(", "));
    };
    let (who, owner) = match place.is_of_caches {
        true => (format!("the caches of {}", place.who), "its memory's"),
        false => (place.who.clone(), "its"),
    };
    let of = place.percent.zip(peak).map_or_else(String::new, |(percent, peak)| {
        format!(", {} of {owner} measured {peak}", NumberStyle::Percent.words(percent))
    });
    let idle = idle.map(|idle| format!("{idle} idle"));
    let curve = place.load_read_percent.map(|reads| format!(" (measured with {reads} % reads)"));
    let curve = curve.unwrap_or_default();
    let loads = match (place.load_seconds.map(duration), idle) {
        (Some(load), Some(idle)) => format!("; loads take about {load} there{curve}, {idle}"),
        (Some(load), None) => format!("; loads take about {load} there{curve}"),
        (None, Some(idle)) => format!("; a load takes {idle}"),
        (None, None) => String::new(),
    };
    format!("{who} at {}{of}{loads}", byte_rate(traffic))
}

/// `41.0 GB/s`.
fn byte_rate(per_second: f64) -> String {
    let text = NumberStyle::Ratio.words(per_second);
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    format!("{digits} {}B/s", &text[digits.len()..])
}
