//! Dimensions of numbers: bytes, seconds, cycles, or none.

use numakit_model::{Kind, Unit};
use std::fmt;

/// Powers of the base units. Counts are plain numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Dimension {
    bytes: i8,
    /// Pages of unknown size; where the size is known they are bytes.
    pages: i8,
    seconds: i8,
    cycles: i8,
}

impl Dimension {
    /// A plain number.
    pub const NUMBER: Self = Self { bytes: 0, pages: 0, seconds: 0, cycles: 0 };
    /// Memory.
    pub const BYTES: Self = Self { bytes: 1, ..Self::NUMBER };
    /// Memory in pages of unknown size.
    pub const PAGES: Self = Self { pages: 1, ..Self::NUMBER };
    /// Time.
    pub const SECONDS: Self = Self { seconds: 1, ..Self::NUMBER };
    /// Cycles of a clock.
    pub const CYCLES: Self = Self { cycles: 1, ..Self::NUMBER };

    /// The dimension of a metric's values after rates were computed: counters are per second.
    pub fn of(unit: Unit, kind: Kind, page_size_known: bool) -> Self {
        let level = match unit {
            Unit::Count => Self::NUMBER,
            Unit::Pages if !page_size_known => Self::PAGES,
            Unit::Pages | Unit::Bytes | Unit::Kibibytes => Self::BYTES,
            Unit::Ticks | Unit::Nanoseconds | Unit::Microseconds | Unit::Milliseconds => Self::SECONDS,
            Unit::Cycles => Self::CYCLES,
        };
        if kind == Kind::Gauge { level } else { level.over(Self::SECONDS) }
    }

    /// The dimension of a product.
    #[must_use]
    pub fn times(self, other: Self) -> Self {
        self.with(other, i8::saturating_add)
    }

    /// The dimension of a quotient.
    #[must_use]
    pub fn over(self, other: Self) -> Self {
        self.with(other, i8::saturating_sub)
    }

    fn with(self, other: Self, power: fn(i8, i8) -> i8) -> Self {
        Self {
            bytes: power(self.bytes, other.bytes),
            pages: power(self.pages, other.pages),
            seconds: power(self.seconds, other.seconds),
            cycles: power(self.cycles, other.cycles),
        }
    }

    /// The same with cycles as plain numbers.
    #[must_use]
    pub fn without_cycles(self) -> Self {
        Self { cycles: 0, ..self }
    }

    /// Whether it contains pages of unknown size.
    pub fn has_pages(self) -> bool {
        self.pages != 0
    }
}

/// `bytes/s`, `count`, `1/bytes`.
impl fmt::Display for Dimension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let powers = [
            ("bytes", self.bytes),
            ("pages", self.pages),
            ("seconds", self.seconds),
            ("cycles", self.cycles),
        ];
        let side = |wanted: fn(i8) -> bool| {
            let parts = powers.iter().filter(|(_, power)| wanted(*power));
            let word = |(name, power): &(&str, i8)| match power.unsigned_abs() {
                1 => (*name).to_owned(),
                power => format!("{name}^{power}"),
            };
            parts.map(word).collect::<Vec<_>>().join("*")
        };
        let (above, below) = (side(|p| p > 0), side(|p| p < 0));
        let below = if below == "seconds" { "s".to_owned() } else { below };
        match (above.as_str(), below.as_str()) {
            ("", "") => f.write_str("count"),
            ("", "s") => f.write_str("count/s"),
            ("", below) => write!(f, "1/{below}"),
            (above, "") => f.write_str(above),
            (above, below) => write!(f, "{above}/{below}"),
        }
    }
}

/// What a formula declares to compute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantity {
    /// A share in percent.
    Percent,
    /// Memory.
    Bytes,
    /// Memory per second.
    BytesPerSecond,
    /// Things per second.
    PerSecond,
    /// Things.
    Count,
    /// Time in seconds.
    Seconds,
    /// Time in nanoseconds.
    Nanoseconds,
    /// A number that is no share.
    Ratio,
}

impl Quantity {
    /// All of them, for parsing and documents.
    pub const ALL: [Self; 8] = [
        Self::Percent,
        Self::Bytes,
        Self::BytesPerSecond,
        Self::PerSecond,
        Self::Count,
        Self::Seconds,
        Self::Nanoseconds,
        Self::Ratio,
    ];

    /// The word in formulas, listings and documents.
    pub fn name(self) -> &'static str {
        match self {
            Self::Percent => "percent",
            Self::Bytes => "bytes",
            Self::BytesPerSecond => "bytes/s",
            Self::PerSecond => "count/s",
            Self::Count => "count",
            Self::Seconds => "seconds",
            Self::Nanoseconds => "ns",
            Self::Ratio => "ratio",
        }
    }

    /// The quantity of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|quantity| quantity.name() == name)
    }

    /// Its dimension.
    pub fn dimension(self) -> Dimension {
        match self {
            Self::Percent | Self::Count | Self::Ratio => Dimension::NUMBER,
            Self::Bytes => Dimension::BYTES,
            Self::BytesPerSecond => Dimension::BYTES.over(Dimension::SECONDS),
            Self::PerSecond => Dimension::NUMBER.over(Dimension::SECONDS),
            Self::Seconds | Self::Nanoseconds => Dimension::SECONDS,
        }
    }

    /// Whether a number of that dimension fits; cycles are plain numbers here.
    pub fn accepts(self, dimension: Dimension) -> bool {
        dimension.without_cycles() == self.dimension()
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dimensions_print_in_words() {
        let per_second = |d: Dimension| d.over(Dimension::SECONDS);
        assert_eq!(Dimension::NUMBER.to_string(), "count");
        assert_eq!(per_second(Dimension::NUMBER).to_string(), "count/s");
        assert_eq!(per_second(Dimension::BYTES).to_string(), "bytes/s");
        assert_eq!(Dimension::SECONDS.to_string(), "seconds");
        assert_eq!(Dimension::NUMBER.over(Dimension::BYTES).to_string(), "1/bytes");
        assert_eq!(
            Dimension::BYTES.times(Dimension::BYTES).over(Dimension::CYCLES).to_string(),
            "bytes^2/cycles"
        );
    }

    #[test]
    fn counters_are_per_second_and_time_per_time_is_a_number() {
        let of = |unit, kind| Dimension::of(unit, kind, true);
        assert_eq!(of(Unit::Ticks, Kind::COUNTER), Dimension::NUMBER);
        assert_eq!(of(Unit::Kibibytes, Kind::Gauge), of(Unit::Pages, Kind::Gauge));
        assert!(Quantity::BytesPerSecond.accepts(of(Unit::Bytes, Kind::Rate)));
        assert!(Quantity::Ratio.accepts(Dimension::NUMBER.over(Dimension::CYCLES)));
        assert!(!Quantity::Bytes.accepts(of(Unit::Count, Kind::Gauge)));
        assert_ne!(Dimension::of(Unit::Pages, Kind::Gauge, false), Dimension::BYTES);
    }

    #[test]
    fn quantities_have_one_name_each() {
        for quantity in Quantity::ALL {
            assert_eq!(Quantity::named(quantity.name()), Some(quantity));
        }
        assert_eq!(Quantity::named("bytes per second"), None);
    }
}
