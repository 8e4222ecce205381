//! Times for people.

/// `2026-11-20 19:29:34` from seconds since 1970, in UTC.
fn date_and_time(seconds: u64) -> String {
    let (days, second) = (seconds / 86400, seconds % 86400);
    // Days are counted from 0000-03-01, so that the leap day is the last of its year.
    let day = days + 719_468;
    let era = day / 146_097;
    let of_era = day % 146_097;
    let year_of_era = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march = (5 * of_year + 2) / 153;
    let month = if march < 10 { march + 3 } else { march - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let date = of_year - (153 * march + 2) / 5 + 1;
    format!("{year:04}-{month:02}-{date:02} {:02}:{:02}:{:02}", second / 3600, second / 60 % 60, second % 60)
}

/// `2026-11-20 19:29:34 UTC` from ns since 1970.
pub fn utc(ns: u64) -> String {
    format!("{} UTC", date_and_time(ns / 1_000_000_000))
}

/// `2026-11-20 19:29:34.250 UTC` from ns since 1970.
pub fn utc_exact(ns: u64) -> String {
    format!("{}.{:03} UTC", date_and_time(ns / 1_000_000_000), ns / 1_000_000 % 1000)
}

/// ns since 1970 from `2026-11-20 19:29` or `2026-11-20T19:29:34Z`, in UTC; `None` for another text or a day that no month has.
pub fn parse_utc(text: &str) -> Option<u64> {
    let text = text.trim().trim_end_matches('Z').trim_end_matches(" UTC");
    let (date, clock) = text.split_once(['T', ' ']).unwrap_or((text, "00:00"));
    let numbers = |text: &str, sign: char| {
        text.split(sign).map(|part| part.parse::<u64>().ok()).collect::<Option<Vec<_>>>()
    };
    let (date, clock) = (numbers(date, '-')?, numbers(clock, ':')?);
    let [year, month, day] = date[..] else { return None };
    let (hour, minute, second) = match clock[..] {
        [hour, minute] => (hour, minute, 0),
        [hour, minute, second] => (hour, minute, second),
        _ => return None,
    };
    if !(1970..=2500).contains(&year) || !(1..=12).contains(&month) || hour > 23 || minute > 59 || second > 59
    {
        return None;
    }
    // As in `date_and_time`.
    let (march, of_march) = ((month + 9) % 12, if month < 3 { year - 1 } else { year });
    let days = 365 * of_march + of_march / 4 - of_march / 100 + of_march / 400 + (153 * march + 2) / 5 + day;
    let seconds = days.checked_sub(719_469)? * 86_400 + hour * 3600 + minute * 60 + second;
    let same = date_and_time(seconds).starts_with(&format!("{year:04}-{month:02}-{day:02} "));
    same.then_some(seconds * 1_000_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_calendar() {
        assert_eq!(utc(0), "1970-01-01 00:00:00 UTC");
        assert_eq!(utc(951_782_400_000_000_000), "2000-02-29 00:00:00 UTC");
        assert_eq!(utc(1_795_202_974_000_000_000), "2026-11-20 19:29:34 UTC");
        for ns in [0, 951_782_400_000_000_000, 1_795_202_974_000_000_000] {
            assert_eq!(parse_utc(&utc(ns)), Some(ns));
        }
        assert_eq!(parse_utc("2000-02-29T01:02Z"), Some(951_786_120_000_000_000));
        assert!(
            ["", "2026-02-29", "2026-13-01", "1969-12-31", "2026-11-20 24:00", "2026", "x"]
                .iter()
                .all(|text| parse_utc(text).is_none())
        );
        assert_eq!(utc_exact(1_795_202_974_250_999_999), "2026-11-20 19:29:34.250 UTC");
    }
}
