//! Small recordings for tests.

use numakit_model::{Instance, Kind, Metric, Scope, Series, Unit};
use numakit_recording::{Batch, Header};
use std::sync::Arc;
use std::time::Duration;

/// Gauges of the machine.
pub fn header(columns: usize) -> Arc<Header> {
    let series = (0..columns).map(|index| {
        let metric = Metric {
            name: format!("test.value{index}"),
            unit: Unit::Count,
            kind: Kind::Gauge,
            scope: Scope::Machine,
            help: "A value.".into(),
            source: String::new(),
            resolution: Duration::ZERO,
            confidence: None,
            maximum: None,
        };
        Series::new(&Arc::new(metric), Instance::Machine)
    });
    Arc::new(Header { series: series.collect(), host: "h".into(), ..Header::default() })
}

/// Rows whose time is their number. The second column was not measured.
pub fn rows(from: u64, count: u64, columns: usize) -> Batch {
    let mut batch = Batch::empty(columns);
    for row in from..from + count {
        let value = |column: usize| mixed(row << 16 | column as u64);
        let values: Vec<_> = (0..columns).map(|column| (column != 1).then_some(value(column))).collect();
        batch.push_sample(row, 3, &values);
    }
    batch
}

/// Numbers without a pattern, which no compression shortens.
fn mixed(number: u64) -> u64 {
    let one = (number ^ number >> 30).wrapping_add(1).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let two = (one ^ one >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    two ^ two >> 31
}
