//! Values of series in the units of tables.

use numakit_formulas::{BoundFormula, Index};
use numakit_model::numbers::NumberStyle;
use numakit_model::{Instance, Kind, Metric, Series, Unit};
use numakit_recording::Header;

/// Series that tell how the recorder does, beside those of its own sensor.
const OF_RECORDER: [&str; 8] = [
    "task.walk_time",
    "task.walk_age",
    "task.walk_cpu",
    "task.resident_error",
    "access.samples",
    "access.clusters",
    "access.lost",
    "access.observer_cpu",
];

/// Whether a series is about the recorder itself.
pub(crate) fn is_of_recorder(series: &Series) -> bool {
    series.metric.sensor() == "self" || OF_RECORDER.contains(&series.metric.name.as_str())
}

/// The unit of a metric's rate, and the factor from the metric's own unit: the rate of a counter of time is a share of time,
/// the rate of a counter of memory is bytes per second.
pub(crate) fn rate_unit(metric: &Metric) -> (&'static str, f64) {
    match (metric.maximum, metric.unit.seconds(), metric.unit) {
        (Some(maximum), ..) => ("%", 100.0 / maximum as f64),
        (_, Some(seconds), _) => ("%", 100.0 * seconds),
        (_, _, Unit::Kibibytes) => ("bytes", 1024.0),
        (_, _, unit) => (unit.name(), 1.0),
    }
}

/// The unit in which a series is shown, with `/s` if the series is a rate and no share, and the factor from the series's own
/// unit.
pub fn shown_unit(index: &Index<'_>, at: usize) -> (String, f64) {
    let metric = &index.series()[at].metric;
    match (metric.kind, factor(index, at, NumberStyle::Bytes)) {
        (Kind::Gauge, Some(factor)) => ("bytes".to_owned(), factor),
        (Kind::Gauge, None) => (metric.unit.name().to_owned(), 1.0),
        _ => match rate_unit(metric) {
            ("%", factor) => ("%".to_owned(), factor),
            (unit, factor) => (format!("{unit}/s"), factor),
        },
    }
}

/// The series of a header by name and place.
pub fn index(header: &Header) -> Index<'_> {
    let page_size = match (header.page_size, &header.topology) {
        (0, Some(topology)) => topology.page_size,
        (size, _) => size,
    };
    Index::new(&header.series, header.topology.as_ref(), page_size)
}

/// One series in that style; `None` if its unit does not fit.
pub fn bind_series(index: &Index<'_>, at: usize, style: NumberStyle) -> Option<BoundFormula> {
    Some(BoundFormula::sum(vec![(at, factor(index, at, style)?)]))
}

/// The sum of all series of a metric at a place.
pub fn bind_metric(
    index: &Index<'_>,
    name: &str,
    style: NumberStyle,
    place: Instance,
) -> Option<BoundFormula> {
    let found = index.find(name, place).into_iter();
    let terms: Vec<(usize, f64)> = found.filter_map(|at| Some((at, factor(index, at, style)?))).collect();
    (!terms.is_empty()).then(|| BoundFormula::sum(terms))
}

/// A value of one series in that style.
pub fn convert(index: &Index<'_>, at: usize, style: NumberStyle, value: u64) -> Option<f64> {
    Some(value as f64 * factor(index, at, style)?)
}

fn factor(index: &Index<'_>, at: usize, style: NumberStyle) -> Option<f64> {
    let unit = index.series()[at].metric.unit;
    match style {
        NumberStyle::Bytes => unit.bytes(index.page_size()).filter(|&b| b > 0).map(|b| b as f64),
        NumberStyle::Seconds => unit.seconds(),
        // Time per time, unless the metric is a share already.
        NumberStyle::Percent => Some(unit.seconds().map_or(1.0, |s| 100.0 * s)),
        NumberStyle::Rate if unit == Unit::Kibibytes => Some(1024.0),
        NumberStyle::Rate | NumberStyle::Count | NumberStyle::Ratio => Some(1.0),
    }
}
