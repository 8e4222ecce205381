//! `numa alloc-work`.

use crate::{Examples, GlobalArgs};
use anyhow::Context;
use clap::Args;
use numakit_bench::WorkRequest;
use numakit_sys::stdio::print;
use std::process::ExitCode;

/// Measure the allocator of this process, for 'numa bench alloc'
///
/// 'numa bench alloc' starts it with each allocator in LD_PRELOAD. The request and what is printed are JSON.
#[derive(Debug, Args)]
pub struct AllocWorkArgs {
    /// What to do
    #[arg(value_name = "REQUEST")]
    request: String,
}

impl AllocWorkArgs {
    /// The first lines of its help.
    pub const EXAMPLES: Examples = [
        ("numa alloc-work REQUEST", "does what a line of JSON asks for"),
        ("numa bench alloc", "starts numa alloc-work with each allocator"),
    ];

    /// Does it and prints what was done.
    pub fn run(self, global: &GlobalArgs) -> anyhow::Result<ExitCode> {
        global.only_here("it uses the allocator of this process")?;
        let request: WorkRequest = serde_json::from_str(&self.request)
            .context("no request of 'numa bench alloc', which starts this verb; run 'numa bench alloc'")?;
        let done = request.run().context("cannot do this work")?;
        print(&(serde_json::to_string(&done).context("cannot write JSON")? + "\n"))?;
        Ok(ExitCode::SUCCESS)
    }
}
