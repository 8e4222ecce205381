//! Documents name folders and verbs that exist.

use crate::{between, files, read, root};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The folders and files that the tree in ARCHITECTURE.md shows.
fn tree() -> BTreeSet<PathBuf> {
    let architecture = read("ARCHITECTURE.md");
    let mut stack: Vec<(usize, PathBuf)> = Vec::new();
    let mut shown = BTreeSet::new();
    for line in between(&architecture, "<!-- tree -->", "<!-- /tree -->").lines() {
        let depth = line.len() - line.trim_start().len();
        let Some(name) = line.split_whitespace().next().filter(|n| !n.starts_with("```")) else { continue };
        stack.retain(|(above, _)| *above < depth);
        let parent = stack.last().map(|(_, path)| path.clone()).unwrap_or_default();
        let path = parent.join(name.trim_end_matches('/'));
        stack.push((depth, path.clone()));
        shown.insert(path);
    }
    shown
}

fn folders(dir: &str) -> BTreeSet<PathBuf> {
    let entries = fs::read_dir(root().join(dir)).unwrap().map(|entry| entry.unwrap());
    let visible = entries.filter(|entry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        entry.path().is_dir() && !name.starts_with('.') && name != "target"
    });
    visible.map(|entry| Path::new(dir).join(entry.file_name())).collect()
}

#[test]
fn the_tree_in_the_readme_is_the_real_one() {
    let shown = tree();
    for path in &shown {
        assert!(root().join(path).exists(), "ARCHITECTURE.md shows {}, which does not exist", path.display());
    }
    for folder in folders("").union(&folders("crates")) {
        assert!(shown.contains(folder), "ARCHITECTURE.md does not show {}", folder.display());
    }
}

/// Words after `numa ` in quoted commands.
fn verbs_named_in(text: &str) -> BTreeSet<&str> {
    let quoted = text.match_indices("numa ").filter(|(at, _)| {
        let before = &text[..*at];
        before.is_empty() || ["`", "'", "\n", "$ "].iter().any(|quote| before.ends_with(quote))
    });
    let word = |(at, found): (usize, &str)| {
        let rest = &text[at + found.len()..];
        let end = rest.find(|c: char| !c.is_ascii_lowercase() && c != '-').unwrap_or(rest.len());
        // Not an option.
        Some(&rest[..end]).filter(|word| !word.is_empty() && !word.starts_with('-'))
    };
    quoted.filter_map(word).collect()
}

/// Programs that documents run with numa; the digits of `python3` are no part of a verb.
const PROGRAMS: [&str; 3] = ["java", "mpirun", "python"];

#[test]
fn verbs_that_documents_and_messages_name_exist() {
    let command = numakit_cli::command();
    let mut verbs: BTreeSet<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
    verbs.extend(PROGRAMS);
    for path in files(&["md", "rs"]) {
        let text = read(&path);
        for word in verbs_named_in(&text) {
            assert!(verbs.contains(word), "{} names 'numa {word}', which does not exist", path.display());
        }
    }
}

#[test]
fn commands_in_text_are_found() {
    let text = "Run `numa stat -i 1s` or\n$ numa record; a program for numa\nnuma topo --json; lib numa_x; 'numa alloc-work 7'; `numa --help`";
    assert_eq!(verbs_named_in(text), BTreeSet::from(["alloc-work", "stat", "record", "topo"]));
}

#[test]
fn tasks_that_documents_name_exist() {
    let tasks = read("xtask/src/main.rs");
    for path in files(&["md"]) {
        for part in read(&path).split("cargo xtask ").skip(1) {
            let end = part.find(|c: char| !c.is_ascii_lowercase()).unwrap_or(part.len());
            let task = &part[..end];
            let known = task.is_empty() || tasks.contains(&format!("name: \"{task}\""));
            assert!(known, "{} names 'cargo xtask {task}', which does not exist", path.display());
        }
    }
}

#[test]
fn every_document_is_in_the_index() {
    let index = read("docs/README.md");
    for path in files(&["md"]).iter().filter_map(|path| path.strip_prefix("docs").ok()) {
        let listed = index.contains(&format!("({})", path.display()));
        assert!(listed || path == Path::new("README.md"), "docs/README.md does not list {}", path.display());
    }
}

#[test]
fn links_work() {
    for path in files(&["md"]) {
        let folder = root().join(&path).parent().unwrap().to_owned();
        for link in read(&path).split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let file = link.split('#').next().unwrap();
            let outside = link.starts_with("http") || file.is_empty() || link.contains(char::is_whitespace);
            assert!(outside || folder.join(file).exists(), "{} links to {link}", path.display());
        }
    }
}
