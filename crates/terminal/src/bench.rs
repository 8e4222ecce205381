//! `numa bench`: matrices and tables, curves as plots, and what to think of them.

pub mod compared;
mod csv;
mod curve;
mod grid;
mod html;
mod matrix;
mod weights;

pub use weights::weights_page;

pub use csv::csv;
pub use html::html;
pub(crate) use matrix::text as matrix_text;

use crate::table::page_table;
use crate::wrap::wrap;
use numakit_bench::{BenchConditions, BenchResult, BenchResults, NamedValue, about};
use numakit_model::numbers::ABSENT;
use std::fmt::Write;

/// How a page is drawn.
#[derive(Debug, Clone, Copy)]
pub struct BenchStyle {
    /// Whether matrices have heat colours.
    pub color: bool,
    /// The width of the terminal.
    pub width: usize,
}

/// All results, each with what makes them doubtful and what was left out.
pub fn page(results: &BenchResults, style: BenchStyle) -> String {
    let mut text = conditions(&results.conditions, style.width);
    for result in &results.benchmarks {
        text.push('\n');
        text.push_str(&one(result, style));
    }
    if !results.complete {
        text.push_str("\nInterrupted: what was measured until then is above.\n");
    }
    text
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
    if let Some(why) = &conditions.unverified {
        text += &lines(&format!("{why}: it was not verified on which nodes the memory was"), "", width);
    }
    text
}

fn one(result: &BenchResult, style: BenchStyle) -> String {
    let mut text = lines(&format!("{}: {}", result.name, about(&result.name)), "", style.width);
    for matrix in &result.matrices {
        _ = write!(text, "\n{}", matrix::text(matrix, style));
    }
    for table in &result.tables {
        _ = write!(text, "\n{}", matrix::text(table, style));
    }
    for curve in &result.curves {
        _ = write!(text, "\n{}", curve::text(curve, style.width));
    }
    if !result.values.is_empty() {
        let (headings, rows) = value_cells(&result.values);
        _ = write!(text, "\n{}", page_table(headings, &rows, "  "));
    }
    if !result.remarks.is_empty() {
        text.push('\n');
    }
    for remark in &result.remarks {
        text += &lines(remark, "  ", style.width);
    }
    for left in &result.left_out {
        text += &lines(&format!("left out: {}: {}", left.what, left.why), "  ", style.width);
    }
    for warning in &result.warnings {
        text += &lines(&format!("warning: {warning}"), "  ", style.width);
    }
    text
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
