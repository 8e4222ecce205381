//! The sources with all crates and the built page: they build without a network and without Node.js.

use super::{VERSION, archive, built::Built};
use crate::{process, workspace};
use anyhow::{Context, Result};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Tells the server's build script to embed the page as it is.
const BUILT_PAGE: &str = "web/dist/shipped";
/// Tells cargo to take crates from the folder beside the sources.
const SETTINGS: &str = "
[source.crates-io]
replace-with = \"vendored\"

[source.vendored]
directory = \"vendor\"
";
/// The systems that numa is built for.
const LINUX: [&str; 2] = ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"];

/// Packs the last commit.
pub fn make(out: &Path, built: &Built, is_quick: bool) -> Result<PathBuf> {
    let name = format!("numakit-{VERSION}-source");
    let top = out.join("source").join(&name);
    if top.exists() {
        fs::remove_dir_all(&top)?;
    }
    fs::create_dir_all(&top)?;
    extract_commit(&top)?;
    process::run(Command::new("cp").arg("-a").arg(built.page.join(".")).arg(top.join("web/dist")))?;
    fs::write(
        top.join(BUILT_PAGE),
        "The page of this folder is embedded; without this file it is built again.\n",
    )?;
    let vendor = top.join("vendor");
    let mut cargo = process::cargo(&["vendor", "--locked", "--versioned-dirs", "--quiet"]);
    process::read(cargo.arg(&vendor))?;
    let config = top.join(".cargo/config.toml");
    OpenOptions::new().append(true).open(config)?.write_all(SETTINGS.as_bytes())?;
    for folder in unused(&vendor)? {
        empty(&folder)?;
    }
    let path = out.join(format!("{name}.tar.gz"));
    archive::compressed(&path, &out.join("source"), &[&name], is_quick)?;
    Ok(path)
}

/// The files of the last commit.
fn extract_commit(top: &Path) -> Result<()> {
    let mut git = Command::new("git");
    git.args(["archive", "--format=tar", "HEAD"]).current_dir(workspace::root()).stdout(Stdio::piped());
    let mut git = git.spawn().context("cannot start git")?;
    let files = git.stdout.take().context("git has no output")?;
    process::run(Command::new("tar").arg("-x").arg("-C").arg(top).stdin(files))?;
    anyhow::ensure!(git.wait()?.success(), "'git archive HEAD' failed in {}", workspace::root().display());
    Ok(())
}

/// The folders of crates that only other systems need: cargo wants them named, not built.
fn unused(vendor: &Path) -> Result<Vec<PathBuf>> {
    let mut used = BTreeSet::new();
    for system in LINUX {
        let words = ["metadata", "--locked", "--format-version", "1", "--filter-platform", system];
        let metadata: Value = serde_json::from_str(&process::read(&mut process::cargo(&words))?)?;
        let packages = metadata["packages"].as_array().context("'cargo metadata' names no packages")?;
        let resolved =
            metadata["resolve"]["nodes"].as_array().context("'cargo metadata' resolves nothing")?;
        let ids: BTreeSet<&str> = resolved.iter().filter_map(|node| node["id"].as_str()).collect();
        let is_used = |package: &&Value| package["id"].as_str().is_some_and(|id| ids.contains(id));
        let folder =
            |package: &Value| Some(format!("{}-{}", package["name"].as_str()?, package["version"].as_str()?));
        used.extend(packages.iter().filter(is_used).filter_map(folder));
    }
    let folders = fs::read_dir(vendor)?.map(|entry| Ok(entry?.path()));
    let folders: Vec<PathBuf> = folders.collect::<Result<_>>()?;
    let is_unused = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        !used.contains(&name)
    };
    Ok(folders.into_iter().filter(is_unused).collect())
}

/// Leaves only the manifest of a crate, and a library without code.
fn empty(folder: &Path) -> Result<()> {
    let checksum = folder.join(".cargo-checksum.json");
    let mut sums: Value = serde_json::from_slice(&fs::read(&checksum)?)?;
    let manifest = fs::read(folder.join("Cargo.toml"))?;
    fs::remove_dir_all(folder)?;
    fs::create_dir_all(folder.join("src"))?;
    fs::write(folder.join("Cargo.toml"), manifest)?;
    fs::write(folder.join("src/lib.rs"), "")?;
    sums["files"] = Value::Object(serde_json::Map::new());
    Ok(fs::write(checksum, sums.to_string())?)
}
