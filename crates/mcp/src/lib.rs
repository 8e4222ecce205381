//! Recordings, findings, topology and plans for programs that speak the Model Context Protocol.
//!
//! [`tools`] has a function for each tool; the list that clients get and the guide are made from their arguments. Nothing
//! is written, and no file outside of the given directory is opened ([`directory`]).

mod answers;
mod arguments;
mod directory;
mod error;
mod lines;
mod tools;

pub use directory::{SharedDirectory, SharedDirectoryError};
pub use tools::guide;

use lines::Lines;
use rmcp::handler::server::tool::ToolCallContext;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ErrorData, Implementation, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig,
};
use rmcp::service::{RequestContext, ServerInitializeError, ServiceExt};
use rmcp::{RoleServer, ServerHandler};
use std::io;
use std::sync::Arc;
use tokio::runtime::Handle;
use tools::{Server, TOOLS, told};

/// The description of all tools together, for clients.
const INSTRUCTIONS: &str = "Recordings of NUMA machines, made by 'numa record'. Begin with list_recordings, then ask \
for findings: they say what is wrong, what it costs and what to do. Times are seconds since a recording began.";

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
        Ok(ListToolsResult::with_all_items(TOOLS.list_all()))
    }

    async fn call_tool(
        &self,
        mut request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if let Err(why) = tools::admit(&request.name, request.arguments.get_or_insert_default()) {
            return Ok(told(Err(why)).into());
        }
        let server = self.clone();
        // A tool takes long: requests are answered meanwhile.
        let answer = tokio::task::spawn_blocking(move || {
            let called = TOOLS.call(ToolCallContext::new(&server, request, context));
            Handle::current().block_on(called)
        });
        answer.await.map_err(|error| ErrorData::internal_error(error.to_string(), None))?
    }
}
