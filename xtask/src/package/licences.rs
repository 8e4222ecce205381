//! The licences of third-party code in the program.

use crate::process;
use anyhow::Result;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::Path;

/// Prefixes of names of licence files.
const NAMES: [&str; 4] = ["LICENSE", "LICENCE", "COPYING", "NOTICE"];

/// A list of all crates, then each licence text once with its crates. The web page contains one
/// package, which is in this folder.
pub fn of_all(uplot: &Path) -> Result<String> {
    let words = ["tree", "--locked", "--package", "numakit-cli", "--edges", "normal", "--prefix", "none"];
    let tree = process::read(process::cargo(&words).args(["--format", "{p}|{l}"]))?;
    let lines: BTreeSet<&str> = tree.lines().map(|line| line.trim_end_matches(" (*)")).collect();
    let metadata = process::read(&mut process::cargo(&["metadata", "--locked", "--format-version", "1"]))?;
    let metadata: Value = serde_json::from_str(&metadata)?;
    let mut list = String::from("numa is linked with these crates, and its web page with uPlot.\n\n");
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for text in texts_in(uplot)? {
        texts.entry(text).or_default().push("uPlot".into());
    }
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let (Some(name), Some(version)) = (package["name"].as_str(), package["version"].as_str()) else {
            continue;
        };
        let name = format!("{name} {version}");
        let linked = name.replace(' ', " v");
        // Crates of this repository have a path after their version.
        let Some(licence) = lines.iter().find_map(|line| line.strip_prefix(&linked)?.strip_prefix('|'))
        else {
            continue;
        };
        let _ = writeln!(list, "{name}: {licence}");
        let manifest = package["manifest_path"].as_str().unwrap_or_default();
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
