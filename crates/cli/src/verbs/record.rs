//! `numa record`.

use crate::Global;
use crate::observe::{self, Observe};
use clap::{Args, ValueEnum};
use numakit_recording::WriteError;
use numakit_session::{Ended, Session, Status};
use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Record samples to a file until the command, a signal or 'numa ctl stop' ends it
///
/// The file is an Arrow IPC stream that 'numa report', pyarrow and polars read. By default
/// all is sampled but the sensor perf and the less telling events of hardware; -e chooses.
/// The exit status is the command's (128 + signal when it was killed).
#[derive(Debug, Args)]
pub struct Record {
    /// The file; without it the next free name of numa-1.arrows, numa-2.arrows, ...
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace the file if it exists
    #[arg(long, requires = "output")]
    force: bool,
    /// Time between two samples, from 100us to 1h, or a frequency such as 50Hz or 2kHz
    #[arg(short, long, value_name = "TIME", default_value = "10ms", value_parser = observe::interval_of)]
    interval: Duration,
    /// What counters of interconnect cards are recorded for
    #[arg(long, value_name = "WHAT", default_value = "device")]
    per: Per,
    #[command(flatten)]
    observe: Observe,
    /// A command to run and observe
    #[arg(last = true, value_name = "CMD")]
    command: Vec<OsString>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Per {
    /// Each card
    Device,
    /// The machine: cards are added up
    Machine,
}

impl Record {
    /// A recording as the original command line asks for it.
    pub fn original(
        output: Option<PathBuf>,
        force: bool,
        interval: Duration,
        discrete: bool,
        observe: Observe,
        command: Vec<OsString>,
    ) -> Self {
        let per = if discrete { Per::Device } else { Per::Machine };
        Self { output, force, interval, per, observe, command }
    }

    /// Records.
    pub fn run(self, global: &Global) -> anyhow::Result<ExitCode> {
        let mut prepared = self.observe.prepare(global, self.interval, &Default::default(), &self.command)?;
        if self.per == Per::Machine {
            prepared.setup.add_up_cards();
        }
        let (mut session, _waker) = prepared.open()?;
        let path = self.begin(&mut session)?;
        session.start(prepared.setup.sensors, prepared.settings, None)?;
        let priority = if session.realtime() {
            "real-time priority"
        } else {
            "normal priority ('numa doctor' tells how to get real-time)"
        };
        eprintln!("numa: recording to {}, {priority}", path.display());
        let session = match observe::spawn(session, &self.command, prepared.target.as_ref()) {
            Ok(session) => session,
            Err(code) => return Ok(code),
        };
        let mut progress = Progress::new();
        let ended = session.run(Duration::from_millis(250), |status| progress.show(status))?;
        progress.clear();
        summary(&ended);
        Ok(observe::exit_code(&ended))
    }

    fn begin(&self, session: &mut Session) -> Result<PathBuf, WriteError> {
        if let Some(path) = &self.output {
            return session.record(path, self.force).map(|()| path.clone());
        }
        let mut number = 1u32;
        loop {
            let path = PathBuf::from(format!("numa-{number}.arrows"));
            match session.record(&path, false) {
                Err(WriteError::Exists(_) | WriteError::Busy(_)) => number += 1,
                other => return other.map(|()| path),
            }
        }
    }
}

/// A line on the terminal that is written over and over.
struct Progress {
    terminal: bool,
    shown: bool,
}

impl Progress {
    fn new() -> Self {
        Self { terminal: std::io::stderr().is_terminal(), shown: false }
    }

    fn show(&mut self, status: &Status) {
        if !self.terminal {
            return;
        }
        let seconds = status.elapsed.as_secs();
        let (file, bytes) = match &status.recording {
            Some((path, bytes)) => (path.display().to_string(), *bytes),
            None => ("nothing".to_owned(), 0),
        };
        let paused = if status.paused { ", paused" } else { "" };
        let line = format!(
            "{:02}:{:02}:{:02}  {} samples, {} lost{paused}, {:.1} MiB in {file}",
            seconds / 3600,
            seconds / 60 % 60,
            seconds % 60,
            status.samples,
            status.lost,
            bytes as f64 / 1048576.0,
        );
        let _ = write!(std::io::stderr(), "\r{line}\x1b[K");
        self.shown = true;
    }

    fn clear(&self) {
        if self.shown {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}

fn summary(ended: &Ended) {
    for recorded in &ended.recorded {
        let (path, samples) = (recorded.path.display(), recorded.samples);
        let size = recorded.bytes.div_ceil(1024);
        eprintln!("numa: {samples} samples, {size} KiB in {path}; 'numa report {path}' tells what it shows");
    }
    let ticks = ended.samples + ended.lost;
    let share = if ticks == 0 { 0.0 } else { ended.lost as f64 / ticks as f64 * 100.0 };
    eprintln!("numa: {} samples in all, {} ticks lost ({share:.1} %)", ended.samples, ended.lost);
}
