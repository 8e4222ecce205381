//! `numa alloc`: what a program allocates, and what that costs with each allocator.

mod conclusion;
mod page;
mod plot;

pub use page::html;

pub(crate) use crate::alloc_profile::conclusion::{bytes, percent};
use crate::alloc_profile::conclusion::{cells, chain, counted, lives, nanoseconds, sentences, size_cells};
use crate::table::page_table;
use numakit_bench::allocations::{AllocationReport, AllocationRun, LifeRow, MemoryMoment};
use numakit_model::numbers::{duration, grouped};

const ABSENT: &str = "-";
/// Functions of a chain.
const MOST_FRAMES: usize = 3;
/// Columns of a plot, and its steps.
const COLUMNS: usize = 64;
const STEPS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The whole text; at most `rows` call chains.
pub fn text(report: &AllocationReport, rows: usize) -> String {
    let mut out: String = sentences(report).iter().map(|text| text.to_owned() + "\n").collect();
    out.push('\n');
    out.push_str(&runs(report));
    if let Some(run) = counted(report) {
        out.push_str(&size_table(run));
        out.push_str(&life_table("LIFE", &run.lives_by_ns, run, nanoseconds));
        out.push_str(&life_table("LIFE IN BYTES", &run.lives_by_bytes, run, |value| bytes(value as u64)));
        out.push_str(&sites(run, rows));
        out.push_str(&plots(report));
        out.push_str(&notes(report, run));
    }
    for run in &report.runs {
        run.missing.iter().for_each(|text| out.push_str(&format!("{}: {text}\n", name(run))));
    }
    if report.interrupted {
        out.push_str("A signal ended the program; the remaining runs were not made.\n");
    }
    out
}

fn name(run: &AllocationRun) -> &'static str {
    run.allocator.map_or(ABSENT, |allocator| allocator.word())
}

fn or_absent(value: Option<String>) -> String {
    value.unwrap_or_else(|| ABSENT.to_owned())
}

fn runs(report: &AllocationReport) -> String {
    let headings = [
        "ALLOCATOR",
        "ELAPSED",
        "CPU",
        "MALLOC",
        "FREE",
        "SHARE",
        "FAULTS",
        "TOUCH",
        "WITH-TOUCH",
        "LIVE",
        "RESIDENT",
    ];
    let rows: Vec<Vec<String>> = report.runs.iter().map(|run| cells(run, ABSENT)).collect();
    page_table(&headings, &rows, "")
}

fn size_table(run: &AllocationRun) -> String {
    "\n".to_owned() + &page_table(&["SIZE", "BLOCKS", "SHARE", "MEMORY", "SHARE"], &size_cells(run), "")
}

fn life_table(title: &str, rows: &[LifeRow], run: &AllocationRun, word: impl Fn(f64) -> String) -> String {
    let share = |blocks: f64| percent((blocks / run.allocations.max(1) as f64).min(1.0));
    let row =
        |(text, blocks, size): (String, f64, u64)| vec![text, grouped(blocks), share(blocks), bytes(size)];
    let mut rows: Vec<Vec<String>> = lives(rows, word).into_iter().map(row).collect();
    let kept = run.allocations.saturating_sub(run.frees) as f64;
    let size = or_absent(run.live_at_end.map(bytes));
    rows.push(vec!["not freed".to_owned(), grouped(kept), share(kept), size]);
    "\n".to_owned() + &page_table(&[title, "BLOCKS", "SHARE", "MEMORY"], &rows, "")
}

fn sites(run: &AllocationRun, rows: usize) -> String {
    let row = |site: &numakit_bench::allocations::CountedChain| {
        vec![
            percent(site.bytes as f64 / run.requested.max(1) as f64),
            bytes(site.bytes),
            grouped(site.blocks),
            or_absent(site.mean_life().map(duration)),
            chain(&site.chain, MOST_FRAMES),
        ]
    };
    let rows: Vec<Vec<String>> = run.sites.iter().take(rows).map(row).collect();
    let table = page_table(&["SHARE", "MEMORY", "BLOCKS", "MEAN LIFE", "<CALL CHAIN"], &rows, "");
    if table.is_empty() { table } else { "\n".to_owned() + &table }
}

/// Live and resident memory of each run, all with the same scale and the same time.
fn plots(report: &AllocationReport) -> String {
    let moments = || report.runs.iter().flat_map(|run| &run.series);
    let seconds = moments().map(|moment| moment.seconds).fold(0.0, f64::max);
    let most = moments().map(|moment| moment.live.max(moment.resident)).max().unwrap_or(0);
    if most == 0 || seconds <= 0.0 {
        return String::new();
    }
    let mut out = format!("\nMEMORY OVER TIME: {} wide, {} high\n", duration(seconds), bytes(most));
    for run in report.runs.iter().filter(|run| !run.series.is_empty()) {
        for (word, value) in [("live", live as fn(&MemoryMoment) -> u64), ("resident", resident)] {
            let line = plot(&run.series, seconds, most, value);
            out.push_str(&format!("{:<9} {word:<8} {}\n", name(run), line.trim_end()));
        }
    }
    out
}

fn live(moment: &MemoryMoment) -> u64 {
    moment.live
}

fn resident(moment: &MemoryMoment) -> u64 {
    moment.resident
}

/// The maximum of each column; one without a reading has that of the column before.
fn plot(series: &[MemoryMoment], seconds: f64, most: u64, value: impl Fn(&MemoryMoment) -> u64) -> String {
    let column =
        |moment: &MemoryMoment| ((moment.seconds / seconds * COLUMNS as f64) as usize).min(COLUMNS - 1);
    let mut columns = vec![None; COLUMNS];
    for moment in series {
        let at = &mut columns[column(moment)];
        *at = Some(at.unwrap_or(0).max(value(moment)));
    }
    let last = columns.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
    let mut before = 0;
    let step = |column: &Option<u64>| {
        before = column.unwrap_or(before);
        // What is not 0 is seen.
        let step = (before as f64 / most as f64 * 8.0).ceil() as usize;
        STEPS[step.min(8)]
    };
    columns[..last].iter().map(step).collect()
}

fn notes(report: &AllocationReport, run: &AllocationRun) -> String {
    let first = format!(
        "\nSizes are of all allocations; lives and call chains are of a sample, a block every {} bytes at first, with {}.\n",
        grouped(report.sampled_every as f64),
        name(run)
    );
    let fault = run.first_touch.fault_ns.map_or(String::new(), |ns| {
        format!("TOUCH is {ns} ns, what a page fault costs here, times FAULTS.\n")
    });
    let counting: Vec<String> =
        report.runs.iter().map(|run| format!("{} {}", name(run), duration(run.counting_seconds))).collect();
    let read = if run.peak_live_is_read { "LIVE and RESIDENT are" } else { "RESIDENT is" };
    format!(
        "{first}{fault}{read} the largest of readings every 0.5 ms or more. CPU is without what counting took: {}.\n",
        counting.join(", ")
    )
}
