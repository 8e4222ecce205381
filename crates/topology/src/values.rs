//! Parsers of single values in /sys and /proc.

use numakit_model::cpuset::MAX_ID;
use numakit_model::{CpuSet, ParseSetError};
use thiserror::Error;

/// A file with unexpected content.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ValueError {
    /// Bytes that are not text.
    #[error("no text")]
    NoText,
    /// Not a decimal number.
    #[error("'{0}' is not a number")]
    Number(String),
    /// Not a size.
    #[error("'{0}' is not a size")]
    Size(String),
    /// Not a set.
    #[error(transparent)]
    Set(#[from] ParseSetError),
    /// A number is negative where that is not possible.
    #[error("{0} is negative")]
    Negative(i64),
    /// Not a hexadecimal number.
    #[error("not a hexadecimal number")]
    Hexadecimal,
    /// An empty row of distances.
    #[error("no distances")]
    NoDistances,
    /// Not a row of distances.
    #[error("not a row of numbers")]
    Row,
}

/// The text of a file.
pub fn text(bytes: &[u8]) -> Result<&str, ValueError> {
    std::str::from_utf8(bytes).map_err(|_| ValueError::NoText)
}

/// The content of a file without spaces, line ends and NUL bytes around it.
pub fn trim(mut bytes: &[u8]) -> &[u8] {
    let blank = |b: &u8| b.is_ascii_whitespace() || *b == 0;
    while let Some((_, rest)) = bytes.split_first().filter(|(b, _)| blank(b)) {
        bytes = rest;
    }
    while let Some((_, rest)) = bytes.split_last().filter(|(b, _)| blank(b)) {
        bytes = rest;
    }
    bytes
}

/// A decimal number, which may be negative.
pub fn number(bytes: &[u8]) -> Result<i64, ValueError> {
    let text = text(trim(bytes))?;
    text.parse().map_err(|_| ValueError::Number(short(text)))
}

/// A set as a list: `0-3,8`.
pub fn list(bytes: &[u8]) -> Result<CpuSet, ValueError> {
    Ok(CpuSet::parse_list(text(bytes)?)?)
}

/// A set as a mask: `0000,0000003f`. Leading zeros are skipped: on large machines thousands of
/// masks are mostly zeros.
pub fn mask(bytes: &[u8]) -> Result<CpuSet, ValueError> {
    let bytes = trim(bytes);
    let zeros = bytes.iter().take_while(|b| matches!(b, b'0' | b',')).count();
    Ok(CpuSet::parse_mask(text(&bytes[zeros..])?)?)
}

/// A cache size in bytes, from `48K`, `2M` or plain bytes.
pub fn size(bytes: &[u8]) -> Result<u64, ValueError> {
    let text = text(trim(bytes))?;
    let (digits, unit) = match text.as_bytes().last() {
        Some(b'K') => (&text[..text.len() - 1], 1 << 10),
        Some(b'M') => (&text[..text.len() - 1], 1 << 20),
        Some(b'G') => (&text[..text.len() - 1], 1 << 30),
        _ => (text, 1u64),
    };
    let value = digits.parse::<u64>().ok().and_then(|n| n.checked_mul(unit));
    value.ok_or_else(|| ValueError::Size(short(text)))
}

/// The numbers in names such as `cpu12`; other names are ignored.
pub fn numbered(names: &[String], prefix: &str) -> CpuSet {
    let digits = names.iter().filter_map(|name| name.strip_prefix(prefix));
    digits.filter_map(|d| d.parse().ok()).filter(|&id| id <= MAX_ID).collect()
}

/// A field of a meminfo file in kB, of the machine (`MemTotal: 5 kB`) or of a node
/// (`Node 0 MemTotal: 5 kB`).
pub fn meminfo_kb(bytes: &[u8], field: &str) -> Option<u64> {
    bytes.split(|&b| b == b'\n').find_map(|line| {
        let mut words = std::str::from_utf8(line).ok()?.split_ascii_whitespace();
        let name = words.find(|word| word.ends_with(':'))?;
        (name.strip_suffix(':')? == field).then(|| words.next()?.parse().ok())?
    })
}

/// The start of a text that may be long.
fn short(text: &str) -> String {
    text.chars().take(40).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_trimmed() {
        assert_eq!(trim(b" \n 0-3\n\0\0"), b"0-3");
        assert_eq!(trim(b"\0\n"), b"");
        assert_eq!(number(b"-1\n"), Ok(-1));
        assert!(number(b"").is_err() && number(b"0x1").is_err() && number(&[0xff]).is_err());
    }

    #[test]
    fn masks_with_many_zeros() {
        assert_eq!(mask(b"00000000,00000000,00000001\n").unwrap().to_string(), "0");
        assert_eq!(mask(b"00000000,00000010,00000000\n").unwrap().to_string(), "36");
        assert_eq!(mask(b"0\n").unwrap().to_string(), "");
        assert!(mask(b"0g").is_err());
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!(size(b"48K\n"), Ok(48 << 10));
        assert_eq!(size(b"2M"), Ok(2 << 20));
        assert_eq!(size(b"33554432"), Ok(32 << 20));
        for bad in [&b""[..], b"K", b"-1K", b"99999999999999999999", b"18446744073709551615G", b"\xffK"] {
            assert!(size(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn meminfo_of_machines_and_nodes() {
        assert_eq!(meminfo_kb(b"\nNode 0 MemTotal:       8387892 kB\n", "MemTotal"), Some(8387892));
        assert_eq!(meminfo_kb(b"MemTotal: 5 kB\nMemFree: 4 kB\n", "MemFree"), Some(4));
        assert_eq!(meminfo_kb(b"MemTotal:\n", "MemTotal"), None);
        assert_eq!(meminfo_kb(b"", "MemTotal"), None);
    }
}
