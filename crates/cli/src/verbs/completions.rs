//! `numa completions`.

use crate::{Examples, GlobalArgs, completion};
use clap::Args;
use clap_complete::Shell;
use numakit_sys::stdio::print;
use std::process::ExitCode;

/// Print the completions of a shell
///
/// To load them in every new shell:
///
/// bash: numa completions bash > ~/.local/share/bash-completion/completions/numa
///
/// zsh: numa completions zsh > DIR/_numa, where DIR is one of $fpath
///
/// fish: numa completions fish > ~/.config/fish/completions/numa.fish
#[derive(Debug, Args)]
pub struct Completions {
    /// The shell
    shell: Shell,
    /// The program whose command line is completed: numa, numakit, numascope or numaplace
    #[arg(default_value = "numa")]
    program: String,
}

impl Completions {
    /// The first lines of its help.
    pub const EXAMPLES: Examples = [
        ("numa completions bash > ~/.local/share/bash-completion/completions/numa", "for bash"),
        ("numa completions fish > ~/.config/fish/completions/numa.fish", "for fish"),
    ];

    /// Prints the script.
    pub fn run(self, global: &GlobalArgs) -> anyhow::Result<ExitCode> {
        global.only_here("completions are part of this program")?;
        print(completion::script(self.shell, &self.program)?)?;
        Ok(ExitCode::SUCCESS)
    }
}
