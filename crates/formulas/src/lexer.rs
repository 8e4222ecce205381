//! Splits the text of a formula into tokens.

use crate::expression::Constant;

/// A token, with the offset where it begins.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Token<'a> {
    pub(crate) at: usize,
    pub(crate) what: Word<'a>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Word<'a> {
    Number(f64, Option<Constant>),
    Name(&'a str),
    /// A name in quotes, which may have any character but a quote.
    Quoted(&'a str),
    /// One of `+ - * / | ? , ( )`.
    Sign(char),
}

/// What is wrong with a formula, and where.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SyntaxError {
    pub(crate) at: usize,
    pub(crate) message: String,
}

impl SyntaxError {
    pub(crate) fn new(at: usize, message: impl Into<String>) -> Self {
        Self { at, message: message.into() }
    }
}

/// All tokens of a text.
pub(crate) fn tokens(text: &str) -> Result<Vec<Token<'_>>, SyntaxError> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(next) = text[at..].chars().next() {
        let rest = &text[at..];
        let (what, length) = match next {
            _ if next.is_whitespace() => {
                at += next.len_utf8();
                continue;
            }
            '0'..='9' | '.' => number(rest, at)?,
            'a'..='z' | 'A'..='Z' | '_' => {
                let length = run(rest, |b| b.is_ascii_alphanumeric() || b == b'_' || b == b'.');
                (Word::Name(&rest[..length]), length)
            }
            '"' => {
                let name = rest[1..].split_once('"').map(|(name, _)| name).filter(|name| !name.is_empty());
                let unclosed = "a name in quotes ends with a quote, as in \"node.Active(anon)\"";
                let name = name.ok_or_else(|| SyntaxError::new(at, unclosed))?;
                (Word::Quoted(name), name.len() + 2)
            }
            '+' | '-' | '*' | '/' | '|' | '?' | ',' | '(' | ')' => (Word::Sign(next), 1),
            _ => {
                let message = format!(
                    "'{}' is not allowed in a formula; use names, numbers and + - * / | ? , ( )",
                    next.escape_default()
                );
                return Err(SyntaxError::new(at, message));
            }
        };
        tokens.push(Token { at, what });
        at += length;
    }
    Ok(tokens)
}

fn run(text: &str, belongs: impl Fn(u8) -> bool) -> usize {
    text.bytes().take_while(|&b| belongs(b)).count()
}

/// `64`, `2.5`, `1e9`, with a unit directly after it: `64B`.
fn number(text: &str, at: usize) -> Result<(Word<'static>, usize), SyntaxError> {
    let digits = |from: usize| run(&text[from..], |b| b.is_ascii_digit());
    let mut length = digits(0);
    if text[length..].starts_with('.') {
        length += 1 + digits(length + 1);
    }
    if text[length..].starts_with(['e', 'E']) {
        let sign = usize::from(text[length + 1..].starts_with(['+', '-']));
        let exponent = digits(length + 1 + sign);
        if exponent > 0 {
            length += 1 + sign + exponent;
        }
    }
    let value = text[..length].parse::<f64>().ok().filter(|v| v.is_finite());
    let value = value.ok_or_else(|| {
        SyntaxError::new(at, format!("'{}' is not a number; write it as 64, 2.5 or 1e9", &text[..length]))
    })?;
    let suffix = run(&text[length..], |b| b.is_ascii_alphanumeric() || b == b'_' || b == b'.');
    if suffix == 0 {
        return Ok((Word::Number(value, None), length));
    }
    let name = &text[length..length + suffix];
    let unit = Constant::ALL.into_iter().find(|unit| unit.name() == name).ok_or_else(|| {
        let units = Constant::ALL.map(Constant::name).join(", ");
        SyntaxError::new(
            at,
            format!("'{name}' after a number is not a unit; use one of {units}, or a space and an operator"),
        )
    })?;
    Ok((Word::Number(value, Some(unit)), length + suffix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_of_every_kind() {
        let found: Vec<Word<'_>> = tokens("100*a.b_2?|1.5e3B").unwrap().into_iter().map(|t| t.what).collect();
        let expected = [
            Word::Number(100.0, None),
            Word::Sign('*'),
            Word::Name("a.b_2"),
            Word::Sign('?'),
            Word::Sign('|'),
            Word::Number(1500.0, Some(Constant::Byte)),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn errors_have_an_offset() {
        let wrong = |text: &str| tokens(text).unwrap_err();
        assert_eq!(wrong("a + §").at, 4);
        assert!(wrong("1e999").message.contains("is not a number"));
        assert!(wrong(".").message.contains("is not a number"));
        assert!(wrong("64x").message.starts_with("'x' after a number is not a unit; use one of B, KiB"));
        assert!(wrong("1e").message.contains("'e' after a number"));
    }
}
