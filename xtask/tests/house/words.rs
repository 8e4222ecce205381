//! Documents and comments use the words of the field, and each word means one thing.

use crate::{files, read};
use std::collections::BTreeSet;
use std::path::PathBuf;

type Phrase = (&'static str, &'static str);

/// Phrases that readers stumble over, and what to write.
const PHRASES: [Phrase; 15] = [
    ("for ever", "stable, permanently"),
    ("to be had", "available, unavailable"),
    ("so many", "N"),
    ("parted by", "separated by"),
    ("laid down", "extracted"),
    ("lays down", "extracts"),
    ("whoever", "any CPU, any user"),
    ("whomever", "any CPU, any user"),
    ("sufferer", "finding"),
    ("sufferers", "findings"),
    ("be born", "start"),
    ("stands for", "is, means"),
    ("made whole", "scaled"),
    ("a figure", "a derived metric, a number"),
    ("told apart", "distinguished"),
];
/// The same in documents, where "by itself" never means "alone".
const IN_DOCUMENTS: [Phrase; 1] = [("by itself", "automatically, alone")];

/// The lines of a document without code and quoted phrases.
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

/// The comments of a source in Rust, C or TypeScript.
fn comments(text: &str) -> String {
    let mut block = false;
    let mut lines = String::new();
    for line in text.lines() {
        let trimmed = line.trim_start();
        let comment = if block || trimmed.starts_with("//") || trimmed.starts_with("/*") {
            trimmed
        } else {
            let outside_quotes = |at: &usize| line[..*at].replace("\\\"", "").matches('"').count() % 2 == 0;
            let end = line.match_indices(" // ").map(|(at, _)| at).find(outside_quotes);
            end.map_or("", |at| &line[at..])
        };
        block = (block || trimmed.starts_with("/*")) && !trimmed.contains("*/");
        // Code between two comments ends a sentence.
        lines += if comment.is_empty() { "|" } else { comment.trim_start_matches([' ', '/', '!', '*']) };
        lines.push('\n');
    }
    lines
}

fn odd_phrases(text: &str) -> Vec<Phrase> {
    let letters = |c: char| match c {
        '|' => '|',
        c if c.is_alphanumeric() => c.to_ascii_lowercase(),
        _ => ' ',
    };
    let words: String = prose(text).chars().map(letters).collect();
    let words = format!(" {} ", words.split_whitespace().collect::<Vec<_>>().join(" "));
    let phrases = PHRASES.into_iter().chain(IN_DOCUMENTS);
    phrases.filter(|(phrase, _)| words.contains(&format!(" {phrase} "))).collect()
}

#[test]
fn documents_use_the_words_of_the_field() {
    let odd = |path: &PathBuf| {
        odd_phrases(&read(path)).into_iter().map(|odd| (path.clone(), odd)).collect::<Vec<_>>()
    };
    let all: Vec<_> = files(&["md"]).iter().flat_map(odd).collect();
    assert!(all.is_empty(), "documents have odd phrases (file, phrase, what to write): {all:#?}");
}

#[test]
fn comments_use_the_words_of_the_field() {
    let odd = |path: &PathBuf| {
        let odd = odd_phrases(&comments(&read(path))).into_iter().filter(|odd| PHRASES.contains(odd));
        odd.map(|odd| (path.clone(), odd)).collect::<Vec<_>>()
    };
    let all: Vec<_> = files(&["rs", "c", "h", "ts"]).iter().flat_map(odd).collect();
    assert!(all.is_empty(), "comments have odd phrases (file, phrase, what to write): {all:#?}");
}

#[test]
fn odd_phrases_are_found_in_prose_only() {
    let odd = |text: &str| odd_phrases(text).into_iter().map(|(phrase, _)| phrase).collect::<Vec<_>>();
    assert_eq!(odd("Names are for\never, not for every one."), ["for ever"]);
    assert!(odd("Write N, not \"so many\".\n```\nso many\n```\n").is_empty());
    let code = "/// Parted\n/// by commas.\nlet url = \"a // so many\"; // told apart\n/* to be\n * had */ for\nlet ever;\n";
    assert_eq!(odd(&comments(code)), ["to be had", "parted by", "told apart"]);
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
    assert_eq!(terms.iter().collect::<BTreeSet<_>>().len(), terms.len(), "a term occurs twice: {terms:?}");
}
