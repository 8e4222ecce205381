//! An update of the page, compared with the same update in Plotly: 24 series of 60,000 points; ten times
//! a second, each gets 100 more. And of 128 series, as the page shows them.

use super::results::Results;
use super::served::Served;
use super::statistics::{median, pairs};
use crate::process::Figures;
use crate::web;
use anyhow::Result;
use std::time::Duration;

const ROUNDS: usize = 3;
const SERIES: u32 = 24;
/// The nodes of a large machine.
const MANY: u32 = 128;
const POINTS: u32 = 60_000;
const SECONDS: &str = "10";
const UPDATES: &str = "5";

pub fn run(results: &mut Results) -> Result<()> {
    results.show("scripts and styles, compressed", web::compressed_size()? / 1024.0, "KiB")?;
    beside_plotly(results)?;
    many(results)
}

/// A machine with a series for each node, and the clock, after a minute.
fn served(nodes: u32) -> Result<Served> {
    let served = Served::scripted(nodes + 1, nodes, 1)?;
    std::thread::sleep(Duration::from_millis(u64::from(POINTS)));
    Ok(served)
}

/// The figures of one panel, `lines` or as the page shows that number of series (`usual`).
fn figures(served: &Served, how: &str) -> Result<Figures> {
    Figures::of(web::bench("page")?.args([&served.url, "scripted.work", SECONDS, how]))
}

fn many(results: &mut Results) -> Result<()> {
    let served = served(MANY)?;
    // Who asks for that number of lines waits for them.
    for (how, limit) in [("usual", Some(16.0)), ("lines", None)] {
        let measured: Result<Vec<Figures>> = (0..ROUNDS).map(|_| figures(&served, how)).collect();
        let measured = measured?;
        let of = |name: &str| measured.iter().map(|page| page.get(name)).collect::<Result<Vec<f64>>>();
        let name = format!("{MANY} nodes, {how}: script per update");
        let script = median(of("script_ms")?);
        match limit {
            Some(limit) => results.at_most(&name, script, "ms", limit)?,
            None => results.show(&name, script, "ms")?,
        }
        results.show(&format!("{name}, p95"), median(of("script_p95_ms")?), "ms")?;
    }
    Ok(())
}

fn beside_plotly(results: &mut Results) -> Result<()> {
    let served = served(SERIES)?;
    let page = || figures(&served, "lines");
    let shown = page()?;
    let [width, height] = ["width", "height"].map(|name| shown.get(name).map(|size| size.to_string()));
    let size = [width?, height?];
    let numbers = [SERIES, POINTS, 100].map(|n| n.to_string());
    let plotly = || Figures::of(web::bench("plotly")?.args(&numbers).arg(UPDATES).args(&size));
    let measured = pairs(ROUNDS, page, plotly)?;
    let ours = |name: &str| measured.iter().map(|(page, _)| page.get(name)).collect::<Result<Vec<f64>>>();
    let theirs =
        |name: &str| measured.iter().map(|(_, plotly)| plotly.get(name)).collect::<Result<Vec<f64>>>();
    results.show("series", shown.get("lines")?, "")?;
    results.show("buckets of each on screen", shown.get("buckets")?, "")?;
    results.show("updates per second", median(ours("updates_per_second")?), "")?;
    results.at_most("script per update", median(ours("script_ms")?), "ms", 16.0)?;
    results.show("script per update, p95", median(ours("script_p95_ms")?), "ms")?;
    results.show("frame time", median(ours("frame_ms")?), "ms")?;
    results.show("frame time, p95", median(ours("frame_p95_ms")?), "ms")?;
    results.show("frame time of Plotly", median(theirs("frame_ms")?), "ms")?;
    results.show("script per update of Plotly", median(theirs("script_ms")?), "ms")?;
    let times = |name: &str| -> Result<f64> {
        Ok(median(ours(name)?.iter().zip(theirs(name)?).map(|(ours, theirs)| theirs / ours)))
    };
    results.at_least("Plotly's frame time, ours = 1", times("frame_ms")?, "x", 50.0)?;
    results.show("Plotly's main thread, ours = 1", times("all_tasks_ms")?, "x")?;
    results.show("heap", median(ours("heap_mib")?), "MiB")?;
    results.show("heap of Plotly", median(theirs("heap_mib")?), "MiB")
}
