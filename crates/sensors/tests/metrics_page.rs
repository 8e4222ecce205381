//! docs/guide/metrics.md: its tables are generated from the sensors' metrics.

use numakit_model::{Metric, Scope};
use numakit_sensors::SENSORS;
use std::fmt::Write;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/metrics.md");

fn table(metrics: &[Metric]) -> String {
    let mut text = "| name | unit | kind | meaning |\n|---|---|---|---|\n".to_owned();
    // The events of PMUs and their classes are in counters.md.
    for m in metrics.iter().filter(|m| m.confidence.is_none() || m.scope == Scope::Device) {
        _ = writeln!(text, "| `{}` | {} | {} | {} |", m.name, m.unit, m.kind.name(), m.help);
    }
    text
}

/// The page with all tables generated.
fn filled(page: &str) -> String {
    let mut text = page.to_owned();
    for entry in SENSORS {
        let (start, end) = (format!("<!-- table: {} -->\n", entry.name), "<!-- end -->\n");
        let from = text.find(&start).unwrap_or_else(|| panic!("no table for {}", entry.name)) + start.len();
        let to =
            from + text[from..].find(end).unwrap_or_else(|| panic!("no end of the table of {}", entry.name));
        text.replace_range(from..to, &table(&(entry.known)()));
    }
    text
}

#[test]
fn the_page_of_metrics_is_up_to_date() {
    let page = std::fs::read_to_string(PAGE).unwrap();
    let wanted = filled(&page);
    if page != wanted {
        assert!(std::env::var_os("UPDATE").is_some(), "docs/guide/metrics.md is stale; run with UPDATE=1");
        std::fs::write(PAGE, wanted).unwrap();
    }
}

#[test]
fn every_known_metric_has_a_name_of_its_sensor_and_a_description() {
    for entry in SENSORS {
        let metrics = (entry.known)();
        assert!(!metrics.is_empty());
        let mut names: Vec<&str> = metrics.iter().map(|m| m.name.as_str()).collect();
        names.sort_unstable();
        assert!(names.windows(2).all(|w| w[0] != w[1]), "{} knows a name twice", entry.name);
        for metric in &metrics {
            assert_eq!(metric.sensor(), entry.name);
            assert!(metric.help.ends_with('.') && !metric.source.is_empty(), "{}", metric.name);
        }
    }
}
