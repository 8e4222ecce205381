//! Values in rows and columns as a table whose cells are the darker the worse they are.

use super::super::grid::{self, Grid};
use super::super::number;
use crate::html::{escaped, put};
use numakit_bench::Quantiles;
use numakit_model::numbers::ABSENT;
use std::fmt::Write;

/// More columns than this have small letters, and more than that the smallest.
const DENSE: [usize; 2] = [12, 28];

/// The table with its heading and what its colours mean.
pub fn table(page: &mut String, grid: &Grid<'_>) {
    page.push_str("<figure>\n");
    put(page, "<figcaption>", &format!("{} in {}", grid.name, grid.unit), "</figcaption>\n");
    if grid.values().next().is_none() {
        page.push_str("<p class=\"quiet\">nothing was measured</p>\n</figure>\n");
        return;
    }
    let dense = match grid.columns.len() {
        few if few <= DENSE[0] => "",
        many if many <= DENSE[1] => " dense",
        _ => " densest",
    };
    // Writing to a string cannot fail.
    _ = write!(page, "<div class=\"wide\"><table class=\"heat{dense}\">\n<thead><tr>");
    put(page, "<th>", &format!("{}\u{a0}\u{2192}", grid.column), "<br>");
    put(page, "", &format!("{}\u{a0}\u{2193}", grid.row), "</th>");
    grid.columns.iter().for_each(|column| put(page, "<th scope=\"col\">", column, "</th>"));
    page.push_str("</tr></thead>\n<tbody>\n");
    let bounds = grid.bounds();
    for (row, cells) in grid.rows.iter().zip(grid.cells) {
        put(page, "<tr><th scope=\"row\">", row, "</th>");
        let bounded = cells.iter().zip(&bounds);
        bounded.for_each(|(value, bounds)| cell(page, value.as_ref(), *bounds, grid.less_is_better));
        page.push_str("</tr>\n");
    }
    page.push_str("</tbody>\n</table></div>\n");
    legend(page, grid, &bounds);
    page.push_str("</figure>\n");
}

fn cell(page: &mut String, value: Option<&Quantiles>, bounds: (f64, f64), less_is_better: bool) {
    let Some(value) = value else {
        _ = write!(page, "<td class=\"quiet\">{ABSENT}</td>");
        return;
    };
    let step = grid::step(value.median, bounds, less_is_better);
    let title = format!("from {} to {}, {} samples", number(value.low), number(value.high), value.samples);
    _ = write!(page, "<td class=\"h{step}\" title=\"{}\">{}</td>", escaped(&title), number(value.median));
}

fn legend(page: &mut String, grid: &Grid<'_>, bounds: &[(f64, f64)]) {
    page.push_str("<p class=\"quiet\">");
    if grid.is_named {
        page.push_str("colours compare the values of a column; ");
    } else if let Some(&(least, most)) = bounds.first().filter(|bounds| !grid::are_alike(**bounds)) {
        let (best, worst) = if grid.less_is_better { (least, most) } else { (most, least) };
        put(page, "best ", &number(best), " <span class=\"ramp\">");
        (0..grid::STEPS).for_each(|step| _ = write!(page, "<i class=\"h{step}\"></i>"));
        put(page, "</span> ", &format!("{} worst; ", number(worst)), "");
    }
    put(page, "", &grid.spread().unwrap_or_default(), "</p>\n");
}
