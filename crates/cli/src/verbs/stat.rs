//! `numa stat`.

use crate::Global;
use crate::formulas::Formulas;
use crate::observe::{self, Observe};
use anyhow::anyhow;
use clap::{Args, ValueEnum};
use numakit_derived::Catalog;
use numakit_recording::Ring;
use numakit_sensors::Selection;
use numakit_session::setup::Setup;
use numakit_sys::stdio::{note, print};
use numakit_sys::{signal, tty};
use numakit_terminal::columns::Per;
use numakit_terminal::stat::{Format, Options, Show, StatTable, follow, needed, needed_by};
use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// Show what the machine's memory does, line by line
///
/// Rates are per second, levels as they are; '-' is what was not measured. The first line
/// comes after two samples. -e chooses series and -m formulas as columns instead; 'numa list'
/// shows what there is.
#[derive(Debug, Args)]
#[command(after_long_help = numakit_terminal::stat::help())]
pub struct Stat {
    /// Time between two lines, from 100us to 1h, or a frequency such as 50Hz or 2kHz
    #[arg(short, long, value_name = "TIME", default_value = "100ms", value_parser = observe::interval_of)]
    interval: Duration,
    /// End after so many samples
    #[arg(short = 'n', long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// What has a line of its own
    #[arg(long, value_name = "WHAT")]
    per: Option<PerChoice>,
    /// Columns: formulas by name, parted by commas; 'numa list' shows all at its end
    #[arg(short, long, value_name = "NAME", value_delimiter = ',', conflicts_with = "events")]
    metrics: Vec<String>,
    #[command(flatten)]
    formulas: Formulas,
    /// Write comma-separated values
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    /// Write one JSON object per line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    observe: Observe,
    /// Write as the original command line does
    #[arg(skip)]
    original: bool,
    /// A command to run and observe
    #[arg(last = true, value_name = "CMD")]
    command: Vec<OsString>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum PerChoice {
    /// Each package
    Package,
    /// Each node
    Node,
    /// Each CPU
    Cpu,
    /// Each interconnect card
    Device,
    /// The machine
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

/// Samples that wait for a slow reader of our output; more are dropped and told.
const WAITING: usize = 1000;

impl Stat {
    /// A table as the original command line asks for it.
    pub fn original(interval: Duration, discrete: bool, observe: Observe, command: Vec<OsString>) -> Self {
        let per = (!discrete).then_some(PerChoice::Machine);
        Self {
            interval,
            count: None,
            per,
            metrics: Vec::new(),
            formulas: Formulas::default(),
            csv: false,
            json: false,
            observe,
            original: true,
            command,
        }
    }

    /// Shows.
    pub fn run(self, global: &Global) -> anyhow::Result<ExitCode> {
        let formulas = self.formulas.load()?;
        // A formula may need any sensor, also those that are not read by default.
        let default = if self.metrics.is_empty() { Selection::default() } else { "*".parse()? };
        let mut prepared = self.observe.prepare(global, self.interval, &default, &self.command)?;
        self.narrow(&mut prepared.setup, &formulas)?;
        let header = &prepared.setup.header;
        let table = StatTable::new(header, &formulas, self.options(global))?;
        if table.left_out() > 0 {
            note(format_args!(
                "{} more columns do not fit this terminal; choose some with -e, or use a pipe, --csv or --json",
                table.left_out()
            ));
        }
        let ring = Arc::new(Ring::in_memory(header.series.len(), WAITING)?);
        // A closed pipe ends the observation as an order does, so that a recording that was
        // begun meanwhile is closed whole.
        signal::ignore_broken_pipe();
        let (mut session, waker) = prepared.open()?;
        session.start(prepared.setup.sensors, prepared.settings, Some(Arc::clone(&ring)))?;
        let count = self.count;
        let thread = std::thread::Builder::new().name("printer".into()).spawn(move || {
            let result = follow(table, &ring, count, |text| print(text));
            waker.stop();
            result
        })?;
        let session = match observe::spawn(session, &self.command, prepared.target.as_ref()) {
            Ok(session) => session,
            Err(code) => return Ok(code),
        };
        let ended = session.run(Duration::from_millis(250), |_| {})?;
        match thread.join().map_err(|_| anyhow!("the printer failed"))? {
            // Whoever read our output has seen enough.
            Err(error) if error.reader_left() => {}
            result => result?,
        }
        Ok(observe::exit_code(&ended))
    }

    /// Keeps only the series that the columns need.
    fn narrow(&self, setup: &mut Setup, formulas: &Catalog) -> anyhow::Result<()> {
        let per = self.per.map_or(Per::Machine, PerChoice::per);
        let wanted = match self.show() {
            Show::Series => return Ok(()),
            Show::Columns => needed(&setup.header, formulas, per),
            Show::Formulas(names) => needed_by(&setup.header, formulas, per, names)?,
        };
        setup.narrow(&wanted);
        Ok(())
    }

    fn show(&self) -> Show<'_> {
        match self.observe.events {
            Some(_) => Show::Series,
            None if self.metrics.is_empty() => Show::Columns,
            None => Show::Formulas(&self.metrics),
        }
    }

    fn options(&self, global: &Global) -> Options<'_> {
        let format = match (self.csv, self.json) {
            (true, _) => Format::Csv,
            (_, true) => Format::Json,
            _ if self.original => Format::Original,
            _ => Format::Text,
        };
        Options {
            per: self.per.map(PerChoice::per),
            show: self.show(),
            format,
            color: global.color(),
            width: tty::columns(),
            repeat: tty::rows().unwrap_or(20),
        }
    }
}
