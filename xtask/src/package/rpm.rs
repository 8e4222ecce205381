//! The package for RHEL, Fedora and SUSE: the same files in their folders, built by rpmbuild.

use super::built::LIBRARIES;
use super::platform::Platform;
use super::{VERSION, date, scripts};
use crate::process;
use anyhow::{Context, Result};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Folders that belong to the package alone: removed with it.
const OWN_FOLDERS: [&str; 3] = ["/usr/libexec/numakit", "/usr/share/doc/numakit", "/usr/share/numakit"];

/// Settings that make two builds of the same files the same, and that older versions of rpm can read.
const MACROS: [&str; 8] = [
    "_buildhost numakit",
    "use_source_date_epoch_as_buildtime 1",
    "clamp_mtime_to_source_date_epoch 1",
    "source_date_epoch_from_changelog 0",
    "_build_id_links none",
    "__os_install_post %{nil}",
    "_binary_filedigest_algorithm 8",
    "debug_package %{nil}",
];

/// Builds it from the folder of the tarball.
pub fn make(out: &Path, top: &Path, platform: &Platform, is_quick: bool) -> Result<PathBuf> {
    let work = out.join("rpm");
    if work.exists() {
        fs::remove_dir_all(&work)?;
    }
    let root = work.join("root");
    fs::create_dir_all(&root)?;
    process::run(Command::new("cp").arg("-a").arg(top).arg(root.join("usr")))?;
    fs::create_dir_all(root.join("usr/lib64"))?;
    for library in LIBRARIES {
        fs::rename(root.join("usr/lib").join(library), root.join("usr/lib64").join(library))?;
    }
    let pages = fs::read_dir(root.join("usr/share/man/man1"))?.map(|entry| Ok(entry?.path()));
    let pages: Vec<PathBuf> = pages.collect::<Result<_>>()?;
    process::run(Command::new("gzip").args(["-9", "--no-name", "--force"]).args(pages))?;
    let spec = work.join("numakit.spec");
    fs::write(&spec, specification(&root)?)?;
    build(&work, platform, is_quick)?;
    let name = format!("numakit-{VERSION}-1.{}.rpm", platform.machine);
    let path = out.join(&name);
    fs::copy(work.join("RPMS").join(platform.machine).join(&name), &path)
        .with_context(|| format!("rpmbuild wrote no {name}"))?;
    Ok(path)
}

fn build(work: &Path, platform: &Platform, is_quick: bool) -> Result<()> {
    let mut rpmbuild = Command::new("rpmbuild");
    rpmbuild.args(["-bb", "--quiet", "--target", &format!("{}-linux", platform.machine)]);
    let level = if is_quick { 0 } else { 6 };
    let own = [
        format!("_topdir {}", work.display()),
        format!("numakit_root {}", work.join("root").display()),
        format!("_binary_payload w{level}.xzdio"),
    ];
    for setting in MACROS.into_iter().chain(own.iter().map(String::as_str)) {
        rpmbuild.args(["--define", setting]);
    }
    rpmbuild.env("SOURCE_DATE_EPOCH", date()?.to_string()).arg(work.join("numakit.spec"));
    process::read(&mut rpmbuild).map(drop)
}

/// The libraries name no requirement: the program is static, and they load only into programs that have a C library.
fn specification(root: &Path) -> Result<String> {
    Ok(format!(
        "Name: numakit\nVersion: {VERSION}\nRelease: 1\nSummary: See, record and place programs on NUMA machines\n\
         License: MIT OR Apache-2.0\nAutoReqProv: no\n\n\
         %description\n\
         numa shows what a NUMA machine does, records it, and runs programs on the\n\
         nearest free cores with their memory on the same nodes.\n\n\
         %install\nmkdir -p %{{buildroot}}\ncp -a %{{numakit_root}}/. %{{buildroot}}/\n\n\
         {}%files\n%defattr(-,root,root,-)\n{}",
        scripts::of_rpm(),
        files(root)?
    ))
}

/// A line for each file, and for folders of the package alone.
fn files(root: &Path) -> Result<String> {
    let mut lines = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            let inside = Path::new("/").join(path.strip_prefix(root)?);
            let about = fs::symlink_metadata(&path)?;
            if about.is_dir() {
                if OWN_FOLDERS.iter().any(|own| inside.starts_with(own)) {
                    lines.push(format!("%dir \"{}\"\n", inside.display()));
                }
                folders.push(path);
            } else if about.is_symlink() {
                lines.push(format!("\"{}\"\n", inside.display()));
            } else {
                let mode = about.permissions().mode() & 0o777;
                lines.push(format!("%attr({mode:04o},root,root) \"{}\"\n", inside.display()));
            }
        }
    }
    lines.sort();
    Ok(lines.concat())
}
