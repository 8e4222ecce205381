//! `numa live`.

use crate::formulas::FormulaArgs;
use crate::observe::{self, ObserveArgs};
use crate::page::{self, ServeArgs};
use crate::peaks;
use crate::{Examples, GlobalArgs};
use anyhow::Context;
use clap::Args;
use numakit_observation::Folder;
use numakit_sensors::Selection;
use numakit_server::{ControlSender, ingest, process_surveyor};
use numakit_sys::{SysRoot, signal};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// Show live statistics in a web page
///
/// The page is served at 127.0.0.1:7077 until the command ends, a signal arrives or 'numa ctl
/// stop' is run. If somebody looks at it when the command ends, it stays until the last viewer
/// leaves or Ctrl-C. The exit status is the command's. Two addresses are printed. The control address can change the interval, pause
/// and record; the view address is read-only. Both contain a secret token that is new at every
/// start, unless --key-file keeps it. The page and 'numa ctl' can record only below one directory, see --recordings.
#[derive(Debug, Args)]
pub struct LiveArgs {
    #[command(flatten)]
    serve: ServeArgs,
    /// Sampling interval, from 100us to 1h, or a frequency such as 50Hz or 2kHz
    #[arg(short, long, value_name = "TIME", default_value = "100ms", value_parser = observe::interval_of)]
    interval: Duration,
    /// Directory for recordings that the page or 'numa ctl' starts
    #[arg(long, value_name = "DIR", default_value = ".")]
    recordings: PathBuf,
    #[command(flatten)]
    formulas: FormulaArgs,
    #[command(flatten)]
    observe: ObserveArgs,
    /// The command to run and observe, with its arguments
    #[arg(trailing_var_arg = true, value_name = "CMD", group = "observed")]
    command: Vec<OsString>,
}

/// How often the state of the observation is checked.
const STATUS_PERIOD: Duration = Duration::from_millis(250);

impl LiveArgs {
    /// The first lines of its help.
    pub const EXAMPLES: Examples = [
        ("numa live", "opens the page of this machine"),
        ("numa live --no-open ./app", "prints its address, while ./app runs"),
    ];

    /// Serves the page.
    pub fn run(self, global: &GlobalArgs) -> anyhow::Result<ExitCode> {
        let formulas = Arc::new(self.formulas.load()?);
        let folder = Folder::open(&self.recordings).with_context(|| {
            let dir = self.recordings.display();
            format!("cannot use --recordings {dir}; give an existing directory that you may access")
        })?;
        let host = page::host_name(&SysRoot::host())?;
        let listener = self.serve.listener(&host)?;
        let prepared = self.observe.prepare(global, self.interval, &Selection::default(), &self.command)?;
        let ring = Arc::new(ingest::ring(&prepared.setup.header)?);
        let (mut session, waker) = prepared.open()?;
        session.record_below(folder);
        // A client that disconnects during a write does not end the server.
        signal::ignore_broken_pipe();
        let launcher = self.serve.announce(&listener.urls(), &host)?;
        let (header, cpus) = (prepared.setup.header, prepared.settings.cpus.clone());
        let control: ControlSender = Box::new(move |order, answer| waker.send(order, answer));
        let server =
            listener.start(Some(control), Arc::clone(&formulas), self.serve.history, cpus.clone())?;
        server.hub().complete_headers(peaks::add_to_recording);
        let target = prepared.program.target().cloned();
        let observed = move || target.as_ref()?.pids();
        let topology = header.topology.clone().unwrap_or_default();
        server.show_processes(process_surveyor(global.root()?, topology, observed), cpus.clone());
        let ingest = server.follow(&header, &formulas, Arc::clone(&ring), cpus)?;
        session.start(prepared.setup.sensors, prepared.settings, Some(ring))?;
        let session = match session.spawn_observed(&self.command, &prepared.program) {
            Ok(session) => session,
            Err(status) => return Ok(ExitCode::from(status)),
        };
        let ended = session.run(STATUS_PERIOD, |status| server.hub().set_status(status))?;
        // The last rows arrive before clients receive the end.
        let _ = ingest.join();
        if let Some(status) = ended.status.filter(|_| ended.by_command) {
            page::stay(server.hub(), &format!("the command ended with status {status}"))?;
        }
        drop((server, launcher));
        Ok(ExitCode::from(ended.exit_status()))
    }
}
