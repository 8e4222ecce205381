//! An image of containers as a file, in the layout of OCI: made of the static program without a daemon.

use super::platform::Platform;
use super::{VERSION, archive, date, tree};
use crate::{build, process};
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Texts that go with the program.
const TEXTS: [&str; 4] = ["LICENSE-APACHE", "LICENSE-MIT", "THIRD-PARTY-LICENSES", "sbom.cdx.json"];
const KIND: &str = "application/vnd.oci.image";

/// Builds it from the folder of the tarball.
pub fn make(out: &Path, top: &Path, platform: &Platform, is_quick: bool) -> Result<PathBuf> {
    let work = out.join("oci");
    if work.exists() {
        fs::remove_dir_all(&work)?;
    }
    let layout = work.join("layout");
    fs::create_dir_all(layout.join("blobs/sha256"))?;
    let layer = layer(&work, top)?;
    let unpacked = digest(&layer)?;
    let level = if is_quick { "-1" } else { "-9" };
    process::run(Command::new("gzip").args(["--no-name", level]).arg(&layer))?;
    let packed = work.join("layer.tar.gz");
    let time =
        process::read(Command::new("date").args(["-u", "+%FT%TZ", "-d"]).arg(format!("@{}", date()?)))?;
    let config = configuration(platform, &unpacked, time.trim());
    let config = add(&layout, &work, "config.v1+json", &config)?;
    let layer = blob(&layout, &packed, "layer.v1.tar+gzip")?;
    let manifest = json!({
        "schemaVersion": 2, "mediaType": format!("{KIND}.manifest.v1+json"), "config": config, "layers": [layer],
    });
    let mut manifest = add(&layout, &work, "manifest.v1+json", &manifest)?;
    manifest["platform"] = json!({ "architecture": platform.debian, "os": "linux" });
    // The name under which tools load it.
    manifest["annotations"] = json!({ "org.opencontainers.image.ref.name": VERSION });
    let index =
        json!({ "schemaVersion": 2, "mediaType": format!("{KIND}.index.v1+json"), "manifests": [manifest] });
    fs::write(layout.join("index.json"), index.to_string())?;
    fs::write(layout.join("oci-layout"), json!({ "imageLayoutVersion": "1.0.0" }).to_string())?;
    let path = out.join(format!("numakit-{VERSION}-{}-image.tar", platform.machine));
    archive::pack(&mut Command::new("tar"), &path, &layout, &["blobs", "index.json", "oci-layout"])?;
    Ok(path)
}

/// The only layer: the programs, the names of numa, and what a program expects of a root.
fn layer(work: &Path, top: &Path) -> Result<PathBuf> {
    let root = work.join("root");
    tree::place(&top.join("bin/numa"), &root.join("usr/bin/numa"), 0o755)?;
    let drivers = Path::new("libexec/numakit").join(build::DRIVERS);
    tree::place(&top.join(&drivers), &root.join("usr").join(&drivers), 0o755)?;
    for name in build::OTHER_NAMES {
        symlink("numa", root.join("usr/bin").join(name))?;
    }
    for text in TEXTS {
        let file = Path::new("share/doc/numakit").join(text);
        tree::place(&top.join(&file), &root.join("usr").join(&file), 0o644)?;
    }
    fs::create_dir_all(root.join("etc"))?;
    let users = "root:x:0:0::/tmp:/usr/bin/numa\nnobody:x:65534:65534::/tmp:/usr/bin/numa\n";
    fs::write(root.join("etc/passwd"), users)?;
    for folder in ["tmp", "run", "proc", "sys", "dev"] {
        fs::create_dir_all(root.join(folder))?;
    }
    tree::readable(&root)?;
    let path = work.join("layer.tar");
    archive::pack(&mut Command::new("tar"), &path, &root, &["."])?;
    Ok(path)
}

fn configuration(platform: &Platform, layer: &str, time: &str) -> Value {
    json!({
        "created": time,
        "architecture": platform.debian,
        "os": "linux",
        "config": {
            "Entrypoint": ["/usr/bin/numa"],
            "Cmd": ["serve"],
            "Env": ["PATH=/usr/bin", "NUMAKIT_CACHE=/tmp/numakit", "XDG_RUNTIME_DIR=/tmp"],
            "ExposedPorts": { "9477/tcp": {} },
            "Labels": {
                "org.opencontainers.image.title": "numakit",
                "org.opencontainers.image.version": VERSION,
                "org.opencontainers.image.licenses": "MIT OR Apache-2.0",
            },
        },
        "rootfs": { "type": "layers", "diff_ids": [format!("sha256:{layer}")] },
        "history": [{ "created": time, "created_by": "cargo xtask package" }],
    })
}

/// Adds a document, and returns what others name it by.
fn add(layout: &Path, work: &Path, kind: &str, document: &Value) -> Result<Value> {
    let path = work.join("document");
    fs::write(&path, document.to_string())?;
    blob(layout, &path, kind)
}

/// Moves a file to the name of its checksum.
fn blob(layout: &Path, file: &Path, kind: &str) -> Result<Value> {
    let digest = digest(file)?;
    let size = fs::metadata(file)?.len();
    fs::rename(file, layout.join("blobs/sha256").join(&digest))?;
    Ok(json!({ "mediaType": format!("{KIND}.{kind}"), "digest": format!("sha256:{digest}"), "size": size }))
}

/// The checksum of a file.
pub fn digest(file: &Path) -> Result<String> {
    let line = process::read(Command::new("sha256sum").arg(file))?;
    let digest = line.split_whitespace().next();
    Ok(digest.with_context(|| format!("sha256sum says nothing of {}", file.display()))?.to_owned())
}
