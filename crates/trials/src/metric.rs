//! What is compared: the time of a run, or a number that the program or another command prints.

use regex::Regex;
use serde::{Deserialize, Serialize};
use std::fmt;
use thiserror::Error;

/// What of a run is compared.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum TrialMetric {
    /// The time from its start to its end.
    #[default]
    WallTime,
    /// The CPU time of the program and all that it starts.
    CpuTime,
    /// The number that a pattern finds in what the program prints: the first group, or all of it.
    Output {
        /// A regular expression.
        pattern: String,
    },
    /// The number that a command prints after the run.
    Command {
        /// As a shell takes it.
        line: String,
    },
}

impl fmt::Display for TrialMetric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WallTime => f.write_str("time"),
            Self::CpuTime => f.write_str("CPU time"),
            Self::Output { pattern } => write!(f, "'{pattern}'"),
            Self::Command { line } => write!(f, "'{line}'"),
        }
    }
}

/// Why there is no number to compare.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum FigureError {
    /// The pattern is none.
    #[error("'{pattern}' is no regular expression: {why}")]
    Pattern {
        /// What was given.
        pattern: String,
        /// What is wrong with it.
        why: String,
    },
    /// Nothing matches.
    #[error("nothing that the program printed matches '{0}'")]
    NoMatch(String),
    /// There is text without a number.
    #[error("'{0}' is no number")]
    NoNumber(String),
    /// The number cannot be compared.
    #[error(
        "the metric is {0}, and only positive numbers can be compared by their ratio; give one that is above 0"
    )]
    NotPositive(f64),
}

/// Letters of a text that are shown.
const SHOWN: usize = 40;

/// Compiles a pattern, which matches at most one line unless it says otherwise.
pub fn pattern(pattern: &str) -> Result<Regex, FigureError> {
    let made = regex::RegexBuilder::new(pattern).multi_line(true).build();
    made.map_err(|error| {
        // The first lines show the place by spaces.
        let text = error.to_string();
        let why = text.lines().next_back().unwrap_or_default().trim_start_matches("error: ").to_owned();
        FigureError::Pattern { pattern: pattern.to_owned(), why }
    })
}

/// The number that a pattern finds: of several matches the last one, as programs print their result at the end.
pub fn found(by: &Regex, text: &str) -> Result<f64, FigureError> {
    let last = by.captures_iter(text).last().ok_or_else(|| FigureError::NoMatch(by.as_str().to_owned()))?;
    let group = last.iter().skip(1).flatten().next().or_else(|| last.get(0));
    number(group.map_or("", |group| group.as_str()))
}

/// A positive number, with or without commas between thousands.
pub fn number(text: &str) -> Result<f64, FigureError> {
    let plain = text.trim().replace(',', "");
    let value: f64 =
        plain.parse().map_err(|_| FigureError::NoNumber(text.trim().chars().take(SHOWN).collect()))?;
    if value > 0.0 && value.is_finite() { Ok(value) } else { Err(FigureError::NotPositive(value)) }
}

/// The number in what a command prints: its last word that is a number.
pub fn printed(text: &str) -> Result<f64, FigureError> {
    let words = text.split_ascii_whitespace().rev();
    let mut numbers = words.filter(|word| word.replace(',', "").parse::<f64>().is_ok());
    match numbers.next() {
        Some(word) => number(word),
        None => number(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_found_in_text() {
        let tps = pattern(r"^tps = ([\d.]+)").unwrap();
        assert_eq!(found(&tps, "warm\ntps = 12.5 (without)\ntps = 1300.25\n"), Ok(1300.25));
        assert_eq!(
            found(&pattern(r"[\d,]+ requests").unwrap(), "1,234 requests").unwrap_err().to_string(),
            "'1,234 requests' is no number"
        );
        assert_eq!(found(&pattern(r"(?:a|(b)) (\d+)").unwrap(), "a 7"), Ok(7.0));
        assert_eq!(found(&tps, "nothing").unwrap_err(), FigureError::NoMatch(r"^tps = ([\d.]+)".into()));
        assert_eq!(number("1,234.5"), Ok(1234.5));
        assert!(matches!(number("-3"), Err(FigureError::NotPositive(_))));
        assert!(matches!(number("0"), Err(FigureError::NotPositive(_))));
        assert!(matches!(number("inf"), Err(FigureError::NotPositive(_))));
        assert_eq!(printed("calls 17 in 4.5 s\n"), Ok(4.5));
        assert_eq!(printed(" count \n-------\n 99\n(1 row)\n"), Ok(99.0));
        assert_eq!(printed("no rows").unwrap_err().to_string(), "'no rows' is no number");
    }

    #[test]
    fn a_pattern_that_is_none_says_what_is_wrong() {
        let error = pattern("tps = ([").unwrap_err().to_string();
        assert!(error.contains("'tps = (['") && error.contains("unclosed"), "{error}");
    }
}
