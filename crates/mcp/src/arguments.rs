//! Arguments of tools: declared once, checked, and described as a JSON schema.

use crate::error::ToolError;
use serde_json::{Map, Value, json};

/// An argument of a tool.
#[derive(Debug)]
pub(crate) struct Argument {
    pub(crate) name: &'static str,
    pub(crate) kind: ArgumentKind,
    pub(crate) is_required: bool,
    pub(crate) help: &'static str,
}

/// What an argument is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ArgumentKind {
    Text,
    /// Seconds.
    Number,
    /// An integer that is not negative.
    Count,
    /// A list of texts.
    Texts,
}

impl ArgumentKind {
    /// The name in errors and documents.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Text => "a text",
            Self::Number => "a number",
            Self::Count => "an integer from 0",
            Self::Texts => "a list of texts",
        }
    }

    fn schema(self) -> Value {
        match self {
            Self::Text => json!({"type": "string"}),
            Self::Number => json!({"type": "number"}),
            Self::Count => json!({"type": "integer", "minimum": 0}),
            Self::Texts => json!({"type": "array", "items": {"type": "string"}}),
        }
    }

    fn is(self, value: &Value) -> bool {
        match self {
            Self::Text => value.is_string(),
            Self::Number => value.is_number(),
            Self::Count => value.is_u64(),
            Self::Texts => value.as_array().is_some_and(|list| list.iter().all(Value::is_string)),
        }
    }
}

/// The schema of an object with these arguments.
pub(crate) fn schema(arguments: &[Argument]) -> Map<String, Value> {
    let property = |argument: &Argument| {
        let mut schema = argument.kind.schema();
        schema["description"] = argument.help.into();
        (argument.name.to_owned(), schema)
    };
    let properties: Map<String, Value> = arguments.iter().map(property).collect();
    let required: Vec<&str> = arguments.iter().filter(|a| a.is_required).map(|a| a.name).collect();
    let schema = json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    });
    if let Value::Object(schema) = schema { schema } else { Map::new() }
}

/// Checked arguments.
#[derive(Debug)]
pub(crate) struct Arguments(Map<String, Value>);

impl Arguments {
    /// Arguments that are as declared; `null` is as good as absent.
    pub(crate) fn check(declared: &[Argument], mut given: Map<String, Value>) -> Result<Self, ToolError> {
        given.retain(|_, value| !value.is_null());
        for (name, value) in &given {
            let Some(argument) = declared.iter().find(|argument| argument.name == name) else {
                let names: Vec<&str> = declared.iter().map(|argument| argument.name).collect();
                return Err(ToolError::UnknownArgument { name: name.clone(), known: names.join(", ") });
            };
            if !argument.kind.is(value) {
                let (kind, help) = (argument.kind.name(), argument.help);
                return Err(ToolError::WrongArgument {
                    name: name.clone(),
                    value: value.clone(),
                    kind,
                    help,
                });
            }
        }
        let missing =
            declared.iter().find(|argument| argument.is_required && !given.contains_key(argument.name));
        match missing {
            Some(Argument { name, help, .. }) => Err(ToolError::MissingArgument { name, help }),
            None => Ok(Self(given)),
        }
    }

    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.as_str()
    }

    pub(crate) fn number(&self, name: &str) -> Option<f64> {
        self.0.get(name)?.as_f64()
    }

    pub(crate) fn texts(&self, name: &str) -> Vec<&str> {
        let list = self.0.get(name).and_then(Value::as_array);
        list.into_iter().flatten().filter_map(Value::as_str).collect()
    }

    /// Those with these names, as an object.
    pub(crate) fn object(&self, names: &[&str]) -> Map<String, Value> {
        let wanted = self.0.iter().filter(|(name, _)| names.contains(&name.as_str()));
        wanted.map(|(name, value)| (name.clone(), value.clone())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DECLARED: [Argument; 2] = [
        Argument { name: "recording", kind: ArgumentKind::Text, is_required: true, help: "a file" },
        Argument { name: "cores", kind: ArgumentKind::Count, is_required: false, help: "how many" },
    ];

    fn checked(given: Value) -> Result<Arguments, String> {
        let given = given.as_object().unwrap().clone();
        Arguments::check(&DECLARED, given).map_err(|error| error.to_string())
    }

    #[test]
    fn wrong_arguments_have_an_error_that_says_what_is_right() {
        assert_eq!(checked(json!({})).unwrap_err(), "'recording' is missing: a file");
        let unknown = checked(json!({"recording": "a", "core": 1})).unwrap_err();
        assert_eq!(unknown, "there is no argument 'core'; use recording, cores");
        let negative = checked(json!({"recording": "a", "cores": -1})).unwrap_err();
        assert_eq!(negative, "'cores' is -1; give an integer from 0: how many");
        assert!(checked(json!({"recording": "a", "cores": null})).is_ok());
    }

    #[test]
    fn the_schema_has_all_arguments() {
        let schema = schema(&DECLARED);
        assert_eq!(schema["required"], json!(["recording"]));
        assert_eq!(schema["properties"]["cores"]["minimum"], 0);
    }
}
