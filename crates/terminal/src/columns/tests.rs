use super::*;
use crate::table::{Head, Layout};
use numakit_model::topology::Node;
use numakit_model::{CpuSet, Instance, Kind, Metric, Series, Topology, Unit};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

fn series(name: &str, unit: Unit, instance: Instance) -> Series {
    let metric = Metric {
        name: name.into(),
        unit,
        kind: Kind::COUNTER,
        scope: instance.scope(),
        help: String::new(),
        source: String::new(),
        resolution: Duration::ZERO,
        confidence: None,
    };
    Series::new(&Arc::new(metric), instance)
}

fn two_nodes() -> Topology {
    let node = |os_index, first, last| Node { os_index, cpus: CpuSet::range(first, last), ..Node::default() };
    Topology { nodes: vec![node(0, 0, 1), node(1, 2, 3)], ..Topology::default() }
}

#[test]
fn every_column_is_sound() {
    let known: HashSet<String> =
        numakit_sensors::SENSORS.iter().flat_map(|s| (s.known)()).map(|m| m.name).collect();
    let mut names = HashSet::new();
    for column in COLUMNS {
        assert!(names.insert(column.name), "{} is there twice", column.name);
        assert!(column.width >= column.heading.len(), "{}", column.name);
        assert!(column.help.ends_with('.'), "{}", column.name);
        assert!(!column.per.is_empty());
        for name in column.formula.names() {
            assert!(known.contains(name), "{}: no sensor has {name}", column.name);
        }
    }
}

#[test]
fn a_machine_that_has_everything_fits_a_hundred_characters() {
    for per in [Per::Machine, Per::Node, Per::Cpu] {
        let head = |c: &Column| Head { group: c.group.into(), heading: c.heading.into(), width: c.width };
        let first = if per == Per::Machine { vec![8] } else { vec![8, 4] };
        let heads =
            first.into_iter().map(|width| Head { group: String::new(), heading: String::new(), width });
        let layout = Layout::new(heads.chain(columns(per).map(head)).collect());
        assert!(layout.width() <= 100, "per {}: {}", per.name(), layout.width());
    }
}

#[test]
fn the_first_name_that_is_there_counts_and_places_are_added_up() {
    let all = [
        series("vmstat.numa_miss", Unit::Count, Instance::Machine),
        series("node.numa_miss", Unit::Count, Instance::Node(0)),
        series("node.numa_miss", Unit::Count, Instance::Node(1)),
    ];
    let miss = named("miss").unwrap();
    let values = [Some(100.0), Some(1.0), Some(2.0)];
    let value = |series: &[Series], place, values: &[Option<f64>]| {
        Index::new(series, None, 4096).bind(&miss.formula, miss.quantity, place)?.value(values)
    };
    assert_eq!(value(&all, Instance::Machine, &values), Some(100.0));
    assert_eq!(value(&all, Instance::Node(1), &values), Some(2.0));
    assert_eq!(value(&all, Instance::Node(2), &values), None);
    assert_eq!(value(&all[1..], Instance::Machine, &values[1..]), Some(3.0));
    assert_eq!(value(&all[1..], Instance::Machine, &[None, Some(2.0)]), Some(2.0));
    assert_eq!(value(&all[1..], Instance::Machine, &[None, None]), None);
}

#[test]
fn shares_of_cpus_are_those_of_their_node() {
    let all: Vec<Series> = (0..4)
        .flat_map(|cpu| ["cpu.user", "cpu.idle"].map(|name| series(name, Unit::Ticks, Instance::Cpu(cpu))))
        .collect();
    let values = [100.0, 0.0, 50.0, 50.0, 0.0, 100.0, 0.0, 0.0].map(Some);
    let topology = two_nodes();
    let index = Index::new(&all, Some(&topology), 4096);
    let user = named("user").unwrap();
    let value = |place| index.bind(&user.formula, user.quantity, place).unwrap().value(&values);
    assert_eq!(value(Instance::Node(0)), Some(75.0));
    assert_eq!(value(Instance::Node(1)), Some(0.0));
    assert_eq!(value(Instance::Machine), Some(50.0));
    assert_eq!(value(Instance::Cpu(3)), None, "a share of nothing");
}

#[test]
fn units_become_base_units() {
    let all = [
        series("vmstat.nr_free_pages", Unit::Pages, Instance::Machine),
        series("pressure.memory_some", Unit::Microseconds, Instance::Machine),
        series("vmstat.pgfault", Unit::Count, Instance::Machine),
        series("vmstat.pgmajfault", Unit::Count, Instance::Machine),
    ];
    let value = |name: &str, page_size, values: &[Option<f64>]| {
        let column = named(name).unwrap();
        Index::new(&all, None, page_size)
            .bind(&column.formula, column.quantity, Instance::Machine)?
            .value(values)
    };
    let values = [Some(2.0), Some(250_000.0), Some(10.0), Some(4.0)];
    assert_eq!(value("free", 65536, &values), Some(131_072.0));
    assert_eq!(value("free", 0, &values), None, "pages of unknown size");
    assert!((value("stall", 4096, &values).unwrap() - 25.0).abs() < 1e-9);
    assert_eq!(value("minor", 4096, &values), Some(6.0));
    assert_eq!(value("minor", 4096, &[None, None, Some(3.0), Some(4.0)]), Some(0.0));
    assert_eq!(value("hint", 4096, &values), None);
}
