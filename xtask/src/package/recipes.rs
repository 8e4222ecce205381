//! What other installers read: the chart and manifest for Kubernetes, scripts for Slurm, recipes of Spack and EasyBuild.

use super::{VERSION, archive, oci::digest};
use crate::workspace;
use anyhow::Result;
use std::fs;
use std::path::{Path, PathBuf};

/// Files with `@NAMES@` that are filled in, and their names afterwards.
const FILLED: [(&str, &str); 4] = [
    ("helm/numakit/Chart.yaml", "helm/numakit/Chart.yaml"),
    ("kubernetes/daemonset.yaml", "kubernetes/daemonset.yaml"),
    ("spack/package.py", "spack/packages/numakit/package.py"),
    ("easybuild/numakit.eb", "easybuild/numakit-VERSION.eb"),
];
/// Files that are copied.
const COPIED: [&str; 7] = [
    "helm/numakit/values.yaml",
    "helm/numakit/values.schema.json",
    "helm/numakit/templates/daemonset.yaml",
    "helm/numakit/templates/NOTES.txt",
    "slurm/prolog",
    "slurm/epilog",
    "systemd/numakit.service",
];

/// Packs the recipes, and the chart as helm reads it.
pub fn make(out: &Path, source: &Path, tarball: &Path, is_quick: bool) -> Result<[PathBuf; 2]> {
    let name = format!("numakit-{VERSION}-recipes");
    let top = out.join(&name);
    if top.exists() {
        fs::remove_dir_all(&top)?;
    }
    let names =
        [("@VERSION@", VERSION.to_owned()), ("@SOURCE@", digest(source)?), ("@TARBALL@", digest(tarball)?)];
    let folder = workspace::root().join("packaging");
    for (from, to) in FILLED.into_iter().chain(COPIED.map(|same| (same, same))) {
        let to = top.join(to.replace("VERSION", VERSION));
        super::tree::place(&folder.join(from), &to, if from.starts_with("slurm") { 0o755 } else { 0o644 })?;
        let text =
            names.iter().fold(fs::read_to_string(&to)?, |text, (name, value)| text.replace(name, value));
        fs::write(&to, text)?;
    }
    let recipes = out.join(format!("{name}.tar.gz"));
    archive::compressed(&recipes, out, &[&name], is_quick)?;
    let chart = out.join(format!("numakit-{VERSION}-chart.tgz"));
    archive::compressed(&chart, &top.join("helm"), &["numakit"], is_quick)?;
    Ok([recipes, chart])
}
