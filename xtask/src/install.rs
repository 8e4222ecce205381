//! Programs that tasks need: as root they are installed, otherwise an error has the command.

use crate::process;
use anyhow::{Result, bail};
use std::process::{Command, Stdio};

/// Makes sure that `probe` runs; `packages` are its Debian packages.
pub fn need(probe: &[&str], packages: &[&str]) -> Result<()> {
    if works(probe) {
        return Ok(());
    }
    let install = format!("apt-get install -y {}", packages.join(" "));
    if !is_root() {
        bail!("'{}' does not work here; install it with: sudo {install}", probe.join(" "));
    }
    println!("{install}");
    process::run(Command::new("apt-get").arg("update").stdout(Stdio::null()))?;
    process::run(Command::new("apt-get").args(["install", "-y"]).args(packages).stdout(Stdio::null()))?;
    if !works(probe) {
        bail!("'{}' still does not work after: {install}", probe.join(" "));
    }
    Ok(())
}

/// Makes sure that C can be compiled: the program embeds the preloaded library.
pub fn need_c() -> Result<()> {
    need(&["make", "--version"], &["make"])?;
    need(&["gcc", "--version"], &["gcc", "libc6-dev"])
}

/// Makes sure that a component of the Rust toolchain is installed.
pub fn need_component(probe: &[&str], component: &str) -> Result<()> {
    if !works(probe) {
        process::run(Command::new("rustup").args(["component", "add", component]))?;
    }
    Ok(())
}

fn works(probe: &[&str]) -> bool {
    let Some((program, arguments)) = probe.split_first() else { return true };
    let status = Command::new(program).args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|s| s.success())
}

/// Whether this runs as root.
pub fn is_root() -> bool {
    process::read(Command::new("id").arg("-u")).is_ok_and(|id| id.trim() == "0")
}
