//! The terms of an event: `event=0x1f+0x40*i,umask=0x7fe`.

use thiserror::Error;

/// Fields of an event with their values, which may depend on an index `i`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Terms(Vec<Term>);

/// One field: `base + step * i`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Term {
    field: String,
    base: u64,
    step: u64,
}

/// Terms that cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "'{term}' is not a term of an event; write FIELD, FIELD=NUMBER or FIELD=NUMBER+NUMBER*i, separated by commas, as in 'event=0x4,umask=0x3'"
)]
pub struct TermError {
    /// The term.
    pub term: String,
}

impl Terms {
    /// Parses terms; a field without a value has the value 1. Numbers are decimal or, after `0x`,
    /// hexadecimal.
    pub fn parse(text: &str) -> Result<Self, TermError> {
        let terms = text
            .split(',')
            .map(|term| parse_term(term.trim()).ok_or_else(|| TermError { term: term.trim().to_owned() }));
        terms.collect::<Result<_, _>>().map(Self)
    }

    /// Each field with its value at an index.
    pub fn at(&self, index: u64) -> impl Iterator<Item = (&str, u64)> {
        self.0.iter().map(move |t| (t.field.as_str(), t.base.wrapping_add(t.step.wrapping_mul(index))))
    }

    /// Whether the values depend on the index.
    pub fn indexed(&self) -> bool {
        self.0.iter().any(|t| t.step != 0)
    }
}

fn parse_term(text: &str) -> Option<Term> {
    let (field, value) = text.split_once('=').unwrap_or((text, "1"));
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if field.is_empty() || !field.chars().all(word) {
        return None;
    }
    let (base, step) = match value.split_once('+') {
        Some((base, growth)) => (base, growth.trim().strip_suffix('i')?.trim().strip_suffix('*')?.trim()),
        None => (value, "0"),
    };
    Some(Term { field: field.to_owned(), base: number(base.trim())?, step: number(step)? })
}

fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) if !digits.starts_with('+') => u64::from_str_radix(digits, 16).ok(),
        None if text.starts_with(|c: char| c.is_ascii_digit()) => text.parse().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_have_fields_numbers_and_an_index() {
        let terms = Terms::parse("event=0x1f+0x40*i,umask=0x7fe,inv").unwrap();
        assert!(terms.indexed());
        assert_eq!(terms.at(2).collect::<Vec<_>>(), [("event", 0x9f), ("umask", 0x7fe), ("inv", 1)]);
        assert!(!Terms::parse("event=4").unwrap().indexed());
    }

    #[test]
    fn invalid_terms_are_named() {
        for bad in ["", "event=", "event=0x", "=3", "event=4,", "event=0xg", "event=1+2", "a b=1", "event=-1"]
        {
            let error = Terms::parse(bad).unwrap_err();
            assert!(error.to_string().contains("FIELD=NUMBER"), "{bad}");
        }
    }
}
