//! The bits of an event's fields: the files `format/NAME` of a PMU, such as `config:0-7,32-35` or
//! `config1:12`.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use thiserror::Error;

/// Words of `perf_event_attr`, which are fields themselves unless the PMU has one of that name: some
/// of the kernel's events are written `config=0x5`.
const WORDS: [&str; 4] = ["config", "config1", "config2", "config3"];

/// The fields of a PMU.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Formats {
    fields: BTreeMap<String, Field>,
}

/// The bits of a field, the lowest first, in one of the words `config` to `config3`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Field {
    word: usize,
    bits: Vec<RangeInclusive<u32>>,
}

/// A format file that cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("format of the field '{field}' is '{text}', not like 'config:0-7,32-35'")]
pub struct FormatError {
    /// The name of the file.
    pub field: String,
    /// Its content.
    pub text: String,
}

/// An event that cannot be encoded.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum EncodeError {
    /// The PMU has no such field.
    #[error("the PMU has no field '{field}'; it has {}", .known.join(", "))]
    Unknown {
        /// The unknown name.
        field: String,
        /// The existing ones.
        known: Vec<String>,
    },
    /// More bits than the field has.
    #[error("{value:#x} does not fit the field '{field}', which has {bits} bits")]
    TooWide {
        /// The field.
        field: String,
        /// Its value.
        value: u64,
        /// Its width.
        bits: u32,
    },
    /// Two fields of the event share bits.
    #[error("the fields '{first}' and '{second}' share bits")]
    Overlap {
        /// The first one.
        first: String,
        /// The other.
        second: String,
    },
}

impl Formats {
    /// Parses files, given as names and contents. Fields may overlap, as those of real PMUs do, but
    /// an event may not use two overlapping fields.
    pub fn parse<'a>(files: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self, FormatError> {
        let fields = files.into_iter().map(|(name, text)| {
            let field = Field::parse(text.trim());
            let error = || FormatError { field: name.to_owned(), text: text.trim().to_owned() };
            Ok((name.to_owned(), field.ok_or_else(error)?))
        });
        Ok(Self { fields: fields.collect::<Result<_, _>>()? })
    }

    /// Whether there is a field with this name.
    pub fn has(&self, field: &str) -> bool {
        self.field(field).is_some()
    }

    /// The config words of an event with these fields and values.
    pub fn encode<'a>(
        &self,
        terms: impl IntoIterator<Item = (&'a str, u64)>,
    ) -> Result<[u64; 4], EncodeError> {
        let mut codes = [0; 4];
        let mut used: Vec<(&str, Field)> = Vec::new();
        for (name, value) in terms {
            let field = self.field(name).ok_or_else(|| EncodeError::Unknown {
                field: name.to_owned(),
                known: self.fields.keys().cloned().collect(),
            })?;
            let bits = field.width();
            if bits < 64 && value >> bits != 0 {
                return Err(EncodeError::TooWide { field: name.to_owned(), value, bits });
            }
            if let Some((first, _)) = used.iter().find(|(_, other)| other.shares_bits(&field)) {
                let (first, second) = ((*first).to_owned(), name.to_owned());
                return Err(EncodeError::Overlap { first, second });
            }
            codes[field.word] |= field.spread(value);
            used.push((name, field));
        }
        Ok(codes)
    }

    fn field(&self, name: &str) -> Option<Field> {
        self.fields.get(name).cloned().or_else(|| {
            let word = WORDS.iter().position(|w| *w == name)?;
            Some(Field { word, bits: vec![0..=63] })
        })
    }
}

impl Field {
    fn parse(text: &str) -> Option<Self> {
        let (word, ranges) = text.split_once(':')?;
        let word = WORDS.iter().position(|w| *w == word)?;
        let mut field = Self { word, bits: Vec::new() };
        for range in ranges.split(',') {
            let (low, high) = range.split_once('-').unwrap_or((range, range));
            let (low, high) = (bit(low)?, bit(high)?);
            let overlaps = field.mask() & mask(&(low..=high)) != 0;
            if low > high || overlaps {
                return None;
            }
            field.bits.push(low..=high);
        }
        Some(field)
    }

    fn width(&self) -> u32 {
        self.mask().count_ones()
    }

    fn mask(&self) -> u64 {
        self.bits.iter().fold(0, |all, range| all | mask(range))
    }

    fn shares_bits(&self, other: &Self) -> bool {
        self.word == other.word && self.mask() & other.mask() != 0
    }

    /// The bits of a value at their positions: the low ones go to the first range.
    fn spread(&self, value: u64) -> u64 {
        let mut used = 0;
        self.bits.iter().fold(0, |all, range| {
            let part = value.checked_shr(used).unwrap_or(0) << range.start();
            used += range.end() - range.start() + 1;
            all | (part & mask(range))
        })
    }
}

fn bit(text: &str) -> Option<u32> {
    let number = text.len() <= 2 && text.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|&bit| number && bit < 64)
}

/// Ones in a range of bits below 64; none if it is reversed.
fn mask(range: &RangeInclusive<u32>) -> u64 {
    match range.end().checked_sub(*range.start()) {
        Some(length) => (u64::MAX >> (63 - length)) << range.start(),
        None => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn one(text: &str) -> Result<Formats, FormatError> {
        Formats::parse([("x", text)])
    }

    #[test]
    fn values_fill_the_ranges_from_the_lowest_bit() {
        let formats = Formats::parse([
            ("event", "config:0-7,32-35\n"),
            ("umask", "config:8-15"),
            ("edge", "config:18"),
            ("filter", "config1:0-63"),
            ("late", "config3:60-63,0"),
        ])
        .unwrap();
        let terms = [("event", 0xabc), ("umask", 0xff), ("edge", 1), ("filter", u64::MAX), ("late", 0x1f)];
        assert_eq!(formats.encode(terms), Ok([0xa_0004_ffbc, u64::MAX, 0, 0xf000_0000_0000_0001]));
        assert_eq!(formats.encode([]), Ok([0; 4]));
        assert!(formats.has("edge") && formats.has("config2") && !formats.has("inv"));
    }

    #[test]
    fn words_are_fields_where_the_pmu_has_none_of_that_name() {
        let formats = Formats::parse([("event", "config:0-7")]).unwrap();
        assert_eq!(formats.encode([("config", 0x1_0000), ("config2", 7)]), Ok([0x1_0000, 0, 7, 0]));
        let shared = formats.encode([("event", 1), ("config", 2)]).unwrap_err();
        assert_eq!(shared.to_string(), "the fields 'event' and 'config' share bits");
        let own = Formats::parse([("config", "config1:0-3")]).unwrap();
        assert_eq!(own.encode([("config", 5)]), Ok([0, 5, 0, 0]));
    }

    #[test]
    fn invalid_formats_are_named() {
        for bad in [
            "",
            "config",
            "config:",
            "config4:0-7",
            "event:0-7",
            "config:7-0",
            "config:0-64",
            "config:0-7,7-9",
            "config:1,1",
            "config:0-",
            "config:-7",
            "config:0-7,",
            "config:+1",
            "config:0-7-8",
            "config:0x1",
            "config: 1",
            "config:99999999999",
        ] {
            let error = one(bad).expect_err(bad);
            assert_eq!(
                error.to_string(),
                format!("format of the field 'x' is '{bad}', not like 'config:0-7,32-35'")
            );
        }
    }

    #[test]
    fn an_event_that_does_not_fit_is_refused() {
        let formats =
            Formats::parse([("event", "config:0-7"), ("wide", "config:4-11"), ("umask", "config1:0-7")])
                .unwrap();
        let text = |terms: &[(&str, u64)]| formats.encode(terms.iter().copied()).unwrap_err().to_string();
        assert_eq!(text(&[("inv", 1)]), "the PMU has no field 'inv'; it has event, umask, wide");
        assert_eq!(text(&[("event", 0x1ff)]), "0x1ff does not fit the field 'event', which has 8 bits");
        assert_eq!(text(&[("event", 1), ("wide", 1)]), "the fields 'event' and 'wide' share bits");
        assert_eq!(text(&[("event", 1), ("event", 1)]), "the fields 'event' and 'event' share bits");
        assert!(formats.encode([("event", 1), ("umask", 1)]).is_ok());
    }

    /// The value of a field, bit by bit.
    fn decode(field: &Field, code: u64) -> u64 {
        let places = field.bits.iter().flat_map(Clone::clone);
        places.enumerate().map(|(at, place)| (code >> place & 1) << at).sum()
    }

    fn field() -> impl Strategy<Value = Field> {
        // Cuts the word at random positions and takes every second piece, in any order.
        (0..4usize, proptest::collection::btree_set(0..64u32, 2..8)).prop_perturb(
            |(word, cuts), mut random| {
                let cuts: Vec<u32> = cuts.into_iter().collect();
                let mut bits: Vec<_> = cuts.chunks_exact(2).map(|c| c[0]..=c[1]).collect();
                let start = random.random_range(0..bits.len());
                bits.rotate_left(start);
                Field { word, bits }
            },
        )
    }

    fn text(field: &Field) -> String {
        let ranges = field.bits.iter().map(|r| match r.start() == r.end() {
            true => r.start().to_string(),
            false => format!("{}-{}", r.start(), r.end()),
        });
        format!("{}:{}", WORDS[field.word], ranges.collect::<Vec<_>>().join(","))
    }

    proptest! {
        #[test]
        fn decoding_gives_back_what_was_encoded(field in field(), value: u64) {
            let formats = one(&text(&field)).unwrap();
            prop_assert_eq!(&formats.fields["x"], &field);
            let value = value & (u64::MAX >> (64 - field.width()));
            let codes = formats.encode([("x", value)]).unwrap();
            prop_assert_eq!(decode(&field, codes[field.word]), value);
            prop_assert_eq!(codes[field.word] & !field.mask(), 0);
            if field.width() < 64 {
                prop_assert!(formats.encode([("x", 1 << field.width())]).is_err());
            }
        }

        #[test]
        fn no_text_makes_it_panic(text in "(config[0-4]?)?[:0-9,-]{0,20}") {
            if let Ok(formats) = one(&text) {
                prop_assert!(formats.encode([("x", 1)]).is_ok());
            }
        }
    }
}
