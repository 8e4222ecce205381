//! The result as a page without scripts, which needs no other file.

use crate::conclusion::{self, bytes, cells, chain, lives, nanoseconds, percent, sentences, size_cells};
use crate::plot;
use crate::report::{AllocationReport, AllocationRun, LifeRow};
use numakit_model::numbers::{duration, grouped};
use std::fmt::Write;

const STYLE: &str = include_str!("page.css");
/// Chains that the page shows.
const MOST_SITES: usize = 50;
/// Functions of a chain.
const MOST_FRAMES: usize = 12;

/// The page.
pub fn html(report: &AllocationReport) -> String {
    let command = escaped(&report.command);
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>allocations of {command}</title>\n\
         <style>{STYLE}</style>\n</head>\n<body>\n<main>\n<h1>Allocations of <code>{command}</code></h1>\n"
    );
    sentences(report).iter().for_each(|text| put(&mut page, "<p class=\"first\">", text, "</p>\n"));
    runs(&mut page, report);
    plots(&mut page, report);
    if let Some(run) = conclusion::counted(report) {
        size_table(&mut page, run);
        life_table(&mut page, "Time from malloc to free", &run.lives_by_ns, run, nanoseconds);
        life_table(
            &mut page,
            "Bytes that were allocated between malloc and free",
            &run.lives_by_bytes,
            run,
            |value| bytes(value as u64),
        );
        sites(&mut page, run, report.sampled_every);
    }
    for run in &report.runs {
        let name = run.allocator.map_or("", |allocator| allocator.word());
        run.missing
            .iter()
            .for_each(|text| put(&mut page, "<p class=\"quiet\">", &format!("{name}: {text}"), "</p>\n"));
    }
    page.push_str("</main>\n</body>\n</html>\n");
    page
}

/// No line ends between a number and its unit.
fn escaped(text: &str) -> String {
    let mut before = ' ';
    let joined = |letter: char| {
        let is_joint = letter == ' ' && before.is_ascii_digit();
        before = letter;
        if is_joint { '\u{a0}' } else { letter }
    };
    let text: String = text.chars().map(joined).collect();
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn put(page: &mut String, open: &str, text: &str, close: &str) {
    // Writing to a string cannot fail.
    let _ = write!(page, "{open}{}{close}", escaped(text));
}

/// A table; the first column is text.
fn table(page: &mut String, title: &str, headings: &[&str], rows: &[Vec<String>]) {
    put(page, "<h2>", title, "</h2>\n<div class=\"wide\"><table>\n<thead><tr>");
    headings.iter().for_each(|heading| put(page, "<th>", heading, "</th>"));
    page.push_str("</tr></thead>\n<tbody>\n");
    for row in rows {
        page.push_str("<tr>");
        row.iter().for_each(|cell| put(page, "<td>", cell, "</td>"));
        page.push_str("</tr>\n");
    }
    page.push_str("</tbody>\n</table></div>\n");
}

fn runs(page: &mut String, report: &AllocationReport) {
    let rows: Vec<Vec<String>> = report.runs.iter().map(|run| cells(run, "unknown")).collect();
    let headings = [
        "Allocator",
        "Elapsed",
        "CPU time",
        "In malloc",
        "In free",
        "Share",
        "Page faults",
        "First touch",
        "Share with it",
        "Live, max.",
        "Resident, max.",
    ];
    table(page, "Runs", &headings, &rows);
}

/// All plots have the same axes, so that they can be compared.
fn plots(page: &mut String, report: &AllocationReport) {
    let moments = || report.runs.iter().flat_map(|run| &run.series);
    let seconds = moments().map(|moment| moment.seconds).fold(0.0, f64::max);
    let most = moments().map(|moment| moment.live.max(moment.resident)).max().unwrap_or(0);
    if most == 0 {
        return;
    }
    page.push_str(
        "<h2>Memory over time</h2>\n<p class=\"quiet\"><span class=\"key live\"></span> live blocks \
         <span class=\"key resident\"></span> resident</p>\n",
    );
    for run in report.runs.iter().filter(|run| !run.series.is_empty()) {
        put(page, "<h3>", run.allocator.map_or("", |allocator| allocator.word()), "</h3>\n");
        page.push_str(&plot::memory(&run.series, seconds, most, bytes));
    }
}

fn size_table(page: &mut String, run: &AllocationRun) {
    table(page, "Sizes", &["Bytes", "Allocations", "Share", "Memory", "Share"], &size_cells(run));
}

fn life_table(
    page: &mut String,
    title: &str,
    rows: &[LifeRow],
    run: &AllocationRun,
    word: impl Fn(f64) -> String,
) {
    let share = |blocks: f64| percent((blocks / run.allocations.max(1) as f64).min(1.0));
    let row =
        |(text, blocks, size): (String, f64, u64)| vec![text, grouped(blocks), share(blocks), bytes(size)];
    let mut rows: Vec<Vec<String>> = lives(rows, word).into_iter().map(row).collect();
    let kept = run.allocations.saturating_sub(run.frees) as f64;
    let size = run.live_at_end.map_or("unknown".to_owned(), bytes);
    rows.push(vec!["not freed".to_owned(), grouped(kept), share(kept), size]);
    table(page, title, &["Life", "Blocks", "Share", "Memory"], &rows);
}

fn sites(page: &mut String, run: &AllocationRun, every: u64) {
    let row = |site: &crate::CountedChain| {
        vec![
            chain(&site.chain, MOST_FRAMES),
            percent(site.bytes as f64 / run.requested.max(1) as f64),
            bytes(site.bytes),
            grouped(site.blocks),
            site.mean_life().map_or("not freed".to_owned(), duration),
            grouped(site.samples as f64),
        ]
    };
    let rows: Vec<Vec<String>> = run.sites.iter().take(MOST_SITES).map(row).collect();
    table(
        page,
        "Code that allocates",
        &["Call chain", "Share", "Memory", "Blocks", "Mean life", "Samples"],
        &rows,
    );
    let text = format!("Estimated from a sample: a block every {} bytes at first.", grouped(every as f64));
    put(page, "<p class=\"quiet\">", &text, "</p>\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryMoment;

    #[test]
    fn text_of_the_program_is_no_markup() {
        let series = vec![
            MemoryMoment { seconds: 0.0, live: 1, resident: 4096 },
            MemoryMoment { seconds: 0.5, live: 2, resident: 8192 },
        ];
        let run = AllocationRun {
            allocations: 1,
            series,
            missing: vec!["<b>".to_owned()],
            ..AllocationRun::default()
        };
        let report = AllocationReport {
            version: 1,
            command: "a '<script>' & b".to_owned(),
            sampled_every: 4096,
            interrupted: false,
            runs: vec![run],
        };
        let page = html(&report);
        assert!(
            page.contains("a '&lt;script&gt;' &amp; b") && !page.contains("<script") && !page.contains("<b>")
        );
        assert_eq!(page.matches("<polyline").count(), 2);
        assert!(!page.contains("http://") && !page.contains("https://"));
    }
}
