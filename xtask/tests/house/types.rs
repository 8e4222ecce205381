//! Names of public types are unique.

use crate::{between, files, read};
use std::collections::{BTreeMap, BTreeSet};

/// Exceptions, with their reasons.
const SHARED: [(&str, &str); 0] = [];

const WORDS: [&str; 4] = ["struct ", "enum ", "trait ", "type "];

/// The public types that a source file declares.
fn types(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| {
        let rest = line.trim_start().strip_prefix("pub ")?;
        let name = WORDS.iter().find_map(|word| rest.strip_prefix(word))?;
        name.split(|c: char| !c.is_alphanumeric() && c != '_').next().filter(|name| starts_a_type(name))
    })
}

/// Everything after these words except an associated type starts with a capital.
fn starts_a_type(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_uppercase())
}

/// The files that declare each public type of the libraries.
fn declared() -> BTreeMap<String, BTreeSet<String>> {
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for path in files(&["rs"]) {
        let name = path.to_string_lossy().into_owned();
        if !name.starts_with("crates/") || !name.contains("/src/") || name.ends_with("tests.rs") {
            continue;
        }
        for one in types(&read(&path)) {
            found.entry(one.to_owned()).or_default().insert(name.clone());
        }
    }
    found
}

#[test]
fn no_two_public_types_have_the_same_name() {
    let declared = declared();
    assert!(declared.len() > 300, "{} types", declared.len());
    let twice: BTreeMap<_, _> = declared.iter().filter(|(_, places)| places.len() > 1).collect();
    let allowed: BTreeSet<&str> = SHARED.iter().map(|(name, _)| *name).collect();
    let names: BTreeSet<&str> = twice.keys().map(|name| name.as_str()).collect();
    assert_eq!(names, allowed, "rename one, or write the reason into SHARED: {twice:#?}");
}

#[test]
fn the_types_of_the_table_exist() {
    let text = read("ARCHITECTURE.md");
    let table = between(&text, "## Central types", "## ");
    let declared = declared();
    let mut rows = 0;
    for row in table.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        for name in cells[1].split(", ").map(|name| name.trim_matches('`')) {
            let places = declared.get(name).unwrap_or_else(|| panic!("there is no public type {name}"));
            let folder = format!("crates/{}/", cells[2]);
            assert!(places.iter().any(|place| place.starts_with(&folder)), "{name} is not in {folder}");
            rows += 1;
        }
    }
    assert!(rows > 10, "{rows}");
}

#[test]
fn declarations_are_found() {
    let text = "pub struct One<T>(T);\n    pub enum Two {}\nstruct Own;\npub(crate) type Near = u8;\npub fn no() {}\n";
    assert_eq!(types(text).collect::<Vec<_>>(), ["One", "Two"]);
}
