//! Intervals as people write them.

use numakit_recording::sampler::{LONGEST, SHORTEST};
use std::time::Duration;

/// Units and their length in ns, longest name first.
const UNITS: [(&str, f64); 6] =
    [("min", 6e10), ("ms", 1e6), ("us", 1e3), ("ns", 1.0), ("h", 3.6e12), ("s", 1e9)];

/// Reads `100ms`, `0.5s`, `2min`, from 1 ms to 1 h. The error says what was wrong and the fix.
pub fn parse(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    let unit = UNITS.iter().find(|(name, _)| text.ends_with(name));
    let Some((name, scale)) = unit else {
        return Err(format!("interval '{text}' has no unit; write it as 100ms, 1s or 1min"));
    };
    let number = text[..text.len() - name.len()].trim();
    let value: f64 = number.parse().map_err(|_| {
        format!("interval '{text}' is not a number and a unit; write it as 100ms, 1s or 1min")
    })?;
    let ns = value * scale;
    if !(SHORTEST.as_nanos() as f64..=LONGEST.as_nanos() as f64).contains(&ns) {
        return Err(format!("interval '{text}' is out of range; give one from 1ms to 1h"));
    }
    Ok(Duration::from_nanos(ns.round() as u64))
}

/// An interval in the unit that keeps it short.
pub fn format(interval: Duration) -> String {
    let ns = interval.as_nanos();
    for (name, unit) in
        [("h", 3_600_000_000_000), ("min", 60_000_000_000), ("s", 1_000_000_000), ("ms", 1_000_000)]
    {
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
    fn what_people_write() {
        for (text, ms) in
            [("1ms", 1), ("100 ms", 100), ("0.5s", 500), ("2min", 120_000), ("1h", 3_600_000), ("1000us", 1)]
        {
            assert_eq!(parse(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        for text in ["", "0ms", "-1s", "100", "ms", "2h", "1us", "nans", "infs", "1e400s", "x ms"] {
            assert!(parse(text).is_err(), "{text}");
        }
        for text in ["1ms", "1500ms", "2s", "3min", "1h"] {
            assert_eq!(format(parse(text).unwrap()), text);
        }
        assert_eq!(format(Duration::from_micros(1500)), "1.5ms");
    }
}
