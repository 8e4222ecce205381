//! The tools: a function for each. The list that clients get, the checks of arguments and the guide follow from them.

use crate::answers::comparison::{self, Comparison};
use crate::answers::findings::{self, Findings};
use crate::answers::machine::{self, Machine, Planning};
use crate::answers::recordings::{self, Recordings, SeriesOf};
use crate::answers::statistics::{self, Statistics};
use crate::arguments::{Argument, arguments, check};
use crate::directory::SharedDirectory;
use crate::error::ToolError;
use numakit_model::suggest;
use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{CallToolResult, ContentBlock, JsonObject, ToolAnnotations};
use rmcp::{tool, tool_router};
use serde_json::Value;
use std::fmt::Write;
use std::sync::{Arc, LazyLock};

/// Longer answers are refused: clients have little room.
const MAX_ANSWER: usize = 200_000;

/// All tools.
pub(crate) static TOOLS: LazyLock<ToolRouter<Server>> = LazyLock::new(tools);

#[derive(Clone)]
pub(crate) struct Server {
    pub(crate) directory: Arc<SharedDirectory>,
}

#[tool_router]
impl Server {
    /// The recordings below the directory: path, host, command, when and how long, number of series.
    #[tool]
    fn list_recordings(&self, Parameters(asked): Parameters<Recordings>) -> CallToolResult {
        told(recordings::list(&self.directory, &asked))
    }

    /// The series of a recording with unit, kind and meaning, and what could not be measured and why.
    #[tool]
    fn list_series(&self, Parameters(asked): Parameters<SeriesOf>) -> CallToolResult {
        told(recordings::series(&self.directory, &asked))
    }

    /// What is wrong in a recording or a range of it: verdict, cost, remedy, whose it is, since when, and the numbers;
    /// what cannot be told and why.
    #[tool]
    fn findings(&self, Parameters(asked): Parameters<Findings>) -> CallToolResult {
        told(findings::of_recording(&self.directory, &asked))
    }

    /// Mean, deviation, minimum, maximum, first and last value of series in a range; counters as rates. Of a formula such
    /// as remote_time_share or locality, its value.
    #[tool]
    fn statistics(&self, Parameters(asked): Parameters<Statistics>) -> CallToolResult {
        told(statistics::of_range(&self.directory, &asked))
    }

    /// Whether recording B (after) is better than A (before), by how much beyond noise; what differs; which findings are
    /// gone and new.
    #[tool]
    fn compare(&self, Parameters(asked): Parameters<Comparison>) -> CallToolResult {
        told(comparison::of_two(&self.directory, &asked))
    }

    /// A machine: packages, nodes with their CPUs and memory, caches, distances between nodes.
    #[tool]
    fn topology(&self, Parameters(asked): Parameters<Machine>) -> CallToolResult {
        told(machine::topology(&self.directory, &asked))
    }

    /// Where to place the processes and threads of a program on an idle machine, and why; with a launcher, the lines for
    /// it.
    #[tool]
    fn plan(&self, Parameters(asked): Parameters<Planning>) -> CallToolResult {
        told(machine::plan(&self.directory, asked))
    }
}

/// A tool that fails is an answer that clients show, not an error of the protocol.
pub(crate) fn told(answer: Result<Value, ToolError>) -> CallToolResult {
    let text = answer.map(|answer| answer.to_string()).and_then(|text| match text.len() > MAX_ANSWER {
        true => Err(ToolError::TooLong { has: text.len() / 1024, most: MAX_ANSWER / 1024 }),
        false => Ok(text),
    });
    match text {
        Ok(text) => CallToolResult::success(vec![ContentBlock::text(text)]),
        Err(why) => CallToolResult::error(vec![ContentBlock::text(why.to_string())]),
    }
}

/// The tools as clients get them. Schemas have one type for each argument and no formats: that `null` is as good as
/// absent, and how wide our numbers are, only confuses clients.
fn tools() -> ToolRouter<Server> {
    let mut router = Server::tool_router();
    for tool in router.map.values_mut().map(|route| &mut route.attr) {
        tool.annotations = Some(ToolAnnotations::new().read_only(true).open_world(false));
        // The lines of a comment.
        tool.description = tool.description.take().map(|text| text.replace('\n', " ").into());
        let schema = Arc::make_mut(&mut tool.input_schema);
        schema.remove("$schema");
        let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
        for property in properties.into_iter().flatten().filter_map(|(_, property)| property.as_object_mut())
        {
            property.remove("format");
            if let Some(Value::Array(kinds)) = property.get("type") {
                let kind = kinds.iter().find(|kind| *kind != "null").cloned();
                property.insert("type".to_owned(), kind.unwrap_or_default());
            }
        }
    }
    router
}

/// Refuses a tool that there is not, and arguments that it does not take.
pub(crate) fn admit(name: &str, given: &mut JsonObject) -> Result<(), ToolError> {
    if let Some(tool) = TOOLS.get(name) {
        return check(&tool.input_schema, given);
    }
    let tools = TOOLS.list_all();
    let names: Vec<&str> = tools.iter().map(|tool| &*tool.name).collect();
    let near = suggest::nearest(name, names.iter().copied(), 1);
    let fix = near.first().map_or_else(|| names.join(", "), |near| format!("'{near}'"));
    Err(ToolError::UnknownTool { name: name.to_owned(), fix })
}

/// The table of the guide.
pub fn guide() -> String {
    let mut text = "| tool | answers | arguments |\n|---|---|---|\n".to_owned();
    for tool in TOOLS.list_all() {
        let argument = |Argument { name, kind, help, is_required, .. }: &Argument<'_>| {
            let needed = if *is_required { ", required" } else { "" };
            format!("`{name}` ({kind}{needed}): {}", help.replace('|', "\\|"))
        };
        let arguments: Vec<String> = arguments(&tool.input_schema).iter().map(argument).collect();
        let about = tool.description.unwrap_or_default();
        // Writing to a string cannot fail.
        let _ = writeln!(text, "| `{}` | {about} | {} |", tool.name, arguments.join("; "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_guide_has_the_tools() {
        numakit_testing::guide::check_part("docs/guide/mcp.md", "tools", &guide());
    }

    fn refused(tool: &str, given: Value) -> String {
        admit(tool, &mut given.as_object().unwrap().clone()).unwrap_err().to_string()
    }

    #[test]
    fn what_is_wrong_has_an_error_that_says_what_is_right() {
        assert_eq!(refused("finding", json!({})), "there is no tool 'finding'; use 'findings'");
        let missing = refused("compare", json!({"after": null, "before": "a"}));
        assert_eq!(missing, "'after' is missing: path of recording B");
        let unknown = refused("topology", json!({"machine": 1}));
        assert_eq!(unknown, "there is no argument 'machine'; use recording, synthetic");
        let negative = refused("plan", json!({"threads": -1}));
        assert_eq!(
            negative,
            "'threads' is -1; give an integer from 0 to 4294967295: threads of each process"
        );
        assert!(refused("plan", json!({"processes": 1u64 << 32})).starts_with("'processes' is 4294967296;"));
        assert!(refused("plan", json!({"command": ["a", 1]})).contains("give a list of texts"));
        assert!(admit("plan", json!({"cores": null, "processes": 2}).as_object_mut().unwrap()).is_ok());
    }

    #[test]
    fn schemas_are_plain() {
        for tool in TOOLS.list_all() {
            let schema = &tool.input_schema;
            assert_eq!(schema["additionalProperties"], false, "{}", tool.name);
            let noise = ["$schema", "title", "format", "null", "$ref"].map(|word| format!("\"{word}\""));
            let text = serde_json::to_string(schema).unwrap();
            assert!(!noise.iter().any(|word| text.contains(word)), "{text}");
            assert!(arguments(schema).iter().all(|argument| !argument.help.is_empty()), "{text}");
        }
        let plan = &TOOLS.get("plan").unwrap().input_schema["properties"];
        assert_eq!((&plan["processes"]["minimum"], &plan["cores"]["type"]), (&json!(0), &json!("string")));
    }
}
