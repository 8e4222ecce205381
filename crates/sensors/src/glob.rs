//! Patterns over names: `*`, `?` and `[..]`, as in a shell.

/// Whether a pattern has anything in it that stands for more than itself.
pub fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?', '['])
}

/// Whether the whole name fits. `*` is any text, `?` any character, `[a-c0]` one of these and
/// `[!a]` or `[^a]` none of these; a bracket that is never closed stands for itself.
pub fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name) = (pattern.as_bytes(), name.as_bytes());
    let (mut p, mut n) = (0, 0);
    // Where to go on when what follows the last `*` did not fit: let it stand for one more.
    let mut retry = None;
    loop {
        if pattern.get(p) == Some(&b'*') {
            p += 1;
            retry = Some((p, n));
            continue;
        }
        let Some(&byte) = name.get(n) else {
            return p == pattern.len();
        };
        if let Some(length) = one(&pattern[p..], byte) {
            (p, n) = (p + length, n + 1);
        } else if let Some((after, covered)) = retry {
            retry = Some((after, covered + 1));
            (p, n) = (after, covered + 1);
        } else {
            return false;
        }
    }
}

/// How much of the pattern stands for this byte, if its beginning does.
fn one(pattern: &[u8], byte: u8) -> Option<usize> {
    match pattern.first()? {
        b'?' => Some(1),
        b'[' => match bracket(pattern, byte) {
            Some((true, length)) => Some(length),
            Some((false, _)) => None,
            None => (byte == b'[').then_some(1),
        },
        literal => (*literal == byte).then_some(1),
    }
}

/// Whether a closed bracket at the beginning has the byte, and its length.
fn bracket(pattern: &[u8], byte: u8) -> Option<(bool, usize)> {
    let negated = matches!(pattern.get(1), Some(b'!' | b'^'));
    let first = 1 + usize::from(negated);
    // A closing bracket that comes first is one of the set.
    let end = first + 1 + pattern.get(first + 1..)?.iter().position(|&b| b == b']')?;
    let mut set = &pattern[first..end];
    let mut found = false;
    while let Some((&low, rest)) = set.split_first() {
        let (high, rest) = match rest {
            [b'-', high, rest @ ..] => (*high, rest),
            _ => (low, rest),
        };
        found |= (low..=high).contains(&byte);
        set = rest;
    }
    Some((found != negated, end + 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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
