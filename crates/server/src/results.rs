//! Results of `numa explain`, which the page shows in place of samples over time. They are passed on as they are: the
//! page reads them.

use crate::standalone::{self, StandaloneError};
use std::path::Path;

/// A result and its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownResult {
    /// The name of its file.
    pub name: String,
    /// One JSON value.
    pub json: String,
}

/// All results as one JSON array of `{name, result}`.
pub fn as_json(results: &[ShownResult]) -> String {
    let entries = results.iter().map(|ShownResult { name, json }| {
        // A string cannot fail to become JSON.
        let name = serde_json::to_string(name).unwrap_or_default();
        format!("{{\"name\":{name},\"result\":{}}}", json.trim())
    });
    format!("[{}]", entries.collect::<Vec<_>>().join(","))
}

/// Writes the page with these results into one file; returns its size.
pub fn write(path: &Path, force: bool, results: &[ShownResult]) -> Result<u64, StandaloneError> {
    standalone::write_results(path, force, &as_json(results))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_values_stay_what_they_are() {
        let result = |name: &str, json: &str| ShownResult { name: name.into(), json: json.into() };
        let text = as_json(&[result("a \"b\" </script>", "{\"n\": 1}\n"), result("c", "{}")]);
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value[0]["name"], "a \"b\" </script>");
        assert_eq!((value[0]["result"]["n"].as_u64(), value[1]["name"].as_str()), (Some(1), Some("c")));
        assert_eq!(as_json(&[]), "[]");
    }
}
