//! Which series changed most.
//!
//! A counter's swing is from its quiet rate (the tenth percentile of all slots of 100 ms)
//! to its peak; a level's is from its minimum to its maximum. Both are powers of ten after a floor
//! was added to each end: 10 events per second, 1 % of the memory, a count of 10. So what is rare
//! or small for the machine does not count, and a rise from 0 is not infinite.

use crate::report::{Mover, SeriesChange};
use crate::series::{convert, is_of_recorder, rate_unit};
use crate::tally::{Level, Movement, SLOT, Tally};
use numakit_formulas::Index;
use numakit_model::numbers::NumberStyle;
use numakit_model::{Instance, Series};
use numakit_recording::Header;
use std::collections::HashSet;

/// Maximum number of series that are shown, and maximum number of rates among these if there are levels.
const MAX: usize = 10;
const MAX_RATES: usize = 6;
/// Powers of ten: a factor of two.
const MIN_SWING: f64 = 0.301;
/// Share of the slots that are quiet.
const QUIET: f64 = 0.1;
/// A change counts if it is more than this many times the noise: values that vary by chance have a peak that is far from
/// their quiet rate.
const BEYOND_NOISE: f64 = 5.0;
/// A rate with fewer slots has no swing.
const MIN_SLOTS: u64 = 3;
/// Changes that differ by less than this share are equal.
const TOLERANCE: f64 = 0.05;
const FLOOR_RATE: f64 = 10.0;
const FLOOR_PERCENT: f64 = 1.0;
const FLOOR_COUNT: f64 = 10.0;
const FLOOR_MEMORY: f64 = 0.01;
/// Assumed memory of a machine that is not in the recording.
const UNKNOWN_MEMORY: f64 = 1073741824.0;

pub(crate) fn movers(header: &Header, tally: &Tally, index: &Index<'_>) -> Vec<Mover> {
    let mover = |(at, (series, movement)): (usize, (&Series, &Movement))| {
        // The recording's own work is shown as its cost, and idle time is the complement of all other time.
        if is_of_recorder(series) || series.metric.name == "cpu.idle" {
            return None;
        }
        let noise = tally.spreads[at].noise();
        match movement {
            Movement::Rates { .. } => rate(series, movement, tally, noise),
            Movement::Level(level) => self::level(header, index, at, (series, (*level)?, noise)),
        }
    };
    let all = header.series.iter().zip(&tally.movements).enumerate().filter_map(mover);
    let mut all: Vec<Mover> = all.filter(|m| m.swing >= MIN_SWING && is_beyond_noise(m)).collect();
    all.sort_by(|a, b| b.swing.total_cmp(&a.swing).then_with(|| a.series.cmp(&b.series)));
    // Each metric is listed once, with the instance or sensor that changed most.
    let mut metrics = HashSet::new();
    all.retain(|m| metrics.insert(bare(&m.series).to_owned()));
    let all = merge(all);
    let (rates, levels): (Vec<Mover>, Vec<Mover>) =
        all.into_iter().partition(|m| matches!(m.change, SeriesChange::Rate { .. }));
    let of_rates = MAX_RATES.max(MAX.saturating_sub(levels.len()));
    let rates: Vec<Mover> = rates.into_iter().take(of_rates).collect();
    let of_levels = MAX - rates.len();
    rates.into_iter().chain(levels.into_iter().take(of_levels)).collect()
}

/// Whether the change is larger than the noise. A series that varies as much from one value to the next has not changed.
fn is_beyond_noise(mover: &Mover) -> bool {
    let range = match mover.change {
        SeriesChange::Rate { quiet, peak, .. } => peak - quiet,
        SeriesChange::Level { least, most, .. } => most - least,
    };
    mover.noise.is_none_or(|noise| range > BEYOND_NOISE * noise)
}

/// The change as a share of the value at the beginning; `None` if that was 0.
fn percent_of(change: f64, from: f64) -> Option<f64> {
    (from > 0.0).then(|| 100.0 * change / from)
}

/// Merges series with the same change into one, named after the first.
fn merge(all: Vec<Mover>) -> Vec<Mover> {
    let mut merged: Vec<Mover> = Vec::new();
    for mover in all {
        match merged.iter_mut().find(|other| alike(&other.change, &mover.change)) {
            Some(other) => other.alike.push(mover.series),
            None => merged.push(mover),
        }
    }
    merged
}

/// Whether two series changed in the same way, as two names of one event do: an allocated page is
/// also a fault.
fn alike(a: &SeriesChange, b: &SeriesChange) -> bool {
    let near = |a: f64, b: f64, scale: f64| (a - b).abs() <= TOLERANCE * scale;
    match (a, b) {
        (
            SeriesChange::Rate { unit: u, peak: p, peak_at_seconds: at, .. },
            SeriesChange::Rate { unit: v, peak: q, peak_at_seconds: bt, .. },
        ) => {
            counted_unit(u) == counted_unit(v)
                && near(*p, *q, p.max(*q))
                && (at - bt).abs() <= 2.0 * SLOT.as_secs_f64()
        }
        (
            SeriesChange::Level { unit: u, begin: b1, least: l1, most: m1, .. },
            SeriesChange::Level { unit: v, begin: b2, least: l2, most: m2, .. },
        ) => u == v && near(m1 - b1, m2 - b2, m1 - l1) && near(b1 - l1, b2 - l2, m1 - l1),
        _ => false,
    }
}

/// The unit, with pages as counts.
fn counted_unit(unit: &str) -> &str {
    if unit == "pages" { "count" } else { unit }
}

fn bare(series: &str) -> &str {
    let metric = series.split_once('@').map_or(series, |(metric, _)| metric);
    metric.split_once('.').map_or(metric, |(_, bare)| bare)
}

fn swing(least: f64, most: f64, floor: f64) -> f64 {
    ((most + floor) / (least + floor)).log10()
}

fn rate(series: &Series, movement: &Movement, tally: &Tally, noise: Option<f64>) -> Option<Mover> {
    let Movement::Rates { rates, peak_at } = movement else { return None };
    if rates.total() < MIN_SLOTS {
        return None;
    }
    let (unit, factor) = rate_unit(&series.metric);
    let quiet = rates.quantile(QUIET)? * factor;
    let peak = rates.largest()? * factor;
    let floor = match unit {
        "%" => FLOOR_PERCENT,
        "bytes" => FLOOR_RATE * 4096.0,
        _ => FLOOR_RATE,
    };
    let change = SeriesChange::Rate {
        unit,
        quiet,
        peak,
        peak_at_seconds: tally.seconds(*peak_at),
        active_percent: 100.0 * rates.above_zero() as f64 / rates.total() as f64,
    };
    Some(Mover {
        series: series.name(),
        swing: swing(quiet, peak, floor),
        change,
        change_percent: percent_of(peak - quiet, quiet),
        noise: noise.map(|noise| noise * factor),
        alike: Vec::new(),
    })
}

fn level(
    header: &Header,
    index: &Index<'_>,
    at: usize,
    (series, level, noise): (&Series, Level, Option<f64>),
) -> Option<Mover> {
    let bytes = |value: u64| convert(index, at, NumberStyle::Bytes, value);
    let (unit, values, floor) =
        match (bytes(level.begin), bytes(level.end), bytes(level.least), bytes(level.most)) {
            (Some(begin), Some(end), Some(least), Some(most)) => {
                ("bytes", [begin, end, least, most], FLOOR_MEMORY * memory_of(header, series))
            }
            _ => {
                let values = [level.begin, level.end, level.least, level.most].map(|v| v as f64);
                (series.metric.unit.name(), values, FLOOR_COUNT)
            }
        };
    let [begin, end, least, most] = values;
    let change = SeriesChange::Level { unit, begin, end, least, most };
    // The change from the start to the minimum or the maximum, whichever is farther from it.
    let farthest = if most - begin >= begin - least { most - begin } else { least - begin };
    Some(Mover {
        series: series.name(),
        swing: swing(least, most, floor),
        change,
        change_percent: percent_of(farthest, begin),
        noise: noise.map(|noise| noise * bytes(1).unwrap_or(1.0)),
        alike: Vec::new(),
    })
}

/// Memory of the node or machine that the series belongs to.
fn memory_of(header: &Header, series: &Series) -> f64 {
    let of_place = || match series.instance {
        Instance::Node(node) => header.topology.as_ref()?.node(node)?.memory_kb,
        _ => header.topology.as_ref()?.memory_kb(),
    };
    of_place().filter(|&kb| kb > 0).map_or(UNKNOWN_MEMORY, |kb| kb as f64 * 1024.0)
}
