//! What a guest is made with: QEMU, a kernel, busybox and the programs for images. What is
//! installed is taken; the rest comes from packages that are unpacked, not installed.

use crate::failure::{Failure, text_of};
use crate::packages::{self, FIX};
use crate::place;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const QEMU: &str = "qemu-system-x86_64";
/// The plugin interface that the simulator knows: from the version without a known crash to the
/// next one with another interface.
const SIMULATING: std::ops::Range<Version> = Version(7, 2, 18)..Version(8, 0, 0);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Version(u32, u32, u32);

/// A program, installed or unpacked.
pub fn program(name: &str) -> Result<Command, Failure> {
    match place::on_this_machine(name) {
        Some(path) => Ok(Command::new(path)),
        None => unpacked(name),
    }
}

/// A program among the unpacked packages, with its libraries.
fn unpacked(name: &str) -> Result<Command, Failure> {
    let root = packages::root()?;
    let mut command = Command::new(packages::program(root, name)?);
    command.env("LD_LIBRARY_PATH", packages::library_path(root));
    Ok(command)
}

/// QEMU; one that the simulator can run in, if that is wanted.
pub fn qemu(simulating: bool) -> Result<Command, Failure> {
    let suits = |version: &Result<Version, Failure>| match version {
        Ok(version) => !simulating || SIMULATING.contains(version),
        Err(_) => false,
    };
    if let Some(path) = place::on_this_machine(QEMU)
        && suits(&version(&mut Command::new(&path)))
    {
        return Ok(Command::new(path));
    }
    let version = version(&mut unpacked_qemu()?)?;
    if !suits(&Ok(version)) {
        let (least, below) = (SIMULATING.start, SIMULATING.end);
        return Err(Failure::Unavailable {
            reason: format!("the simulator needs QEMU from {least} to below {below}, here is {version}"),
            fix: format!("on Debian 12: {FIX}"),
            kind: &numakit_skips::SIMULATOR,
        });
    }
    unpacked_qemu()
}

fn unpacked_qemu() -> Result<Command, Failure> {
    let mut command = unpacked(QEMU)?;
    let root = packages::root()?;
    command.env("QEMU_MODULE_DIR", root.join("usr/lib/x86_64-linux-gnu/qemu"));
    for folder in ["usr/share/qemu", "usr/share/seabios", "usr/lib/ipxe/qemu"] {
        command.arg("-L").arg(root.join(folder));
    }
    Ok(command)
}

fn version(qemu: &mut Command) -> Result<Version, Failure> {
    let text = text_of(qemu.arg("--version"))?;
    let unclear = || Failure::Request(format!("QEMU's version is not understood: {}", text.trim()));
    read_version(&text).ok_or_else(unclear)
}

fn read_version(text: &str) -> Option<Version> {
    let word = text.split("version ").nth(1)?.split_whitespace().next()?;
    let mut numbers = word.split('.').map(|number| number.parse().ok());
    Some(Version(numbers.next()??, numbers.next()??, numbers.next().flatten().unwrap_or(0)))
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}.{}", self.0, self.1, self.2)
    }
}

/// A kernel that has NVMe and ext4 built in.
pub fn kernel() -> Result<PathBuf, Failure> {
    if let Some(path) = newest_kernel(Path::new("/boot")) {
        return Ok(path);
    }
    let boot = packages::root()?.join("boot");
    newest_kernel(&boot).ok_or_else(|| packages::missing(&format!("no kernel in {}", boot.display())))
}

fn newest_kernel(boot: &Path) -> Option<PathBuf> {
    let entries = fs::read_dir(boot).ok()?.flatten();
    let mut kernels: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    kernels.retain(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("vmlinuz-") && name.ends_with("-cloud-amd64") && fs::File::open(path).is_ok()
    });
    kernels.sort();
    kernels.pop()
}

/// A busybox that needs no libraries.
pub fn busybox() -> Result<PathBuf, Failure> {
    if let Some(path) = place::on_this_machine("busybox")
        && Command::new("ldd").arg(&path).output().is_ok_and(|output| !output.status.success())
    {
        return Ok(path);
    }
    packages::program(packages::root()?, "busybox")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_as_qemu_and_distributions_write_them() {
        let debian = "QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg-7+deb12u18+b3)\nCopyright (c)";
        assert_eq!(read_version(debian), Some(Version(7, 2, 22)));
        assert_eq!(read_version("QEMU emulator version 10.1 (x)"), Some(Version(10, 1, 0)));
        assert_eq!(read_version("qemu"), None);
        assert!(SIMULATING.contains(&Version(7, 2, 18)) && !SIMULATING.contains(&Version(7, 2, 9)));
        assert!(!SIMULATING.contains(&Version(8, 2, 2)));
    }
}
