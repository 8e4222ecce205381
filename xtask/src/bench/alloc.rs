//! libnumalloc compared with glibc and with other allocators: the CPU time of the same work, and the peak of resident
//! memory.
//!
//! To try one thing quickly, `NUMAKIT_ALLOC_ONLY=numalloc,tcmalloc` names allocators and `NUMAKIT_ALLOC_WORK=mesh,larson`
//! works.

mod allocators;
mod rounds;
mod works;

use super::results::Results;
use crate::install;
use allocators::{Allocator, BASE, OURS};
use anyhow::{Context, Result, bail};
use rounds::{Row, geomean};
use works::{Kind, TOUCHES};

const CPU: &str = "cpu_us";
const RSS: &str = "rss_kib";

/// What our allocator must reach: of a work, what is measured, and the most that its ratio to glibc's may be.
const LIMITS: [(&str, &str, f64); 5] = [
    ("mesh", CPU, 0.35),
    ("mesh", RSS, 1.0),
    ("large", CPU, 0.10),
    ("producer", CPU, 0.55),
    ("grow", CPU, 0.5),
];
/// The same for the peak of memory, as a ratio to what the program itself says that it uses.
const NEEDED: [(&str, &str, f64); 2] = [("grow", "final_kib", 1.03), ("live", "live_kib", 1.2)];
/// The geometric means over small blocks.
const SMALL_CPU: f64 = 0.75;
const SMALL_RSS: f64 = 1.2;
/// KiB that a program which does nothing may take beyond what it takes with glibc.
const START: f64 = 300.0;

pub fn run(results: &mut Results) -> Result<()> {
    install::need_c()?;
    let only = chosen("NUMAKIT_ALLOC_ONLY", allocators::names())?;
    let wanted = chosen("NUMAKIT_ALLOC_WORK", works::names())?;
    let (allocators, mut missing) = allocators::get(&only);
    let (works, absent) = works::get(&wanted)?;
    missing.extend(absent);
    if allocators.first().is_none_or(|first| first.name != BASE) {
        bail!("there is nothing to compare with: {}", missing.join("; "));
    }
    for line in &missing {
        results.say(line);
    }
    let versions: Vec<String> = allocators.iter().map(|a| format!("{} {}", a.name, a.version)).collect();
    results.say(&versions.join(", "));
    results.say("CPU time / peak of memory, glibc = 1; small blocks: written 0, 1 or 20 times");
    results.say(&line("", &allocators.iter().map(|a| a.name.to_owned()).collect::<Vec<_>>()));
    let (measure, mut rows) = (works::measure()?, Vec::new());
    for work in works {
        let row = Row::measure(work, &measure, &allocators)?;
        print(results, &row, &allocators)?;
        rows.push(row);
    }
    means(results, &rows, &allocators)?;
    match allocators.iter().position(|a| a.name == OURS) {
        Some(ours) => limits(results, &rows, ours),
        None => {
            results.say("no limits: numalloc was not measured");
            Ok(())
        }
    }
}

/// The names that a variable has, or all.
fn chosen(variable: &str, known: Vec<&'static str>) -> Result<Vec<&'static str>> {
    let Ok(text) = std::env::var(variable) else { return Ok(known) };
    let find = |word: &str| {
        let name = known.iter().find(|name| **name == word.trim()).copied();
        name.with_context(|| format!("{variable}={text}: there is no '{word}', but: {}", known.join(", ")))
    };
    text.split(',').map(find).collect()
}

/// A line of the table.
fn line(title: &str, cells: &[String]) -> String {
    cells.iter().fold(format!("{title:<14}"), |line, cell| format!("{line}{cell:>15}"))
}

/// Prints the row of a work: what it took with glibc, and the ratios of the others.
fn print(results: &mut Results, row: &Row, allocators: &[Allocator]) -> Result<()> {
    let title = row.work.title();
    let mut cells = Vec::new();
    for (index, allocator) in allocators.iter().enumerate() {
        if let Some(why) = row.failure(index) {
            results.say(&format!("{title} failed with {}: {why}", allocator.name));
            cells.push("failed".to_owned());
            continue;
        }
        let (cpu, rss) = (row.ratio(index, CPU)?, row.ratio(index, RSS)?);
        results.store(&format!("{title}, CPU time, {}", allocator.name), cpu, "x")?;
        results.store(&format!("{title}, peak of memory, {}", allocator.name), rss, "x")?;
        cells.push(match index {
            0 => format!("{:.0}ms {:.0}M", row.value(0, CPU)? / 1e3, row.value(0, RSS)? / 1024.0),
            _ => format!("{cpu:.2} / {rss:.2}"),
        });
    }
    results.say(&line(&title, &cells));
    Ok(())
}

/// The geometric mean of the ratios over the works of a kind with which the allocator did not fail.
fn mean(rows: &[Row], allocator: usize, figure: &str, belongs: impl Fn(Kind) -> bool) -> Result<Option<f64>> {
    let of_kind = rows.iter().filter(|row| belongs(row.work.kind) && row.failure(allocator).is_none());
    let ratios: Result<Vec<f64>> = of_kind.map(|row| row.ratio(allocator, figure)).collect();
    Ok(geomean(&ratios?))
}

/// Prints the geometric means of all allocators.
fn means(results: &mut Results, rows: &[Row], allocators: &[Allocator]) -> Result<()> {
    let small = TOUCHES.map(|touches| (format!("geomean/{touches}"), Kind::Small(touches)));
    for (title, kind) in small.into_iter().chain([("programs".to_owned(), Kind::Program)]) {
        let mut cells = Vec::new();
        for index in 0..allocators.len() {
            let cpu = mean(rows, index, CPU, |k| k == kind)?;
            let rss = mean(rows, index, RSS, |k| k == kind)?;
            cells.extend(cpu.zip(rss).map(|(cpu, rss)| format!("{cpu:.2} / {rss:.2}")));
        }
        if !cells.is_empty() {
            results.say(&line(&title, &cells));
        }
    }
    Ok(())
}

/// Compares our allocator with its limits, as far as their works were done.
fn limits(results: &mut Results, rows: &[Row], ours: usize) -> Result<()> {
    for touches in TOUCHES {
        let of_kind = |kind| kind == Kind::Small(touches);
        if let Some(cpu) = mean(rows, ours, CPU, of_kind)? {
            results.at_most(&format!("small blocks, written {touches} times, CPU"), cpu, "x", SMALL_CPU)?;
        }
        if let Some(rss) = mean(rows, ours, RSS, of_kind)? {
            results.at_most(
                &format!("small blocks, written {touches} times, memory"),
                rss,
                "x",
                SMALL_RSS,
            )?;
        }
    }
    // A failure of ours is an error here: nothing was measured.
    let named = |name: &'static str| rows.iter().filter(move |row| row.work.name == name);
    for (name, figure, limit) in LIMITS {
        let what = if figure == CPU { "CPU" } else { "memory" };
        for row in named(name) {
            let title = format!("{}, {what}", row.work.title());
            results.at_most(&title, row.ratio(ours, figure)?, "x", limit)?;
        }
    }
    for (name, needed, limit) in NEEDED {
        for row in named(name) {
            let ratio = row.value(ours, RSS)? / row.value(ours, needed)?;
            results.at_most(&format!("{name}, memory per byte in use"), ratio, "x", limit)?;
        }
    }
    for row in named("nothing") {
        let more = row.value(ours, RSS)? - row.value(0, RSS)?;
        results.at_most("a start, memory beyond glibc's", more, "KiB", START)?;
    }
    for row in named("recycled") {
        results.at_most("page faults of a recycled block", row.value(ours, "loop_faults")?, "", 0.0)?;
    }
    Ok(())
}
