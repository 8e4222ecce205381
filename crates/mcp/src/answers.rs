//! What the tools answer: one file for each subject.

pub(crate) mod comparison;
pub(crate) mod findings;
pub(crate) mod machine;
mod range;
pub(crate) mod recordings;
pub(crate) mod statistics;

use serde_json::{Value, json};

/// The first `most` entries of a list; what is left out is said.
fn bounded(mut list: Vec<Value>, most: usize) -> Value {
    let left_out = list.len().saturating_sub(most);
    list.truncate(most);
    match left_out {
        0 => Value::Array(list),
        _ => json!({"first": list, "left_out": left_out}),
    }
}

/// A value as JSON. What is asked for is numbers, texts and lists: this cannot fail.
fn value(of: &impl serde::Serialize) -> Value {
    serde_json::to_value(of).unwrap_or_default()
}
