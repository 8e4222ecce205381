//! The rules of the project, checked: layers, lints, sizes, names, words, and that documents match
//! the folders and verbs that exist.
#![allow(clippy::unwrap_used)]

mod documents;
mod errors;
mod features;
mod kernel_files;
mod layers;
mod rules;
mod types;
mod words;

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

fn read(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// All files of the repository with one of these extensions, as paths below the root.
fn files(extensions: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    collect(root(), &mut found);
    let wanted = |path: &PathBuf| {
        let extension = path.extension().and_then(|e| e.to_str()).unwrap_or_default();
        extensions.contains(&extension)
    };
    found.retain(wanted);
    assert!(!found.is_empty(), "no files with {extensions:?}");
    found
}

fn collect(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_symlink()
            || name.starts_with('.')
            || ["target", "corpus", "node_modules"].contains(&&*name)
        {
            continue;
        }
        if path.is_dir() {
            collect(&path, found);
        } else {
            found.push(path.strip_prefix(root()).unwrap().to_owned());
        }
    }
}

/// Text of a document between two markers, without them.
fn between<'a>(text: &'a str, from: &str, to: &str) -> &'a str {
    let start = text.find(from).unwrap_or_else(|| panic!("'{from}' is missing")) + from.len();
    let end = text[start..].find(to).unwrap_or_else(|| panic!("'{to}' is missing"));
    &text[start..start + end]
}
