//! `numa bench overhead`.

use super::output::BenchOutputArgs;
use crate::{GlobalArgs, observe};
use anyhow::{Context, bail};
use clap::Args;
use numakit_bench::{Overhead, OverheadError, measure_overhead, results_of};
use numakit_sys::command::{quoted, start_failure_status};
use numakit_sys::signal::Signals;
use numakit_sys::stdio::{note, replace_line};
use numakit_sys::{signal, tty};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// Measure what a recording costs a command
///
/// The command runs alone and beside 'numa record' at each rate, in turns, its output thrown away. Printed are what the
/// recording adds to its time and to its CPU time, and the CPU time of the recorder. It has to end with status 0, and
/// each run should take a second or more. Ctrl-C keeps the rounds so far.
#[derive(Debug, Args)]
pub struct BenchOverheadArgs {
    /// How often to sample: intervals, or frequencies such as 50Hz
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "1Hz,10Hz,100Hz,1kHz", value_parser = observe::interval_of)]
    rates: Vec<Duration>,
    /// How often each is run
    #[arg(long, value_name = "N", default_value = "5", value_parser = clap::value_parser!(u16).range(1..))]
    rounds: u16,
    #[command(flatten)]
    output: BenchOutputArgs,
    /// The command to run, with its arguments
    #[arg(trailing_var_arg = true, value_name = "CMD", required = true)]
    command: Vec<OsString>,
}

impl BenchOverheadArgs {
    /// Measures and prints.
    pub fn run(self, global: &GlobalArgs) -> anyhow::Result<ExitCode> {
        global.only_here("the command runs on this machine only")?;
        self.output.check()?;
        let topology = numakit_topology::read(&global.root()?).context("cannot read the topology")?;
        let signals =
            Signals::collect(&[signal::INTERRUPT, signal::TERMINATE, signal::HANGUP, signal::CHILD])
                .context("cannot collect signals")?;
        let folder = Scratch::new()?;
        let file = folder.0.join("overhead.arrows");
        let recorders = self.recorders(&file)?;
        let overhead = Overhead {
            command: &self.command,
            recorders: &recorders,
            file: &file,
            rounds: self.rounds.into(),
        };
        let shows = tty::is_error();
        let measured = measure_overhead(&overhead, &signals, |what| {
            if shows {
                replace_line(Some(what));
            }
        });
        if shows {
            replace_line(None);
        }
        let (result, interrupted) = match measured {
            Ok(measured) => measured,
            Err(OverheadError::Start(error)) => {
                note(format_args!("cannot run '{}': {error}", quoted(&self.command)));
                return Ok(ExitCode::from(start_failure_status(&error)));
            }
            Err(error) => bail!("'{}': {error}", quoted(&self.command)),
        };
        self.output.write(&results_of(&topology, result, interrupted.is_none()), global)?;
        Ok(interrupted.map_or(ExitCode::SUCCESS, |signal| ExitCode::from(128u8.saturating_add(signal as u8))))
    }

    /// The lines that record at each rate. A recorder observes this process, so that it ends when this one is killed.
    fn recorders(&self, file: &Path) -> anyhow::Result<Vec<(f64, Vec<OsString>)>> {
        let own = std::env::current_exe().context("cannot find this program, which is to record")?;
        let line = |interval: &Duration| {
            let mut words: Vec<OsString> = vec![own.clone().into(), "record".into(), "-i".into()];
            words.push(format!("{}ns", interval.as_nanos()).into());
            words.extend(["--force".into(), "-o".into(), file.into(), "--pid".into()]);
            words.push(std::process::id().to_string().into());
            (1.0 / interval.as_secs_f64(), words)
        };
        Ok(self.rates.iter().map(line).collect())
    }
}

/// A folder of its own for recordings, removed in the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> anyhow::Result<Self> {
        let folder = std::env::temp_dir().join(format!("numa-overhead-{}", std::process::id()));
        std::fs::create_dir(&folder)
            .with_context(|| format!("cannot make the folder {}", folder.display()))?;
        Ok(Self(folder))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Nothing depends on it.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
