//! The content of the packages, as a folder like /usr.

use super::built::Built;
use crate::{build, docs, process, workspace};
use anyhow::{Context, Result};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

/// Documents and folders of documents, with their paths in the repository: links between them work in packages too.
const DOCUMENTS: [&str; 8] = [
    "README.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "corpus/bench/README.md",
    "docs",
];

/// What Grafana and Prometheus load.
const DASHBOARDS: [&str; 5] = ["fleet.json", "host.json", "job.json", "compare.json", "alerts.yml"];

/// What is written for a package: about the third-party code in it.
pub struct AboutThirdParties {
    pub licences: String,
    pub sbom: String,
}

/// Creates the folder.
pub fn lay_out(top: &Path, built: &Built, about: &AboutThirdParties) -> Result<()> {
    if top.exists() {
        fs::remove_dir_all(top)?;
    }
    place(&built.numa, &top.join("bin/numa"), 0o755)?;
    for name in build::OTHER_NAMES {
        symlink("numa", top.join("bin").join(name))?;
    }
    place(&built.drivers, &top.join("libexec/numakit").join(build::DRIVERS), 0o755)?;
    for library in &built.libraries {
        place(library, &top.join("lib").join(library.file_name().unwrap_or_default()), 0o644)?;
    }
    for header in ["numaplace.h", "numasched.h", "numakit-mark.h"] {
        let from = workspace::root().join("native/include").join(header);
        place(&from, &top.join("include").join(header), 0o644)?;
    }
    let packaging = workspace::root().join("packaging");
    place(
        &packaging.join("systemd/numakit.service"),
        &top.join("lib/systemd/system/numakit.service"),
        0o644,
    )?;
    for script in ["slurm/prolog", "slurm/epilog"] {
        place(&packaging.join(script), &top.join("share/numakit").join(script), 0o755)?;
    }
    for file in DASHBOARDS {
        let from = workspace::root().join("dashboards").join(file);
        place(&from, &top.join("share/numakit/dashboards").join(file), 0o644)?;
    }
    build::documents(&built.runs_here, &top.join("share"))?;
    let documents = top.join("share/doc/numakit");
    fs::create_dir_all(&documents)?;
    let mut copy = Command::new("cp");
    copy.args(["-R", "--parents"]).args(DOCUMENTS).arg(&documents).current_dir(workspace::root());
    process::run(&mut copy)?;
    docs::write(&documents.join("html"))?;
    fs::write(documents.join("THIRD-PARTY-LICENSES"), &about.licences)?;
    fs::write(documents.join("sbom.cdx.json"), &about.sbom)?;
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
