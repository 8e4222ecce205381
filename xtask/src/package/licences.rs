//! The crates and packages of others in the program, and their licences.

use super::platform::Platform;
use crate::process;
use anyhow::Result;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::Path;

/// Prefixes of names of licence files.
const NAMES: [&str; 4] = ["LICENSE", "LICENCE", "COPYING", "NOTICE"];

/// The packages of npm that the web page contains.
pub const PAGE_PACKAGES: [&str; 1] = ["uplot"];

/// A crate that is linked into the program, and is not of this repository.
pub struct ThirdParty {
    pub name: String,
    pub version: String,
    /// The expression in its manifest.
    pub licence: String,
    /// The path of the manifest.
    pub manifest: String,
}

/// The crates of others that are linked into the program for a platform.
pub fn linked(platform: &Platform) -> Result<Vec<ThirdParty>> {
    let words = [
        "tree",
        "--locked",
        "--package",
        "numakit-cli",
        "--package",
        "numakit-drivers",
        "--edges",
        "normal",
        "--prefix",
        "none",
    ];
    let mut tree = process::cargo(&words);
    let tree = process::read(tree.args(["--format", "{p}|{l}", "--target", platform.triple]))?;
    let lines: BTreeSet<&str> = tree.lines().map(|line| line.trim_end_matches(" (*)")).collect();
    let metadata = process::read(&mut process::cargo(&["metadata", "--locked", "--format-version", "1"]))?;
    let metadata: Value = serde_json::from_str(&metadata)?;
    let third_party = |package: &Value| {
        let text = |key: &str| Some(package[key].as_str()?.to_owned());
        let (name, version) = (text("name")?, text("version")?);
        let linked = format!("{name} v{version}");
        // Crates of this repository have a path after their version.
        let licence = lines.iter().find_map(|line| line.strip_prefix(&linked)?.strip_prefix('|'))?;
        Some(ThirdParty { name, version, licence: licence.to_owned(), manifest: text("manifest_path")? })
    };
    Ok(metadata["packages"].as_array().into_iter().flatten().filter_map(third_party).collect())
}

/// A list of all crates, then each licence text once with its crates. `page` is the folder of the packages of the web page.
pub fn of_all(crates: &[ThirdParty], page: &Path) -> Result<String> {
    let mut list = String::from("numa is linked with these crates, and its web page with uPlot.\n\n");
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for name in PAGE_PACKAGES {
        for text in texts_in(&page.join(name))? {
            texts.entry(text).or_default().push(name.to_owned());
        }
    }
    for ThirdParty { name, version, licence, manifest } in crates {
        let name = format!("{name} {version}");
        let _ = writeln!(list, "{name}: {licence}");
        for text in texts_in(Path::new(manifest).parent().unwrap_or(Path::new("")))? {
            texts.entry(text).or_default().push(name.clone());
        }
    }
    for (text, crates) in texts {
        let _ = write!(list, "\n{}\n{}:\n\n{}\n", "-".repeat(80), crates.join(", "), text);
    }
    Ok(list)
}

/// The licence texts in a folder of sources.
fn texts_in(folder: &Path) -> Result<Vec<String>> {
    let mut texts = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
        if path.is_file() && NAMES.iter().any(|begin| name.starts_with(begin)) {
            texts.push(String::from_utf8_lossy(&fs::read(&path)?).trim_end().to_owned());
        }
    }
    Ok(texts)
}
