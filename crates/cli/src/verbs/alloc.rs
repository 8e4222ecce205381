//! `numa alloc`.

mod profile;
mod running;

use crate::{Examples, GlobalArgs};
use clap::{ArgGroup, Args};
use profile::ProfileArgs;
use running::RunningArgs;
use std::path::PathBuf;
use std::process::ExitCode;

/// A command or a process: one of them is given.
const WHAT: &str = "what";

/// Show what a program allocates, or the memory of a running program's allocator
///
/// It runs the command once with each allocator: its own ('none'), and libnumalloc with the profiles lowmem, uma and numa. A
/// library in front of the allocator counts each call, in all processes that load it, however they end. First come three
/// sentences: how much is allocated, the share of CPU time in malloc and free, without and with the first touch of memory, and
/// live and resident memory. Then tables: the runs, sizes, lives, the code that allocates, and memory over time.
///
/// Sizes and counts are exact. Lives and call chains are of a sample (--every). Counting makes the program slower; what it
/// takes is left out of the times.
///
/// Each run reads the same input: none, the terminal, or a file, which is read again from where it was. Input that can be
/// read only once, such as a pipe, allows one run only: --profile numa.
///
/// numa exits with the status of the first run that failed, else with 0. The status is 127 if the program was not found, and
/// 126 if it is not executable.
///
/// With --pid it shows the memory of the allocator of a running program by node, which must
/// have been started with 'numa run --alloc numa CMD', or another profile. Reading does not stop it.
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
/// --json writes one object: {version: 1, command, sampled_every, interrupted, runs: [{allocator, status, seconds, cpu_seconds,
/// kernel_seconds, counting_seconds, threads, process_count, allocations, frees, reallocs, zeroed, aligned, failed, requested,
/// usable, peak_live, peak_live_is_read, live_at_end, peak_resident, malloc {allocating_seconds, freeing_seconds, share},
/// first_touch {faults, fault_ns, seconds, share}, sizes [{from, to, blocks, bytes}], lives_by_ns and lives_by_bytes [{from, to,
/// blocks, bytes}], sites [{chain [{function, module, file, line}], samples, blocks, bytes, freed_blocks, freed_bytes,
/// life_seconds}], processes [{pid, parent, allocated, peak_live, live_at_end}], series [{seconds, live, resident}], missing}]}.
/// Memory is in bytes. What cannot be told is null.
///
/// --json with --pid writes one object per reading: {pid, time, nodes: [{node, of_policies, mapped, in_use, cached, reclaimable, local,
/// spilled, recycled, page_faults_avoided, blocks_from_other_nodes}]}. time is in seconds since 1970; node, local and spilled
/// are null with the profiles uma and lowmem, and where of_policies is true; all from mapped to recycled are in bytes. Where local and spilled are unknown,
/// spilled_unknown says why.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new(WHAT).required(true))]
pub struct AllocArgs {
    #[command(flatten)]
    running: RunningArgs,
    #[command(flatten)]
    profile: ProfileArgs,
    /// Write JSON to this file; '-' is standard output, without the text [default: -]
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    json: Option<PathBuf>,
}

impl AllocArgs {
    /// The first lines of its help.
    pub const EXAMPLES: Examples = [
        ("numa alloc ./app", "what it allocates, with each allocator"),
        ("numa alloc --pid 4711", "memory of its allocator by node"),
    ];

    /// Runs the program or reads the running one, and prints what was counted.
    pub fn run(self, global: &GlobalArgs) -> anyhow::Result<ExitCode> {
        match self.running.pid() {
            Some(pid) => self.running.run(pid, self.json.as_deref(), global),
            None => self.profile.run(self.json.as_deref(), global),
        }
    }
}
