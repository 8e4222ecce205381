//! `numa record`.

use crate::Global;
use crate::observe::{self, Observe};
use crate::to_file::{is_standard_output, no_terminal};
use anyhow::Context;
use clap::{Args, ValueEnum};
use numakit_session::{Ended, Names, Session, Status};
use numakit_sys::output::take_standard_output;
use numakit_sys::stdio::{note, say};
use numakit_sys::tty;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Record samples to a file until the command, a signal or 'numa ctl stop' ends it
///
/// The file is an Arrow IPC stream that 'numa report', pyarrow and polars read. By default
/// all is sampled but the sensor perf, tracepoints and the less telling events of hardware; -e
/// chooses. With '-o -' it goes to standard output, and what CMD writes there to standard error.
/// The exit status is the command's (128 + signal when it was killed).
#[derive(Debug, Args)]
pub struct Record {
    /// The file, '-' for standard output; without it the next free name of numa-1.arrows,
    /// numa-2.arrows, ...
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace the file if it exists, once the new one is begun
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
    #[arg(skip)]
    original: bool,
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
        Self { output, force, interval, per, observe, original: true, command }
    }

    /// Records.
    pub fn run(self, global: &Global) -> anyhow::Result<ExitCode> {
        let mut prepared = self.observe.prepare(global, self.interval, &Default::default(), &self.command)?;
        if self.per == Per::Machine {
            prepared.setup.add_up_cards();
        }
        let (mut session, _waker) = prepared.open()?;
        let name = self.begin(&mut session)?;
        session.start(prepared.setup.sensors, prepared.settings, None)?;
        let priority = if session.realtime() {
            "real-time priority"
        } else {
            "normal priority ('numa doctor' tells how to get real-time)"
        };
        note(format_args!("recording to {name}, {priority}"));
        let session = match observe::spawn(session, &self.command, prepared.target.as_ref()) {
            Ok(session) => session,
            Err(code) => return Ok(code),
        };
        let mut progress = Progress::new();
        let mut ended = session.run(Duration::from_millis(250), |status| progress.show(status))?;
        progress.clear();
        let whole = !self.original || crate::numascope::convert(&mut ended.recorded, self.force);
        summary(&ended);
        let code = observe::exit_code(&ended);
        Ok(if whole || ended.status.is_some_and(|status| status != 0) { code } else { ExitCode::from(1) })
    }

    /// Begins the recording. What it is called.
    fn begin(&self, session: &mut Session) -> anyhow::Result<String> {
        let Some(path) = &self.output else { return Ok(session.record_next()?.display().to_string()) };
        if self.original {
            session.understand(Names::Original { overwrite: self.force });
        } else if is_standard_output(path) {
            no_terminal("a recording")?;
            // A reader that goes away ends the recording with a word.
            numakit_sys::signal::ignore_broken_pipe();
            let to = take_standard_output().context("standard output cannot be had")?;
            session.stream(to, STANDARD_OUTPUT)?;
            return Ok(STANDARD_OUTPUT.to_owned());
        } else {
            session.understand(Names::Own { force: self.force });
        }
        Ok(session.record(path)?.display().to_string())
    }
}

const STANDARD_OUTPUT: &str = "standard output";

/// A line on the terminal that is written over and over.
struct Progress {
    terminal: bool,
    shown: bool,
}

impl Progress {
    fn new() -> Self {
        Self { terminal: tty::is_error(), shown: false }
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
        say(format_args!("\r{line}\x1b[K"));
        self.shown = true;
    }

    fn clear(&self) {
        if self.shown {
            say("\r\x1b[K");
        }
    }
}

fn summary(ended: &Ended) {
    for recorded in &ended.recorded {
        let (path, samples) = (recorded.path.display(), recorded.samples);
        let size = recorded.bytes.div_ceil(1024);
        let shown = match recorded.path.as_os_str() == STANDARD_OUTPUT {
            true => String::new(),
            false => format!("; 'numa report {path}' tells what it shows"),
        };
        note(format_args!("{samples} samples, {size} KiB in {path}{shown}"));
    }
    let ticks = ended.samples + ended.lost;
    let share = if ticks == 0 { 0.0 } else { ended.lost as f64 / ticks as f64 * 100.0 };
    note(format_args!("{} samples in all, {} ticks lost ({share:.1} %)", ended.samples, ended.lost));
}
