//! The table of metrics in the guide.

use crate::table::{EXPOSED, ExposedKind};
use std::fmt::Write;

/// The rows of the table in docs/guide/serve.md.
pub fn metrics_guide() -> String {
    let mut text = String::from("| metric | type | labels | what | known as |\n|---|---|---|---|---|\n");
    for metric in EXPOSED {
        let kind = if metric.kind == ExposedKind::Counter { "counter" } else { "gauge" };
        let words = |all: Vec<String>| all.join(", ");
        let code = |word: &str| format!("`{word}`");
        let labels = words(metric.labels().iter().map(|label| code(label)).collect());
        let known = match metric.peers {
            "" => String::new(),
            peers => words(peers.split(", ").map(code).collect()),
        };
        let _ =
            writeln!(text, "| `{}` | {kind} | {labels} | {} | {known} |", metric.sample_name(), metric.help);
    }
    text
}
