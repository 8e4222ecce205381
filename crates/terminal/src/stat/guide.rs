//! The columns as a table for documents and `--help`, from the one table there is.

use crate::columns::{Per, columns};
use numakit_derived::{Catalog, Quantity};

/// Longer formulas are not shown in a table.
const LONGEST: usize = 160;

/// The default columns of every table, as Markdown.
pub fn guide() -> String {
    let mut text = String::new();
    let titles = ["The machine", "Per package", "Per node", "Per CPU", "Per interconnect card"];
    for (per, title) in Per::ALL.into_iter().zip(titles) {
        text.push_str(&format!("### {title}\n\n| heading | name in CSV and JSON | unit there | from | what it is |\n|---|---|---|---|---|\n"));
        for (column, formula) in columns(per).filter_map(|c| Some((c, c.formula(Catalog::ours())?))) {
            let heading = match column.group {
                "" => column.heading.to_owned(),
                group => format!("{group}: {}", column.heading),
            };
            text.push_str(&format!(
                "| {heading} | `{}` | {} | {} | {} |\n",
                column.name,
                unit(formula.quantity),
                from(&formula.expr.to_string()),
                formula.help
            ));
        }
        text.push('\n');
    }
    text
}

/// The same for `numa stat --help`: name, heading, what it is.
pub fn help() -> String {
    let mut text = String::from("Columns (with their names in CSV and JSON):\n");
    let titles = ["the machine", "per package", "per node", "per CPU", "per interconnect card (device)"];
    for (per, title) in Per::ALL.into_iter().zip(titles) {
        text.push_str(&format!("\n  {title}\n"));
        for column in columns(per) {
            let help = column.formula(Catalog::ours()).map_or("", |f| f.help.as_str());
            text.push_str(&format!("    {:<14} {:<5}  {help}\n", column.name, column.heading));
        }
    }
    text
}

/// Formulas with more alternatives than fit a table are shown on the page of formulas.
fn from(formula: &str) -> String {
    match formula.len() {
        0..=LONGEST => format!("`{}`", formula.replace('|', "\\|")),
        _ => "[formula](formulas.md)".to_owned(),
    }
}

fn unit(quantity: Quantity) -> &'static str {
    match quantity {
        Quantity::PerSecond => "per second",
        Quantity::Percent => "%",
        Quantity::Seconds => "s",
        other => other.name(),
    }
}
