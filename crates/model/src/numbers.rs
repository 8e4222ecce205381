//! Numbers as text: SI prefixes for rates and counts, IEC prefixes for memory, fixed widths.

/// How a number is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NumberStyle {
    /// Events per second: `12`, `1.23k`.
    Rate,
    /// Counts: `999`, `1.23M`.
    Count,
    /// Bytes of memory: `512`, `1.50Gi`.
    Bytes,
    /// Percent: `7.5`, `100`.
    Percent,
    /// Seconds: `12.5us`, `1.20s`.
    Seconds,
    /// Any number, to three digits: `0.85`, `120`, `1.20k`.
    Ratio,
}

/// A value that was not measured.
pub const ABSENT: &str = "-";

/// A value that is too large for any prefix, or not a number.
const OVERFLOW: &str = "#";

const SI: [(f64, &str); 11] = [
    (1.0, ""),
    (1e3, "k"),
    (1e6, "M"),
    (1e9, "G"),
    (1e12, "T"),
    (1e15, "P"),
    (1e18, "E"),
    (1e21, "Z"),
    (1e24, "Y"),
    (1e27, "R"),
    (1e30, "Q"),
];
const IEC: [(f64, &str); 9] = [
    (1.0, ""),
    (1024.0, "Ki"),
    (1048576.0, "Mi"),
    (1073741824.0, "Gi"),
    (1099511627776.0, "Ti"),
    (1125899906842624.0, "Pi"),
    (1152921504606846976.0, "Ei"),
    (1180591620717411303424.0, "Zi"),
    (1208925819614629174706176.0, "Yi"),
];
const TIME: [(f64, &str); 7] =
    [(1e-9, "ns"), (1e-6, "us"), (1e-3, "ms"), (1.0, "s"), (1e3, "ks"), (1e6, "Ms"), (1e9, "Gs")];

impl NumberStyle {
    /// The narrowest field in which every value that is not negative keeps two digits.
    pub fn width(self) -> usize {
        match self {
            Self::Rate | Self::Count | Self::Percent | Self::Ratio => 5,
            Self::Bytes | Self::Seconds => 6,
        }
    }

    /// Exactly `width` characters, right-aligned. A number that does not fit loses digits, then
    /// takes a larger prefix; the field never grows.
    pub fn field(self, value: Option<f64>, width: usize) -> String {
        let text = value.map_or_else(|| ABSENT.to_owned(), |v| self.fit(v, width));
        format!("{text:>width$}")
    }

    /// A number with its unit, for a sentence.
    pub fn words(self, value: f64) -> String {
        match self {
            Self::Rate => format!("{}/s", self.fit(value, usize::MAX)),
            Self::Count if value.abs() < 1e6 => grouped(value),
            Self::Count | Self::Ratio => self.fit(value, usize::MAX),
            Self::Bytes => {
                let text = self.fit(value, usize::MAX);
                let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
                format!("{digits} {}B", &text[digits.len()..])
            }
            Self::Percent => format!("{} %", self.fit(value, usize::MAX)),
            Self::Seconds => duration(value),
        }
    }

    fn steps(self) -> &'static [(f64, &'static str)] {
        match self {
            Self::Rate | Self::Count | Self::Percent | Self::Ratio => &SI,
            Self::Bytes => &IEC,
            Self::Seconds => &TIME,
        }
    }

    /// Decimals for a size below 1000.
    fn decimals(self, size: f64, prefixed: bool) -> usize {
        let small = match self {
            Self::Count | Self::Bytes if !prefixed => return 0,
            Self::Rate if !prefixed => [9.95, 0.995],
            Self::Percent if !prefixed => [99.95, 0.0],
            _ => [99.95, 9.995],
        };
        2 - small.iter().filter(|limit| size >= **limit).count()
    }

    fn fit(self, value: f64, width: usize) -> String {
        if value == 0.0 {
            return "0".to_owned();
        }
        for (place, (scale, suffix)) in self.steps().iter().enumerate() {
            let scaled = value / scale;
            // A number that would be rounded to four digits takes the next prefix.
            if !scaled.is_finite() || scaled.abs() >= 999.5 {
                continue;
            }
            let prefixed = place > 0 || self == Self::Seconds;
            let decimals = self.decimals(scaled.abs(), prefixed);
            let fitting = (0..=decimals)
                .rev()
                .map(|d| format!("{scaled:.d$}{suffix}"))
                .find(|text| text.len() <= width);
            if let Some(text) = fitting {
                return text;
            }
        }
        OVERFLOW.to_owned()
    }
}

/// A number of things: `1 page`, `12,345 pages`; the noun has an ordinary plural.
pub fn counted(count: usize, noun: &str) -> String {
    let many = if noun.ends_with('s') { "es" } else { "s" };
    format!("{} {noun}{}", grouped(count as f64), if count == 1 { "" } else { many })
}

/// Bytes in hexadecimal digits, as build IDs and checksums are written: `0aff`.
pub fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// An integer with commas: `12,345`.
pub fn grouped(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if value < 0.0 && digits != "0" { format!("-{text}") } else { text }
}

/// A duration for a sentence: `12.5 us`, `2.50 s`, `3 min 20 s`, `2 h 5 min`.
pub fn duration(seconds: f64) -> String {
    if seconds.abs() < 59.95 {
        let text = NumberStyle::Seconds.fit(seconds, usize::MAX);
        let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let unit = if seconds == 0.0 { "s" } else { &text[digits.len()..] };
        let digits =
            if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.') } else { digits };
        return format!("{digits} {unit}");
    }
    let whole = seconds.round() as i64;
    match whole.abs() {
        0..3600 => format!("{} min {} s", whole / 60, (whole % 60).abs()),
        3600..86400 => format!("{} h {} min", whole / 3600, (whole % 3600).abs() / 60),
        _ => format!("{} d {} h", whole / 86400, (whole % 86400).abs() / 3600),
    }
}

/// Seconds with three decimals in a field that never grows: decimals go first.
pub fn clock(seconds: f64, width: usize) -> String {
    let text = (0..=3).rev().map(|d| format!("{seconds:.d$}")).find(|t| t.len() <= width);
    format!("{:>width$}", text.unwrap_or_else(|| OVERFLOW.to_owned()))
}

/// A number for another program: at most three decimals, without trailing zeros.
pub fn plain(value: f64) -> String {
    let text = format!("{value:.3}");
    match text.trim_end_matches('0').trim_end_matches('.') {
        "-0" => "0".to_owned(),
        text => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::NumberStyle::*;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_look_like_this() {
        for (quantity, value, text) in [
            (Rate, 0.0, "0"),
            (Rate, 0.05, "0.05"),
            (Rate, 7.0, "7.0"),
            (Rate, 9.96, "10"),
            (Rate, 999.4, "999"),
            (Rate, 999.6, "1.00k"),
            (Rate, 12_345.0, "12.3k"),
            (Rate, 123_456.0, "123k"),
            (Rate, 999_600.0, "1.00M"),
            (Rate, -1234.0, "-1.2k"),
            (Count, 12.0, "12"),
            (Count, 1_500_000.0, "1.50M"),
            (Percent, 7.25, "7.2"),
            (Percent, 99.94, "99.9"),
            (Percent, 99.96, "100"),
            (Percent, 100.0, "100"),
            (Rate, f64::NAN, "#"),
            (Rate, f64::INFINITY, "#"),
        ] {
            assert_eq!(quantity.field(Some(value), 5).trim(), text, "{quantity:?} {value}");
        }
        for (quantity, value, text) in [
            (Bytes, 512.0, "512"),
            (Bytes, 1023.0, "1.00Ki"),
            (Bytes, 1536.0 * 1048576.0, "1.50Gi"),
            (Bytes, 1000.0 * 1048576.0, "0.98Gi"),
            (Seconds, 12.5e-6, "12.5us"),
            (Seconds, 1.2, "1.20s"),
            (Seconds, 0.9996, "1.00s"),
        ] {
            assert_eq!(quantity.field(Some(value), 6).trim(), text, "{quantity:?} {value}");
        }
        assert_eq!(Rate.field(None, 5), "    -");
    }

    #[test]
    fn sentences_have_units() {
        assert_eq!(Rate.words(12_345.0), "12.3k/s");
        assert_eq!(Bytes.words(1.5 * 1073741824.0), "1.50 GiB");
        assert_eq!(Bytes.words(12.0), "12 B");
        assert_eq!(Count.words(12_345.0), "12,345");
        assert_eq!(Count.words(123.0), "123");
        assert_eq!(Percent.words(12.34), "12.3 %");
        for (seconds, text) in [
            (0.0, "0 s"),
            (0.01, "10 ms"),
            (12.5e-6, "12.5 us"),
            (2.5, "2.5 s"),
            (100.0, "1 min 40 s"),
            (59.97, "1 min 0 s"),
            (7500.0, "2 h 5 min"),
            (90000.0, "1 d 1 h"),
        ] {
            assert_eq!(duration(seconds), text);
        }
    }

    #[test]
    fn times_and_plain_numbers() {
        assert_eq!(clock(1.5, 8), "   1.500");
        assert_eq!(clock(12345.6789, 8), "12345.68");
        assert_eq!(clock(123456789.0, 8), "       #");
        assert_eq!([plain(1.0), plain(0.1239), plain(-0.0001), plain(100.0)], ["1", "0.124", "0", "100"]);
    }

    fn read_back(text: &str, quantity: NumberStyle) -> f64 {
        let text = text.trim();
        let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let scale = quantity.steps().iter().find(|s| s.1 == &text[number.len()..]).map_or(1.0, |s| s.0);
        number.parse::<f64>().unwrap() * scale
    }

    proptest! {
        #[test]
        fn a_field_never_grows(value: f64, width in 1usize..12) {
            for quantity in [Rate, Count, Bytes, Percent, Seconds] {
                prop_assert_eq!(quantity.field(Some(value), width).len(), width);
            }
            prop_assert_eq!(clock(value.abs(), width).len(), width);
        }

        #[test]
        fn a_field_is_close_to_the_value(exponent in -2.0f64..24.0) {
            let value = 10f64.powf(exponent);
            for quantity in [Rate, Count, Bytes, Percent, Seconds] {
                let text = quantity.field(Some(value), quantity.width());
                let smallest = match quantity { Rate | Ratio => 0.005, Count | Bytes => 0.5, Percent => 0.05, Seconds => 0.0 };
                // At least two digits: 10 with a prefix has an error of up to 0.5, 5 %.
                if exponent < 11.9 || quantity != Seconds {
                    let error = (read_back(&text, quantity) - value).abs();
                    prop_assert!(error <= smallest + value * 0.051, "{} as {}", value, text);
                }
            }
        }
    }

    #[test]
    fn one_thing_is_not_several() {
        assert_eq!(
            (counted(1, "process"), counted(2, "process")),
            ("1 process".into(), "2 processes".into())
        );
        assert_eq!((hexadecimal(&[10, 255]), hexadecimal(&[])), ("0aff".into(), String::new()));
        let texts = [0, 1, 2, 12345].map(|count| counted(count, "page"));
        assert_eq!(texts, ["0 pages", "1 page", "2 pages", "12,345 pages"]);
    }
}
