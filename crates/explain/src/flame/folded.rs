//! The folded format, which other programs for flame graphs read.

use super::FlameGraph;
use std::fmt::Write;

/// `outermost;...;innermost;[part] value`, line by line.
pub fn text(graph: &FlameGraph) -> String {
    let mut text = String::new();
    for stack in &graph.stacks {
        let names = stack.frames.iter().filter_map(|frame| graph.names.get(*frame as usize));
        let names: Vec<String> = names.map(|name| one_word(name)).collect();
        let chain = names.join(";");
        for (part, value) in graph.parts.iter().zip(&stack.values).filter(|(_, value)| **value > 0) {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{chain};[{part}] {value}");
        }
    }
    text
}

/// The name without the characters that separate frames and lines.
fn one_word(name: &str) -> String {
    name.replace(';', ":").replace(['\n', '\r'], " ")
}
