//! `numa live`.

use crate::Global;
use crate::formulas::Formulas;
use crate::observe::{self, Observe};
use crate::page::{self, Serve};
use anyhow::Context;
use clap::Args;
use numakit_sensors::Selection;
use numakit_server::{Orders, keeper};
use numakit_session::Folder;
use numakit_sys::{SysRoot, signal};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// Show what the machine does in a web page, as it happens
///
/// The page is served at 127.0.0.1:7077 until the command, a signal or 'numa ctl stop' ends it.
/// The address for control may change the interval, pause and record; the one for viewing may
/// only look. Both hold a secret that is new with every start. Recordings that the page or
/// 'numa ctl' starts are written below one folder only, see --recordings.
#[derive(Debug, Args)]
pub struct Live {
    #[command(flatten)]
    serve: Serve,
    /// Time between two samples, from 100us to 1h, or a frequency such as 50Hz or 2kHz
    #[arg(short, long, value_name = "TIME", default_value = "100ms", value_parser = observe::interval_of)]
    interval: Duration,
    /// Folder that recordings of the page and of 'numa ctl' are written to; nothing outside it is
    #[arg(long, value_name = "DIR", default_value = ".")]
    recordings: PathBuf,
    #[command(flatten)]
    formulas: Formulas,
    #[command(flatten)]
    observe: Observe,
    /// A command to run and observe
    #[arg(last = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// How often the state of the observation is looked at.
const LOOK: Duration = Duration::from_millis(250);

impl Live {
    /// As the original command line asks for it.
    pub fn original(
        listen: Option<String>,
        interval: Duration,
        observe: Observe,
        command: Vec<OsString>,
    ) -> anyhow::Result<Self> {
        // The original takes ":port" for all addresses; without its word for it, ours is safer.
        let listen = listen.map(|l| if l.starts_with(':') { format!("127.0.0.1{l}") } else { l });
        let (serve, recordings) = (Serve::at(listen), PathBuf::from("."));
        Ok(Self { serve, interval, recordings, formulas: Formulas::default(), observe, command })
    }

    /// Serves.
    pub fn run(self, global: &Global) -> anyhow::Result<ExitCode> {
        let formulas = Arc::new(self.formulas.load()?);
        let folder = Folder::open(&self.recordings).with_context(|| {
            let dir = self.recordings.display();
            format!("--recordings {dir} cannot be used; give a folder that is there and that you may enter")
        })?;
        let host = page::host_name(&SysRoot::host())?;
        let listener = self.serve.listener(&host)?;
        let prepared = self.observe.prepare(global, self.interval, &Selection::default(), &self.command)?;
        let ring = Arc::new(keeper::ring(&prepared.setup.header)?);
        let (mut session, waker) = prepared.open()?;
        session.record_below(folder);
        // A page that goes away while it is written to is no reason to end.
        signal::ignore_broken_pipe();
        let launcher = self.serve.announce(&listener.urls(), &host)?;
        let (header, cpus) = (prepared.setup.header, prepared.settings.cpus.clone());
        let orders: Orders = Box::new(move |order, answer| waker.order(order, answer));
        let server = listener.start(Some(orders), Arc::clone(&formulas), self.serve.history, cpus.clone())?;
        let keeper = server.follow(&header, &formulas, Arc::clone(&ring), cpus)?;
        session.start(prepared.setup.sensors, prepared.settings, Some(ring))?;
        let session = match observe::spawn(session, &self.command, prepared.target.as_ref()) {
            Ok(session) => session,
            Err(code) => return Ok(code),
        };
        let ended = session.run(LOOK, |status| server.hub().status(status))?;
        // The last rows come in before clients are told of the end.
        let _ = keeper.join();
        drop((server, launcher));
        Ok(observe::exit_code(&ended))
    }
}
