//! Files of formulas.

use numakit_formulas::{Catalog, Index};
use numakit_model::{Instance, Kind, Metric, Scope, Series, Topology, Unit};
use std::sync::Arc;
use std::time::Duration;

/// Parsed formulas print and parse to the same, and can be evaluated over any row.
pub fn file(input: &[u8]) -> bool {
    let text = String::from_utf8_lossy(input);
    let known = |name: &str| (name == "a.bytes").then_some((Unit::Bytes, Kind::Gauge));
    let mut catalog = Catalog::default();
    if catalog.add(&text, "input", &known).is_err() {
        return false;
    }
    let printed: String =
        catalog.all().iter().map(|f| format!("{}: {} = {}\n", f.name, f.quantity, f.expr)).collect();
    let mut again = Catalog::default();
    assert_eq!(again.add(&printed, "again", &known), Ok(()), "{printed}");
    let series: Vec<Series> =
        [("a.bytes", Unit::Bytes), ("a.count", Unit::Count), ("a.ns", Unit::Nanoseconds)].map(series).into();
    let topology = Topology::default();
    let index = Index::new(&series, Some(&topology), 4096);
    for formula in catalog.all() {
        let Ok(bound) = index.bind(&catalog, formula, Instance::Machine) else { continue };
        for values in [[Some(0.0); 3], [Some(1.0), Some(-2.0), Some(1e300)], [None, Some(5.0), None]] {
            assert!(bound.value(&values).is_none_or(f64::is_finite));
        }
    }
    true
}

fn series((name, unit): (&str, Unit)) -> Series {
    let metric = Metric {
        name: name.to_owned(),
        unit,
        kind: Kind::Gauge,
        scope: Scope::Machine,
        help: String::new(),
        source: String::new(),
        resolution: Duration::ZERO,
        confidence: None,
        maximum: None,
    };
    Series::new(&Arc::new(metric), Instance::Machine)
}
