//! The options that name an engine.

use crate::page;
use anyhow::{Context, bail};
use clap::Args;
use numakit_model::numbers::counted;
use numakit_push::spool::{DEFAULT_LIMIT, MIN_LIMIT};
use numakit_push::{Credentials, LivePush, PushState, PushTarget, Spool, SpoolCounts, TargetError, Unsent};
use numakit_recording::{Header, Ring};
use numakit_scrape::{PushNumbers, PushedSamples};
use numakit_sys::signal;
use numakit_sys::stdio::note;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// How long the rest is sent at the end of an observation.
const AT_THE_END: Duration = Duration::from_secs(10);

/// How an engine knows this sender, and this sender the engine.
#[derive(Debug, Args)]
pub struct EngineArgs {
    /// A file with USER:PASSWORD for the engine
    #[arg(long, value_name = "FILE", conflicts_with = "token_file")]
    password_file: Option<PathBuf>,
    /// A file with a token for the engine
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// A file with the certificate authority of the engine [default: those of the system]
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
}

/// Where rows wait for an engine.
#[derive(Debug, Args)]
pub struct SpoolArgs {
    /// The directory where rows wait for the engine [default: one per URL in
    /// $XDG_STATE_HOME/numakit/push]
    #[arg(long, value_name = "DIR")]
    pub spool: Option<PathBuf>,
    /// The size of that directory, at most; the oldest rows are dropped and counted [default: 256MiB]
    #[arg(long, value_name = "SIZE", value_parser = limit)]
    spool_size: Option<usize>,
}

/// Samples that are pushed while they are taken.
#[derive(Debug, Args)]
pub struct PushToArgs {
    /// Also send the samples to this engine, as 'numa push' does
    #[arg(long, value_name = "URL", value_parser = target)]
    to: Option<PushTarget>,
    #[command(flatten)]
    engine: EngineArgs,
    #[command(flatten)]
    spool: SpoolArgs,
}

fn limit(text: &str) -> Result<usize, String> {
    page::size(text, "1MiB", MIN_LIMIT as usize..=1 << 40)
}

/// Units of lengths of time, in seconds.
const UNITS: [(&str, u64); 4] = [("min", 60), ("d", 86_400), ("h", 3600), ("s", 1)];
/// The maximum length of time: ten years.
const LONGEST: u64 = 3652 * 86_400;

/// Reads a length of time such as `90s`, `10min`, `1h` or `7d`.
pub fn length(text: &str) -> Result<Duration, String> {
    let found = UNITS.iter().find_map(|(unit, seconds)| {
        let number: u64 = text.trim().strip_suffix(unit)?.trim_end().parse().ok()?;
        number.checked_mul(*seconds).filter(|seconds| *seconds <= LONGEST)
    });
    found
        .map(Duration::from_secs)
        .ok_or_else(|| "it is no length of time; write it as 90s, 10min, 1h or 7d".to_owned())
}

/// Reads the URL of an engine for clap.
pub fn target(text: &str) -> Result<PushTarget, TargetError> {
    PushTarget::parse(text)
}

impl EngineArgs {
    /// The engine with its credentials.
    pub fn complete(&self, mut target: PushTarget) -> anyhow::Result<PushTarget> {
        target.credentials = match (&self.password_file, &self.token_file) {
            (Some(path), _) => Credentials::password(path)?,
            (_, Some(path)) => Credentials::token(path)?,
            (None, None) => Credentials::None,
        };
        target.authority.clone_from(&self.ca);
        // An engine that ends while it is written to must not end this process.
        signal::ignore_broken_pipe();
        Ok(target)
    }

    /// Whether any of them is given.
    pub fn is_given(&self) -> bool {
        self.password_file.is_some() || self.token_file.is_some() || self.ca.is_some()
    }
}

impl SpoolArgs {
    /// Where rows wait.
    pub fn open(&self, target: &PushTarget) -> anyhow::Result<Spool> {
        let limit = self.spool_size.and_then(|size| u64::try_from(size).ok()).unwrap_or(DEFAULT_LIMIT);
        Ok(match &self.spool {
            Some(folder) => Spool::open(folder, limit)?,
            None => {
                let folder = target.spool_folder();
                let folder = folder
                    .context("there is no folder for rows that wait; set HOME, or name one with --spool")?;
                Spool::open_free(&folder, limit)?
            }
        })
    }
}

/// The same where the options of an engine without `to` are those of a server.
#[derive(Debug, Args)]
pub struct ServePushArgs {
    /// Also send the samples to this engine, as 'numa push' does
    #[arg(long, value_name = "URL", value_parser = target)]
    to: Option<PushTarget>,
    /// A file with USER:PASSWORD for the engine
    #[arg(long, value_name = "FILE", conflicts_with = "to_token_file")]
    to_password_file: Option<PathBuf>,
    /// A file with a token for the engine
    #[arg(long, value_name = "FILE")]
    to_token_file: Option<PathBuf>,
    /// A file with the certificate authority of the engine [default: those of the system]
    #[arg(long, value_name = "FILE")]
    to_ca: Option<PathBuf>,
    #[command(flatten)]
    spool: SpoolArgs,
}

impl From<ServePushArgs> for PushToArgs {
    fn from(args: ServePushArgs) -> Self {
        let engine = EngineArgs {
            password_file: args.to_password_file,
            token_file: args.to_token_file,
            ca: args.to_ca,
        };
        Self { to: args.to, engine, spool: args.spool }
    }
}

/// A running push, and where it goes.
pub struct Pushing {
    push: Arc<LivePush>,
    target: PushTarget,
}

impl PushToArgs {
    /// Starts to push what an observation samples, if an engine was named.
    pub fn start(&self, header: &Header) -> anyhow::Result<Option<Pushing>> {
        let Some(target) = &self.to else {
            if self.engine.is_given() || self.spool.spool.is_some() || self.spool.spool_size.is_some() {
                bail!("options of an engine need the engine; give --to URL, or omit them");
            }
            return Ok(None);
        };
        let target = self.engine.complete(target.clone())?;
        let spool = self.spool.open(&target)?;
        let found = spool.counts().found;
        if found > 0 {
            note(format_args!("{found} rows of an earlier run wait in {}", spool.folder().display()));
        }
        let push = LivePush::start(header, &target, spool, down)?;
        Ok(Some(Pushing { push: Arc::new(push), target }))
    }
}

impl Pushing {
    /// Where the sampler writes to.
    pub fn ring(&self) -> Arc<Ring> {
        Arc::clone(self.push.ring())
    }

    /// The same samples for a server of metrics, which shows what becomes of them.
    pub fn samples(&self) -> PushedSamples {
        let push = Arc::clone(&self.push);
        let numbers = move || {
            let PushState { sent, spool, lost, .. } = push.state();
            PushNumbers {
                rows: sent.rows,
                requests: sent.requests,
                refused: sent.all_refused(),
                lost: lost + spool.dropped + spool.damaged,
                waiting: spool.waiting,
                spool: spool.bytes,
                outages: sent.outages,
                down: sent.ended + sent.lasts,
            }
        };
        PushedSamples { ring: self.ring(), numbers: Box::new(numbers) }
    }

    /// Sends the rest, and says what was pushed. Whether nothing was lost: rows that wait are not.
    pub fn finish(self) -> bool {
        let folder = self.push.folder();
        let state = self.push.finish(AT_THE_END);
        note(format_args!("{}: {}", self.target.text, state.sent));
        dropped(&state.spool);
        if state.lost > 0 {
            note(format_args!("{} rows were not pushed: the disk of the spool was too slow", state.lost));
        }
        let waiting = state.spool.waiting;
        if waiting > 0 {
            let rows = counted(usize::try_from(waiting).unwrap_or(usize::MAX), "row");
            note(format_args!(
                "{rows} not sent: {}; 'numa push --spool {} --to URL' sends what waits there, and so does the next run",
                why(&state),
                folder.display()
            ));
        }
        state.lost == 0 && state.spool.dropped == 0
    }
}

/// Says that the engine is down.
pub fn down(why: &str) {
    note(format_args!("{why}; trying again"));
}

fn why(state: &PushState) -> &str {
    match &state.unsent {
        Some(Unsent::Down(why) | Unsent::Denied(why)) => why,
        None => state.sent.down.as_deref().unwrap_or("there was no time"),
    }
}

/// Says what a spool lost.
pub fn dropped(counts: &SpoolCounts) {
    let lost = [
        (
            counts.dropped,
            "rows were dropped, the oldest first: the spool or its disk was full; give a larger --spool-size",
        ),
        (counts.damaged, "rows were lost in damaged files of the spool"),
        (counts.unreadable, "files of the spool had a damaged start, so their rows are lost"),
    ];
    for (count, what) in lost.into_iter().filter(|(count, _)| *count > 0) {
        note(format_args!("{count} {what}"));
    }
}
