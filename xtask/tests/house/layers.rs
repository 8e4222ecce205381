//! Dependencies between crates go downwards only, as the table in ARCHITECTURE.md says.

use crate::{between, files, read, root};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

type Uses = BTreeMap<String, BTreeSet<String>>;

/// The table, lowest layer first: crate and what it may use.
fn table() -> Vec<(String, BTreeSet<String>)> {
    let text = read("ARCHITECTURE.md");
    let rows = between(&text, "<!-- layers -->", "<!-- /layers -->").lines().filter(|l| l.starts_with("| `"));
    rows.map(|row| {
        let names = |cell: &str| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>();
        let cells: Vec<&str> = row.trim_matches('|').split('|').collect();
        assert!(cells.len() >= 2, "not a row of the table: {row}");
        (names(cells[0])[0].clone(), names(cells[1]).into_iter().collect())
    })
    .collect()
}

/// What each crate in crates/ depends on, apart from its tests: full names of packages.
fn dependencies() -> Uses {
    let cargo = std::env::var_os("CARGO").unwrap();
    let output = Command::new(cargo)
        .args(["metadata", "--no-deps", "--format-version", "1", "--offline"])
        .current_dir(root())
        .output()
        .unwrap();
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut uses = Uses::new();
    for package in metadata["packages"].as_array().unwrap() {
        let Some(role) = package["name"].as_str().unwrap().strip_prefix("numakit-") else { continue };
        let manifest = package["manifest_path"].as_str().unwrap();
        if !manifest.starts_with(root().join("crates").to_str().unwrap()) {
            continue;
        }
        assert!(
            manifest.ends_with(&format!("crates/{role}/Cargo.toml")),
            "folder of numakit-{role}: {manifest}"
        );
        let built = package["dependencies"].as_array().unwrap().iter().filter(|d| d["kind"] != "dev");
        uses.insert(role.to_owned(), built.map(|d| d["name"].as_str().unwrap().to_owned()).collect());
    }
    uses
}

#[test]
fn the_table_goes_downwards_only() {
    let mut lower = BTreeSet::new();
    for (role, may_use) in table() {
        let wrong: Vec<_> = may_use.difference(&lower).collect();
        assert!(wrong.is_empty(), "{role} may not use {wrong:?}: not above it in the table");
        assert!(lower.insert(role.clone()), "{role} is in the table twice");
    }
}

#[test]
fn crates_use_exactly_what_the_table_allows() {
    let table: BTreeMap<_, _> = table().into_iter().collect();
    for (role, dependencies) in dependencies() {
        let allowed = table
            .get(&role)
            .unwrap_or_else(|| panic!("crates/{role} is not in the table of layers in ARCHITECTURE.md"));
        let uses =
            dependencies.iter().filter_map(|d| d.strip_prefix("numakit-").map(str::to_owned)).collect();
        let wrong: Vec<_> = allowed.symmetric_difference(&uses).collect();
        assert!(
            wrong.is_empty(),
            "{role} uses {uses:?}, its row in ARCHITECTURE.md allows {allowed:?}: make both the same, {wrong:?}"
        );
    }
}

/// If a crate depended on it outside of tests, its test tools would be in the program.
#[test]
fn only_tests_use_the_crate_for_tests() {
    let users: Vec<_> = dependencies().into_iter().filter(|(_, d)| d.contains("numakit-testing")).collect();
    assert!(users.is_empty(), "testing belongs in [dev-dependencies]: {users:?}");
}

#[test]
fn every_dependency_is_used() {
    for (role, dependencies) in dependencies() {
        let folder = Path::new("crates").join(&role);
        let mut sources = files(&["rs"]);
        sources.retain(|path| path.starts_with(folder.join("src")) || *path == folder.join("build.rs"));
        let text: String = sources.iter().map(read).collect();
        let named = |package: &&String| text.contains(&package.replace('-', "_"));
        let unused: Vec<_> = dependencies.iter().filter(|d| !named(d)).collect();
        assert!(
            unused.is_empty(),
            "the sources of {role} do not name {unused:?}: remove them from its Cargo.toml"
        );
    }
}
