//! Columns of series that were selected one by one.

use super::{StatOptions, TableFormat, ValueColumn};
use crate::columns::{bind_metric, bind_series};
use crate::table::ColumnHead;
use numakit_formulas::{BoundFormula, Index};
use numakit_model::numbers::NumberStyle;
use numakit_model::{Instance, Kind, Metric, Series, Unit};
use std::collections::{HashMap, HashSet};

/// Maximum length of a heading that is not shortened.
const MAX_HEADING: usize = 12;

struct SelectedSeries<'a> {
    name: String,
    group: String,
    metric: &'a Metric,
    bound: Vec<Option<BoundFormula>>,
}

/// The columns: one per series, or one per metric with `--per`. Text has base units; CSV and JSON
/// keep the metric's unit, as exports of recordings do.
pub(super) fn columns(
    series: &[Series],
    index: &Index<'_>,
    places: &[Instance],
    options: StatOptions<'_>,
) -> Vec<ValueColumn> {
    let of_values = |metric: &Metric| match options.format {
        TableFormat::Text => quantity(metric),
        _ => NumberStyle::Count,
    };
    let mut metrics = HashSet::new();
    let selected: Vec<SelectedSeries<'_>> = match options.per {
        None => series
            .iter()
            .enumerate()
            .map(|(at, s)| SelectedSeries {
                name: s.name(),
                group: group(s),
                metric: &s.metric,
                bound: vec![bind_series(index, at, of_values(&s.metric))],
            })
            .collect(),
        Some(_) => series
            .iter()
            .filter(|s| metrics.insert(&s.metric.name))
            .map(|s| SelectedSeries {
                name: s.metric.name.clone(),
                group: s.metric.sensor().to_owned(),
                metric: &s.metric,
                bound: places
                    .iter()
                    .map(|&p| bind_metric(index, &s.metric.name, of_values(&s.metric), p))
                    .collect(),
            })
            .collect(),
    };
    let names: Vec<(&str, &str)> = selected.iter().map(|c| (c.group.as_str(), c.metric.bare())).collect();
    let headings = headings(&names);
    let column = |(series, heading): (SelectedSeries<'_>, String)| {
        let quantity = quantity(series.metric);
        let head = ColumnHead { group: series.group, heading, width: quantity.width() };
        ValueColumn { name: series.name, head, quantity, bound: series.bound }
    };
    selected.into_iter().zip(headings).map(column).collect()
}

/// The heading of a group of columns.
fn group(series: &Series) -> String {
    match series.instance {
        Instance::Machine => series.metric.sensor().to_owned(),
        place => place.to_string().trim_start_matches('@').to_owned(),
    }
}

/// How the values of a metric are shown: a counter of time is a share of time.
fn quantity(metric: &Metric) -> NumberStyle {
    let counter = matches!(metric.kind, Kind::Counter { .. });
    match metric.unit {
        Unit::Ticks | Unit::Nanoseconds | Unit::Microseconds | Unit::Milliseconds if counter => {
            NumberStyle::Percent
        }
        Unit::Ticks | Unit::Nanoseconds | Unit::Microseconds | Unit::Milliseconds => NumberStyle::Seconds,
        _ if metric.kind != Kind::Gauge => NumberStyle::Rate,
        Unit::Pages | Unit::Bytes | Unit::Kibibytes => NumberStyle::Bytes,
        Unit::Count | Unit::Cycles => NumberStyle::Count,
    }
}

/// Headings for names in groups: the words of long names are cut; if two of a
/// group would be equal, both keep their full names.
fn headings(names: &[(&str, &str)]) -> Vec<String> {
    let short: Vec<(&str, String)> = names.iter().map(|(group, name)| (*group, shortened(name))).collect();
    let mut times: HashMap<&(&str, String), usize> = HashMap::new();
    short.iter().for_each(|key| *times.entry(key).or_default() += 1);
    let heading = |(key, (_, name)): (&(&str, String), &(&str, &str))| match times[key] {
        1 => key.1.clone(),
        _ => (*name).to_owned(),
    };
    short.iter().zip(names).map(heading).collect()
}

/// `compact_daemon_wake` is `com_dae_wak` and `n2CachelinesRecv` is `n2CachelRecv`: as many letters
/// of each word as fit.
fn shortened(name: &str) -> String {
    if name.chars().count() <= MAX_HEADING {
        return name.to_owned();
    }
    let words = words(name);
    let cut = |letters: usize| {
        let short = |word: &&str| {
            let mark = usize::from(word.starts_with('_'));
            word.chars().take(letters + mark).collect::<String>()
        };
        words.iter().map(short).collect::<String>()
    };
    let fits = (1..name.len()).rev().map(cut).find(|text| text.chars().count() <= MAX_HEADING);
    fits.unwrap_or_else(|| name.to_owned())
}

/// The words of a name, which begin with `_` or with an upper-case letter after a lower-case one.
fn words(name: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let (mut from, mut before) = (0, '_');
    for (at, letter) in name.char_indices() {
        if letter == '_' || (letter.is_uppercase() && !before.is_uppercase() && before != '_') {
            words.push(&name[from..at]);
            from = at;
        }
        before = letter;
    }
    words.push(&name[from..]);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_are_short_and_differ() {
        assert_eq!(shortened("pgfault"), "pgfault");
        assert_eq!(shortened("compact_daemon_wake"), "com_dae_wak");
        assert_eq!(shortened("numa_hint_faults"), "num_hin_fau");
        assert_eq!(shortened("n2CachelinesRecv"), "n2CachelRecv");
        assert_eq!(shortened("n2WaitCycReqPiuRmpe"), "n2WaCyRePiRm");
        assert_eq!(shortened("UNC_M_CAS_COUNT.RD"), "UN_M_CA_CORD");
        let names =
            [("vmstat", "pgsteal_kswapd_dma"), ("vmstat", "pgsteal_kswapd_dma32"), ("node0", "numa_hit")];
        assert_eq!(headings(&names)[2], "numa_hit");
        let clash =
            [("vmstat", "numa_hint_faults"), ("vmstat", "numa_hint_faulty"), ("node0", "numa_hint_faults")];
        assert_eq!(headings(&clash), ["numa_hint_faults", "numa_hint_faulty", "num_hin_fau"]);
    }
}
