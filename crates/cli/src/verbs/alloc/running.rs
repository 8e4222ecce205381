//! The allocator of a running program.

use super::WHAT;
use crate::{GlobalArgs, observe, to_file};
use anyhow::bail;
use clap::Args;
use numakit_processes::{AllocatorError, AllocatorReader};
use numakit_sys::clock::{self, Alarm};
use numakit_sys::stdio::print;
use numakit_terminal::alloc_stats;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

/// Which program, and how often it is read.
#[derive(Debug, Args)]
pub(super) struct RunningArgs {
    /// Show the allocator of this running program, started with 'numa run --alloc'; 'numa ps' lists its process ID
    #[arg(short, long, value_name = "PID", group = WHAT, value_parser = clap::value_parser!(u32).range(1..))]
    pid: Option<u32>,
    /// Repeat at this interval until the process ends
    #[arg(short, long, value_name = "TIME", value_parser = observe::interval_of, requires = "pid")]
    interval: Option<Duration>,
}

impl RunningArgs {
    /// The process to read, if one was given.
    pub(super) fn pid(&self) -> Option<u32> {
        self.pid
    }

    /// Reads and prints.
    pub(super) fn run(&self, pid: u32, json: Option<&Path>, global: &GlobalArgs) -> anyhow::Result<ExitCode> {
        global.only_here("the counts are in the memory of a process of this machine")?;
        if let Some(file) = json.filter(|path| !to_file::is_standard_output(path)) {
            bail!(
                "--json {}: with --pid, JSON goes to standard output, a line for each reading; give --json alone",
                file.display()
            );
        }
        let mut reader = AllocatorReader::open(pid)?;
        let show = |reader: &mut AllocatorReader, gap: &str| -> anyhow::Result<()> {
            let counts = reader.read()?;
            match json {
                Some(_) => print(format_args!("{}\n", alloc_stats::json(pid, clock::utc(), &counts)))?,
                None => print(format_args!("{gap}{}", alloc_stats::table(&counts)))?,
            }
            Ok(())
        };
        show(&mut reader, "")?;
        let Some(interval) = self.interval else { return Ok(ExitCode::SUCCESS) };
        let mut next = clock::monotonic();
        loop {
            next = next.saturating_add(u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX));
            Alarm::new().sleep_until(next);
            match show(&mut reader, "\n") {
                Err(error) if matches!(error.downcast_ref(), Some(AllocatorError::Ended(_))) => {
                    return Ok(ExitCode::SUCCESS);
                }
                shown => shown?,
            }
        }
    }
}
