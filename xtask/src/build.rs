//! `cargo xtask build`: the program, its man pages and its shell completions.

use crate::{install, process, workspace};
use anyhow::{Result, bail};
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// The programs that have completions.
const COMPLETED: [&str; 3] = ["numa", "numakit", "numaplace"];
/// Links to the program: its second name, as programs of others are called numa too, and those of the programs that it replaces.
pub const OTHER_NAMES: [&str; 3] = ["numakit", "numascope", "numaplace"];

/// The second program, with the drivers of databases.
pub const DRIVERS: &str = "numa-drivers";

/// Builds, and prints where the results are.
pub fn run(words: &[String]) -> Result<ExitCode> {
    if let Some(word) = words.first() {
        bail!("build takes no arguments, got '{word}'");
    }
    everything()?;
    println!("{}\n{}", workspace::numa().display(), share().display());
    Ok(ExitCode::SUCCESS)
}

/// numa, its man pages and completions in a folder like /usr/share, and the links.
pub fn everything() -> Result<()> {
    let numa = numa()?;
    documents(&numa, &share())?;
    for name in OTHER_NAMES {
        link("numa", &workspace::built().join(name))?;
    }
    Ok(())
}

/// The program. Where it is not there yet, says first what takes how long.
pub fn numa() -> Result<PathBuf> {
    install::need_c()?;
    if !workspace::numa().exists() {
        process::step(
            "building numa, the libraries that it embeds and its page: about 300 crates, three to four minutes on two CPUs; \
             guests and tests use the same build",
        );
    }
    process::run(&mut cargo(&["--bin", "numa", "--bin", DRIVERS]))?;
    Ok(workspace::numa())
}

/// The program as users install it, which benchmarks measure.
pub fn released() -> Result<()> {
    install::need_c()?;
    if !workspace::measured().exists() {
        process::step("building numa as it is installed: seven to nine minutes on two CPUs");
    }
    process::run(&mut cargo(&["--release", "--bin", "numa", "--bin", DRIVERS]))
}

/// A build of these targets. Cargo chooses the features of libraries for all packages that it is given: with all of them, as
/// for the tests, each library is compiled once.
fn cargo(targets: &[&str]) -> Command {
    let mut command = process::cargo(&["build", "--workspace"]);
    command.args(targets);
    command
}

/// A program in the folder `examples` of a package, built as what is installed.
pub fn example(name: &str) -> Result<PathBuf> {
    process::run(&mut cargo(&["--release", "--example", name]))?;
    Ok(workspace::released().join("examples").join(name))
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
