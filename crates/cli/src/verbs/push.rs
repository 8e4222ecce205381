//! `numa push`.

use crate::global::OF_A_RECORDING;
use crate::push_to::{self, EngineArgs, SpoolArgs};
use crate::{Examples, GlobalArgs};
use anyhow::bail;
use clap::Args;
use numakit_push::{Deliver, Patience, PushTarget, Sender, examples, push_recording, push_spool};
use numakit_sys::stdio::{note, print};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

/// Send recordings to a database or a monitoring system
///
/// Every row is sent, in order, with its own time; sending a recording again changes nothing. While
/// the engine is down, it is tried again. Values that the engine refuses are left out and counted,
/// with its reason. 'numa record --to URL' sends samples while they are taken; what it could not
/// send waits in a directory, which 'numa push --spool DIR' sends. The exit status is 1 if
/// something was refused or damaged, 2 if the engine took nothing.
#[derive(Debug, Args)]
pub struct PushArgs {
    /// Recordings of numa or NUMAscope
    #[arg(value_name = "FILE", required_unless_present = "spool")]
    recordings: Vec<PathBuf>,
    /// The engine, as SCHEME+http://HOST:PORT, postgresql://HOST/DATABASE or parquet:DIR
    #[arg(long, value_name = "URL", required = true, value_parser = push_to::target, long_help = long_help())]
    to: PushTarget,
    /// Give up when the engine was down for this time
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = push_to::length)]
    retry_for: Duration,
    #[command(flatten)]
    engine: EngineArgs,
    #[command(flatten)]
    spool: SpoolArgs,
}

fn long_help() -> String {
    format!("The engine: one of {}; 'numa help guide push' describes them", examples())
}

impl PushArgs {
    /// The first lines of its help.
    pub const EXAMPLES: Examples = [
        ("numa push numa-1.arrows --to influxdb1+http://db:8086?db=numa", "sends a recording"),
        ("numa push *.arrows --to parquet:/data/fleet", "files by host and day"),
    ];

    /// Sends them.
    pub fn run(self, global: &GlobalArgs) -> anyhow::Result<ExitCode> {
        global.only_here(OF_A_RECORDING)?;
        if self.spool.spool.is_some() && !self.recordings.is_empty() {
            bail!(
                "a recording needs no spool, since its file waits for the engine; omit --spool, or the recordings"
            );
        }
        let target = self.engine.complete(self.to.clone())?;
        let patience = Patience { outage: self.retry_for, stop: Arc::default(), notice: push_to::down };
        let mut sender = Sender::new(&target, patience)?;
        let sent = self.send(&target, &mut sender);
        let counts = sender.counts().lock().unwrap_or_else(PoisonError::into_inner).clone();
        print(format_args!("{}: {counts}\n", target.text))?;
        let is_whole = sent? && counts.all_refused() == 0;
        Ok(ExitCode::from(u8::from(!is_whole)))
    }

    /// Sends all; whether nothing was damaged.
    fn send<D: Deliver>(&self, target: &PushTarget, sender: &mut Sender<D>) -> anyhow::Result<bool> {
        if self.recordings.is_empty() {
            if let Some(folder) = self.spool.spool.as_ref().filter(|folder| !folder.is_dir()) {
                anyhow::bail!("there is no spool {}; name the folder where rows wait", folder.display());
            }
            let mut spool = self.spool.open(target)?;
            push_spool(&mut spool, sender)?;
            push_to::dropped(&spool.counts());
            return Ok(spool.counts().damaged + spool.counts().unreadable == 0);
        }
        let mut is_whole = true;
        for path in &self.recordings {
            let damage = push_recording(path, sender)?;
            if let Some(damage) = damage {
                note(format_args!("{}: {damage}", path.display()));
                is_whole = false;
            }
        }
        Ok(is_whole)
    }
}
