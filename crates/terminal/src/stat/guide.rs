//! The columns as a table for documents and `--help`, from the one table there is.

use crate::columns::{Per, columns};
use crate::units::Quantity;

/// The default columns of every table, as Markdown.
pub fn guide() -> String {
    let mut text = String::new();
    for (per, title) in [(Per::Machine, "The machine"), (Per::Node, "Per node"), (Per::Cpu, "Per CPU")] {
        text.push_str(&format!("### {title}\n\n| heading | name in CSV and JSON | unit there | from | what it is |\n|---|---|---|---|---|\n"));
        for column in columns(per) {
            let heading = match column.group {
                "" => column.heading.to_owned(),
                group => format!("{group}: {}", column.heading),
            };
            text.push_str(&format!(
                "| {heading} | `{}` | {} | `{}` | {} |\n",
                column.name,
                unit(column.quantity),
                column.formula,
                column.help
            ));
        }
        text.push('\n');
    }
    text
}

/// The same for `numa stat --help`: name, heading, what it is.
pub fn help() -> String {
    let mut text = String::from("Columns (with their names in CSV and JSON):\n");
    for (per, title) in [(Per::Machine, "the machine"), (Per::Node, "per node"), (Per::Cpu, "per CPU")] {
        text.push_str(&format!("\n  {title}\n"));
        for column in columns(per) {
            text.push_str(&format!("    {:<11} {:<5}  {}\n", column.name, column.heading, column.help));
        }
    }
    text
}

fn unit(quantity: Quantity) -> &'static str {
    match quantity {
        Quantity::Rate => "per second",
        Quantity::Count => "count",
        Quantity::Bytes => "bytes",
        Quantity::Percent => "%",
        Quantity::Seconds => "s",
    }
}
