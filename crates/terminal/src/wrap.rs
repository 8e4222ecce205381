//! Line breaks in long text.

/// Units that stay on the line of their number.
const UNITS: [&str; 13] = ["%", "ns", "us", "ms", "s", "min", "h", "B", "KiB", "MiB", "GiB", "TiB", "PiB"];

/// Lines of at most `width` characters, broken at spaces, but not between a number and its unit; a longer
/// word has its own line. Without a width it is one line.
pub fn wrap(text: &str, width: Option<usize>) -> Vec<String> {
    let Some(width) = width else { return vec![text.to_owned()] };
    let mut lines = vec![String::new()];
    let mut used = 0;
    for word in &words(text) {
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

/// The words of a text; a number and its unit are one.
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let is_unit = UNITS.contains(&word.trim_end_matches([',', ';', ':', '.', ')']));
        let is_number = |last: &str| last.trim_start_matches('(').starts_with(|c: char| c.is_ascii_digit());
        match words.last_mut().filter(|last| is_unit && is_number(last)) {
            Some(number) => {
                number.push(' ');
                number.push_str(word);
            }
            None => words.push(word.to_owned()),
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_as_long_as_allowed() {
        assert_eq!(wrap("a bb ccc dddd", Some(6)), ["a bb", "ccc", "dddd"]);
        assert_eq!(wrap("a bb ccc", Some(8)), ["a bb ccc"]);
        assert_eq!(wrap("toolong b", Some(3)), ["toolong", "b"]);
        assert_eq!(wrap("is 12.5 %, no", Some(8)), ["is", "12.5 %,", "no"]);
        assert_eq!(wrap("", Some(3)), [""]);
        assert_eq!(wrap("a  b", None), ["a  b"]);
    }
}
