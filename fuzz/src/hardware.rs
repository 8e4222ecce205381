//! Event tables, and the events of the kernel.

use numakit_sensors::events::EventTable;
use numakit_sensors::pmu::Terms;
use std::collections::BTreeMap;

/// An event table of a user.
pub fn table(input: &[u8]) -> bool {
    let Ok(table) = EventTable::parse(&String::from_utf8_lossy(input)) else { return false };
    for (_, event) in table.events() {
        assert!(event.indices.clone().count() <= 1024, "a line has too many events");
        for index in [*event.indices.start(), *event.indices.end()] {
            let _ = (event.name_at(index), event.number(index, "pmu_0"));
            let _ = event.fields(index, Some(1), &BTreeMap::new());
        }
    }
    true
}

/// The terms of an event of the kernel: terms without a value get one, or an error.
pub fn terms(input: &[u8]) -> bool {
    let text = String::from_utf8_lossy(input).into_owned();
    let terms = Terms::parse(&text);
    if let Ok(terms) = &terms {
        for index in [0, 1, u64::MAX] {
            assert!(terms.at(index).all(|(field, _)| !field.is_empty()));
        }
    }
    let table = "platform x\nsource x\n[x each-chip per node]\nx | sysfs:x,core=1 | link_out*1 | high | X.\n";
    let known = BTreeMap::from([("x".to_owned(), text)]);
    for (_, event) in EventTable::parse(table).iter().flat_map(EventTable::events) {
        if let Ok(fields) = event.fields(0, Some(2), &known) {
            let mut names: Vec<_> = fields.iter().map(|(name, _)| name).collect();
            names.sort_unstable();
            assert!(names.windows(2).all(|n| n[0] != n[1]), "a field has two values");
        }
    }
    terms.is_ok()
}
