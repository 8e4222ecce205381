//! `numa alloc-stats`.

use crate::{Examples, GlobalArgs, observe};
use clap::Args;
use numakit_processes::{AllocatorError, AllocatorReader};
use numakit_sys::clock::{self, Alarm};
use numakit_sys::stdio::print;
use numakit_terminal::alloc_stats;
use std::process::ExitCode;
use std::time::Duration;

/// Show the memory of the allocator of a program by node
///
/// The program must have been started with 'numa run --alloc numa -- CMD', or another profile. Reading does not stop it.
/// PID is its own process ID, which 'numa ps' lists.
///
/// MAPPED is address space that was made usable, with memory or without. IN-USE is what blocks lie in: large blocks, and
/// slabs with small blocks that the program or the lists of its threads have. CACHED is free memory that is kept for the
/// next blocks, and RECLAIMABLE the part of it that the kernel may take when memory is short. LOCAL are the pages of all that
/// which are on the node, and SPILLED those on other nodes, since this one was full; both are those of numa_maps. RECYCLED is
/// memory that was used again while it was kept: FAULTS-AVOIDED are the page faults that new memory would have cost.
/// OTHER-NODES are small blocks that threads of other nodes freed. With the profiles uma and lowmem there is one line, "all",
/// without LOCAL and SPILLED. The line "policy" is of the blocks of threads for which the program chose a memory policy, by
/// 'numa run --memory', numactl or libnuma: it decides where they lie.
///
/// --json writes one object per reading: {pid, time, nodes: [{node, of_policies, mapped, in_use, cached, reclaimable, local,
/// spilled, recycled, page_faults_avoided, blocks_from_other_nodes}]}. time is in seconds since 1970; node, local and spilled
/// are null with the profiles uma and lowmem, and where of_policies is true; all from mapped to recycled are in bytes. Where local and spilled are unknown,
/// spilled_unknown says why.
#[derive(Debug, Args)]
pub struct AllocStatsArgs {
    /// Process ID of the program
    #[arg(value_name = "PID", value_parser = clap::value_parser!(u32).range(1..))]
    pid: u32,
    /// Repeat at this interval until the process ends
    #[arg(short, long, value_name = "TIME", value_parser = observe::interval_of)]
    interval: Option<Duration>,
    /// Write JSON, one object per line
    #[arg(long)]
    json: bool,
}

impl AllocStatsArgs {
    /// The first lines of its help.
    pub const EXAMPLES: Examples = [
        ("numa alloc-stats 4711", "memory of its allocator by node"),
        ("numa alloc-stats -i 1s 4711", "the same every second"),
    ];

    /// Reads and prints.
    pub fn run(self, global: &GlobalArgs) -> anyhow::Result<ExitCode> {
        global.only_here("the counts are in the memory of a process of this machine")?;
        let mut reader = AllocatorReader::open(self.pid)?;
        self.show(&mut reader, "")?;
        let Some(interval) = self.interval else { return Ok(ExitCode::SUCCESS) };
        let mut next = clock::monotonic();
        loop {
            next = next.saturating_add(u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX));
            Alarm::new().sleep_until(next);
            match self.show(&mut reader, "\n") {
                Err(error) if matches!(error.downcast_ref(), Some(AllocatorError::Ended(_))) => {
                    return Ok(ExitCode::SUCCESS);
                }
                shown => shown?,
            }
        }
    }

    fn show(&self, reader: &mut AllocatorReader, gap: &str) -> anyhow::Result<()> {
        let counts = reader.read()?;
        match self.json {
            true => print(format_args!("{}\n", alloc_stats::json(self.pid, clock::utc(), &counts)))?,
            false => print(format_args!("{gap}{}", alloc_stats::table(&counts)))?,
        }
        Ok(())
    }
}
