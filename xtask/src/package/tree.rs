//! The content of the packages, as a folder like /usr.

use super::{built::Built, licences};
use crate::{build, process, workspace};
use anyhow::{Context, Result};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

/// Documents, with their paths in the repository.
const DOCUMENTS: [&str; 4] = ["CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT", "docs/guide/install.md"];

/// Links to the program.
const NAMES: [&str; 2] = ["numascope", "numaplace"];

/// Creates the folder.
pub fn lay_out(top: &Path, built: &Built) -> Result<()> {
    if top.exists() {
        fs::remove_dir_all(top)?;
    }
    place(&built.numa, &top.join("bin/numa"), 0o755)?;
    for name in NAMES {
        symlink("numa", top.join("bin").join(name))?;
    }
    for library in &built.libraries {
        place(library, &top.join("lib").join(library.file_name().unwrap_or_default()), 0o644)?;
    }
    for header in ["numaplace.h", "numakit-mark.h"] {
        let from = workspace::root().join("native/include").join(header);
        place(&from, &top.join("include").join(header), 0o644)?;
    }
    build::documents(&built.runs_here, &top.join("share"))?;
    for document in DOCUMENTS.map(Path::new) {
        let name = document.file_name().unwrap_or_default();
        place(&workspace::root().join(document), &top.join("share/doc/numakit").join(name), 0o644)?;
    }
    fs::write(
        top.join("share/doc/numakit/THIRD-PARTY-LICENSES"),
        licences::of_all(&built.page_packages.join("uplot"))?,
    )?;
    readable(top)
}

/// Copies a file and sets its mode.
pub fn place(from: &Path, to: &Path, mode: u32) -> Result<()> {
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::copy(from, to).with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))?;
    Ok(fs::set_permissions(to, fs::Permissions::from_mode(mode))?)
}

/// Makes everything readable, whatever the umask.
pub fn readable(top: &Path) -> Result<()> {
    process::run(Command::new("chmod").args(["-R", "u+rwX,go+rX,go-w"]).arg(top))
}
