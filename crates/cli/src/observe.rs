//! The options that `stat`, `record`, `live` and `top` share, and the observations that verbs ask for.

use crate::GlobalArgs;
use crate::choose::ProcessArgs;
use crate::peaks;
use crate::refused;
use clap::{Args, ValueEnum};
use numakit_observation::request::{ObservationRequest, OriginalFifo, Prepared};
use numakit_observation::samples::{OpenedSamples, SampleRequest, SampledRun};
use numakit_observation::{IntervalError, interval};
use numakit_recording::Priority;
use numakit_sensors::Selection;
use numakit_sys::stdio::note;
use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

/// The shared options.
#[derive(Debug, Args)]
pub struct ObserveArgs {
    /// Events to sample: comma-separated names and patterns, '!' excludes; 'numa list' lists them
    #[arg(short, long, value_name = "LIST")]
    pub events: Option<Selection>,
    #[command(flatten)]
    pub processes: ProcessArgs,
    /// Samples of instructions in a second of CPU time of a thread, for the sensor 'access'; 0: none
    #[arg(long, value_name = "HZ", default_value = "199", value_parser = clap::value_parser!(u32).range(..=10_000))]
    sample_rate: u32,
    /// Run the sampler on this CPU [default: all allowed CPUs of the first allowed node]
    #[arg(long, value_name = "N")]
    cpu: Option<u32>,
    /// Scheduling priority of the sampler
    #[arg(long, value_name = "PRIORITY", default_value = "auto")]
    priority: PriorityChoice,
    /// Also read control commands from /run/numascope-ctl, the path of NUMAscope (needs root)
    #[arg(long, value_name = "WHEN", num_args = 0..=1, require_equals = true, default_missing_value = "always")]
    ctl_compat: Option<CtlCompat>,
    /// Drop events that are unavailable here, with a message, instead of failing
    #[arg(long)]
    skip_unavailable: bool,
    /// Print which sensors are available, why others are not, and what is sampled
    #[arg(short, long)]
    verbose: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum CtlCompat {
    /// Fail if it cannot be opened
    Always,
    /// Only as root; print a message if it cannot be opened
    Auto,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum PriorityChoice {
    /// Real-time if permitted, otherwise normal
    Auto,
    /// Normal
    Normal,
    /// Real-time; fail if it is not permitted
    Realtime,
}

/// Parses an interval for clap.
pub fn interval_of(text: &str) -> Result<Duration, IntervalError> {
    interval::parse(text)
}

/// Opens samples of a program; or, for a command that does not start, says why and returns the exit code.
pub fn samples(request: &SampleRequest<'_>) -> anyhow::Result<Result<(OpenedSamples, SampledRun), ExitCode>> {
    match request.open() {
        Ok(opened) => Ok(Ok(opened)),
        Err(error) => match error.command_status() {
            Some(status) => {
                note(&error);
                Ok(Err(ExitCode::from(status)))
            }
            None => Err(match request.chosen.filter(|_| error.is_refused()) {
                Some(chosen) => refused::of_running(&error, chosen),
                None => error.into(),
            }),
        },
    }
}

impl ObserveArgs {
    /// Reads the topology and prepares the observation.
    pub fn prepare(
        &self,
        global: &GlobalArgs,
        every: Duration,
        default: &Selection,
        command: &[OsString],
    ) -> anyhow::Result<Prepared> {
        let root = global.root()?;
        let chosen = self.processes.find(&root)?;
        let mut topology = numakit_topology::read(&root)?;
        let unmeasured = peaks::add(&root, &mut topology);
        if let Some(why) = unmeasured.filter(|_| self.verbose) {
            note(format_args!("no measured peaks of the memory: {why}"));
        }
        let request = ObservationRequest {
            root: &root,
            topology,
            selection: self.events.as_ref().unwrap_or(default),
            every,
            chosen: chosen.as_ref(),
            command,
            sample_rate: self.sample_rate,
            cpu: self.cpu,
            priority: match self.priority {
                PriorityChoice::Auto => Priority::Auto,
                PriorityChoice::Normal => Priority::Normal,
                PriorityChoice::Realtime => Priority::Realtime,
            },
            original_fifo: match self.ctl_compat {
                None => OriginalFifo::Closed,
                Some(CtlCompat::Always) => OriginalFifo::Required,
                Some(CtlCompat::Auto) => OriginalFifo::AsRoot,
            },
            skip_unavailable: self.skip_unavailable,
            verbose: self.verbose,
        };
        Ok(request.prepare()?)
    }
}
