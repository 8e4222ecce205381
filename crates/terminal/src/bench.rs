//! `numa bench`: matrices and tables, curves as plots, and what to think of them.

mod collectives;
pub mod compared;
mod csv;
mod curve;
mod grid;
mod html;
mod matrix;
mod weights;

pub use collectives::collectives_page;
pub use weights::weights_page;

pub use csv::csv;
pub use html::html;
pub(crate) use matrix::text as matrix_text;

use crate::table::page_table;
use crate::wrap::wrap;
use numakit_bench::{
    BenchConditions, BenchResult, BenchResults, NamedValue, ShortRow, ShortTable, about, short,
};
use numakit_model::numbers::ABSENT;
use std::fmt::Write;

/// How a page is drawn.
#[derive(Debug, Clone, Copy)]
pub struct BenchStyle {
    /// Whether matrices have heat colours.
    pub color: bool,
    /// The width of the terminal.
    pub width: usize,
    /// Whether all values are shown, where few of them can say the same.
    pub all: bool,
}

/// All results, each with what makes them doubtful and what was left out.
pub fn page(results: &BenchResults, style: BenchStyle) -> String {
    let mut text = conditions(&results.conditions, style.width);
    text.extend(of_runs(results.runs).map(|runs| lines(&runs, "", style.width)));
    for result in &results.benchmarks {
        text.push('\n');
        text.push_str(&one(result, style));
    }
    if !results.complete {
        text.push_str(match results.runs {
            1 => "\nInterrupted: what was measured until then is above.\n",
            _ => "\nInterrupted: the runs that ended until then are above.\n",
        });
    }
    text
}

/// What values of several runs are.
fn of_runs(runs: u32) -> Option<String> {
    (runs > 1).then(|| {
        format!(
            "{runs} runs: values are the medians of their medians; 10 % and 90 % are the quantiles of the runs' low and high ones"
        )
    })
}

/// The results as JSON, as `numa bench --help` describes.
pub fn json(results: &BenchResults) -> Result<String, serde_json::Error> {
    serde_json::to_string(results)
}

fn conditions(conditions: &BenchConditions, width: usize) -> String {
    let or = |value: &Option<String>, without: &str| value.clone().unwrap_or_else(|| without.to_owned());
    let mut parts = vec![
        format!("{}; {}", conditions.processor, conditions.machine),
        format!("Linux {}", conditions.kernel),
    ];
    if conditions.virtual_machine {
        parts.push("a virtual machine".to_owned());
    }
    parts.push(format!("governor {}", or(&conditions.governor, "not shown by the kernel")));
    parts.push(format!("huge pages {}", or(&conditions.huge_pages, "none in this kernel")));
    parts.extend(conditions.load.map(|load| format!("load average {load:.2}")));
    let mut text = lines(&parts.join("; "), "", width);
    if let Some(why) = &conditions.policies_refused {
        text += &lines(
            &format!("{why}: memory was placed by the first touch of a thread on its node"),
            "",
            width,
        );
    }
    if let Some(file) = &conditions.verified_by
        && file != "move_pages"
    {
        text += &lines(
            &format!(
                "{file} verified on which nodes the memory was, by mapping: the kernel refuses move_pages"
            ),
            "",
            width,
        );
    }
    if let Some(why) = &conditions.unverified {
        text += &lines(&format!("{why}: it was not verified on which nodes the memory was"), "", width);
    }
    text
}

fn one(result: &BenchResult, style: BenchStyle) -> String {
    let mut text = lines(&format!("{}: {}", result.name, about(&result.name)), "", style.width);
    let (tables, curves) = match style.all {
        true => (Vec::new(), result.curves.iter().collect()),
        false => short(result),
    };
    // What a table shows in short, a remark says.
    if !tables.is_empty() {
        text += &remarks(result, style.width);
    }
    for table in &tables {
        _ = write!(text, "\n{}", short_table(table));
    }
    for matrix in &result.matrices {
        _ = write!(text, "\n{}", matrix::text(matrix, style));
    }
    for table in &result.tables {
        _ = write!(text, "\n{}", matrix::text(table, style));
    }
    for curve in curves {
        _ = write!(text, "\n{}", curve::text(curve, style.width));
    }
    if !result.values.is_empty() {
        let (headings, rows) = value_cells(&result.values);
        _ = write!(text, "\n{}", page_table(headings, &rows, "  "));
    }
    match tables.iter().map(|table| table.of).sum::<usize>() {
        0 => text += &remarks(result, style.width),
        values => _ = writeln!(text, "\n  {values} values in short; --all shows all of them"),
    }
    for left in &result.left_out {
        text += &lines(&format!("left out: {}: {}", left.what, left.why), "  ", style.width);
    }
    for warning in &result.warnings {
        text += &lines(&format!("warning: {warning}"), "  ", style.width);
    }
    text
}

fn remarks(result: &BenchResult, width: usize) -> String {
    let remarks: String = result.remarks.iter().map(|remark| lines(remark, "  ", width)).collect();
    if remarks.is_empty() { remarks } else { format!("\n{remarks}") }
}

fn short_table(table: &ShortTable) -> String {
    let row = |row: &ShortRow| {
        row.words.iter().cloned().chain(row.values.iter().map(|value| number(*value))).collect::<Vec<_>>()
    };
    let rows: Vec<Vec<String>> = table.rows.iter().map(row).collect();
    format!("{} in {}\n{}", table.name, table.unit, page_table(&table.headings, &rows, "  "))
}

/// The headings and rows of single values.
fn value_cells(values: &[NamedValue]) -> (&'static [&'static str], Vec<Vec<String>>) {
    let best = values.iter().any(|value| value.best.is_some());
    let row = |value: &NamedValue| {
        let [median, low, high] = [value.value.median, value.value.low, value.value.high].map(number);
        let mut row = vec![value.name.clone(), median, low, high];
        if best {
            row.push(value.best.map_or_else(|| ABSENT.to_owned(), number));
        }
        row.push(value.unit.clone());
        row
    };
    let headings: &[&str] = match best {
        true => &["", "median", "10 %", "90 %", "best", "<unit"],
        false => &["", "median", "10 %", "90 %", "<unit"],
    };
    (headings, values.iter().map(row).collect())
}

/// A text in lines of the width, each with this in front.
fn lines(text: &str, indent: &str, width: usize) -> String {
    let lines = wrap(text, Some(width.saturating_sub(indent.len() + 2).max(20)));
    let with = |(at, line): (usize, &String)| format!("{indent}{}{line}\n", if at == 0 { "" } else { "  " });
    lines.iter().enumerate().map(with).collect()
}

/// A value with three digits or more, after rounding too.
pub(crate) fn number(value: f64) -> String {
    let digits = match value.abs() {
        v if v >= 99.95 => 0,
        v if v >= 9.995 => 1,
        _ => 2,
    };
    format!("{value:.digits$}")
}

#[cfg(test)]
mod tests;
