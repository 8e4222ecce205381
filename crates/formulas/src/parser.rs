//! Parses the tokens of a formula into its tree.
//!
//! ```text
//! first   = sum { "|" sum }
//! sum     = product { ("+" | "-") product }
//! product = unary { ("*" | "/") unary }
//! unary   = "-" unary | atom
//! atom    = number | name [ "?" ] | "mean" "(" name ")" | function "(" first "," first ")" | "(" first ")"
//! ```

use crate::expression::{Expr, Function, MEAN};
use crate::lexer::{SyntaxError, Token, Word, tokens};

/// Maximum nesting of parentheses, so that garbage cannot exhaust the stack.
const MAX_NESTING: usize = 32;

/// Parses one formula.
pub(crate) fn parse(text: &str) -> Result<Expr, SyntaxError> {
    let tokens = tokens(text)?;
    let mut parser = Parser { tokens: &tokens, end: text.len(), depth: 0 };
    let expr = parser.first()?;
    match parser.tokens.first() {
        None => Ok(expr),
        Some(token) => Err(SyntaxError::new(
            token.at,
            format!("unexpected {}; put an operator before it, or remove it", shown(token.what)),
        )),
    }
}

struct Parser<'a> {
    tokens: &'a [Token<'a>],
    end: usize,
    depth: usize,
}

impl<'a> Parser<'a> {
    fn next(&mut self) -> Option<Token<'a>> {
        let (first, rest) = self.tokens.split_first()?;
        self.tokens = rest;
        Some(*first)
    }

    /// Takes the next token if it is one of these signs.
    fn sign(&mut self, signs: &[char]) -> Option<char> {
        match self.tokens.first()?.what {
            Word::Sign(sign) if signs.contains(&sign) => {
                self.next();
                Some(sign)
            }
            _ => None,
        }
    }

    fn expect(&mut self, sign: char, fix: &str) -> Result<(), SyntaxError> {
        if self.sign(&[sign]).is_some() {
            return Ok(());
        }
        let (at, seen) = self.here();
        Err(SyntaxError::new(at, format!("'{sign}' is missing before {seen}; {fix}")))
    }

    fn here(&self) -> (usize, String) {
        self.tokens.first().map_or((self.end, "the end".to_owned()), |t| (t.at, shown(t.what)))
    }

    fn first(&mut self) -> Result<Expr, SyntaxError> {
        self.depth += 1;
        if self.depth > MAX_NESTING {
            let fix = "make parts of it separate formulas";
            return Err(SyntaxError::new(self.here().0, format!("nested deeper than {MAX_NESTING}; {fix}")));
        }
        let one = self.sum()?;
        let mut parts = vec![one];
        while self.sign(&['|']).is_some() {
            parts.push(self.sum()?);
        }
        self.depth -= 1;
        Ok(if parts.len() == 1 { parts.remove(0) } else { Expr::First(parts) })
    }

    fn sum(&mut self) -> Result<Expr, SyntaxError> {
        let row = self.row(&['+', '-'], Self::product)?;
        Ok(unwrap_single(row, Expr::Sum))
    }

    fn product(&mut self) -> Result<Expr, SyntaxError> {
        let row = self.row(&['*', '/'], Self::unary)?;
        Ok(unwrap_single(row, Expr::Product))
    }

    /// Operands separated by one of two signs; true means the second one.
    fn row(
        &mut self,
        signs: &[char; 2],
        operand: fn(&mut Self) -> Result<Expr, SyntaxError>,
    ) -> Result<Vec<(bool, Expr)>, SyntaxError> {
        let mut row = vec![(false, operand(self)?)];
        while let Some(sign) = self.sign(signs) {
            row.push((sign == signs[1], operand(self)?));
        }
        Ok(row)
    }

    fn unary(&mut self) -> Result<Expr, SyntaxError> {
        let mut negative = false;
        while self.sign(&['-']).is_some() {
            negative = !negative;
        }
        let atom = self.atom()?;
        Ok(if negative { Expr::Sum(vec![(true, atom)]) } else { atom })
    }

    fn atom(&mut self) -> Result<Expr, SyntaxError> {
        let (at, seen) = self.here();
        match self.next().map(|t| t.what) {
            Some(Word::Number(value, unit)) => Ok(Expr::Number(value, unit)),
            Some(Word::Name(name)) => self.named(name, at),
            Some(Word::Quoted(name)) => Ok(self.metric_or_zero(name)),
            Some(Word::Sign('(')) => {
                let inner = self.first()?;
                self.expect(')', "close the parenthesis")?;
                Ok(inner)
            }
            _ => Err(SyntaxError::new(
                at,
                format!("a name, a number or '(' is missing before {seen}; add one"),
            )),
        }
    }

    fn named(&mut self, name: &str, at: usize) -> Result<Expr, SyntaxError> {
        if name == MEAN {
            let usage = "write mean(NAME), with the name of a metric";
            self.expect('(', usage)?;
            let (at, _) = self.here();
            let Some(Word::Name(metric) | Word::Quoted(metric)) = self
                .next()
                .map(|t| t.what)
                .filter(|w| matches!(w, Word::Name(n) | Word::Quoted(n) if n.contains('.')))
            else {
                return Err(SyntaxError::new(at, format!("mean takes one metric; {usage}")));
            };
            self.expect(')', usage)?;
            return Ok(Expr::Mean(metric.to_owned()));
        }
        if let Some(function) = Function::ALL.into_iter().find(|f| f.name() == name) {
            let usage = format!("write {name}(A, B)");
            self.expect('(', &usage)?;
            let first = self.first()?;
            self.expect(',', &usage)?;
            let second = self.first()?;
            self.expect(')', &usage)?;
            return Ok(Expr::Call(function, Box::new([first, second])));
        }
        if self.tokens.first().is_some_and(|t| t.what == Word::Sign('(')) {
            let known = Function::ALL.map(Function::name).join(", ");
            return Err(SyntaxError::new(
                at,
                format!("unknown function '{name}'; the functions are {known}, {MEAN}"),
            ));
        }
        if name.ends_with('.') || name.contains("..") {
            return Err(SyntaxError::new(at, format!("'{name}' is not a name; 'numa list' shows the names")));
        }
        Ok(self.metric_or_zero(name))
    }

    fn metric_or_zero(&mut self, name: &str) -> Expr {
        let name = name.to_owned();
        if self.sign(&['?']).is_some() { Expr::OrZero(name) } else { Expr::Name(name) }
    }
}

fn unwrap_single(mut row: Vec<(bool, Expr)>, make: fn(Vec<(bool, Expr)>) -> Expr) -> Expr {
    if row.len() == 1 { row.remove(0).1 } else { make(row) }
}

fn shown(word: Word<'_>) -> String {
    match word {
        Word::Number(value, unit) => format!("'{value}{}'", unit.map_or("", |u| u.name())),
        Word::Name(name) | Word::Quoted(name) => format!("'{name}'"),
        Word::Sign(sign) => format!("'{sign}'"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_print_without_redundant_parentheses() {
        for (text, printed) in [
            ("a+b*c", "a + b * c"),
            ("(a+b)*c|d", "(a + b) * c | d"),
            ("a-(b-c)", "a - (b - c)"),
            ("a/(b*c)/2", "a / (b * c) / 2"),
            ("((a))", "a"),
            ("(a|b)+c?", "(a | b) + c?"),
            ("mean( a.b )/2", "mean(a.b) / 2"),
            ("- a * - - b", "(-a) * b"),
            ("min(a, max(b|c,0))", "min(a, max(b | c, 0))"),
            ("1e9*share(a.x, 64B)", "1e9 * share(a.x, 64B)"),
            ("\"n.A(b)\"?+mean(\"p.x-y\")+\"n.c\"", "\"n.A(b)\"? + mean(\"p.x-y\") + n.c"),
        ] {
            let expr = parse(text).unwrap();
            assert_eq!(expr.to_string(), printed, "{text}");
            assert_eq!(parse(printed).unwrap().to_string(), printed);
        }
    }

    #[test]
    fn mistakes_have_an_offset_and_a_fix() {
        for (text, at, message) in [
            ("", 0, "a name, a number or '(' is missing before the end; add one"),
            ("a +", 3, "is missing before the end"),
            ("a + \"n.b", 4, "a name in quotes ends with a quote"),
            ("\"\"", 0, "a name in quotes ends with a quote"),
            ("a * )", 4, "is missing before ')'"),
            ("(a", 2, "')' is missing before the end; close the parenthesis"),
            ("a b", 2, "unexpected 'b'; put an operator before it, or remove it"),
            ("min(a)", 5, "',' is missing before ')'; write min(A, B)"),
            ("max", 3, "'(' is missing before the end; write max(A, B)"),
            ("sum(a, b)", 0, "unknown function 'sum'; the functions are min, max, share, mean"),
            ("a..b", 0, "'a..b' is not a name"),
            ("mean(a)", 5, "mean takes one metric; write mean(NAME)"),
            ("2?", 1, "unexpected '?'"),
        ] {
            let wrong = parse(text).unwrap_err();
            assert_eq!(wrong.at, at, "{text}: {}", wrong.message);
            assert!(wrong.message.contains(message), "{text}: {}", wrong.message);
        }
        let deep = "(".repeat(100_000);
        assert!(parse(&deep).unwrap_err().message.contains("nested deeper than 32"));
        assert!(parse(&"-".repeat(100_000)).is_err());
    }
}
