//! Recordings, findings, topology and plans for programs that speak the Model Context Protocol.
//!
//! [`tools`] is the one table of what can be asked; the list that clients get and the guide are made from it. Nothing
//! is written, and no file outside of the given directory is opened ([`directory`]).

mod answers;
mod arguments;
mod directory;
mod error;
mod lines;
mod tools;

pub use directory::{SharedDirectory, SharedDirectoryError};
pub use tools::guide;

use error::ToolError;
use lines::Lines;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData, Implementation,
    ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool, ToolAnnotations,
};
use rmcp::service::{RequestContext, ServerInitializeError, ServiceExt};
use rmcp::{RoleServer, ServerHandler};
use serde_json::Value;
use std::io;
use std::sync::Arc;
use tools::{TOOLS, ToolEntry};

/// The description of all tools together, for clients.
const INSTRUCTIONS: &str = "Recordings of NUMA machines, made by 'numa record'. Begin with list_recordings, then ask \
for findings: they say what is wrong, what it costs and what to do. Times are seconds since a recording began.";

/// Longer answers are refused: clients have little room.
const MAX_ANSWER: usize = 200_000;

#[derive(Clone)]
struct Server {
    directory: Arc<SharedDirectory>,
}

/// Answers requests on standard input until it is closed.
pub fn serve(directory: SharedDirectory) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    let server = Server { directory: Arc::new(directory) };
    let served = runtime.block_on(async {
        match server.serve(Lines::new(tokio::io::stdin(), tokio::io::stdout())).await {
            Ok(running) => running.waiting().await.map(|_| ()).map_err(io::Error::other),
            // Closed before the first request.
            Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
            Err(error) => Err(io::Error::other(error)),
        }
    });
    // A read of standard input that has not ended must not keep the program.
    runtime.shutdown_background();
    served
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let mut info = ServerConfig::new(ServerCapabilities::builder().enable_tools().build());
        info.server_info = Implementation::new("numa", env!("CARGO_PKG_VERSION"));
        info.instructions = Some(INSTRUCTIONS.to_owned());
        info
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(TOOLS.iter().map(described).collect()))
    }

    /// A tool that fails is an answer that clients show, not an error of the protocol.
    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let directory = Arc::clone(&self.directory);
        let answer = tokio::task::spawn_blocking(move || {
            tools::call(&directory, &request.name, request.arguments.unwrap_or_default())
        });
        let answer = answer.await.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        let result = match answer.and_then(|answer| bounded(&answer)) {
            Ok(text) => CallToolResult::success(vec![ContentBlock::text(text)]),
            Err(why) => CallToolResult::error(vec![ContentBlock::text(why.to_string())]),
        };
        Ok(result.into())
    }
}

fn described(entry: &ToolEntry) -> Tool {
    let mut tool = Tool::new(entry.name, entry.about, entry.schema());
    let mut hints = ToolAnnotations::new();
    (hints.read_only_hint, hints.open_world_hint) = (Some(true), Some(false));
    tool.annotations = Some(hints);
    tool
}

fn bounded(answer: &Value) -> Result<String, ToolError> {
    let text = answer.to_string();
    match text.len() > MAX_ANSWER {
        true => Err(ToolError::TooLong { has: text.len() / 1024, most: MAX_ANSWER / 1024 }),
        false => Ok(text),
    }
}
