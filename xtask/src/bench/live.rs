//! Serving the page: CPU time compared with a bare loop over the same files, memory, many series, and
//! the latency of samples on screen.

use super::floor;
use super::results::Results;
use super::served::{Seen, Served};
use super::statistics::{PAIRS, median, pairs};
use crate::process::Figures;
use crate::web;
use anyhow::Result;
use std::time::Duration;

const SECONDS: u64 = 10;
/// Seconds until everything is open and watched.
const WARM: u64 = 2;
/// How long memory is watched.
const MINUTES: u64 = 3;
const EVENTS: [&str; 4] = ["-i", "1ms", "-e", "vmstat*,node*,cpu*,pressure*"];
/// Maximum time of a browser to show a sample, in ms.
const LATENCY: f64 = 200.0;

pub fn run(results: &mut Results) -> Result<()> {
    files(results, "normal", &[])?;
    if floor::may_be_realtime()? {
        files(results, "realtime", &["--fifo"])?;
    } else {
        results.say("real-time priority is not permitted here: skipped");
    }
    growth(results)?;
    scripted(results)?;
    many(results)?;
    latency(results)
}

/// All metrics of this machine at 1 kHz, compared with reading the files.
fn files(results: &mut Results, priority: &str, floor_options: &[&str]) -> Result<()> {
    let options = [EVENTS.as_slice(), &["--priority", priority]].concat();
    let files = Served::live(&options)?.files()?;
    let rate = ["1000", &SECONDS.to_string()];
    let measured = pairs(
        PAIRS,
        || Served::live(&options)?.watch(WARM, SECONDS, 1e-3),
        || Figures::of(floor::program("floor_files")?.args(rate).args(&files).args(floor_options)),
    )?;
    let cpu = measured.iter().map(|(ours, floor)| Ok((ours.cpu_us, floor.get("cpu_us")?)));
    results.ratio(
        &format!("CPU per tick, two clients, {priority}"),
        &cpu.collect::<Result<Vec<_>>>()?,
        "us",
        2.0,
    )?;
    let missed = measured.iter().map(|(ours, floor)| Ok((ours.missed * 100.0, floor.get("missed")? * 100.0)));
    let missed = missed.collect::<Result<Vec<_>>>()?;
    let more = median(missed.iter().map(|(ours, floor)| ours - floor));
    results.at_most(&format!("missed ticks above the floor's, {priority}"), more, "points", 0.1)?;
    results.show(&format!("missed ticks, {priority}"), median(missed.iter().map(|m| m.0)), "%")?;
    results.show(
        &format!("missed ticks of the floor, {priority}"),
        median(missed.iter().map(|m| m.1)),
        "%",
    )?;
    let beyond = measured.iter().map(|(ours, _)| ours.rss - ours.history).fold(0.0, f64::max);
    results.at_most(&format!("RSS beyond the history, {priority}"), beyond, "MiB", 32.0)
}

/// Whether memory grows by more than the history.
fn growth(results: &mut Results) -> Result<()> {
    let live = Served::live(&EVENTS)?;
    let early = live.watch(WARM, SECONDS, 1e-3)?;
    std::thread::sleep(Duration::from_secs(MINUTES * 60 - 2 * SECONDS));
    let late = live.watch(WARM, SECONDS, 1e-3)?;
    results.show(&format!("RSS after {MINUTES} minutes at 1 kHz"), late.rss, "MiB")?;
    results.show("history by then", late.history, "MiB")?;
    let grown = (late.rss - late.history) - (early.rss - early.history);
    results.at_most("growth of RSS beyond the history", grown, "MiB", 4.0)
}

fn scripted(results: &mut Results) -> Result<()> {
    let runs = (0..PAIRS).map(|_| Served::scripted(500, 4, 1)?.watch(WARM, SECONDS, 1e-3));
    let runs = runs.collect::<Result<Vec<Seen>>>()?;
    let of = |figure: fn(&Seen) -> f64| median(runs.iter().map(figure));
    results.at_most("500 series at 1 kHz: CPU", of(|s| s.share * 100.0), "% of a core", 12.0)?;
    results.show("500 series at 1 kHz: missed ticks", of(|s| s.missed * 100.0), "%")?;
    results.at_most("500 series at 1 kHz: RSS beyond history", of(|s| s.rss - s.history), "MiB", 32.0)
}

/// 128 nodes: 32,000 series at 10 Hz.
fn many(results: &mut Results) -> Result<()> {
    let served = Served::scripted(32_000, 128, 100)?;
    let seen = served.watch(WARM, SECONDS, 0.1)?;
    results.show("128 nodes: CPU", seen.share * 100.0, "% of a core")?;
    results.at_most("128 nodes: missed ticks", seen.missed * 100.0, "%", 0.1)?;
    results.at_most("128 nodes: RSS beyond history", seen.rss - seen.history, "MiB", 120.0)?;
    let page = Figures::of(web::bench("many")?.args([&served.url, "scripted.work", &SECONDS.to_string()]))?;
    results.show("128 nodes: series, with formulas", page.get("series")?, "")?;
    results.show("128 nodes: size of hello", page.get("hello_kib")?, "KiB")?;
    results.at_most("128 nodes: hello to page", page.get("hello_ms")?, "ms", 1000.0)?;
    results.at_most("128 nodes: slowest search", page.get("search_ms")?, "ms", 100.0)?;
    results.at_most("128 nodes: opening a panel", page.get("open_ms")?, "ms", 500.0)?;
    results.at_most("128 nodes: script per update", page.get("script_ms")?, "ms", 16.0)?;
    results.show("128 nodes: script per update, p95", page.get("script_p95_ms")?, "ms")?;
    results.show("128 nodes: frame time", page.get("frame_ms")?, "ms")?;
    results.show("128 nodes: frame time, p95", page.get("frame_p95_ms")?, "ms")
}

/// From the time of a sample to the end of the frame that shows it.
fn latency(results: &mut Results) -> Result<()> {
    for (name, interval, seconds) in [("1 ms", 1, "15"), ("100 ms", 100, "15"), ("1 s", 1000, "30")] {
        let served = Served::scripted(100, 4, interval)?;
        std::thread::sleep(Duration::from_secs(WARM));
        let seen = Figures::of(web::bench("latency")?.args([&served.url, seconds]))?;
        results.at_most(&format!("sample to screen at {name}"), seen.get("median_ms")?, "ms", LATENCY)?;
        results.at_most(&format!("sample to screen at {name}, p95"), seen.get("p95_ms")?, "ms", LATENCY)?;
    }
    Ok(())
}
