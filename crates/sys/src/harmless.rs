//! Text for a terminal. Names of programs, symbols and recordings come from others: a terminal must not obey what is in them.

use std::borrow::Cow;

/// The character that replaces one that is left out.
const LEFT_OUT: char = '\u{fffd}';

/// The text without characters that a terminal would obey, or that change the order of other characters. Each is replaced by
/// U+FFFD, so that columns and formats stay as they are. Line breaks and tabs stay; with `colors`, sequences that set colors
/// and weights stay too.
pub(crate) fn harmless(text: &str, colors: bool) -> Cow<'_, str> {
    if !text.chars().any(is_obeyed) {
        return Cow::Borrowed(text);
    }
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(is_obeyed) {
        clean.push_str(&rest[..at]);
        rest = &rest[at..];
        let kept = if colors { style(rest) } else { "" };
        if kept.is_empty() {
            clean.push(LEFT_OUT);
            let mut letters = rest.chars();
            letters.next();
            rest = letters.as_str();
        } else {
            clean.push_str(kept);
            rest = &rest[kept.len()..];
        }
    }
    clean.push_str(rest);
    Cow::Owned(clean)
}

fn is_obeyed(letter: char) -> bool {
    let reorders = matches!(letter, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    (letter.is_control() && letter != '\n' && letter != '\t') || reorders
}

/// The sequence that sets a style (`ESC [ NUMBERS m`) at the start of a text; empty if there is none.
fn style(text: &str) -> &str {
    let Some(numbers) = text.strip_prefix("\x1b[") else { return "" };
    let end = numbers.find(|letter: char| !letter.is_ascii_digit() && letter != ';');
    match end.filter(|&end| numbers[end..].starts_with('m')) {
        Some(end) => &text[..2 + end + 1],
        None => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_obeys_nothing_of_a_name() {
        let title = "a\x1b]0;PWNED\x07b\x1b[31mred\r\u{9b}2J";
        assert_eq!(harmless(title, false), "a\u{fffd}]0;PWNED\u{fffd}b\u{fffd}[31mred\u{fffd}\u{fffd}2J");
        assert_eq!(harmless(title, true), "a\u{fffd}]0;PWNED\u{fffd}b\x1b[31mred\u{fffd}\u{fffd}2J");
        assert_eq!(harmless("user\u{202e}nimda", false), "user\u{fffd}nimda");
        for text in ["", "plain\n\ttext \u{e4}\u{4e2d}", "{\"json\": \"\\u001b\"}"] {
            assert!(matches!(harmless(text, false), Cow::Borrowed(same) if same == text), "{text:?}");
        }
    }

    #[test]
    fn only_whole_styles_stay() {
        for text in ["\x1b[1mbold\x1b[0m", "\x1b[30;48;5;9mx", "\x1b[m"] {
            assert_eq!(harmless(text, true), text);
        }
        for text in ["\x1b[2J", "\x1b[1", "\x1b[", "\x1b", "\x1b[1;2H", "\x1b[?25m"] {
            assert!(!harmless(text, true).contains('\x1b'), "{text:?}");
        }
    }
}
