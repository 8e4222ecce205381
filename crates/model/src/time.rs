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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_calendar() {
        assert_eq!(utc(0), "1970-01-01 00:00:00 UTC");
        assert_eq!(utc(951_782_400_000_000_000), "2000-02-29 00:00:00 UTC");
        assert_eq!(utc(1_795_202_974_000_000_000), "2026-11-20 19:29:34 UTC");
        assert_eq!(utc_exact(1_795_202_974_250_999_999), "2026-11-20 19:29:34.250 UTC");
    }
}
