//! Patterns over names: `*`, `?`, `[..]` and `[!..]`, as in a shell.

use globset::{Glob, GlobMatcher};

/// A name, or a pattern over names.
#[derive(Debug)]
pub enum Pattern {
    /// Matches only itself. An invalid pattern, such as one with an open bracket, is a name too.
    Name(String),
    /// Has special characters.
    Glob(Box<GlobMatcher>),
}

impl Pattern {
    /// Parses a name or pattern.
    pub fn new(text: &str) -> Self {
        match Glob::new(text) {
            Ok(glob) if text.contains(['*', '?', '[']) => Self::Glob(Box::new(glob.compile_matcher())),
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
        assert!(!matches(&"*a".repeat(500), &"a".repeat(499)));
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
