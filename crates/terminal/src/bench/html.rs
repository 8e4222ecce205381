//! Results as a page without scripts, which needs no other file and can be printed.

mod heat;
mod plot;
mod scale;

use super::{about, number, of_runs, value_cells};
use crate::html::{document, put, table};
use crate::topology::{svg_in_page, svg_style};
use numakit_bench::{BenchResult, BenchResults, Curve};
use std::fmt::Write;

const STYLE: &str = include_str!("html/bench.css");
/// The class of the drawing of the machine.
const MACHINE: &str = "machine";

/// The page: what the values depend on, the machine, and each benchmark with its doubts first.
pub fn html(results: &BenchResults) -> String {
    let mut page = String::new();
    conditions(&mut page, results);
    contents(&mut page, results);
    if let Some(topology) = &results.topology {
        page.push_str("<h2>Machine</h2>\n<div class=\"wide\">");
        page.push_str(&svg_in_page(topology, MACHINE));
        page.push_str("</div>\n");
    }
    for (at, result) in results.benchmarks.iter().enumerate() {
        // Writing to a string cannot fail.
        _ = writeln!(page, "<section id=\"b{at}\">");
        one(&mut page, result);
        page.push_str("</section>\n");
    }
    let style = svg_style(MACHINE) + STYLE;
    let heading = "What this machine's memory can do";
    document(&format!("numa bench: {}", results.conditions.processor), &style, heading, &page)
}

fn conditions(page: &mut String, results: &BenchResults) {
    let conditions = &results.conditions;
    let or = |value: &Option<String>, without: &str| value.clone().unwrap_or_else(|| without.to_owned());
    let mut rows = vec![
        ("Processor", conditions.processor.clone()),
        ("Machine", conditions.machine.clone()),
        ("Kernel", format!("Linux {}", conditions.kernel)),
        ("Virtual machine", if conditions.virtual_machine { "yes" } else { "no" }.to_owned()),
        ("Frequency governor", or(&conditions.governor, "not shown by the kernel")),
        ("Huge pages", or(&conditions.huge_pages, "none in this kernel")),
        ("Load average before", conditions.load.map_or("unknown".to_owned(), |load| format!("{load:.2}"))),
    ];
    if let Some(why) = &conditions.policies_refused {
        rows.push(("Memory policies", format!("{why}: memory was placed by first touch")));
    }
    if let Some(by) = &conditions.verified_by {
        rows.push(("Nodes of the memory", format!("verified by {by}")));
    }
    if let Some(why) = &conditions.unverified {
        rows.push(("Not verified", format!("on which nodes the memory was: {why}")));
    }
    rows.extend(of_runs(results.runs).map(|runs| ("Runs", runs)));
    page.push_str("<table class=\"conditions\"><tbody>\n");
    for (name, value) in rows {
        put(page, "<tr><th scope=\"row\">", name, "</th>");
        put(page, "<td>", &value, "</td></tr>\n");
    }
    page.push_str("</tbody></table>\n");
    if !results.complete {
        page.push_str("<p class=\"warning\">Interrupted: the rest was not measured.</p>\n");
    }
}

/// Links to all benchmarks; those with warnings have a sign.
fn contents(page: &mut String, results: &BenchResults) {
    page.push_str("<nav>");
    for (at, result) in results.benchmarks.iter().enumerate() {
        put(page, &format!("<a href=\"#b{at}\">"), &result.name, "</a>");
        if !result.warnings.is_empty() {
            page.push_str("<span title=\"has warnings\">!</span>");
        }
        page.push(' ');
    }
    page.push_str("</nav>\n");
}

fn one(page: &mut String, result: &BenchResult) {
    put(page, "<h2>", &result.name, "</h2>\n");
    put(page, "<p>", about(&result.name), "</p>\n");
    for warning in &result.warnings {
        put(page, "<p class=\"warning\">", &format!("Warning: {warning}"), "</p>\n");
    }
    if !result.matrices.is_empty() || !result.tables.is_empty() {
        page.push_str("<div class=\"matrices\">\n");
        result.matrices.iter().for_each(|matrix| heat::table(page, &matrix.into()));
        result.tables.iter().for_each(|table| heat::table(page, &table.into()));
        page.push_str("</div>\n");
    }
    plot::groups(&result.curves).iter().for_each(|group| curves(page, group));
    if !result.values.is_empty() {
        let (headings, rows) = value_cells(&result.values);
        let headings: Vec<&str> = headings.iter().map(|heading| heading.trim_start_matches('<')).collect();
        table(page, &headings, &rows);
    }
    if !result.remarks.is_empty() || !result.left_out.is_empty() {
        page.push_str("<ul>\n");
        result.remarks.iter().for_each(|remark| put(page, "<li>", remark, "</li>\n"));
        for left in &result.left_out {
            put(page, "<li>", &format!("left out: {}: {}", left.what, left.why), "</li>\n");
        }
        page.push_str("</ul>\n");
    }
}

/// A drawing of curves, their names, and their values.
fn curves(page: &mut String, group: &[&Curve]) {
    let Some(first) = group.first() else { return };
    let common = plot::common(group);
    let end = plot::common_end(group, common);
    let in_all = |name: &str| [&name[..common], &name[name.len() - end..]].concat();
    let heading = match (group.len(), common + end) {
        (1, _) => format!("{}, by {}", first.name, first.x.name),
        (_, 0) => format!("{} by {}", first.unit, first.x.name),
        _ => {
            let words = in_all(&first.name).replace(", , ", ", ");
            format!("{}, by {}", words.trim_matches([',', ' ']), first.x.name)
        }
    };
    put(page, "<figure>\n<figcaption>", &heading, "</figcaption>\n");
    match plot::svg(group) {
        Some(svg) => _ = writeln!(page, "<div class=\"wide\">{svg}</div>"),
        None => page.push_str("<p class=\"quiet\">nothing was measured</p>\n"),
    }
    if group.len() > 1 {
        page.push_str("<p class=\"legend\">");
        for (at, curve) in group.iter().enumerate() {
            put(
                page,
                &format!("<span>{} ", plot::key(at)),
                &curve.name[common..curve.name.len() - end],
                "</span> ",
            );
        }
        page.push_str("</p>\n");
    }
    page.push_str("<details><summary>Values</summary>\n");
    group.iter().for_each(|curve| points(page, curve, group.len() > 1));
    page.push_str("</details>\n</figure>\n");
}

fn points(page: &mut String, curve: &Curve, with_name: bool) {
    if with_name {
        put(page, "<h3>", &curve.name, "</h3>\n");
    }
    let rows: Vec<Vec<String>> = curve
        .points
        .iter()
        .map(|point| {
            let [median, low, high] = [point.value.median, point.value.low, point.value.high].map(number);
            vec![curve.x.place(point.x), median, low, high, curve.unit.clone()]
        })
        .collect();
    table(page, &[&curve.x.name, "median", "10 %", "90 %", "unit"], &rows);
}

#[cfg(test)]
mod tests;
