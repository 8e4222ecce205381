//! Documents use the words of the field, and each word means one thing.

use crate::{files, read};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Phrases that readers stumble over, and what to write.
const PHRASES: [(&str, &str); 11] = [
    ("for ever", "stable, permanently"),
    ("to be had", "available, unavailable"),
    ("so many", "N"),
    ("parted by", "separated by"),
    ("laid down", "extracted"),
    ("whomever", "any CPU, any user"),
    ("sufferer", "finding"),
    ("stands for", "is, means"),
    ("a figure", "a derived metric, a number"),
    ("told apart", "distinguished"),
    ("by itself", "automatically, alone"),
];

/// The lines of a document that are no code, quoted phrases left out.
fn prose(text: &str) -> String {
    let mut code = false;
    let mut lines = String::new();
    for line in text.lines() {
        code ^= line.trim_start().starts_with("```");
        let unquoted = line.split('"').step_by(2).flat_map(|part| [part, " "]);
        lines.extend(unquoted.filter(|_| !code));
    }
    lines
}

fn odd_phrases(text: &str) -> Vec<&'static str> {
    let letters = |c: char| if c.is_alphanumeric() { c.to_ascii_lowercase() } else { ' ' };
    let words: String = prose(text).chars().map(letters).collect();
    let words = format!(" {} ", words.split_whitespace().collect::<Vec<_>>().join(" "));
    let found = PHRASES.iter().filter(|(phrase, _)| words.contains(&format!(" {phrase} ")));
    found.map(|(phrase, _)| *phrase).collect()
}

#[test]
fn documents_use_the_words_of_the_field() {
    let odd = |path: &PathBuf| {
        let better = |phrase| PHRASES.iter().find(|(odd, _)| *odd == phrase).map(|(_, better)| *better);
        let words = odd_phrases(&read(path));
        words.into_iter().map(|odd| (path.clone(), odd, better(odd))).collect::<Vec<_>>()
    };
    let all: Vec<_> = files(&["md"]).iter().flat_map(odd).collect();
    assert!(all.is_empty(), "documents have odd phrases (file, phrase, what to write): {all:#?}");
}

#[test]
fn odd_phrases_are_found_in_prose_only() {
    assert_eq!(odd_phrases("Names are for\never, not for every one."), ["for ever"]);
    assert!(odd_phrases("Write N, not \"so many\".\n```\nso many\n```\n").is_empty());
}

#[test]
fn the_glossary_has_each_term_once() {
    let text = read("CONTRIBUTING.md");
    let (_, glossary) = text.split_once("### Glossary").unwrap();
    let (glossary, _) = glossary.split_once("\n## ").unwrap();
    let rows = glossary.lines().filter(|line| line.starts_with("| "));
    let terms: Vec<&str> = rows
        .filter_map(|row| row.split('|').nth(1))
        .flat_map(|cell| cell.split(','))
        .map(str::trim)
        .filter(|term| *term != "term")
        .collect();
    assert!(terms.len() > 40, "{terms:?}");
    assert_eq!(terms.iter().collect::<BTreeSet<_>>().len(), terms.len(), "a term is there twice: {terms:?}");
}
