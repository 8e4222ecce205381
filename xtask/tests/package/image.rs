//! The image of containers: its documents name its parts, and the program starts in nothing but its layer.

use super::{ending, good, packages};
use crate::root::Root;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The file that a document names, whose checksum and size must be those of the document.
fn named(layout: &Path, by: &Value) -> PathBuf {
    let digest = by["digest"].as_str().unwrap().strip_prefix("sha256:").unwrap();
    let path = layout.join("blobs/sha256").join(digest);
    let sum = good(&Command::new("sha256sum").arg(&path).output().unwrap());
    assert_eq!(sum.split_whitespace().next(), Some(digest));
    assert_eq!(fs::metadata(&path).unwrap().len(), by["size"].as_u64().unwrap());
    path
}

fn document(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

#[test]
#[ignore = "thorough: it builds the packages, 3 minutes"]
fn the_image_has_all_that_its_documents_name_and_starts() {
    let Some(out) = packages() else { return };
    let Some(root) = Root::empty("image") else { return };
    let layout = root.path("/layout");
    fs::create_dir_all(&layout).unwrap();
    let unpack = |archive: &Path, to: &Path| {
        let mut tar = Command::new("tar");
        good(&tar.arg("-xf").arg(archive).arg("--no-same-owner").arg("-C").arg(to).output().unwrap());
    };
    unpack(&ending(out, "-image.tar").unwrap(), &layout);
    assert_eq!(document(&layout.join("oci-layout"))["imageLayoutVersion"], "1.0.0");
    let index = document(&layout.join("index.json"));
    let manifest = document(&named(&layout, &index["manifests"][0]));
    let config = document(&named(&layout, &manifest["config"]));
    let layer = named(&layout, &manifest["layers"][0]);
    assert_eq!(index["manifests"][0]["platform"]["architecture"], config["architecture"]);
    assert_eq!(manifest["layers"].as_array().unwrap().len(), 1);
    let unpacked =
        Command::new("sh").args(["-c", "gzip -dc \"$0\" | sha256sum"]).arg(&layer).output().unwrap();
    let digest = format!("sha256:{}", good(&unpacked).split_whitespace().next().unwrap());
    assert_eq!(config["rootfs"]["diff_ids"][0], *digest);
    unpack(&layer, &root.path("/"));
    let entry = config["config"]["Entrypoint"][0].as_str().unwrap();
    assert!(good(&root.program(entry, &["topo"]).output().unwrap()).contains("node 0"));
}
