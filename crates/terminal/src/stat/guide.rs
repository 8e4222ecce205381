//! The table of columns for documents and `--help`.

use crate::columns::{Per, columns};
use numakit_formulas::{Catalog, Quantity};

/// Maximum length of a formula in the table.
const MAX_FORMULA: usize = 160;

/// The default columns of every table, as Markdown.
pub fn guide() -> String {
    let mut text = String::new();
    let titles = ["The machine", "Per package", "Per node", "Per CPU", "Per interconnect card"];
    for (per, title) in Per::ALL.into_iter().zip(titles) {
        text.push_str(&format!("### {title}\n\n| heading | name in CSV and JSON | unit there | formula | what it is |\n|---|---|---|---|---|\n"));
        for (column, formula) in columns(per).filter_map(|c| Some((c, c.formula(Catalog::built_in())?))) {
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
            let help = column.formula(Catalog::built_in()).map_or("", |f| f.help.as_str());
            text.push_str(&format!("    {:<14} {:<5}  {help}\n", column.name, column.heading));
        }
    }
    text
}

/// A formula; a long one is a link to the page of formulas.
fn from(formula: &str) -> String {
    match formula.len() {
        0..=MAX_FORMULA => format!("`{}`", formula.replace('|', "\\|")),
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
