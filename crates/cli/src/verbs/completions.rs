//! `numa completions`.

use crate::{Examples, GlobalArgs, completion};
use anyhow::bail;
use clap::{Args, ValueEnum};
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
///
/// numakit, the second name of numa, is completed too. Where shells look for a file of that name, as bash does: numa completions bash
/// numakit > ~/.local/share/bash-completion/completions/numakit
#[derive(Debug, Args)]
pub struct Completions {
    /// The shell
    shell: Option<Shell>,
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
        let Some(shell) = self.shell else {
            let shells: Vec<String> = Shell::value_variants().iter().map(ToString::to_string).collect();
            bail!("no shell given; name one of {}, as in 'numa completions bash'", shells.join(", "));
        };
        print(completion::script(shell, &self.program)?)?;
        Ok(ExitCode::SUCCESS)
    }
}
