//! `cargo xtask build`: the program, its man pages and its shell completions.

use crate::{install, process, workspace};
use anyhow::{Result, bail};
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// The programs that have completions.
const COMPLETED: [&str; 2] = ["numa", "numaplace"];

/// Builds, and prints where the results are.
pub fn run(words: &[String]) -> Result<ExitCode> {
    if let Some(word) = words.first() {
        bail!("build takes no arguments, got '{word}'");
    }
    everything()?;
    println!("{}\n{}", workspace::numa().display(), share().display());
    Ok(ExitCode::SUCCESS)
}

/// The release build, target/share with the files for /usr/share, and the links.
pub fn everything() -> Result<()> {
    install::need_c()?;
    process::step("cargo build --release: numa and its page (two to five minutes the first time)");
    process::run(&mut process::cargo(&["build", "--release"]))?;
    process::step("numa man, numa completions: target/share");
    documents(&workspace::numa(), &share())?;
    for name in ["numascope", "numaplace"] {
        link("numa", &workspace::target().join("release").join(name))?;
    }
    Ok(())
}

/// Programs that write recordings for tests in a browser.
pub const GENERATORS: [&str; 2] = ["long", "pairs"];

/// An optimised numa without link-time optimisation, for tests that run real programs, and the generators of recordings: built
/// later by themselves, they would have other features, and most crates were built twice. `NUMAKIT_NUMA` names another
/// numa.
pub fn fast() -> Result<()> {
    if std::env::var_os("NUMAKIT_NUMA").is_some() {
        return Ok(());
    }
    let mut cargo = process::cargo(&["build", "--profile", "fast", "-p", "numakit-cli", "--bin", "numa"]);
    cargo.args(["-p", "numakit-recording"]);
    for name in GENERATORS {
        cargo.args(["--example", name]);
    }
    process::run(&mut cargo)
}

/// A generator that [`fast`] has built.
pub fn generator(name: &str) -> Option<PathBuf> {
    Some(workspace::target().join("fast/examples").join(name)).filter(|path| path.exists())
}

/// The program that [`fast`] builds.
pub fn fast_numa() -> PathBuf {
    std::env::var_os("NUMAKIT_NUMA").map_or_else(|| workspace::target().join("fast/numa"), PathBuf::from)
}

/// Man pages and completions, in a folder like /usr/share.
pub fn documents(numa: &Path, share: &Path) -> Result<()> {
    process::read(Command::new(numa).args(["man", "--dir"]).arg(share.join("man/man1")))?;
    for program in COMPLETED {
        for (shell, folder, file) in [
            ("bash", "bash-completion/completions", program.to_owned()),
            ("zsh", "zsh/site-functions", format!("_{program}")),
            ("fish", "fish/vendor_completions.d", format!("{program}.fish")),
        ] {
            let text = process::read(Command::new(numa).args(["completions", shell, program]))?;
            fs::create_dir_all(share.join(folder))?;
            fs::write(share.join(folder).join(file), text)?;
        }
    }
    Ok(())
}

fn share() -> PathBuf {
    workspace::target().join("share")
}

fn link(to: &str, path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error.into()),
        _ => {}
    }
    Ok(symlink(to, path)?)
}
