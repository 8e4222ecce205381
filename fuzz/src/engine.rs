//! Answers of engines, to rows and to queries.

use numakit_model::Metric;
use numakit_push::{Delivery, EMITTERS, FetchRequest, PushTarget, fetched};
use numakit_sensors::SENSORS;
use std::sync::LazyLock;

/// The first byte chooses the engine, two more are the status of HTTP.
pub fn answer(input: &[u8]) -> bool {
    let Some(([engine, low, high], body)) = input.split_first_chunk() else { return false };
    let emitter = &EMITTERS[usize::from(*engine) % EMITTERS.len()];
    match emitter.meaning(u16::from_le_bytes([*low, *high]), body) {
        Some(Delivery::Refused(why) | Delivery::Denied(why) | Delivery::Down { why, .. }) => {
            assert!(why.chars().count() < 400 && !why.contains(char::is_control), "{why}");
            false
        }
        Some(Delivery::Partly { refused, .. }) => refused > 0,
        Some(Delivery::Accepted | Delivery::Large) | None => false,
    }
}

/// Lines are answers of InfluxDB: with the description of the rows, and with the rows.
pub fn influx(input: &[u8]) -> bool {
    rows("influxdb1+http://h?db=d", input)
}

/// Lines are answers of Prometheus: with the series, and with their samples.
pub fn prometheus(input: &[u8]) -> bool {
    rows("prometheus+http://h", input)
}

/// All that a fetch may know.
static KNOWN: LazyLock<Vec<Metric>> = LazyLock::new(|| SENSORS.iter().flat_map(|s| (s.known)()).collect());

/// Rows are as wide as their description, in order, and within the range.
fn rows(url: &str, input: &[u8]) -> bool {
    let Ok(target) = PushTarget::parse(url) else { return false };
    let range = (0, 1 << 61);
    let request = FetchRequest { target: &target, host: "h", range, known: KNOWN.clone() };
    let answers = input.split(|byte| *byte == b'\n').map(|line| line.to_vec().into()).collect();
    let Ok((header, batch)) = fetched(&request, answers) else { return false };
    assert_eq!(batch.columns.len(), header.series.len());
    assert!(batch.time.is_sorted());
    batch.len() > batch.labels()
}
