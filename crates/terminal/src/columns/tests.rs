use super::*;
use crate::table::{ColumnHead, TableLayout};
use numakit_formulas::Index;
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
        maximum: None,
    };
    Series::new(&Arc::new(metric), instance)
}

fn two_nodes() -> Topology {
    let node = |os_index, first, last| Node { os_index, cpus: CpuSet::range(first, last), ..Node::default() };
    Topology { nodes: vec![node(0, 0, 1), node(1, 2, 3)], ..Topology::default() }
}

fn value(
    series: &[Series],
    topology: Option<&Topology>,
    page_size: u64,
    name: &str,
    place: Instance,
    values: &[Option<f64>],
) -> Option<f64> {
    let formulas = Catalog::built_in();
    let index = Index::new(series, topology, page_size);
    index.bind(formulas, formulas.get(name).unwrap(), place).ok()?.value(values)
}

#[test]
fn every_column_is_valid() {
    let mut names = HashSet::new();
    for column in COLUMNS {
        assert!(names.insert(column.name), "{} is listed twice", column.name);
        assert!(column.width >= column.heading.len(), "{}", column.name);
        assert!(column.formula(Catalog::built_in()).is_some(), "{} has no formula", column.name);
        assert!(!column.per.is_empty());
    }
}

#[test]
fn every_name_in_the_built_in_formulas_is_known_and_every_unit_fits() {
    let known = crate::formulas::known_metrics();
    let catalog = Catalog::built_in();
    for formula in catalog.all() {
        assert!(formula.help.ends_with('.'), "{}", formula.name);
        for name in catalog.names(formula).into_iter().filter(|n| !n.starts_with("topology.")) {
            assert!(known.contains_key(name), "{}: no sensor has {name}", formula.name);
        }
    }
    catalog.check(&|name| known.get(name).copied()).unwrap();
}

#[test]
fn a_machine_that_has_everything_fits_a_hundred_characters() {
    for per in Per::ALL {
        let head =
            |c: &TableColumn| ColumnHead { group: c.group.into(), heading: c.heading.into(), width: c.width };
        let first = match per {
            Per::Machine => vec![8],
            Per::Package => vec![8, 7],
            Per::Device => vec![8, 6],
            Per::Node | Per::Cpu => vec![8, 4],
        };
        let heads =
            first.into_iter().map(|width| ColumnHead { group: String::new(), heading: String::new(), width });
        let layout = TableLayout::new(heads.chain(columns(per).map(head)).collect());
        assert!(layout.width() <= 100, "per {}: {}", per.name(), layout.width());
    }
}

#[test]
fn the_first_name_with_series_is_used_and_instances_are_summed() {
    let all = [
        series("vmstat.numa_miss", Unit::Count, Instance::Machine),
        series("node.numa_miss", Unit::Count, Instance::Node(0)),
        series("node.numa_miss", Unit::Count, Instance::Node(1)),
    ];
    let values = [Some(100.0), Some(1.0), Some(2.0)];
    let miss =
        |series: &[Series], place, values: &[Option<f64>]| value(series, None, 4096, "miss", place, values);
    assert_eq!(miss(&all, Instance::Machine, &values), Some(100.0));
    assert_eq!(miss(&all, Instance::Node(1), &values), Some(2.0));
    assert_eq!(miss(&all, Instance::Node(2), &values), None);
    assert_eq!(miss(&all[1..], Instance::Machine, &values[1..]), Some(3.0));
    assert_eq!(miss(&all[1..], Instance::Machine, &[None, Some(2.0)]), Some(2.0));
    assert_eq!(miss(&all[1..], Instance::Machine, &[None, None]), None);
}

#[test]
fn shares_of_cpus_are_those_of_their_node() {
    let all: Vec<Series> = (0..4)
        .flat_map(|cpu| ["cpu.user", "cpu.idle"].map(|name| series(name, Unit::Ticks, Instance::Cpu(cpu))))
        .collect();
    let values = [100.0, 0.0, 50.0, 50.0, 0.0, 100.0, 0.0, 0.0].map(Some);
    let topology = two_nodes();
    let user = |place| value(&all, Some(&topology), 4096, "user", place, &values);
    assert_eq!(user(Instance::Node(0)), Some(75.0));
    assert_eq!(user(Instance::Node(1)), Some(0.0));
    assert_eq!(user(Instance::Machine), Some(50.0));
    assert_eq!(user(Instance::Cpu(3)), None, "a share of nothing");
}

#[test]
fn units_become_base_units() {
    let mut all = [
        series("vmstat.nr_free_pages", Unit::Pages, Instance::Machine),
        series("pressure.memory_some", Unit::Microseconds, Instance::Machine),
        series("vmstat.pgfault", Unit::Count, Instance::Machine),
        series("vmstat.pgmajfault", Unit::Count, Instance::Machine),
        series("vmstat.pgmigrate_success", Unit::Pages, Instance::Machine),
    ];
    Arc::make_mut(&mut all[0].metric).kind = Kind::Gauge;
    let of = |name: &str, page_size, values: &[Option<f64>]| {
        value(&all, None, page_size, name, Instance::Machine, values)
    };
    let values = [Some(2.0), Some(250_000.0), Some(10.0), Some(4.0), Some(7.0)];
    assert_eq!(of("free", 65536, &values), Some(131_072.0));
    assert_eq!(of("free", 0, &values), None, "pages of unknown size");
    assert_eq!(of("moved", 65536, &values), Some(7.0));
    assert_eq!(of("moved", 0, &values), Some(7.0), "a number of pages needs no size");
    assert!((of("stall", 4096, &values).unwrap() - 25.0).abs() < 1e-9);
    assert_eq!(of("minor", 4096, &values), Some(6.0));
    assert_eq!(of("minor", 4096, &[None, None, Some(3.0), Some(4.0)]), Some(0.0));
    assert_eq!(of("hint", 4096, &values), None);
}
