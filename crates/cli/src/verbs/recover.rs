//! `numa recover`.

use crate::global::OF_A_RECORDING;
use crate::{Examples, GlobalArgs};
use clap::Args;
use numakit_recording::recover;
use numakit_sys::stdio::print;
use std::path::PathBuf;
use std::process::ExitCode;

/// Repair the recording of a killed 'numa record'
///
/// Appends the samples in FILE.tail to FILE, and moves damaged bytes to FILE.damaged. The exit
/// status is 1 if samples are lost.
#[derive(Debug, Args)]
pub struct RecoverArgs {
    /// The recording
    #[arg(value_name = "FILE", required = true)]
    recordings: Vec<PathBuf>,
}

impl RecoverArgs {
    /// The first lines of its help.
    pub const EXAMPLES: Examples = [
        ("numa recover numa-1.arrows", "adds the last samples of a killed recorder"),
        ("numa recover *.arrows", "the same of several"),
    ];

    /// Repairs the recording.
    pub fn run(self, global: &GlobalArgs) -> anyhow::Result<ExitCode> {
        global.only_here(OF_A_RECORDING)?;
        let mut code = ExitCode::SUCCESS;
        for path in &self.recordings {
            let done = recover(path)?;
            print(format_args!("{}: {} samples found, {} added\n", path.display(), done.rows, done.added))?;
            if done.lost > 0 {
                print(format_args!("{}: {} samples are lost\n", path.display(), done.lost))?;
                code = ExitCode::from(1);
            }
            if let Some((bytes, aside)) = done.damaged {
                print(format_args!(
                    "{}: {bytes} damaged bytes were moved to {}\n",
                    path.display(),
                    aside.display()
                ))?;
                code = ExitCode::from(1);
            }
        }
        Ok(code)
    }
}
