//! Intervals as text.

use numakit_recording::sampler::{MAX_INTERVAL, MIN_INTERVAL};
use std::time::Duration;
use thiserror::Error;

/// Units and their length in ns, longest name first.
const UNITS: [(&str, f64); 6] =
    [("min", 6e10), ("ms", 1e6), ("us", 1e3), ("ns", 1.0), ("h", 3.6e12), ("s", 1e9)];

/// Units of frequencies, longest name first.
const FREQUENCIES: [(&str, f64); 2] = [("khz", 1e3), ("hz", 1.0)];

/// Why a text is not an interval.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum IntervalError {
    /// A number without a unit.
    #[error("interval '{0}' has no unit; {EXAMPLES}")]
    NoUnit(String),
    /// A unit after something that is not a number.
    #[error("interval '{0}' is not a number and a unit; {EXAMPLES}")]
    NotANumber(String),
    /// Too short or too long.
    #[error("interval '{0}' is out of range; use one from 100us to {longest}", longest = format(*.1))]
    OutOfRange(String, Duration),
}

const EXAMPLES: &str = "write it as 100ms, 1s or 1min, or as a frequency: 50Hz, 2kHz";

/// Reads `100ms`, `0.5s`, `2min` or a frequency, `50Hz` or `2.5kHz`: from 100 us to 1 h.
pub fn parse(text: &str) -> Result<Duration, IntervalError> {
    parse_up_to(text, MAX_INTERVAL)
}

fn parse_up_to(text: &str, longest: Duration) -> Result<Duration, IntervalError> {
    let text = text.trim();
    let lower = text.to_ascii_lowercase();
    let frequency = FREQUENCIES.iter().find(|(name, _)| lower.ends_with(name));
    let unit = frequency.or_else(|| UNITS.iter().find(|(name, _)| text.ends_with(name)));
    let Some((name, scale)) = unit else {
        return Err(IntervalError::NoUnit(text.to_owned()));
    };
    let number = text[..text.len() - name.len()].trim();
    let value: f64 = number.parse().map_err(|_| IntervalError::NotANumber(text.to_owned()))?;
    let ns = if frequency.is_some() { 1e9 / (value * scale) } else { value * scale };
    if !(MIN_INTERVAL.as_nanos() as f64..=longest.as_nanos() as f64).contains(&ns) {
        return Err(IntervalError::OutOfRange(text.to_owned(), longest));
    }
    Ok(Duration::from_nanos(ns.round() as u64))
}

/// Reads a length of time: as [`parse`], and a number alone is seconds, as for `sleep` and `timeout`.
pub fn parse_length(text: &str) -> Result<Duration, IntervalError> {
    parse_length_up_to(text, MAX_INTERVAL)
}

/// The same, up to another length.
pub fn parse_length_up_to(text: &str, longest: Duration) -> Result<Duration, IntervalError> {
    match text.trim().parse::<f64>() {
        Ok(_) => parse_up_to(&format!("{}s", text.trim()), longest),
        Err(_) => parse_up_to(text, longest),
    }
}

/// An interval in the unit that keeps it short.
pub fn format(interval: Duration) -> String {
    let ns = interval.as_nanos();
    const WHOLE: [(&str, u128); 5] = [
        ("h", 3_600_000_000_000),
        ("min", 60_000_000_000),
        ("s", 1_000_000_000),
        ("ms", 1_000_000),
        ("us", 1_000),
    ];
    for (name, unit) in WHOLE.into_iter().filter(|(name, _)| *name != "us" || ns < 1_000_000) {
        if ns >= unit && ns.is_multiple_of(unit) {
            return format!("{}{name}", ns / unit);
        }
    }
    format!("{}ms", ns as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_without_a_unit_is_in_seconds() {
        assert_eq!(parse_length("3").unwrap(), Duration::from_secs(3));
        assert_eq!(parse_length(" 0.5").unwrap(), Duration::from_millis(500));
        assert_eq!(parse_length("2min").unwrap(), Duration::from_secs(120));
        assert!(parse("3").is_err() && parse_length("three").is_err());
        assert_eq!(parse_length_up_to("2h", Duration::from_secs(7200)), Ok(Duration::from_secs(7200)));
        let error = parse_length_up_to("3h", Duration::from_secs(7200)).unwrap_err();
        assert_eq!(error.to_string(), "interval '3h' is out of range; use one from 100us to 2h");
    }

    #[test]
    fn intervals_are_parsed() {
        for (text, ms) in
            [("1ms", 1), ("100 ms", 100), ("0.5s", 500), ("2min", 120_000), ("1h", 3_600_000), ("1000us", 1)]
        {
            assert_eq!(parse(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        for (text, us) in [
            ("100us", 100),
            ("0.25ms", 250),
            ("2kHz", 500),
            ("2.5 kHz", 400),
            ("10khz", 100),
            ("1Hz", 1_000_000),
            ("0.5 Hz", 2_000_000),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_micros(us)), "{text}");
        }
        assert_eq!(parse("3Hz"), Ok(Duration::from_nanos(333_333_333)));
        for text in ["", "0ms", "-1s", "100", "ms", "2h", "99us", "nans", "infs", "1e400s", "x ms", "0Hz"] {
            assert!(parse(text).is_err(), "{text}");
        }
        for text in ["-1Hz", "nanHz", "infkHz", "11kHz", "Hz", "0.0001Hz", "k Hz"] {
            assert!(parse(text).is_err(), "{text}");
        }
        for text in ["100us", "250us", "1ms", "1500ms", "2s", "3min", "1h"] {
            assert_eq!(format(parse(text).unwrap()), text);
        }
        assert_eq!(format(Duration::from_micros(1500)), "1.5ms");
        assert_eq!(format(Duration::from_nanos(333_300)), "0.3333ms");
    }
}
