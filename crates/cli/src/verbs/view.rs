//! `numa view`.

use crate::Global;
use crate::formulas::Formulas;
use crate::page::{self, Serve};
use anyhow::Context;
use clap::Args;
use numakit_model::CpuSet;
use numakit_server::{Listener, recordings};
use numakit_session::Status;
use numakit_sys::signal::{self, Signals};
use numakit_sys::{SysRoot, poll};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// Show recordings in a web page
///
/// What 'numa record' writes and the JSON of NUMAscope. The page is served until a signal ends
/// it (Ctrl-C). Labels that are changed there are not written to the file.
#[derive(Debug, Args)]
pub struct View {
    #[command(flatten)]
    serve: Serve,
    #[command(flatten)]
    formulas: Formulas,
    /// The recordings
    #[arg(required = true, value_name = "FILE")]
    recordings: Vec<PathBuf>,
}

/// How often clients are told that all is well.
const LOOK: Duration = Duration::from_secs(1);

impl View {
    /// Serves.
    pub fn run(self, _: &Global) -> anyhow::Result<ExitCode> {
        let formulas = Arc::new(self.formulas.load()?);
        let host = page::host_name(&SysRoot::host())?;
        let listener = Listener::bind(&self.serve.listen, &host)?;
        let signals = Signals::collect(&[signal::INTERRUPT, signal::TERMINATE, signal::HANGUP])
            .context("cannot collect signals")?;
        signal::ignore_broken_pipe();
        let urls = listener.urls();
        let server = listener.start(None, Arc::clone(&formulas), self.serve.history, CpuSet::new())?;
        for file in &self.recordings {
            recordings::open(server.hub(), file, &file.display().to_string(), &formulas)?;
        }
        let _launcher = self.serve.announce(&urls, &host);
        while signals.next().is_none() {
            poll::readable(&[signals.as_fd()], Some(LOOK)).context("cannot wait")?;
            server.hub().status(&Status::default());
        }
        Ok(ExitCode::SUCCESS)
    }
}
