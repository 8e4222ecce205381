//! `numa stat`.

use crate::formulas::FormulaArgs;
use crate::observe::{self, ObserveArgs};
use crate::{Examples, GlobalArgs};
use anyhow::anyhow;
use clap::{Args, ValueEnum};
use numakit_formulas::Catalog;
use numakit_observation::setup::Setup;
use numakit_recording::Ring;
use numakit_sensors::Selection;
use numakit_sys::stdio::{note, print};
use numakit_sys::{signal, tty};
use numakit_terminal::columns::Per;
use numakit_terminal::stat::{StatColumns, StatOptions, StatTable, TableFormat, follow, needed, needed_by};
use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// Show memory and NUMA statistics, one line per interval
///
/// Counters are shown as rates per second, gauges as they are; '-' means not measured. The first
/// line appears after two samples. -e selects events as columns, -m derived metrics; 'numa list'
/// lists both.
#[derive(Debug, Args)]
#[command(after_long_help = numakit_terminal::stat::help())]
pub struct StatArgs {
    /// Sampling interval, from 100us to 1h, or a frequency such as 50Hz or 2kHz
    #[arg(short, long, value_name = "TIME", default_value = "100ms", value_parser = observe::interval_of)]
    interval: Duration,
    /// Stop after COUNT samples
    #[arg(short = 'n', long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Show a line for each of these
    #[arg(long, value_name = "UNIT")]
    per: Option<PerChoice>,
    /// Derived metrics to show, comma-separated; 'numa list' lists them at its end
    #[arg(short, long, value_name = "NAME", value_delimiter = ',', conflicts_with = "events")]
    metrics: Vec<String>,
    #[command(flatten)]
    formulas: FormulaArgs,
    /// Write comma-separated values
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    /// Write JSON, one object per line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    observe: ObserveArgs,
    /// Write the table as NUMAscope does
    #[arg(long, hide = true, conflicts_with_all = ["csv", "json"])]
    numascope_table: bool,
    /// The command to run and observe, with its arguments
    #[arg(trailing_var_arg = true, value_name = "CMD", group = "observed")]
    command: Vec<OsString>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum PerChoice {
    /// Package
    Package,
    /// Node
    Node,
    /// CPU
    Cpu,
    /// Interconnect card
    Device,
    /// Machine: one line for all
    Machine,
}

impl PerChoice {
    fn per(self) -> Per {
        match self {
            Self::Package => Per::Package,
            Self::Node => Per::Node,
            Self::Cpu => Per::Cpu,
            Self::Device => Per::Device,
            Self::Machine => Per::Machine,
        }
    }
}

/// Maximum number of samples that wait for a slow reader of the output; more are dropped and counted.
const WAITING: usize = 1000;

impl StatArgs {
    /// The first lines of its help.
    pub const EXAMPLES: Examples = [
        ("numa stat", "a line every 100 ms"),
        ("numa stat --per node -i 1s ./app", "a line for each node, every second, while ./app runs"),
    ];

    /// Prints samples until the observation ends.
    pub fn run(self, global: &GlobalArgs) -> anyhow::Result<ExitCode> {
        let formulas = self.formulas.load()?;
        // A formula may need sensors that are not sampled by default.
        let default = if self.metrics.is_empty() { Selection::default() } else { "*".parse()? };
        let mut prepared = self.observe.prepare(global, self.interval, &default, &self.command)?;
        self.narrow(&mut prepared.setup, &formulas)?;
        let header = &prepared.setup.header;
        let table = StatTable::new(header, &formulas, self.options(global))?;
        if table.left_out() > 0 {
            note(format_args!(
                "{} more columns do not fit the terminal; select some with -e, or use a pipe, --csv or --json",
                table.left_out()
            ));
        }
        let ring = Arc::new(Ring::in_memory(header.series.len(), WAITING)?);
        // A closed pipe ends the observation like 'numa ctl stop', so that a recording that was
        // started meanwhile is closed properly.
        signal::ignore_broken_pipe();
        let (mut session, waker) = prepared.open()?;
        session.start(prepared.setup.sensors, prepared.settings, Some(Arc::clone(&ring)))?;
        let count = self.count;
        let thread = std::thread::Builder::new().name("printer".into()).spawn(move || {
            let result = follow(table, &ring, count, |text| print(text));
            waker.stop();
            result
        })?;
        let session = match session.spawn_observed(&self.command, &prepared.program) {
            Ok(session) => session,
            Err(status) => return Ok(ExitCode::from(status)),
        };
        let ended = session.run(Duration::from_millis(250), |_| {})?;
        match thread.join().map_err(|_| anyhow!("the printer failed"))? {
            // The reader closed the pipe.
            Err(error) if error.is_closed_by_reader() => {}
            result => result?,
        }
        Ok(ExitCode::from(ended.exit_status()))
    }

    /// Keeps only the series that the columns need.
    fn narrow(&self, setup: &mut Setup, formulas: &Catalog) -> anyhow::Result<()> {
        let per = self.per.map_or(Per::Machine, PerChoice::per);
        let selected = match self.show() {
            StatColumns::Series => return Ok(()),
            StatColumns::Columns => needed(&setup.header, formulas, per),
            StatColumns::Formulas(names) => needed_by(&setup.header, formulas, per, names)?,
        };
        setup.narrow(&selected);
        Ok(())
    }

    fn show(&self) -> StatColumns<'_> {
        match self.observe.events {
            Some(_) => StatColumns::Series,
            None if self.metrics.is_empty() => StatColumns::Columns,
            None => StatColumns::Formulas(&self.metrics),
        }
    }

    fn options(&self, global: &GlobalArgs) -> StatOptions<'_> {
        let format = match (self.csv, self.json) {
            (true, _) => TableFormat::Csv,
            (_, true) => TableFormat::Json,
            _ if self.numascope_table => TableFormat::Original,
            _ => TableFormat::Text,
        };
        StatOptions {
            per: self.per.map(PerChoice::per),
            show: self.show(),
            format,
            color: global.color(),
            width: tty::columns(),
            repeat: tty::rows().unwrap_or(20),
        }
    }
}
