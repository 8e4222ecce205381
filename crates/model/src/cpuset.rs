//! Sets of small numbers (CPUs, nodes) in the kernel's two notations.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// The largest id that a set holds; larger ones in input are an error, so that one
/// corrupt file cannot ask for gigabytes.
pub const MAX_ID: u32 = (1 << 20) - 1;

/// A set of CPU or node numbers. Printed and serialised as the kernel's list (`0-3,8`).
#[derive(Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CpuSet {
    // No trailing zero words, so that derived equality is set equality.
    words: Vec<u64>,
}

/// Text that is neither a list nor a mask of the kernel.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ParseSetError {
    /// A part of the text is not a number, a range or a hexadecimal word.
    #[error("'{0}' is not a number or a range such as 0-3")]
    NotANumber(String),
    /// A range runs backwards.
    #[error("range '{0}' runs backwards")]
    Backwards(String),
    /// A stride is zero.
    #[error("range '{0}' has stride 0")]
    ZeroStride(String),
    /// An id beyond [`MAX_ID`].
    #[error("id {0} is beyond the largest supported id {MAX_ID}")]
    TooLarge(u64),
    /// Strides that name more ids than there can be.
    #[error("its strides name more than {MAX_ID} ids")]
    TooLong,
}

impl CpuSet {
    /// The empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Every id from `first` to `last`, both included.
    pub fn range(first: u32, last: u32) -> Self {
        let mut set = Self::new();
        set.insert_range(first, last);
        set
    }

    /// Adds an id. Ids beyond [`MAX_ID`] are ignored; parsers reject them.
    pub fn insert(&mut self, id: u32) {
        if id > MAX_ID {
            return;
        }
        let word = id as usize / 64;
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= 1 << (id % 64);
    }

    /// Adds every id from `first` to `last`, both included, a word at a time.
    fn insert_range(&mut self, first: u32, last: u32) {
        let last = last.min(MAX_ID);
        if first > last {
            return;
        }
        let (low, high) = (first as usize / 64, last as usize / 64);
        if high >= self.words.len() {
            self.words.resize(high + 1, 0);
        }
        for word in low..=high {
            let from = if word == low { u64::MAX << (first % 64) } else { u64::MAX };
            let to = if word == high { u64::MAX >> (63 - last % 64) } else { u64::MAX };
            self.words[word] |= from & to;
        }
    }

    /// Adds every id of another set.
    pub fn insert_all(&mut self, other: &Self) {
        if self.words.len() < other.words.len() {
            self.words.resize(other.words.len(), 0);
        }
        for (a, b) in self.words.iter_mut().zip(&other.words) {
            *a |= b;
        }
    }

    /// Removes an id.
    pub fn remove(&mut self, id: u32) {
        if let Some(word) = self.words.get_mut(id as usize / 64) {
            *word &= !(1 << (id % 64));
        }
        self.trim();
    }

    /// Whether the id is in the set.
    pub fn contains(&self, id: u32) -> bool {
        self.words.get(id as usize / 64).is_some_and(|w| w >> (id % 64) & 1 == 1)
    }

    /// How many ids the set holds.
    pub fn len(&self) -> usize {
        self.words.iter().map(|w| w.count_ones() as usize).sum()
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// The smallest id.
    pub fn first(&self) -> Option<u32> {
        self.iter().next()
    }

    /// The largest id.
    pub fn last(&self) -> Option<u32> {
        let word = self.words.last()?;
        Some((self.words.len() as u32 - 1) * 64 + 63 - word.leading_zeros())
    }

    /// The ids in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.words.iter().enumerate().filter(|(_, word)| **word != 0).flat_map(|(i, &word)| {
            let mut rest = word;
            std::iter::from_fn(move || {
                if rest == 0 {
                    return None;
                }
                let bit = rest.trailing_zeros();
                rest &= rest - 1;
                Some(i as u32 * 64 + bit)
            })
        })
    }

    /// Ids that are in both sets.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        let words = self.words.iter().zip(&other.words).map(|(a, b)| a & b).collect();
        Self::from_words(words)
    }

    /// Ids that are in either set.
    #[must_use]
    pub fn or(&self, other: &Self) -> Self {
        let (long, short) = if self.words.len() >= other.words.len() { (self, other) } else { (other, self) };
        let mut words = long.words.clone();
        for (a, b) in words.iter_mut().zip(&short.words) {
            *a |= b;
        }
        Self { words }
    }

    /// Ids of this set that are not in the other.
    #[must_use]
    pub fn minus(&self, other: &Self) -> Self {
        let mut words = self.words.clone();
        for (a, b) in words.iter_mut().zip(&other.words) {
            *a &= !b;
        }
        Self::from_words(words)
    }

    /// Whether both sets share an id.
    pub fn intersects(&self, other: &Self) -> bool {
        self.words.iter().zip(&other.words).any(|(a, b)| a & b != 0)
    }

    /// Whether every id of this set is in the other.
    pub fn is_subset(&self, other: &Self) -> bool {
        self.minus(other).is_empty()
    }

    /// Parses the kernel's list: `0-3,8`, with strides `0-15:4` and, as some kernel
    /// parameters have, groups `0-15:2/4` (2 of every 4). Spaces, a final newline and NUL
    /// bytes are accepted; an empty text is the empty set.
    pub fn parse_list(text: &str) -> Result<Self, ParseSetError> {
        let mut set = Self::new();
        // Bounds the work that a short text can cause.
        let mut steps = 0u32;
        for part in clean(text).split(',').map(str::trim).filter(|p| !p.is_empty()) {
            let (range, stride) = part.split_once(':').map_or((part, None), |(r, s)| (r, Some(s)));
            let (first, last) = match range.split_once('-') {
                Some((a, b)) => (number(a, part)?, number(b, part)?),
                None => (number(range, part)?, number(range, part)?),
            };
            if last < first {
                return Err(ParseSetError::Backwards(part.to_owned()));
            }
            let (used, group) = match stride {
                None => (1, 1),
                Some(s) => match s.split_once('/') {
                    Some((u, g)) => (number(u, part)?, number(g, part)?),
                    None => (1, number(s, part)?),
                },
            };
            if group == 0 || used == 0 {
                return Err(ParseSetError::ZeroStride(part.to_owned()));
            }
            if used >= group {
                set.insert_range(first, last);
                continue;
            }
            steps += (last - first) / group;
            if steps > MAX_ID {
                return Err(ParseSetError::TooLong);
            }
            for start in (first..=last).step_by(group as usize) {
                set.insert_range(start, last.min(start.saturating_add(used - 1)));
            }
        }
        Ok(set)
    }

    /// Parses the kernel's mask: hexadecimal words of up to 32 bits, most significant
    /// first, separated by commas; the first may be short (`0000,0000003f`).
    pub fn parse_mask(text: &str) -> Result<Self, ParseSetError> {
        let text = clean(text).trim().trim_start_matches("0x");
        let parts: Vec<&str> = text.split(',').map(str::trim).collect();
        let mut set = Self::new();
        let mut base = 0u64;
        for part in parts.iter().rev() {
            if part.is_empty() {
                continue;
            }
            // A mask without commas may be longer than one word.
            for digit in part.bytes().rev() {
                let value = (digit as char)
                    .to_digit(16)
                    .ok_or_else(|| ParseSetError::NotANumber((*part).to_owned()))?;
                for bit in 0..4 {
                    if value >> bit & 1 == 1 {
                        let id = base + bit;
                        if id > MAX_ID as u64 {
                            return Err(ParseSetError::TooLarge(id));
                        }
                        set.insert(id as u32);
                    }
                }
                base += 4;
            }
            base = base.next_multiple_of(32);
        }
        Ok(set)
    }

    fn from_words(words: Vec<u64>) -> Self {
        let mut set = Self { words };
        set.trim();
        set
    }

    fn trim(&mut self) {
        while self.words.last() == Some(&0) {
            self.words.pop();
        }
    }
}

fn clean(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_whitespace() || c == '\0')
}

fn number(text: &str, part: &str) -> Result<u32, ParseSetError> {
    let text = text.trim();
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
        return Err(ParseSetError::NotANumber(part.to_owned()));
    }
    let value: u64 = text.parse().map_err(|_| ParseSetError::TooLarge(u64::MAX))?;
    if value > MAX_ID as u64 {
        return Err(ParseSetError::TooLarge(value));
    }
    Ok(value as u32)
}

impl FromIterator<u32> for CpuSet {
    fn from_iter<I: IntoIterator<Item = u32>>(ids: I) -> Self {
        let mut set = Self::new();
        ids.into_iter().for_each(|id| set.insert(id));
        set
    }
}

impl FromStr for CpuSet {
    type Err = ParseSetError;
    fn from_str(text: &str) -> Result<Self, ParseSetError> {
        Self::parse_list(text)
    }
}

impl fmt::Display for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut ids = self.iter().peekable();
        let mut comma = "";
        while let Some(first) = ids.next() {
            let mut last = first;
            while ids.next_if_eq(&(last + 1)).is_some() {
                last += 1;
            }
            if first == last {
                write!(f, "{comma}{first}")?;
            } else {
                write!(f, "{comma}{first}-{last}")?;
            }
            comma = ",";
        }
        Ok(())
    }
}

impl fmt::Debug for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{self}}}")
    }
}

impl Serialize for CpuSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for CpuSet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse_list(&text).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn list(text: &str) -> String {
        CpuSet::parse_list(text).unwrap().to_string()
    }

    fn mask(text: &str) -> String {
        CpuSet::parse_mask(text).unwrap().to_string()
    }

    #[test]
    fn lists_of_the_kernel() {
        assert_eq!(list("0-3,8\n"), "0-3,8");
        assert_eq!(list("\n"), "");
        assert_eq!(list("0\n\0"), "0");
        assert_eq!(list("0-15:4"), "0,4,8,12");
        assert_eq!(list("0-200,63-64,190-1048575"), "0-1048575");
        assert_eq!(list("3-9:5/2"), "3-9");
        assert_eq!(list("0-15:2/8"), "0-1,8-9");
        assert_eq!(list(" 1 , 2 "), "1-2");
    }

    #[test]
    fn masks_of_the_kernel() {
        assert_eq!(mask("ff"), "0-7");
        assert_eq!(mask("00"), "");
        assert_eq!(mask("0"), "");
        assert_eq!(mask("0x"), "");
        assert_eq!(mask("0000,0000003f\n"), "0-5");
        assert_eq!(mask("3f\n\0"), "0-5");
        assert_eq!(mask("1,00000000"), "32");
        let long = format!("1{}", ",00000000".repeat(40));
        assert_eq!(mask(&long), "1280");
    }

    #[test]
    fn damage_is_an_error() {
        for bad in ["a", "1-", "-1", "3-1", "0-4:0", "1;2", "+1", "99999999999999999999", "1048576"] {
            assert!(CpuSet::parse_list(bad).is_err(), "{bad}");
        }
        for bad in ["g", "0y", "ff,zz"] {
            assert!(CpuSet::parse_mask(bad).is_err(), "{bad}");
        }
        assert!(CpuSet::parse_mask(&format!("1{}", "0".repeat(300_000))).is_err());
        assert_eq!(CpuSet::parse_list(&"0-1048575:2,".repeat(1000)), Err(ParseSetError::TooLong));
    }

    proptest! {
        #[test]
        fn printing_and_parsing_agree(ids in prop::collection::vec(0u32..5000, 0..100)) {
            let set: CpuSet = ids.iter().copied().collect();
            prop_assert_eq!(CpuSet::parse_list(&set.to_string()).unwrap(), set.clone());
            prop_assert_eq!(set.len(), ids.iter().collect::<std::collections::BTreeSet<_>>().len());
        }

        #[test]
        fn a_range_holds_only_its_ids(first in 0u32..300, length in 0u32..300) {
            let ids: Vec<u32> = (first..=first + length).collect();
            prop_assert_eq!(CpuSet::range(first, first + length).iter().collect::<Vec<_>>(), ids);
        }

        #[test]
        fn algebra_holds(a in prop::collection::vec(0u32..300, 0..40), b in prop::collection::vec(0u32..300, 0..40)) {
            let (a, b): (CpuSet, CpuSet) = (a.into_iter().collect(), b.into_iter().collect());
            prop_assert_eq!(a.and(&b).or(&a.minus(&b)), a.clone());
            prop_assert_eq!(a.intersects(&b), !a.and(&b).is_empty());
            prop_assert!(a.and(&b).is_subset(&b));
            prop_assert_eq!(a.or(&b).last(), a.last().max(b.last()));
            let mut grown = a.clone();
            grown.insert_all(&b);
            prop_assert_eq!(grown, a.or(&b));
        }
    }
}
