//! `numa record`.

use crate::observe::{self, ObserveArgs};
use crate::push_to::{PushToArgs, Pushing};
use crate::to_file::{self, Existing, is_standard_output, no_terminal};
use crate::{Examples, GlobalArgs};
use anyhow::Context;
use clap::{Args, ValueEnum};
use numakit_export::{ExportOptions, ExportSource, ExportedValues};
use numakit_observation::names::json_of;
use numakit_observation::{ClosedRecording, Ended, ObservationStatus, RecordingNames, Session};
use numakit_sys::output::redirect_standard_output;
use numakit_sys::stdio::{note, replace_line};
use numakit_sys::tty;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// Record samples to a file
///
/// Recording ends when the command ends, a signal arrives or 'numa ctl stop' is run. The file is
/// an Arrow IPC stream that 'numa show', pyarrow and polars can read. By default all events are
/// sampled except the sensor perf, tracepoints and lower-value hardware events; -e selects others.
/// With '-o -' the recording goes to standard output, and the standard output of CMD to standard
/// error. The exit status is that of the command (128 + signal if a signal killed it).
#[derive(Debug, Args)]
pub struct RecordArgs {
    /// The file; '-' is standard output [default: the next free name of numa-1.arrows,
    /// numa-2.arrows, ...]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace the file if it exists
    #[arg(long, requires = "output")]
    force: bool,
    /// Sampling interval, from 100us to 1h, or a frequency such as 50Hz or 2kHz
    #[arg(short, long, value_name = "TIME", default_value = "10ms", value_parser = observe::interval_of)]
    interval: Duration,
    /// How to record the counters of interconnect cards
    #[arg(long, value_name = "UNIT", default_value = "device")]
    per: Per,
    /// Treat FILE as NUMAscope does: if the name is in use, a number is added, and a name that ends
    /// in .json gets NUMAscope's format
    #[arg(long, hide = true, requires = "output")]
    numascope_names: bool,
    #[command(flatten)]
    push: PushToArgs,
    #[command(flatten)]
    observe: ObserveArgs,
    /// The command to run and observe, with its arguments
    #[arg(trailing_var_arg = true, value_name = "CMD", group = "observed")]
    command: Vec<OsString>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Per {
    /// Per card
    Device,
    /// Summed over all cards
    Machine,
}

impl RecordArgs {
    /// The first lines of its help.
    pub const EXAMPLES: Examples = [
        ("numa record ./app", "records while ./app runs"),
        ("numa record -o db.arrows --pid 4711", "records a running program until Ctrl-C"),
    ];

    /// Records until the observation ends.
    pub fn run(self, global: &GlobalArgs) -> anyhow::Result<ExitCode> {
        let mut prepared = self.observe.prepare(global, self.interval, &Default::default(), &self.command)?;
        if self.per == Per::Machine {
            prepared.setup.sum_cards();
        }
        let (mut session, _waker) = prepared.open()?;
        let push = self.push.start(&prepared.setup.header)?;
        let name = self.begin(&mut session)?;
        let ring = push.as_ref().map(Pushing::ring);
        session.start(prepared.setup.sensors, prepared.settings, ring)?;
        let priority = if session.realtime() {
            "real-time priority"
        } else {
            "normal priority ('numa doctor' shows how to enable real-time)"
        };
        note(format_args!("recording to {name}, {priority}"));
        let session = match session.spawn_observed(&self.command, &prepared.program) {
            Ok(session) => session,
            Err(status) => return Ok(ExitCode::from(status)),
        };
        let progress = Progress::new();
        let mut ended = session.run(Duration::from_millis(250), |status| progress.show(status))?;
        replace_line(None);
        let whole = !self.numascope_names || convert(&mut ended.recorded, self.force);
        summary(&ended);
        let whole = push.is_none_or(Pushing::finish) && whole;
        let code = ExitCode::from(ended.exit_status());
        Ok(if whole || ended.status.is_some_and(|status| status != 0) { code } else { ExitCode::from(1) })
    }

    /// Starts the recording. Returns its name.
    fn begin(&self, session: &mut Session) -> anyhow::Result<String> {
        let Some(path) = &self.output else { return Ok(session.record_next()?.display().to_string()) };
        if self.numascope_names {
            session.set_names(RecordingNames::Original { overwrite: self.force });
        } else if is_standard_output(path) {
            no_terminal("a recording")?;
            // If the reader closes the pipe, the recording ends with a message.
            numakit_sys::signal::ignore_broken_pipe();
            let to = redirect_standard_output().context("cannot use standard output")?;
            session.stream(to, STANDARD_OUTPUT)?;
            return Ok(STANDARD_OUTPUT.to_owned());
        } else {
            session.set_names(RecordingNames::Exact { force: self.force });
        }
        Ok(session.record(path)?.display().to_string())
    }
}

const STANDARD_OUTPUT: &str = "standard output";

/// The progress line on the terminal.
struct Progress {
    terminal: bool,
}

impl Progress {
    fn new() -> Self {
        Self { terminal: tty::is_error() }
    }

    fn show(&self, status: &ObservationStatus) {
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
        replace_line(Some(&line));
    }
}

fn summary(ended: &Ended) {
    let ticks = ended.samples + ended.lost;
    let share = if ticks == 0 { 0.0 } else { ended.lost as f64 / ticks as f64 * 100.0 };
    let lost = format!("{} ticks lost ({share:.1} %)", ended.lost);
    // One recording of everything has the total.
    let is_total = matches!(ended.recorded.as_slice(), [only] if only.samples == ended.samples);
    for recorded in &ended.recorded {
        let (path, samples) = (recorded.path.display(), recorded.samples);
        let size = recorded.bytes.div_ceil(1024);
        let shown = match recorded.path.as_os_str() == STANDARD_OUTPUT {
            true => String::new(),
            false => format!("; 'numa show {path}' analyses it"),
        };
        let lost = if is_total { format!("{lost}, ") } else { String::new() };
        note(format_args!("{samples} samples, {lost}{size} KiB in {path}{shown}"));
    }
    if !is_total {
        note(format_args!("{} samples in total, {lost}", ended.samples));
    }
}

/// Converts recordings whose names end in .json to NUMAscope's format. If that fails, a message says
/// so, the recording is kept, and the result is false.
fn convert(recorded: &mut [ClosedRecording], overwrite: bool) -> bool {
    let mut all = true;
    for one in recorded {
        let Some(json) = json_of(&one.path) else { continue };
        match converted(&one.path, &json, Existing::forced(overwrite)) {
            Ok(bytes) => {
                let _ = std::fs::remove_file(&one.path);
                (one.path, one.bytes) = (json, bytes);
            }
            Err(error) => {
                note(format_args!("{error:#}; the recording is kept as {}", one.path.display()));
                all = false;
            }
        }
    }
    all
}

fn converted(from: &Path, to: &Path, existing: Existing) -> anyhow::Result<u64> {
    let format = numakit_export::format("numascope").context("no such format")?;
    let options = ExportOptions { values: ExportedValues::Rates, all: true };
    let mut source = ExportSource::open(from)?;
    to_file::write(to, existing, "another program created it during the recording", |to| {
        Ok((format.write)(&mut source, options, to)?)
    })?;
    Ok(std::fs::metadata(to)?.len())
}
