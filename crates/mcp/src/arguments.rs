//! Arguments of tools, checked against the schema of the structure that takes them.
//!
//! Serde refuses the same values, but says neither whose value it refuses nor what the argument is for.

use crate::error::ToolError;
use rmcp::model::JsonObject;
use serde_json::Value;

/// An argument as the schema of a tool describes it.
pub(crate) struct Argument<'a> {
    pub(crate) name: &'a str,
    /// What it is, in errors and documents.
    pub(crate) kind: &'static str,
    pub(crate) help: &'a str,
    pub(crate) is_required: bool,
    is_kind: fn(&Value) -> bool,
}

/// The arguments of a tool, those that it requires first.
pub(crate) fn arguments(schema: &JsonObject) -> Vec<Argument<'_>> {
    let required = schema.get("required").and_then(Value::as_array);
    let is_required = |name: &str| required.is_some_and(|names| names.iter().any(|one| one == name));
    let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    let mut arguments: Vec<Argument<'_>> = properties
        .map(|(name, property)| {
            let (kind, is_kind) = kind(property["type"].as_str().unwrap_or_default());
            let help = property["description"].as_str().unwrap_or_default();
            Argument { name, kind, help, is_required: is_required(name), is_kind }
        })
        .collect();
    arguments.sort_by_key(|argument| !argument.is_required);
    arguments
}

fn kind(word: &str) -> (&'static str, fn(&Value) -> bool) {
    match word {
        "number" => ("a number", Value::is_number),
        "integer" => ("an integer from 0 to 4294967295", |value| {
            value.as_u64().is_some_and(|count| u32::try_from(count).is_ok())
        }),
        "array" => ("a list of texts", |value| {
            value.as_array().is_some_and(|list| list.iter().all(Value::is_string))
        }),
        _ => ("a text", Value::is_string),
    }
}

/// Refuses arguments that are not as the schema has them; `null` is as good as absent.
pub(crate) fn check(schema: &JsonObject, given: &mut JsonObject) -> Result<(), ToolError> {
    given.retain(|_, value| !value.is_null());
    let declared = arguments(schema);
    for (name, value) in given.iter() {
        let Some(argument) = declared.iter().find(|argument| argument.name == name) else {
            let names: Vec<&str> = declared.iter().map(|argument| argument.name).collect();
            return Err(ToolError::UnknownArgument { name: name.clone(), known: names.join(", ") });
        };
        if !(argument.is_kind)(value) {
            let (name, value, help) = (name.clone(), value.clone(), argument.help.to_owned());
            return Err(ToolError::WrongArgument { name, value, kind: argument.kind, help });
        }
    }
    match declared.iter().find(|argument| argument.is_required && !given.contains_key(argument.name)) {
        Some(missing) => {
            Err(ToolError::MissingArgument { name: missing.name.to_owned(), help: missing.help.to_owned() })
        }
        None => Ok(()),
    }
}
