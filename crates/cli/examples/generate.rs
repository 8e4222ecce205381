//! Writes man pages and shell completions from the command-line definition into a folder
//! laid out like /usr/share.

use anyhow::Context;
use clap_complete::{Shell, generate_to};
use numakit_cli::help;
use std::fs;
use std::path::{Path, PathBuf};

fn main() -> anyhow::Result<()> {
    let share = std::env::args_os().nth(1).context("Usage: generate DIR")?;
    let share = PathBuf::from(share);
    let man = share.join("man/man1");
    fs::create_dir_all(&man)?;
    for program in numakit_cli::programs() {
        let mut program = program.disable_help_subcommand(true);
        program.build();
        let verbs = program.get_subcommands().filter(|verb| !verb.is_hide_set());
        for command in std::iter::once(&program).chain(verbs) {
            let page = clap_mangen::Man::new(command.clone());
            let mut text = Vec::new();
            help::render(&page, command, &mut text)?;
            fs::write(man.join(page.get_filename()), text)?;
        }
    }
    complete(Shell::Bash, &share.join("bash-completion/completions"), "numa")?;
    complete(Shell::Zsh, &share.join("zsh/site-functions"), "_numa")?;
    complete(Shell::Fish, &share.join("fish/vendor_completions.d"), "numa.fish")
}

/// One shell's completions, under the file name that the shell looks for.
fn complete(shell: Shell, dir: &Path, name: &str) -> anyhow::Result<()> {
    fs::create_dir_all(dir)?;
    let made = generate_to(shell, &mut numakit_cli::completion::for_shells(), "numa", dir)?;
    Ok(fs::rename(made, dir.join(name))?)
}
