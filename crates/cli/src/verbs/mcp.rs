//! `numa mcp`.

use crate::global::OF_A_RECORDING;
use crate::{Examples, GlobalArgs};
use anyhow::Context;
use clap::Args;
use numakit_mcp::{SharedDirectory, serve};
use std::path::PathBuf;
use std::process::ExitCode;

/// Answer questions about recordings in the Model Context Protocol
///
/// A program that speaks the protocol starts this one, and sends requests to its standard input until it closes it.
/// It can list the recordings below DIR and their series, and ask for findings, statistics of a range, a comparison
/// of two recordings, topologies and plans. Nothing is written, and no file outside of DIR is opened, also not by
/// symbolic links.
#[derive(Debug, Args)]
pub struct McpArgs {
    /// The directory of the recordings
    #[arg(value_name = "DIR", default_value = ".")]
    directory: PathBuf,
}

impl McpArgs {
    /// The first lines of its help.
    pub const EXAMPLES: Examples = [
        ("numa mcp", "answers on standard input and output"),
        ("claude mcp add numakit -- numa mcp", "lets an assistant ask it"),
    ];

    /// Serves until standard input is closed.
    pub fn run(self, global: &GlobalArgs) -> anyhow::Result<ExitCode> {
        global.only_here(OF_A_RECORDING)?;
        serve(SharedDirectory::open(&self.directory)?).context("cannot answer on standard output")?;
        Ok(ExitCode::SUCCESS)
    }
}
