//! The report as a page of text: the answer in three lines, the findings, then the tables.

mod cells;
mod comparison;
mod findings;

pub use comparison::comparison_page;

use crate::events::status_words;
use crate::table::page_table;
use cells::{
    bottleneck_words, counted, machine, mover_row, names, node_row, place, shortened, times, traffic_words,
    value,
};
use numakit_findings::report::*;
use numakit_model::numbers::{NumberStyle, duration, grouped};
use numakit_model::time::utc;

/// Maximum width of text.
const WIDTH: usize = 100;

/// How a page is laid out.
#[derive(Debug, Clone, Copy, Default)]
pub struct PageStyle {
    /// Whether titles are bold.
    pub color: bool,
    /// The width of the terminal: lines break between words, and rows of tables that do not fit become lines of
    /// text. Commands are never broken, so that they can be copied.
    pub terminal: Option<usize>,
    /// Whether what is absent or cannot be told is listed.
    pub all: bool,
}

/// The page. Only text of the recording itself may be wider than 100 characters.
pub fn page(report: &Report, style: PageStyle) -> String {
    let mut page = Page::new(style);
    page.headline(&report.findings.headline);
    page.head(report);
    page.losses(report);
    page.findings(&report.findings);
    page.locality(&report.locality);
    page.bottlenecks(&report.bottlenecks);
    page.traffic(&report.traffic);
    page.phases(report);
    page.faults(report);
    page.memory(report);
    page.cpus(report);
    page.movers(report);
    page.cost(&report.cost);
    page.absent(report);
    page.text
}

struct Page {
    text: String,
    style: PageStyle,
    width: usize,
}

const INDENT: &str = "  ";
/// Narrower pages would have one word per line.
const MIN_WIDTH: usize = 30;
const FACT_WIDTH: usize = 10;

impl Page {
    fn new(style: PageStyle) -> Self {
        let width = style.terminal.map_or(WIDTH, |width| width.clamp(MIN_WIDTH, WIDTH));
        Self { text: String::new(), style, width }
    }

    fn line(&mut self, text: &str) {
        self.text.push_str(text.trim_end());
        self.text.push('\n');
    }

    /// A command with its name. It is never broken, so that it can be copied.
    fn command(&mut self, name: &str, command: &str) {
        self.line(&format!("{name:<FACT_WIDTH$} {command}"));
    }

    /// A fact with its name; long ones continue below, under the fact.
    fn fact(&mut self, name: &str, text: &str) {
        let mut name = name;
        for line in crate::wrap::wrap(text, Some(self.width - FACT_WIDTH - 1)) {
            self.line(&format!("{name:<FACT_WIDTH$} {line}"));
            name = "";
        }
    }

    fn section(&mut self, title: &str) {
        let (on, off) = if self.style.color { ("\x1b[1m", "\x1b[0m") } else { ("", "") };
        for (at, line) in crate::wrap::wrap(title, Some(self.width)).iter().enumerate() {
            let gap = if at == 0 { "\n" } else { "" };
            self.text.push_str(&format!("{gap}{on}{line}{off}\n"));
        }
    }

    fn head(&mut self, report: &Report) {
        let recording = &report.recording;
        self.fact("Machine", &machine(report));
        if let Some(command) = &recording.command {
            let status =
                recording.exit_status.map_or_else(String::new, |s| format!(" ({})", status_words(s)));
            self.fact("Command", &format!("{command}{status}"));
        }
        let interval =
            recording.interval_seconds.map_or_else(String::new, |s| format!(" every {}", duration(s)));
        let program = match recording.program.as_str() {
            "" => String::new(),
            program => format!(", by {program}"),
        };
        self.fact(
            "Recorded",
            &format!(
                "{}, {}: {} of {} series{interval}{program}",
                utc(recording.started),
                duration(recording.seconds),
                counted(recording.samples, "sample"),
                grouped(recording.series as f64),
            ),
        );
        if let Some(phase) = &recording.phase {
            self.fact(
                "Phase",
                &format!(
                    "'{phase}': {}, {}",
                    duration(recording.covered_seconds),
                    counted(recording.covered_samples, "sample")
                ),
            );
        }
    }

    fn losses(&mut self, report: &Report) {
        let losses = &report.losses;
        let mut lost = Vec::new();
        if losses.lost_ticks > 0 {
            let share = NumberStyle::Percent.words(losses.lost_percent);
            lost.push(format!("{} ({share}) came too late", counted(losses.lost_ticks, "tick")));
        }
        if losses.dropped_rows > 0 {
            lost.push(format!(
                "{} dropped because the writer was too slow",
                counted(losses.dropped_rows, "sample")
            ));
        }
        if losses.damaged_rows > 0 {
            lost.push(format!("{} damaged and removed", counted(losses.damaged_rows, "sample")));
        }
        if let Some(damage) = &losses.damage {
            lost.push(format!("the file is damaged: {damage}"));
        }
        let lost = if lost.is_empty() { "nothing".to_owned() } else { lost.join("; ") };
        self.fact("Lost", &lost);
        if losses.pauses > 0 {
            self.fact(
                "Paused",
                &format!("{}, {} together", times(losses.pauses), duration(losses.paused_seconds)),
            );
        }
        for step in &losses.clock_steps {
            let way = if step.by_seconds < 0.0 { "back" } else { "forward" };
            let by = duration(step.by_seconds.abs());
            self.fact(
                "Clock",
                &format!(
                    "set {way} by {by} at {}; times in this report are not affected",
                    duration(step.at_seconds)
                ),
            );
        }
        for change in &losses.interval_changes {
            let (to, at) = (duration(change.interval_seconds), duration(change.at_seconds));
            self.fact("Interval", &format!("{to} since {at}"));
        }
        for failure in &losses.failures {
            self.fact("Failed", &format!("at {}: {}", duration(failure.at_seconds), failure.what));
        }
        if losses.more_notes > 0 {
            self.fact("", &format!("and {} more such notes", grouped(losses.more_notes as f64)));
        }
    }

    /// What this machine, kernel or user could not measure: one line, or a list of reasons.
    fn absent(&mut self, report: &Report) {
        let absent = &report.losses.absent;
        if absent.is_empty() {
            return;
        }
        if !self.style.all {
            let what: Vec<&str> = absent.iter().map(|group| group.why.missing.as_str()).collect();
            let what = cells::names(&what.iter().map(|what| (*what).to_owned()).collect::<Vec<_>>());
            self.line("");
            return self.fact("Absent", &format!("{what}; --all lists reasons and remedies"));
        }
        self.section("Absent");
        for group in absent {
            let (names, why) = (names(&group.names), &group.why);
            self.wrapped(&format!("{} ({names}): {}; {}", why.missing, why.seen, why.fix));
        }
    }

    fn locality(&mut self, locality: &Locality) {
        let verdict = &locality.verdict;
        if verdict.grade == Grade::CannotTell && locality.nodes.is_empty() && !self.style.all {
            return;
        }
        self.section(&format!("Locality of {}: {}", locality.basis.words(), verdict.word));
        let cannot = verdict.grade == Grade::CannotTell;
        self.wrapped(&verdict.because);
        if let Some(worst) = locality.worst() {
            self.wrapped(&format!(
                "worst: node {}, {}: {}",
                worst.node, worst.verdict.word, worst.verdict.because
            ));
        }
        let rows: Vec<Vec<String>> = locality.nodes.iter().map(node_row).collect();
        self.table(&["node", "local", "remote", "miss", "foreign", "local%", "<verdict"], &rows);
        for node in &locality.nodes {
            for sign in &node.signs {
                self.wrapped(&format!("node {} {sign}", node.node));
            }
        }
        if !cannot && locality.basis == LocalityBasis::Allocation {
            self.wrapped("This is where memory was allocated, not which CPUs used it afterwards.");
        }
        if locality.accesses.grade != Grade::CannotTell {
            let accesses = &locality.accesses;
            self.wrapped(&format!(
                "Sampled accesses (NUMA balancing): {}: {}",
                accesses.word, accesses.because
            ));
        }
    }

    fn bottlenecks(&mut self, bottlenecks: &Bottlenecks) {
        if bottlenecks.found.is_empty() && bottlenecks.highest.is_none() && !self.style.all {
            return;
        }
        self.section("Memory bottlenecks");
        for bottleneck in &bottlenecks.found {
            self.wrapped(&bottleneck_words(bottleneck));
        }
        if let Some(highest) = &bottlenecks.highest {
            self.wrapped(&format!("none; the highest share was {highest}"));
        }
        if let Some(why) = &bottlenecks.unknown {
            self.wrapped(&format!("cannot tell: {why}"));
        }
    }

    fn traffic(&mut self, traffic: &MemoryTraffic) {
        let is_counted = traffic.unknown.is_none();
        if !is_counted && !traffic.is_measured && !self.style.all {
            return;
        }
        self.section("Memory traffic");
        for place in &traffic.places {
            self.wrapped(&traffic_words(place));
        }
        if let Some(why) = &traffic.unknown {
            self.wrapped(&format!("cannot tell: no counters of memory traffic: {why}"));
        }
        if !traffic.is_measured {
            self.wrapped(
                "the peak is not known: 'numa bench all' measures it, and recordings after it have it",
            );
        }
        if let [first, others @ ..] = traffic.doubts.as_slice() {
            let more = if others.is_empty() { String::new() } else { format!("; and {} more", others.len()) };
            self.wrapped(&format!("do not rely on the measured values: {first}{more}"));
        }
    }

    fn table(&mut self, headings: &[&str], rows: &[Vec<String>]) {
        let table = page_table(headings, rows, INDENT);
        let fits = |line: &str| self.style.terminal.is_none_or(|width| line.chars().count() <= width);
        if table.lines().all(fits) {
            return self.text.push_str(&table);
        }
        for row in rows {
            let cells = headings.iter().zip(row).map(|(heading, cell)| match heading.strip_prefix('<') {
                Some(_) => cell.clone(),
                None => format!("{heading} {cell}"),
            });
            let cells: Vec<String> = cells.collect();
            self.wrapped(&format!("{}: {}", cells[0], cells[1..].join(", ")));
        }
    }

    /// Text that continues below with a deeper indent.
    fn wrapped(&mut self, text: &str) {
        let mut indent = INDENT.to_owned();
        for line in crate::wrap::wrap(text, Some(self.width - 2 * INDENT.len())) {
            self.line(&format!("{indent}{line}"));
            indent = INDENT.repeat(2);
        }
    }

    fn phases(&mut self, report: &Report) {
        if report.phases.is_empty() || report.recording.phase.is_some() {
            return;
        }
        self.section("Phases");
        let row = |phase: &PhaseReport| {
            let verdict = &phase.locality.verdict;
            let worst = phase.worst_node.map_or_else(String::new, |n| format!(", worst node {n}"));
            vec![
                shortened(&phase.name),
                grouped(phase.times as f64),
                duration(phase.seconds),
                value(NumberStyle::Count, verdict.events),
                value(NumberStyle::Percent, verdict.percent),
                value(NumberStyle::Rate, phase.minor_faults_per_second),
                value(NumberStyle::Rate, phase.major_faults_per_second),
                format!("{}{worst}", verdict.word),
            ]
        };
        let rows: Vec<Vec<String>> = report.phases.iter().map(row).collect();
        let headings = ["phase", "times", "length", "allocated", "local", "minor", "major", "<verdict"];
        self.table(&headings, &rows);
        if report.more_phases > 0 {
            self.wrapped(&format!(
                "and {} more labels, which are not listed",
                grouped(report.more_phases as f64)
            ));
        }
    }

    fn faults(&mut self, report: &Report) {
        let faults = &report.faults;
        if faults.minor.is_none() && faults.huge.is_none() {
            return;
        }
        self.section("Faults and huge pages");
        let pair = |sum: Option<f64>, rate: Option<f64>| {
            format!("{} ({})", value(NumberStyle::Count, sum), value(NumberStyle::Rate, rate))
        };
        self.fact("  minor", &pair(faults.minor, faults.minor_per_second));
        self.fact("  major", &pair(faults.major, faults.major_per_second));
        let verdict = &faults.huge_pages;
        self.fact("  huge", &format!("{}: {}", verdict.word, verdict.because));
        if let Some(rate) = faults.pages_moved_per_second.filter(|&r| r > 0.0) {
            self.fact("  moved", &format!("{} pages migrated", NumberStyle::Rate.words(rate)));
        }
        if let Some(rate) = faults.hint_per_second.filter(|&r| r > 0.0) {
            self.fact("  hint", &format!("{} faults of NUMA balancing", NumberStyle::Rate.words(rate)));
        }
    }

    fn memory(&mut self, report: &Report) {
        let bytes = |v: f64| NumberStyle::Bytes.words(v);
        let row = |m: &FreeMemory| {
            let total = m.total_bytes.map_or_else(|| "-".to_owned(), bytes);
            vec![place(m.node), total, bytes(m.begin_bytes), bytes(m.end_bytes), bytes(m.least_bytes)]
        };
        let rows: Vec<Vec<String>> = report.memory.iter().map(row).collect();
        if !rows.is_empty() {
            self.section("Memory");
            self.table(&["node", "total", "free at start", "at end", "min free"], &rows);
        }
        let memory = &report.pressure.memory;
        if memory.percent.is_some() {
            self.wrapped(&format!(
                "memory pressure: {}; threads waited for memory {}",
                memory.word, memory.because
            ));
        }
    }

    fn cpus(&mut self, report: &Report) {
        let row = |cpu: &Cpu| {
            let share = |v| value(NumberStyle::Percent, v);
            vec![place(cpu.node), share(cpu.user_percent), share(cpu.system_percent), share(cpu.idle_percent)]
        };
        let rows: Vec<Vec<String>> = report.cpus.iter().map(row).collect();
        if rows.is_empty() {
            return;
        }
        self.section("CPUs");
        self.table(&["node", "programs", "kernel", "idle"], &rows);
        let waits = [("a CPU", report.pressure.cpu_percent), ("storage", report.pressure.io_percent)];
        let waits: Vec<String> = waits
            .into_iter()
            .filter_map(|(what, share)| {
                Some(format!("for {what} {} of the time", NumberStyle::Percent.words(share?)))
            })
            .collect();
        if !waits.is_empty() {
            self.wrapped(&format!("threads waited {}", waits.join(", ")));
        }
    }

    fn movers(&mut self, report: &Report) {
        self.section("What changed most");
        if report.movers.is_empty() {
            self.wrapped(
                "nothing changed by more than a factor of two, or the recording is shorter than 0.3 s",
            );
        }
        let split = |rate: bool| {
            report.movers.iter().filter(move |m| matches!(m.change, SeriesChange::Rate { .. }) == rate)
        };
        let rows: Vec<Vec<String>> = split(true).map(mover_row).collect();
        self.table(&["per second", "quiet", "peak", "change", "noise", "peak at", "active"], &rows);
        let rows: Vec<Vec<String>> = split(false).map(mover_row).collect();
        self.table(&["level", "start", "end", "min", "max", "change", "noise"], &rows);
    }

    fn cost(&mut self, cost: &Cost) {
        let time = |v: Option<f64>| v.map_or_else(|| "-".to_owned(), duration);
        let mut lines = Vec::new();
        if cost.cpu_seconds_per_sample.is_some() {
            let share = value(NumberStyle::Percent, cost.sampler_percent);
            let whole = value(NumberStyle::Percent, cost.process_percent);
            let each = time(cost.cpu_seconds_per_sample);
            lines.push(format!("{each} of CPU per sample, {share} of a core; the whole recorder {whole}"));
        }
        if cost.wakeup_max_seconds.is_some() {
            let [p50, p99, max] =
                [cost.wakeup_p50_seconds, cost.wakeup_p99_seconds, cost.wakeup_max_seconds].map(time);
            lines
                .push(format!("ticks were late by {p50} (median), {p99} (99th percentile), {max} (maximum)"));
        }
        if cost.took_p50_seconds.is_some() {
            let [p50, p99] = [cost.took_p50_seconds, cost.took_p99_seconds].map(time);
            lines.push(format!("reading a sample took {p50} (median), {p99} (99th percentile)"));
        }
        if !lines.is_empty() {
            self.section("Cost of the recording");
            lines.iter().for_each(|line| self.wrapped(line));
        }
    }
}
