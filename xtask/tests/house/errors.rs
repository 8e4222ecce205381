//! Errors of libraries have types: a text can be shown, but callers cannot distinguish errors.

use super::{files, read};
use std::path::Path;

/// Types of errors that are texts.
const TEXTS: [&str; 3] = ["String", "&str", "&'static str"];

#[test]
fn no_library_has_a_text_for_an_error() {
    let mut found = Vec::new();
    for path in files(&["rs"]).into_iter().filter(|path| is_of_a_library(path)) {
        found.extend(texts(code(&read(&path))).map(|line| format!("{}:{line}", path.display())));
    }
    assert!(found.is_empty(), "make these errors a type with thiserror: {}", found.join(", "));
}

#[test]
fn the_rule_finds_what_it_forbids() {
    let lines = |text: &str| texts(text).collect::<Vec<usize>>();
    assert_eq!(lines("fn a() -> Result<(), String> {"), [1]);
    assert_eq!(lines("\nfn a() -> io::Result<Result<Vec<(u8, u8)>, &'static str>> {"), [2]);
    assert_eq!(lines("fn a(b: &dyn Fn(u8) -> Result<\n    u8,\n    String,\n>) {"), [1]);
    assert_eq!(lines("fn a() -> Result<BTreeMap<String, String>, Error> {"), [0; 0]);
    assert_eq!(lines("fn a() -> Option<(Result<String, Error>, String)> {"), [0; 0]);
    assert_eq!(code("fn a() {}\n#[cfg(test)]\nmod tests {\nfn b() -> Result<(), String>"), "fn a() {}\n");
}

fn is_of_a_library(path: &Path) -> bool {
    path.starts_with("crates")
        && !path.starts_with("crates/cli")
        && path.components().any(|part| part.as_os_str() == "src")
        && !path.ends_with("tests.rs")
        && !path.components().any(|part| part.as_os_str() == "tests")
}

/// A file without its tests, which are its end.
fn code(text: &str) -> &str {
    text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default()
}

/// The lines with the start of a `Result` whose error is a text.
fn texts(text: &str) -> impl Iterator<Item = usize> + '_ {
    const RESULT: &str = "Result<";
    let begins = text.match_indices(RESULT).map(|(at, _)| at);
    let is_text = |at: &usize| {
        let error = second_argument(&text[at + RESULT.len()..]);
        error.is_some_and(|error| TEXTS.contains(&error))
    };
    begins.filter(is_text).map(|at| text[..at].matches('\n').count() + 1)
}

/// The second of the type arguments that start here.
fn second_argument(text: &str) -> Option<&str> {
    let (mut depth, mut comma) = (0, None);
    for (at, c) in text.char_indices() {
        match c {
            '<' | '(' | '[' => depth += 1,
            // An arrow is not a closing bracket.
            '>' if text[..at].ends_with('-') => {}
            '>' if depth == 0 => return Some(text[comma? + 1..at].trim().trim_end_matches(',').trim_end()),
            '>' | ')' | ']' => depth -= 1,
            ',' if depth == 0 => comma = comma.or(Some(at)),
            _ => {}
        }
    }
    None
}
