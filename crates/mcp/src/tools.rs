//! The table of tools. The list that clients get, the checks of arguments and the guide follow from it.

use crate::answers::{comparison, findings, machine, recordings, statistics};
use crate::arguments::{Argument, ArgumentKind, Arguments, schema};
use crate::directory::SharedDirectory;
use crate::error::ToolError;
use numakit_model::suggest;
use serde_json::{Map, Value};
use std::fmt::Write;

/// A tool.
pub(crate) struct ToolEntry {
    pub(crate) name: &'static str,
    /// What it answers, for clients that choose a tool.
    pub(crate) about: &'static str,
    arguments: &'static [Argument],
    run: fn(&SharedDirectory, &Arguments) -> Result<Value, ToolError>,
}

impl ToolEntry {
    /// The JSON schema of its arguments.
    pub(crate) fn schema(&self) -> Map<String, Value> {
        schema(self.arguments)
    }
}

const fn required(name: &'static str, kind: ArgumentKind, help: &'static str) -> Argument {
    Argument { name, kind, is_required: true, help }
}

const fn optional(name: &'static str, kind: ArgumentKind, help: &'static str) -> Argument {
    Argument { name, kind, is_required: false, help }
}

const RECORDING: Argument =
    required("recording", ArgumentKind::Text, "path of a recording, as list_recordings has it");
const FROM: Argument =
    optional("from_seconds", ArgumentKind::Number, "begin here, in seconds since the recording began");
const TO: Argument =
    optional("to_seconds", ArgumentKind::Number, "end here, in seconds since the recording began");
const PHASE: Argument = optional(
    "phase",
    ArgumentKind::Text,
    "only this phase: from its label to the next; 'command' is the program's",
);
const MACHINE: Argument = optional(
    "recording",
    ArgumentKind::Text,
    "the machine of this recording, instead of the one that runs numa",
);
const DESCRIPTION: Argument = optional(
    "synthetic",
    ArgumentKind::Text,
    "a described machine instead, as in 'package:2 node:2(mem=32G) core:4 pu:2'",
);

/// All tools.
pub(crate) static TOOLS: &[ToolEntry] = &[
    ToolEntry {
        name: "list_recordings",
        about: "The recordings below the directory: path, host, command, when and how long, number of series.",
        arguments: &[optional("directory", ArgumentKind::Text, "only below this directory")],
        run: recordings::list,
    },
    ToolEntry {
        name: "list_series",
        about: "The series of a recording with unit, kind and meaning, and what could not be measured and why.",
        arguments: &[
            RECORDING,
            optional(
                "match",
                ArgumentKind::Text,
                "only names that contain this text, as in 'numa' or '@node3'",
            ),
        ],
        run: recordings::series,
    },
    ToolEntry {
        name: "findings",
        about: "What is wrong in a recording or a range of it: verdict, cost, remedy, whose it is, since when, and \
                the numbers; what cannot be told and why.",
        arguments: &[RECORDING, FROM, TO, PHASE],
        run: findings::of_recording,
    },
    ToolEntry {
        name: "statistics",
        about: "Mean, deviation, minimum, maximum, first and last value of series in a range; counters as rates. Of a \
                formula such as far_share or locality, its value.",
        arguments: &[
            RECORDING,
            required(
                "series",
                ArgumentKind::Texts,
                "names of series or formulas; 'node.MemFree' is all nodes, 'node.*' all of the sensor",
            ),
            FROM,
            TO,
        ],
        run: statistics::of_range,
    },
    ToolEntry {
        name: "compare",
        about: "Whether recording B (after) is better than A (before), by how much beyond noise; what differs; which \
                findings are gone and new.",
        arguments: &[
            required("before", ArgumentKind::Text, "path of recording A"),
            required("after", ArgumentKind::Text, "path of recording B"),
            PHASE,
        ],
        run: comparison::of_two,
    },
    ToolEntry {
        name: "topology",
        about: "A machine: packages, nodes with their CPUs and memory, caches, distances between nodes.",
        arguments: &[MACHINE, DESCRIPTION],
        run: machine::topology,
    },
    ToolEntry {
        name: "plan",
        about: "Where to place the processes and threads of a program on an idle machine, and why; with a launcher, \
                the lines for it.",
        arguments: &[
            MACHINE,
            DESCRIPTION,
            optional("cores", ArgumentKind::Text, "a number, 'auto' or 'all'"),
            optional(
                "processes",
                ArgumentKind::Count,
                "number of processes, such as MPI ranks; 1 by default",
            ),
            optional("threads", ArgumentKind::Count, "threads of each process"),
            optional(
                "policy",
                ArgumentKind::Text,
                "compact, scatter, balanced, spread:LEVEL, memory:SIZE or near:DEVICE",
            ),
            optional("memory", ArgumentKind::Text, "local, bind, prefer, interleave or weighted"),
            optional(
                "launcher",
                ArgumentKind::Text,
                "write lines for it: openmp, openmpi5, slurm, docker, ...",
            ),
            optional("command", ArgumentKind::Texts, "the program and its arguments, for these lines"),
        ],
        run: machine::plan,
    },
];

/// Calls a tool.
pub(crate) fn call(
    directory: &SharedDirectory,
    name: &str,
    given: Map<String, Value>,
) -> Result<Value, ToolError> {
    let Some(tool) = TOOLS.iter().find(|tool| tool.name == name) else {
        let names: Vec<&str> = TOOLS.iter().map(|tool| tool.name).collect();
        let near = suggest::nearest(name, names.iter().copied(), 1);
        let fix = near.first().map_or_else(|| names.join(", "), |near| format!("'{near}'"));
        return Err(ToolError::UnknownTool { name: name.to_owned(), fix });
    };
    (tool.run)(directory, &Arguments::check(tool.arguments, given)?)
}

/// The table of the guide.
pub fn guide() -> String {
    let mut text = "| tool | answers | arguments |\n|---|---|---|\n".to_owned();
    for tool in TOOLS {
        let argument = |argument: &Argument| {
            let needed = if argument.is_required { ", required" } else { "" };
            format!(
                "`{}` ({}{needed}): {}",
                argument.name,
                argument.kind.name(),
                argument.help.replace('|', "\\|")
            )
        };
        let arguments: Vec<String> = tool.arguments.iter().map(argument).collect();
        // Writing to a string cannot fail.
        let _ = writeln!(text, "| `{}` | {} | {} |", tool.name, tool.about, arguments.join("; "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guide_has_the_tools() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/mcp.md");
        let text = std::fs::read_to_string(path).unwrap();
        let (head, rest) = text.split_once("<!-- tools -->\n").unwrap();
        let (_, tail) = rest.split_once("<!-- /tools -->").unwrap();
        let expected = format!("{head}<!-- tools -->\n{}<!-- /tools -->{tail}", guide());
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(path, &expected).unwrap();
        } else {
            assert_eq!(text, expected, "mcp.md is stale; run again with UPDATE=1");
        }
    }

    #[test]
    fn an_unknown_tool_has_an_error_with_the_nearest_one() {
        let directory = SharedDirectory::open(std::path::Path::new(".")).unwrap();
        let error = call(&directory, "finding", Map::new()).unwrap_err().to_string();
        assert_eq!(error, "there is no tool 'finding'; use 'findings'");
    }
}
