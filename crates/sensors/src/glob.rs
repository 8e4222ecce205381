//! Patterns over names: `*`, `?`, `[..]` and `[!..]`, as in a shell.

use globset::{Glob, GlobMatcher};
use thiserror::Error;

/// The longest name or pattern, in bytes: the longest names of vendors' events have a third of it.
pub const MAX_BYTES: usize = 256;
/// Special characters in a pattern. Beyond a limit of their number, globset panics.
const MAX_SPECIAL: usize = 32;
/// How much of a refused text is shown.
const SHOWN: usize = 40;

/// Why a text is no name or pattern.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PatternError {
    /// It is too long.
    #[error("'{start}' has {bytes} bytes; give at most {limit}")]
    Long {
        /// How it begins.
        start: String,
        /// Its length.
        bytes: usize,
        /// The maximum.
        limit: usize,
    },
    /// It has too many special characters.
    #[error("'{start}' has {count} special characters (* ? [ {{); give at most {MAX_SPECIAL}")]
    Special {
        /// How it begins.
        start: String,
        /// Their number.
        count: usize,
    },
}

/// An error if a text from outside has more bytes than this, or more special characters than a pattern may have.
pub fn check(text: &str, limit: usize) -> Result<(), PatternError> {
    let start = || match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    };
    if text.len() > limit {
        return Err(PatternError::Long { start: start(), bytes: text.len(), limit });
    }
    match text.matches(['*', '?', '[', '{']).count() {
        count if count > MAX_SPECIAL => Err(PatternError::Special { start: start(), count }),
        _ => Ok(()),
    }
}

/// A name, or a pattern over names.
#[derive(Debug)]
pub enum Pattern {
    /// Matches only itself. An invalid pattern, such as one with an open bracket, is a name too, and so is one that [`check`]
    /// refuses.
    Name(String),
    /// Has special characters.
    Glob(Box<GlobMatcher>),
}

impl Pattern {
    /// Parses a name or pattern.
    pub fn new(text: &str) -> Self {
        match Glob::new(text) {
            Ok(glob) if text.contains(['*', '?', '[']) && check(text, MAX_BYTES).is_ok() => {
                Self::Glob(Box::new(glob.compile_matcher()))
            }
            _ => Self::Name(text.to_owned()),
        }
    }

    /// Whether the whole name matches.
    pub fn fits(&self, name: &str) -> bool {
        match self {
            Self::Name(own) => own == name,
            Self::Glob(glob) => glob.is_match(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn matches(pattern: &str, name: &str) -> bool {
        Pattern::new(pattern).fits(name)
    }

    #[test]
    fn patterns_fit_whole_names() {
        for (pattern, fits, does_not) in [
            ("pgfault", "pgfault", "pgfault2"),
            ("pg*", "pgfault", "apgfault"),
            ("*fault*", "vmstat.pgfault", "vmstat.pgfree"),
            ("a*b*c", "axxbxxc", "axxcxxb"),
            ("cpu?", "cpu1", "cpu12"),
            ("node[0-2]", "node1", "node3"),
            ("node[!0-2]", "node3", "node1"),
            ("x[]a]", "x]", "xb"),
            ("x[a", "x[a", "xa"),
            ("*", "", "never"),
            ("a**", "a", "b"),
        ] {
            assert!(matches(pattern, fits), "{pattern} {fits}");
            assert!(pattern == "*" || !matches(pattern, does_not), "{pattern} {does_not}");
        }
        assert!(!matches("", "a"));
        assert!(!matches("a*a", "a"));
    }

    #[test]
    fn a_pattern_of_stars_ends_soon() {
        assert!(!matches(&"*a".repeat(MAX_SPECIAL), &"a".repeat(MAX_SPECIAL - 1)));
    }

    #[test]
    fn long_patterns_are_refused_and_none_panics() {
        for special in ["*", "?", "[a]", "{a}", "{", "[", "**"] {
            let text = special.repeat(100_000);
            let error = check(&text, MAX_BYTES).unwrap_err().to_string();
            assert!(error.ends_with(" bytes; give at most 256") && error.len() < 200, "{error}");
            assert!(!matches(&text, "a"));
            let most =
                special.repeat((MAX_SPECIAL - 1) / special.matches(['*', '?', '[', '{']).count()) + "*";
            assert_eq!(check(&most, MAX_BYTES), Ok(()));
            matches(&most, "a");
        }
        let nested = "{".repeat(MAX_SPECIAL - 1) + "*" + &"}".repeat(MAX_SPECIAL - 1);
        assert!(matches(&nested, "a"));
        let many = check(&"*".repeat(33), MAX_BYTES).unwrap_err().to_string();
        assert!(many.ends_with("has 33 special characters (* ? [ {); give at most 32"), "{many}");
        assert_eq!(check(&"é".repeat(128), MAX_BYTES), Ok(()));
        assert!(check(&"é".repeat(200), MAX_BYTES).is_err());
    }

    proptest! {
        #[test]
        fn a_name_fits_itself_with_parts_replaced(name in "[a-z_.@0-9]{1,20}", at in 0usize..20) {
            let at = at % name.len();
            prop_assert!(matches(&name, &name));
            let (before, after) = name.split_at(at);
            let star = format!("{}*", before);
            let mark = format!("{}?{}", before, &after[1..]);
            prop_assert!(matches(&star, &name));
            prop_assert!(matches(&mark, &name));
        }

        #[test]
        fn nothing_makes_it_panic(pattern in "[a*?\\[\\]!^-]{0,12}", name in "[a\\[\\]-]{0,12}") {
            matches(&pattern, &name);
        }
    }
}
