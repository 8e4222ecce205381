//! Line breaks in long text.

/// Lines of at most `width` characters, broken at spaces; a longer word has its
/// own line. Without a width it is one line.
pub fn wrap(text: &str, width: Option<usize>) -> Vec<String> {
    let Some(width) = width else { return vec![text.to_owned()] };
    let mut lines = vec![String::new()];
    let mut used = 0;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if used > 0 && used + 1 + length > width {
            lines.push(String::new());
            used = 0;
        }
        if let Some(line) = lines.last_mut() {
            if used > 0 {
                line.push(' ');
                used += 1;
            }
            line.push_str(word);
            used += length;
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_as_long_as_allowed() {
        assert_eq!(wrap("a bb ccc dddd", Some(6)), ["a bb", "ccc", "dddd"]);
        assert_eq!(wrap("a bb ccc", Some(8)), ["a bb ccc"]);
        assert_eq!(wrap("toolong b", Some(3)), ["toolong", "b"]);
        assert_eq!(wrap("", Some(3)), [""]);
        assert_eq!(wrap("a  b", None), ["a  b"]);
    }
}
