//! Each library is compiled once: whatever is built, it has the same features.

use crate::root;
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// Libraries with their features, as Cargo chooses them for these packages.
fn features(words: &[&str]) -> BTreeSet<String> {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["tree", "--locked", "--prefix", "none", "--format", "{p} has {f}"]).args(words);
    let output = cargo.current_dir(root()).output().unwrap();
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let libraries = text.lines().map(|line| line.trim_end_matches(" (*)"));
    libraries
        .filter(|line| !line.starts_with("numakit-") && !line.starts_with("xtask "))
        .map(str::to_owned)
        .collect()
}

fn packages() -> Vec<String> {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["metadata", "--no-deps", "--format-version", "1"]).current_dir(root());
    let metadata: serde_json::Value = serde_json::from_slice(&cargo.output().unwrap().stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap().iter();
    packages.map(|package| package["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn libraries_have_the_same_features_whatever_is_built() {
    let all = features(&["--workspace", "--edges", "normal,dev"]);
    assert!(all.len() > 200, "{}", all.len());
    // Tests of one package, the tasks, and numa as `cargo xtask run` builds it.
    let mut others: BTreeMap<String, BTreeSet<String>> = packages()
        .iter()
        .map(|name| (format!("tests of {name}"), features(&["--package", name, "--edges", "normal,dev"])))
        .collect();
    others.insert("xtask".to_owned(), features(&["--package", "xtask", "--edges", "normal"]));
    others.insert("numa".to_owned(), features(&["--workspace", "--edges", "normal"]));
    for (what, features) in others {
        let fewer: Vec<&String> = features.difference(&all).collect();
        assert!(
            fewer.is_empty(),
            "for {what}, Cargo compiles libraries again, with other features: {fewer:#?}\nadd what is missing to \
             tests/features/Cargo.toml, and numakit-features to the package's dev-dependencies"
        );
    }
}
