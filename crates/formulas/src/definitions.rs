//! A file of formulas.
//!
//! ```text
//! # A comment.
//! name: quantity = formula          # another
//!     | a line that begins with an operator, or inside a parenthesis, continues the formula
//!     Any other indented line is the description.
//! ```

use crate::catalog::{Formula, FormulaError, MAX_BYTES};
use crate::dimension::Quantity;
use crate::expression::{Function, MEAN};
use crate::parser::parse;
use numakit_model::suggest::nearest;
use std::char::EscapeDefault;
use thiserror::Error;

/// What is wrong with a line.
#[derive(Debug, Error)]
enum LineError {
    #[error("the file is longer than {} MiB; split it", MAX_BYTES >> 20)]
    TooLong,
    #[error("control character {0}; remove it")]
    Control(EscapeDefault),
    #[error("an indented line before the first formula; begin with 'NAME: QUANTITY = FORMULA'")]
    Indented,
    #[error("'{0}' is not a definition; write 'NAME: QUANTITY = FORMULA', and indent descriptions")]
    Definition(String),
    #[error("'{0}' cannot be a name; use letters, digits and _, beginning with a letter")]
    Name(String),
    #[error("'{0}' is a function; choose another name")]
    Function(String),
    #[error("'{name}' is not a quantity{}; use one of {}", near(name), Quantity::ALL.map(Quantity::name).join(", "))]
    Quantity { name: String },
    #[error("{0} already has a formula; remove one")]
    Formula(String),
}

/// The quantity whose name is most similar.
fn near(name: &str) -> String {
    let like = nearest(name, Quantity::ALL.map(Quantity::name), 1);
    like.first().map_or_else(String::new, |near| format!(", nearest: {near}"))
}

/// A definition that is not complete yet.
struct Open {
    name: String,
    quantity: Quantity,
    help: String,
    /// Lines of the formula with their numbers.
    text: Vec<(usize, String)>,
    /// Number of parentheses that are open at its end.
    parentheses: i64,
    line: usize,
}

/// All definitions of a file, in its order. `origin` is the name of the file.
pub(crate) fn read(text: &str, origin: &str) -> Result<Vec<Formula>, FormulaError> {
    let wrong = |line: usize, error: LineError| FormulaError {
        origin: origin.to_owned(),
        line,
        message: error.to_string(),
    };
    if text.len() > MAX_BYTES {
        return Err(wrong(1, LineError::TooLong));
    }
    let mut done: Vec<Formula> = Vec::new();
    let mut open: Option<Open> = None;
    for (line, raw) in text.lines().enumerate().map(|(at, raw)| (at + 1, raw)) {
        if let Some(c) = raw.chars().find(|c| c.is_control() && *c != '\t') {
            return Err(wrong(line, LineError::Control(c.escape_default())));
        }
        let trimmed = raw.trim();
        if trimmed.is_empty() || trimmed.starts_with('#') {
            continue;
        }
        if raw.starts_with(char::is_whitespace) {
            let Some(open) = &mut open else {
                return Err(wrong(line, LineError::Indented));
            };
            open.append(line, trimmed).map_err(|error| wrong(line, error))?;
            continue;
        }
        if let Some(open) = open.take() {
            done.push(open.close(origin)?);
        }
        open = Some(begin(line, trimmed).map_err(|error| wrong(line, error))?);
    }
    if let Some(open) = open {
        done.push(open.close(origin)?);
    }
    Ok(done)
}

/// `name: quantity = formula`; the formula may follow on the next lines.
fn begin(line: usize, text: &str) -> Result<Open, LineError> {
    let text = without_comment(text);
    let (head, formula) = text.split_once('=').map_or((text, None), |(head, rest)| (head, Some(rest.trim())));
    let Some((name, quantity)) = head.split_once(':').map(|(n, q)| (n.trim(), q.trim())) else {
        return Err(LineError::Definition(head.trim().to_owned()));
    };
    let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    if !name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') || !name.bytes().all(plain) {
        return Err(LineError::Name(name.to_owned()));
    }
    if name == MEAN || Function::ALL.iter().any(|f| f.name() == name) {
        return Err(LineError::Function(name.to_owned()));
    }
    let Some(quantity) = Quantity::named(quantity) else {
        return Err(LineError::Quantity { name: quantity.to_owned() });
    };
    let (name, help, text) = (name.to_owned(), String::new(), Vec::new());
    let mut open = Open { name, quantity, help, text, parentheses: 0, line };
    if let Some(formula) = formula.filter(|text| !text.is_empty()) {
        open.push(line, formula);
    }
    Ok(open)
}

impl Open {
    fn append(&mut self, line: usize, text: &str) -> Result<(), LineError> {
        if self.parentheses > 0 || text.starts_with(['=', '|', '+', '-', '*', '/', '(', ')']) {
            let part = without_comment(text);
            let part = match part.strip_prefix('=') {
                Some(_) if !self.text.is_empty() => {
                    return Err(LineError::Formula(self.name.clone()));
                }
                Some(rest) => rest,
                None => part,
            };
            self.push(line, part.trim());
        } else {
            let space = if self.help.is_empty() { "" } else { " " };
            self.help.push_str(space);
            self.help.push_str(text);
        }
        Ok(())
    }

    fn push(&mut self, line: usize, text: &str) {
        for byte in text.bytes() {
            self.parentheses += i64::from(byte == b'(') - i64::from(byte == b')');
        }
        self.text.push((line, text.to_owned()));
    }

    fn close(self, origin: &str) -> Result<Formula, FormulaError> {
        let text = self.text.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>().join("\n");
        let expr = parse(&text).map_err(|wrong| {
            // Each line of the formula is one line of this text.
            let part = text.get(..wrong.at).map_or(0, |before| before.matches('\n').count());
            let line = self.text.get(part).map_or(self.line, |(line, _)| *line);
            FormulaError {
                origin: origin.to_owned(),
                line,
                message: format!("{}: {}", self.name, wrong.message),
            }
        })?;
        Ok(Formula {
            name: self.name,
            quantity: self.quantity,
            help: self.help,
            expr,
            origin: origin.to_owned(),
            line: self.line,
            replaces: None,
        })
    }
}

fn without_comment(text: &str) -> &str {
    text.split_once('#').map_or(text, |(text, _)| text).trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        read(text, "my.txt").unwrap_err().to_string()
    }

    #[test]
    fn definitions_have_a_formula_and_a_description() {
        let text = "# mine\n\nfree: bytes = a.b # memory\n    Free memory,\n    all of it.\n\
                    long: percent\n    Said first.\n    = 100 * x.y\n    # between\n    | min(z.w,\n    5)\nlast: ns = 1ns\n";
        let all = read(text, "my.txt").unwrap();
        let seen: Vec<(&str, String, &str, usize)> =
            all.iter().map(|f| (f.name.as_str(), f.expr.to_string(), f.help.as_str(), f.line)).collect();
        assert_eq!(
            seen,
            [
                ("free", "a.b".to_owned(), "Free memory, all of it.", 3),
                ("long", "100 * x.y | min(z.w, 5)".to_owned(), "Said first.", 6),
                ("last", "1ns".to_owned(), "", 12),
            ]
        );
    }

    #[test]
    fn mistakes_name_file_line_and_fix() {
        for (text, expected) in [
            (
                "\n  help",
                "my.txt, line 2: an indented line before the first formula; begin with 'NAME: QUANTITY = FORMULA'",
            ),
            (
                "a = b.c",
                "my.txt, line 1: 'a' is not a definition; write 'NAME: QUANTITY = FORMULA', and indent descriptions",
            ),
            (
                "a.b: bytes = c.d",
                "my.txt, line 1: 'a.b' cannot be a name; use letters, digits and _, beginning with a letter",
            ),
            ("min: bytes = c.d", "my.txt, line 1: 'min' is a function; choose another name"),
            (
                "a: percents = c.d",
                "my.txt, line 1: 'percents' is not a quantity, nearest: percent; use one of percent, bytes,",
            ),
            (
                "a: bytes\nb: count = c.d",
                "my.txt, line 1: a: a name, a number or '(' is missing before the end; add one",
            ),
            (
                "a: bytes = b.c\n  + d.e\n  + * 2",
                "my.txt, line 3: a: a name, a number or '(' is missing before '*'",
            ),
            ("a: bytes = b.c\n  = d.e", "my.txt, line 2: a already has a formula; remove one"),
            ("a: bytes = \u{1b}[2J", "my.txt, line 1: control character \\u{1b}; remove it"),
        ] {
            assert!(error(text).starts_with(expected), "{text:?}: {}", error(text));
        }
        assert!(error(&"#".repeat(MAX_BYTES + 1)).contains("longer than 1 MiB"));
    }
}
