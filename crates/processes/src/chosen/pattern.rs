//! Patterns of names, as `pgrep` and `grep -E` have them: a pattern matches any part of a name unless `^` or `$` bind it to an end.

use std::str::FromStr;
use thiserror::Error;

/// A pattern that is understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamePattern {
    text: String,
    alternatives: Vec<Alternative>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Alternative {
    from_start: bool,
    to_end: bool,
    items: Vec<(Letter, Repeat)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Letter {
    Any,
    Only(char),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Repeat {
    Once,
    Optional,
    Any,
    Several,
}

/// A pattern that is not understood.
#[derive(Debug, Error, PartialEq, Eq)]
#[error(
    "'{text}': {problem}; known are letters, . * + ? | ^ $ and \\ before one of these; for others give --pid \
     \"$(pgrep -d, '{text}')\""
)]
pub struct NamePatternError {
    text: String,
    problem: String,
}

impl FromStr for NamePattern {
    type Err = NamePatternError;

    fn from_str(text: &str) -> Result<Self, NamePatternError> {
        let problem = |problem: String| NamePatternError { text: text.to_owned(), problem };
        if text.is_empty() {
            return Err(problem("the pattern is empty and would match all programs".to_owned()));
        }
        let mut alternatives = vec![Alternative::default()];
        let mut letters = text.chars();
        while let Some(letter) = letters.next() {
            let Some(last) = alternatives.last_mut() else { break };
            let repeat = match letter {
                '*' => Repeat::Any,
                '+' => Repeat::Several,
                '?' => Repeat::Optional,
                _ => Repeat::Once,
            };
            match letter {
                '|' => alternatives.push(Alternative::default()),
                '^' if last.items.is_empty() && !last.from_start => last.from_start = true,
                '$' if letters.clone().next().is_none_or(|next| next == '|') => last.to_end = true,
                '*' | '+' | '?' => match last.items.last_mut() {
                    Some((_, known @ Repeat::Once)) => *known = repeat,
                    _ => return Err(problem(format!("'{letter}' repeats nothing"))),
                },
                '(' | ')' | '[' | ']' | '{' | '}' | '^' | '$' => {
                    return Err(problem(format!("'{letter}' is not understood there")));
                }
                '.' => last.items.push((Letter::Any, Repeat::Once)),
                '\\' => {
                    let next = letters.next().ok_or_else(|| problem("'\\' is the last letter".to_owned()))?;
                    last.items.push((Letter::Only(next), Repeat::Once));
                }
                other => last.items.push((Letter::Only(other), Repeat::Once)),
            }
        }
        Ok(Self { text: text.to_owned(), alternatives })
    }
}

impl NamePattern {
    /// The pattern as it was given.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether a part of a name matches.
    pub fn matches(&self, name: &str) -> bool {
        self.alternatives.iter().any(|alternative| alternative.matches(name))
    }
}

impl Alternative {
    /// Follows all ways to match at once, so that the time is bounded by the lengths of pattern and name.
    fn matches(&self, name: &str) -> bool {
        let end = self.items.len();
        let mut reached = vec![false; end + 1];
        self.reach(0, &mut reached);
        if reached[end] && !self.to_end {
            return true;
        }
        for letter in name.chars() {
            let mut next = vec![false; end + 1];
            for (at, (wanted, repeat)) in self.items.iter().enumerate().filter(|(at, _)| reached[*at]) {
                if *wanted != Letter::Any && *wanted != Letter::Only(letter) {
                    continue;
                }
                if matches!(repeat, Repeat::Any | Repeat::Several) {
                    self.reach(at, &mut next);
                }
                self.reach(at + 1, &mut next);
            }
            if !self.from_start {
                self.reach(0, &mut next);
            }
            if next[end] && !self.to_end {
                return true;
            }
            reached = next;
        }
        reached[end]
    }

    /// Marks an item as the next one, with those that follow it if it may be left out.
    fn reach(&self, at: usize, reached: &mut [bool]) {
        for (place, mark) in reached.iter_mut().enumerate().skip(at) {
            *mark = true;
            if !matches!(self.items.get(place), Some((_, Repeat::Any | Repeat::Optional))) {
                break;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn matches(pattern: &str, name: &str) -> bool {
        pattern.parse::<NamePattern>().unwrap().matches(name)
    }

    #[test]
    fn a_pattern_matches_a_part_of_the_name_as_pgrep_does() {
        for (pattern, name, is_match) in [
            ("post", "postgres", true),
            ("gres", "postgres", true),
            ("^gres", "postgres", false),
            ("^postgres$", "postgres", true),
            ("^postgres$", "postgres_exporter", false),
            ("java|python3?$", "python", true),
            ("java|python3?$", "python3", true),
            ("java|python3?$", "python3.11", false),
            ("python3\\.11", "python3.11", true),
            ("python3\\.11", "python3x11", false),
            ("k.*r/[0-9]*".split('/').next().unwrap(), "kworker", true),
            ("^a+b$", "aaab", true),
            ("^a+b$", "b", false),
            ("^a*b$", "b", true),
            ("^$", "", true),
            ("^$", "x", false),
        ] {
            assert_eq!(matches(pattern, name), is_match, "{pattern} {name}");
        }
    }

    #[test]
    fn what_is_not_understood_is_refused_with_the_way_out() {
        for (pattern, problem) in [
            ("", "is empty"),
            ("a(b)", "'(' is not understood"),
            ("[ab]", "'[' is not understood"),
            ("a$b", "'$' is not understood"),
            ("*a", "'*' repeats nothing"),
            ("a**", "'*' repeats nothing"),
            ("a\\", "last letter"),
        ] {
            let error = pattern.parse::<NamePattern>().unwrap_err().to_string();
            assert!(error.contains(problem) && error.contains("pgrep -d,"), "{error}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_understood_or_refused(pattern in ".{0,20}", name in ".{0,15}") {
            if let Ok(pattern) = pattern.parse::<NamePattern>() {
                pattern.matches(&name);
            }
        }

        #[test]
        fn letters_match_where_they_are_contained(pattern in "[a-c]{1,3}", name in "[a-c]{0,8}") {
            prop_assert_eq!(matches(&pattern, &name), name.contains(&pattern));
        }
    }
}
