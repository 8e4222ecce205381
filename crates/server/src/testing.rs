//! Headers for tests.

use numakit_model::{Instance, Kind, Metric, Series, Unit};
use numakit_recording::Header;
use std::sync::Arc;
use std::time::Duration;

/// A header of gauges with these names.
pub fn header(names: &[&str]) -> Header {
    let series = names.iter().map(|name| {
        let (metric, place) = name.split_once('@').unwrap_or((name, ""));
        let instance = Instance::parse(place).unwrap_or(Instance::Machine);
        let metric = Metric {
            name: metric.to_owned(),
            unit: Unit::Count,
            kind: Kind::Gauge,
            scope: instance.scope(),
            help: String::new(),
            source: String::new(),
            resolution: Duration::ZERO,
            confidence: None,
            maximum: None,
        };
        Series::new(&Arc::new(metric), instance)
    });
    Header { series: series.collect(), ..Header::default() }
}

/// A source with these series and this number of rows, every millisecond from 1 s on: the first
/// series counts from 0, the others are absent.
pub fn shown(names: &[&str], rows: u64) -> crate::source::ShownSource {
    let header = header(names);
    let layout = crate::layout::SeriesLayout::new(&header, &numakit_formulas::Catalog::default());
    let history = numakit_history::History::new(names.len(), 1 << 20);
    let mut values = vec![None; names.len()];
    for row in 0..rows {
        values[0] = Some(row as f64);
        history.push(1_000_000_000 + row * 1_000_000, &values);
    }
    let info = layout.info(crate::wire::SourceKind::Live, "test", &header);
    let formulas = Arc::new(numakit_formulas::Catalog::built_in().clone());
    let examiner = crate::examiner::Examiner::new(&header, &layout, &formulas);
    crate::source::ShownSource::new(info, layout.names().to_vec(), Arc::new(history), examiner)
}
