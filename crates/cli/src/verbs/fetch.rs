//! `numa fetch`.

use crate::global::OF_A_RECORDING;
use crate::push_to::{self, EngineArgs};
use crate::{Examples, GlobalArgs};
use anyhow::{anyhow, bail};
use clap::Args;
use numakit_model::time::parse_utc;
use numakit_push::{FetchError, FetchRequest, Fetched, PushTarget, fetch};
use numakit_sensors::SENSORS;
use numakit_sys::clock;
use numakit_sys::stdio::note;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// Bring a range of time back from an engine as a recording
///
/// Reads what 'numa push' or 'numa record --to' has sent to InfluxDB 1, Prometheus or VictoriaMetrics,
/// PostgreSQL, Cassandra, or to a directory of Parquet files; 'numa show' then shows it. Times are in UTC.
#[derive(Debug, Args)]
pub struct FetchArgs {
    /// The engine, as for 'numa push'
    #[arg(value_name = "URL", value_parser = push_to::target)]
    engine: PushTarget,
    /// The host whose rows are fetched
    #[arg(long, value_name = "NAME")]
    host: String,
    /// The start: 2026-11-28T18:00, or a length before now such as 1h
    #[arg(long, value_name = "TIME", value_parser = time)]
    from: u64,
    /// The end, in the same form [default: now]
    #[arg(long, value_name = "TIME", value_parser = time)]
    to: Option<u64>,
    /// The recording
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Replace the file if it exists
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    access: EngineArgs,
}

/// Reads a time for clap.
pub(super) fn time(text: &str) -> anyhow::Result<u64> {
    let before =
        |length: Duration| clock::utc().saturating_sub(u64::try_from(length.as_nanos()).unwrap_or(u64::MAX));
    parse_utc(text).or_else(|| push_to::length(text).ok().map(before)).ok_or_else(|| {
        anyhow!("it is neither a time such as 2026-11-28T18:00 (UTC) nor a length before now such as 1h")
    })
}

impl FetchArgs {
    /// The first lines of its help.
    pub const EXAMPLES: Examples = [
        ("numa fetch parquet:/data/fleet --host a --from 1h -o a.arrows", "the last hour of a host"),
        (
            "numa fetch influxdb1+http://db:8086?db=numa --host a --from 2026-11-28T18:00 -o a.arrows",
            "from a time until now",
        ),
    ];

    /// Fetches it.
    pub fn run(self, global: &GlobalArgs) -> anyhow::Result<ExitCode> {
        global.only_here(OF_A_RECORDING)?;
        let range = from_until(self.from, self.to)?;
        let target = self.access.complete(self.engine)?;
        let fetched =
            HostRange { target: &target, host: &self.host, range }.fetch(&self.output, self.force)?;
        let path = self.output.display();
        note(format_args!(
            "{} samples of {} series, {} labels in {path}; 'numa show {path}' analyses it",
            fetched.samples, fetched.series, fetched.labels
        ));
        fetched.missing.iter().for_each(|missing| note(format_args!("Missing: {missing}.")));
        Ok(ExitCode::SUCCESS)
    }
}

/// The range from a time to another one, or to now.
pub(super) fn from_until(from: u64, to: Option<u64>) -> anyhow::Result<(u64, u64)> {
    let to = to.unwrap_or_else(clock::utc);
    if to <= from {
        bail!("--to is not after --from; give a later --to, or an earlier --from");
    }
    Ok((from, to))
}

/// A range of time of a host of an engine.
pub(super) struct HostRange<'a> {
    pub target: &'a PushTarget,
    pub host: &'a str,
    pub range: (u64, u64),
}

impl HostRange<'_> {
    /// Brings it back as a recording.
    pub fn fetch(&self, output: &Path, force: bool) -> Result<Fetched, FetchError> {
        let known = SENSORS.iter().flat_map(|sensor| (sensor.known)()).collect();
        let &Self { target, host, range } = self;
        fetch(&FetchRequest { target, host, range, known }, output, force)
    }
}
