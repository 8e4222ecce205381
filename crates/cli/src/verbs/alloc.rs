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
/// The columns are address space that was made usable, memory in use, free memory that is kept and what the kernel may take of it,
/// pages on the node and on others, and what was used again. 'numa help guide alloc' describes them.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new(WHAT).required(true))]
pub struct AllocArgs {
    #[command(flatten)]
    running: RunningArgs,
    #[command(flatten)]
    profile: ProfileArgs,
    /// Write JSON to this file; '-' is standard output, without the text, and that of CMD goes to standard error [default: -]
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
