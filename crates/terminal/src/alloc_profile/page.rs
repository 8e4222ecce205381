//! The result as a page without scripts, which needs no other file.

use super::plot;
use crate::alloc_profile::conclusion::{
    self, bytes, cells, chain, lives, nanoseconds, percent, sentences, size_cells,
};
use crate::html::{document, escaped, put, table};
use numakit_bench::allocations::{AllocationReport, AllocationRun, CountedChain, LifeRow};
use numakit_model::numbers::{duration, grouped};

/// Chains that the page shows.
const MOST_SITES: usize = 50;
/// Functions of a chain.
const MOST_FRAMES: usize = 12;

/// The page.
pub fn html(report: &AllocationReport) -> String {
    let mut page = String::new();
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
    let heading = format!("Allocations of <code>{}</code>", escaped(&report.command));
    document(&format!("allocations of {}", report.command), "", &heading, &page)
}

fn titled(page: &mut String, title: &str, headings: &[&str], rows: &[Vec<String>]) {
    put(page, "<h2>", title, "</h2>\n");
    table(page, headings, rows);
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
    titled(page, "Runs", &headings, &rows);
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
    titled(page, "Sizes", &["Bytes", "Allocations", "Share", "Memory", "Share"], &size_cells(run));
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
    titled(page, title, &["Life", "Blocks", "Share", "Memory"], &rows);
}

fn sites(page: &mut String, run: &AllocationRun, every: u64) {
    let row = |site: &CountedChain| {
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
    titled(
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
    use numakit_bench::allocations::MemoryMoment;

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
