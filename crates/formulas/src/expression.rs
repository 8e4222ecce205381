//! A formula as a tree.

use crate::dimension::Dimension;
use std::fmt;

/// A formula, or a part of one.
#[derive(Debug, Clone, PartialEq)]
pub enum Expr {
    /// A number, with its unit if it has one.
    Number(f64, Option<Constant>),
    /// The sum of all series of a metric, a fact of the machine, or another formula.
    Name(String),
    /// The same, or 0 where it cannot be computed or was not measured.
    OrZero(String),
    /// The mean of all series of a metric, for values that are equal everywhere, such as clocks.
    Mean(String),
    /// Terms to add (false) or subtract (true).
    Sum(Vec<(bool, Expr)>),
    /// Factors to multiply by (false) or divide by (true).
    Product(Vec<(bool, Expr)>),
    /// The first that can be computed.
    First(Vec<Expr>),
    /// A function of two values.
    Call(Function, Box<[Expr; 2]>),
}

/// The function of one metric.
pub(crate) const MEAN: &str = "mean";

/// The functions of two values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Function {
    /// The smaller.
    Min,
    /// The larger.
    Max,
    /// The first as a percentage of the second, from 0 to 100: two counters are
    /// not read at one instant, so the part may be ahead of the whole.
    Share,
}

impl Function {
    /// Every function.
    pub(crate) const ALL: [Self; 3] = [Self::Min, Self::Max, Self::Share];

    /// As it is written.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Min => "min",
            Self::Max => "max",
            Self::Share => "share",
        }
    }
}

/// A unit after a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Constant {
    /// `B`
    Byte,
    /// `KiB`
    Kibibyte,
    /// `MiB`
    Mebibyte,
    /// `GiB`
    Gibibyte,
    /// `page`: the machine's base page size.
    Page,
    /// `s`
    Second,
    /// `ms`
    Millisecond,
    /// `us`
    Microsecond,
    /// `ns`
    Nanosecond,
    /// `cycle`
    Cycle,
}

impl Constant {
    /// Every unit.
    pub(crate) const ALL: [Self; 10] = [
        Self::Byte,
        Self::Kibibyte,
        Self::Mebibyte,
        Self::Gibibyte,
        Self::Page,
        Self::Second,
        Self::Millisecond,
        Self::Microsecond,
        Self::Nanosecond,
        Self::Cycle,
    ];

    /// As it is written.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Byte => "B",
            Self::Kibibyte => "KiB",
            Self::Mebibyte => "MiB",
            Self::Gibibyte => "GiB",
            Self::Page => "page",
            Self::Second => "s",
            Self::Millisecond => "ms",
            Self::Microsecond => "us",
            Self::Nanosecond => "ns",
            Self::Cycle => "cycle",
        }
    }
}

impl Expr {
    /// Every name in it, in order.
    pub fn names(&self) -> Vec<&str> {
        let mut names = Vec::new();
        self.walk(&mut |part| {
            if let Self::Name(name) | Self::OrZero(name) | Self::Mean(name) = part {
                names.push(name.as_str());
            }
        });
        names
    }

    /// Visits every part, the whole first.
    fn walk<'a>(&'a self, visit: &mut dyn FnMut(&'a Self)) {
        visit(self);
        self.parts().for_each(|part| part.walk(visit));
    }

    /// Its direct parts.
    pub(crate) fn parts(&self) -> impl Iterator<Item = &Self> {
        let (signed, plain): (&[(bool, Self)], &[Self]) = match self {
            Self::Number(..) | Self::Name(_) | Self::OrZero(_) | Self::Mean(_) => (&[], &[]),
            Self::Sum(terms) | Self::Product(terms) => (terms, &[]),
            Self::First(parts) => (&[], parts),
            Self::Call(_, arguments) => (&[], arguments.as_slice()),
        };
        signed.iter().map(|(_, part)| part).chain(plain)
    }

    /// Its precedence; a part whose precedence is too low needs parentheses.
    fn precedence(&self) -> u8 {
        match self {
            Self::First(_) => 0,
            Self::Sum(_) => 1,
            Self::Product(_) => 2,
            _ => 3,
        }
    }

    fn write(&self, f: &mut fmt::Formatter<'_>, min: u8) -> fmt::Result {
        if self.precedence() < min {
            f.write_str("(")?;
            self.write(f, 0)?;
            return f.write_str(")");
        }
        match self {
            Self::Number(value, unit) => {
                let exponent = *value != 0.0 && !(1e-4..1e6).contains(&value.abs());
                let (plain, short) = (value.to_string(), format!("{value:e}"));
                let digits = if exponent && short.len() < plain.len() { short } else { plain };
                write!(f, "{digits}{}", unit.map_or("", Constant::name))
            }
            Self::Name(name) => write!(f, "{}", Written(name)),
            Self::OrZero(name) => write!(f, "{}?", Written(name)),
            Self::Mean(name) => write!(f, "{MEAN}({})", Written(name)),
            Self::Sum(terms) => row(f, terms, ["+", "-"], 2),
            Self::Product(factors) => row(f, factors, ["*", "/"], 3),
            Self::First(parts) => {
                for (at, part) in parts.iter().enumerate() {
                    f.write_str(if at == 0 { "" } else { " | " })?;
                    part.write(f, 1)?;
                }
                Ok(())
            }
            Self::Call(function, arguments) => {
                write!(f, "{}({}, {})", function.name(), arguments[0], arguments[1])
            }
        }
    }
}

/// A name as it is written in a formula: in quotes if it has special characters.
struct Written<'a>(&'a str);

impl fmt::Display for Written<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'.';
        if self.0.bytes().all(plain) { f.write_str(self.0) } else { write!(f, "\"{}\"", self.0) }
    }
}

fn row(f: &mut fmt::Formatter<'_>, parts: &[(bool, Expr)], signs: [&str; 2], min: u8) -> fmt::Result {
    for (at, (second, part)) in parts.iter().enumerate() {
        match (at, *second) {
            (0, false) => {}
            (0, true) => f.write_str(signs[1])?,
            (_, second) => write!(f, " {} ", signs[usize::from(second)])?,
        }
        part.write(f, min)?;
    }
    Ok(())
}

/// As it could be typed: with single spaces, and parentheses only where they are needed.
impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, 0)
    }
}

impl Constant {
    /// The dimension of the number.
    pub(crate) fn dimension(self, page_size_known: bool) -> Dimension {
        match self {
            Self::Page if !page_size_known => Dimension::PAGES,
            Self::Byte | Self::Kibibyte | Self::Mebibyte | Self::Gibibyte | Self::Page => Dimension::BYTES,
            Self::Second | Self::Millisecond | Self::Microsecond | Self::Nanosecond => Dimension::SECONDS,
            Self::Cycle => Dimension::CYCLES,
        }
    }

    /// The factor to base units: bytes, seconds, cycles. Pages of unknown size stay pages.
    pub(crate) fn factor(self, page_size: u64) -> f64 {
        match self {
            Self::Byte | Self::Second | Self::Cycle => 1.0,
            Self::Kibibyte => 1024.0,
            Self::Mebibyte => 1_048_576.0,
            Self::Gibibyte => 1_073_741_824.0,
            Self::Page => page_size.max(1) as f64,
            Self::Millisecond => 1e-3,
            Self::Microsecond => 1e-6,
            Self::Nanosecond => 1e-9,
        }
    }
}
