//! Archives of tar whose bytes depend on nothing but the files.

use super::date;
use crate::process;
use anyhow::Result;
use std::path::Path;
use std::process::Command;

/// Packs parts of a folder with their names sorted, and fixed owners, modes and times.
pub fn pack(tar: &mut Command, path: &Path, folder: &Path, parts: &[&str]) -> Result<()> {
    tar.args(["--sort=name", "--format=gnu", "--owner=0", "--group=0", "--numeric-owner"]);
    tar.arg("--mode=u+rwX,go+rX,go-w").arg(format!("--mtime=@{}", date()?));
    process::run(tar.arg("-cf").arg(path).arg("-C").arg(folder).args(parts))
}

/// The same, compressed. Gzip is on every machine, where xz may be missing.
pub fn compressed(path: &Path, folder: &Path, parts: &[&str], is_quick: bool) -> Result<()> {
    let level = if is_quick { 1 } else { 9 };
    let mut tar = Command::new("tar");
    pack(tar.arg(format!("--use-compress-program=gzip --no-name -{level}")), path, folder, parts)
}
