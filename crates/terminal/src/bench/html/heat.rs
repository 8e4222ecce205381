//! A matrix as a table whose cells are the darker the worse they are.

use super::super::{matrix, number};
use crate::html::{escaped, put};
use numakit_bench::{PairMatrix, Quantiles};
use numakit_model::numbers::ABSENT;
use std::fmt::Write;

/// More columns than this have small letters, and more than that the smallest.
const DENSE: [usize; 2] = [12, 28];

/// The table with its heading and what its colours mean.
pub fn table(page: &mut String, matrix: &PairMatrix) {
    page.push_str("<figure>\n");
    put(page, "<figcaption>", &format!("{} in {}", matrix.name, matrix.unit), "</figcaption>\n");
    if matrix.values().next().is_none() {
        page.push_str("<p class=\"quiet\">nothing was measured</p>\n</figure>\n");
        return;
    }
    let dense = match matrix.columns.len() {
        few if few <= DENSE[0] => "",
        many if many <= DENSE[1] => " dense",
        _ => " densest",
    };
    // Writing to a string cannot fail.
    _ = write!(page, "<div class=\"wide\"><table class=\"heat{dense}\">\n<thead><tr>");
    put(page, "<th>", &format!("{} \u{2192}", matrix.column), "<br>");
    put(page, "", &format!("{} \u{2193}", matrix.row), "</th>");
    matrix.columns.iter().for_each(|column| _ = write!(page, "<th scope=\"col\">{column}</th>"));
    page.push_str("</tr></thead>\n<tbody>\n");
    let bounds = matrix::bounds(matrix);
    for (row, cells) in matrix.rows.iter().zip(&matrix.cells) {
        _ = write!(page, "<tr><th scope=\"row\">{row}</th>");
        cells.iter().for_each(|value| cell(page, value.as_ref(), bounds, matrix.less_is_better));
        page.push_str("</tr>\n");
    }
    page.push_str("</tbody>\n</table></div>\n");
    legend(page, matrix, bounds);
    page.push_str("</figure>\n");
}

fn cell(page: &mut String, value: Option<&Quantiles>, bounds: (f64, f64), less_is_better: bool) {
    let Some(value) = value else {
        _ = write!(page, "<td class=\"quiet\">{ABSENT}</td>");
        return;
    };
    let step = matrix::step(value.median, bounds, less_is_better);
    let title = format!("from {} to {}, {} samples", number(value.low), number(value.high), value.samples);
    _ = write!(page, "<td class=\"h{step}\" title=\"{}\">{}</td>", escaped(&title), number(value.median));
}

fn legend(page: &mut String, matrix: &PairMatrix, (least, most): (f64, f64)) {
    page.push_str("<p class=\"quiet\">");
    if !matrix::are_alike((least, most)) {
        let (best, worst) = if matrix.less_is_better { (least, most) } else { (most, least) };
        put(page, "best ", &number(best), " <span class=\"ramp\">");
        (0..matrix::STEPS).for_each(|step| _ = write!(page, "<i class=\"h{step}\"></i>"));
        put(page, "</span> ", &format!("{} worst; ", number(worst)), "");
    }
    put(page, "", &matrix::spread(matrix).unwrap_or_default(), "</p>\n");
}
