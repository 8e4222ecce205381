//! What the runs show, in sentences, and the rows that tables show of them.

use numakit_bench::allocations::{AllocationReport, AllocationRun, LifeRow};
use numakit_explain::code::CodeName;
use numakit_model::numbers::{NumberStyle, duration, grouped};

/// Bytes for people.
pub fn bytes(value: u64) -> String {
    NumberStyle::Bytes.words(value as f64)
}

/// A share in percent.
pub fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// The cells of a run: allocator, elapsed and CPU time, time in malloc and in free, their share, page faults, the first touch,
/// the share with it, most live and most resident memory. `absent` is in place of what is not known.
pub fn cells(run: &AllocationRun, absent: &str) -> Vec<String> {
    let known = |value: Option<String>| value.unwrap_or_else(|| absent.to_owned());
    vec![
        run.allocator.map_or(absent, |allocator| allocator.word()).to_owned(),
        duration(run.seconds),
        duration(run.cpu_seconds),
        duration(run.malloc.allocating_seconds),
        duration(run.malloc.freeing_seconds),
        known(run.malloc.share.map(percent)),
        grouped(run.first_touch.faults as f64),
        known(run.first_touch.seconds.map(duration)),
        known(run.first_touch.share.map(percent)),
        known(run.peak_live.map(bytes)),
        known(run.peak_resident.map(bytes)),
    ]
}

/// The first run in which calls arrived: what a program allocates differs little between runs.
pub fn counted(report: &AllocationReport) -> Option<&AllocationRun> {
    report.runs.iter().find(|run| run.allocations > 0)
}

/// Three sentences: what is allocated, what that costs, and what memory it takes.
pub fn sentences(report: &AllocationReport) -> Vec<String> {
    let Some(run) = counted(report) else {
        let text = "No call of malloc arrived: the program is linked statically, brings its own malloc, or makes none.";
        return if report.runs.is_empty() { Vec::new() } else { vec![text.to_owned()] };
    };
    vec![amount(run), time(report), memory(report)]
}

fn amount(run: &AllocationRun) -> String {
    let mean = run.requested / run.allocations.max(1);
    let rounded = run.usable.map_or(String::new(), |usable| {
        let more = usable as f64 / run.requested.max(1) as f64 - 1.0;
        format!(", rounded up by {}", percent(more.max(0.0)))
    });
    format!(
        "{} allocations of {}, {} on average{rounded}; {} by realloc; {} were freed.",
        grouped(run.allocations as f64),
        bytes(run.requested),
        bytes(mean),
        grouped(run.reallocs as f64),
        percent(run.frees as f64 / run.allocations as f64)
    )
}

/// A value of each run with its allocator.
fn each(report: &AllocationReport, value: impl Fn(&AllocationRun) -> Option<String>) -> String {
    let one = |run: &AllocationRun| {
        let name = run.allocator.map_or("-", |allocator| allocator.word());
        Some(format!("{name} {}", value(run)?))
    };
    let all: Vec<String> = report.runs.iter().filter_map(one).collect();
    if all.is_empty() { "unknown".to_owned() } else { all.join(", ") }
}

fn time(report: &AllocationReport) -> String {
    format!(
        "Of the CPU time, malloc and free took: {}; with the first touch of memory: {}.",
        each(report, |run| run.malloc.share.map(percent)),
        each(report, |run| run.first_touch.share.map(percent))
    )
}

fn memory(report: &AllocationReport) -> String {
    format!(
        "Live at most: {}; resident at most: {}.",
        each(report, |run| run.peak_live.map(bytes)),
        each(report, |run| run.peak_resident.map(bytes))
    )
}

/// How freed blocks lived, in steps of 16, with the words for each step.
pub fn lives(rows: &[LifeRow], word: impl Fn(f64) -> String) -> Vec<(String, f64, u64)> {
    const FIRST: u32 = 10;
    const STEP: u32 = 4;
    const LAST: u32 = 38;
    let mut steps = Vec::new();
    let mut from = 0u64;
    for log in (FIRST..=LAST).step_by(STEP as usize).chain([63]) {
        let to = 1u64 << log;
        let inside = rows.iter().filter(|row| (from..to).contains(&row.from));
        let (blocks, bytes) =
            inside.fold((0.0, 0u64), |(blocks, bytes), row| (blocks + row.blocks, bytes + row.bytes));
        if blocks > 0.0 {
            let text = match (from, log) {
                (0, _) => format!("below {}", word(to as f64)),
                (_, 63) => format!("{} and more", word(from as f64)),
                _ => format!("{} to {}", word(from as f64), word(to as f64)),
            };
            steps.push((text, blocks, bytes));
        }
        from = to;
    }
    steps
}

/// Nanoseconds for people.
pub fn nanoseconds(ns: f64) -> String {
    duration(ns / 1e9)
}

/// The cells of sizes, by powers of two: sizes, blocks and their share, memory and its share.
pub fn size_cells(run: &AllocationRun) -> Vec<Vec<String>> {
    let row = |(from, to, blocks, size): (u64, u64, u64, u64)| {
        vec![
            format!("{} to {}", grouped(from as f64), grouped(to as f64)),
            grouped(blocks as f64),
            percent(blocks as f64 / run.allocations.max(1) as f64),
            bytes(size),
            percent(size as f64 / run.requested.max(1) as f64),
        ]
    };
    sizes(run).into_iter().map(row).collect()
}

/// Sizes by powers of two: the least size, the largest, blocks and bytes.
fn sizes(run: &AllocationRun) -> Vec<(u64, u64, u64, u64)> {
    let mut powers: Vec<(u64, u64, u64, u64)> = Vec::new();
    for row in &run.sizes {
        // 0 to 15 bytes are one row.
        let log = row.from.max(8).ilog2();
        let (from, to) = (if log == 3 { 0 } else { 1 << log }, (1u64 << log << 1).wrapping_sub(1));
        match powers.last_mut().filter(|last| last.0 == from) {
            Some(last) => {
                last.2 += row.blocks;
                last.3 = last.3.saturating_add(row.bytes);
            }
            None => powers.push((from, to, row.blocks, row.bytes)),
        }
    }
    powers
}

/// A chain in one line, the code that asks first.
pub fn chain(frames: &[CodeName], most: usize) -> String {
    let shown: Vec<String> = frames.iter().take(most).map(code).collect();
    shown.join(" < ")
}

/// Files without their folders.
fn code(name: &CodeName) -> String {
    let file = name.file.as_deref().map(|file| file.rsplit('/').next().unwrap_or(file).to_owned());
    CodeName { file, ..name.clone() }.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use numakit_bench::allocations::SizeRow;

    #[test]
    fn lives_are_in_steps_of_16() {
        let row = |from: u64, blocks| LifeRow { from, to: 2 * from, blocks, bytes: 10 };
        let rows = [row(512, 1.0), row(1024, 2.0), row(8192, 3.0), row(1 << 40, 4.0)];
        let steps = lives(&rows, |value| format!("{value}"));
        let expected = [
            ("below 1024".to_owned(), 1.0, 10),
            ("1024 to 16384".to_owned(), 5.0, 20),
            ("274877906944 and more".to_owned(), 4.0, 10),
        ];
        assert_eq!(steps, expected);
    }

    #[test]
    fn sizes_are_by_powers_of_two() {
        let row = |from, to| SizeRow { from, to, blocks: 1, bytes: from };
        let run = AllocationRun {
            sizes: vec![row(1, 1), row(8, 9), row(16, 19), row(28, 31)],
            ..AllocationRun::default()
        };
        assert_eq!(sizes(&run), [(0, 15, 2, 9), (16, 31, 2, 44)]);
    }

    #[test]
    fn a_program_without_calls_has_one_sentence() {
        let mut report = AllocationReport {
            version: 1,
            command: "x".to_owned(),
            sampled_every: 1,
            interrupted: false,
            runs: vec![AllocationRun::default()],
        };
        assert!(sentences(&report)[0].starts_with("No call of malloc arrived"));
        report.runs[0].allocations = 2;
        assert_eq!(sentences(&report).len(), 3);
    }
}
