use super::*;
use crate::catalog::Catalog;
use crate::expression::{Expr, Function};
use crate::index::Index;
use crate::missing::MissingReason;
use numakit_model::topology::{Node, Package};
use numakit_model::{CpuSet, Instance, Kind, Metric, Series, Topology, Unit};
use proptest::prelude::*;
use std::sync::Arc;
use std::time::Duration;

fn series(name: &str, unit: Unit, kind: Kind, instance: Instance) -> Series {
    let metric = Metric {
        name: name.into(),
        unit,
        kind,
        scope: instance.scope(),
        help: String::new(),
        source: String::new(),
        resolution: Duration::ZERO,
        confidence: None,
        maximum: None,
    };
    Series::new(&Arc::new(metric), instance)
}

fn count(name: &str, instance: Instance) -> Series {
    series(name, Unit::Count, Kind::Gauge, instance)
}

/// Two packages; the first has one node, the second two.
fn machine() -> Topology {
    let node = |os_index, cpus| Node { os_index, cpus, ..Node::default() };
    let package = |os_index, cpus| Package { os_index: Some(os_index), cpus };
    Topology {
        nodes: vec![
            node(0, CpuSet::range(0, 3)),
            node(1, CpuSet::range(4, 5)),
            node(2, CpuSet::range(6, 7)),
            node(3, CpuSet::new()),
        ],
        packages: vec![package(0, CpuSet::range(0, 3)), package(1, CpuSet::range(4, 7))],
        online: CpuSet::range(0, 7),
        ..Topology::default()
    }
}

fn catalog(text: &str) -> Catalog {
    let mut catalog = Catalog::default();
    catalog.add(text, "test", &|_| None).unwrap();
    catalog
}

fn bound(formula: &str, all: &[Series], place: Instance) -> Result<BoundFormula, crate::Missing> {
    let (machine, catalog) = (machine(), catalog(&format!("it: {formula}")));
    let index = Index::new(all, Some(&machine), 4096);
    index.bind(&catalog, catalog.get("it").unwrap(), place)
}

fn value(formula: &str, all: &[Series], values: &[Option<f64>]) -> Option<f64> {
    bound(formula, all, Instance::Machine).unwrap().value(values)
}

#[test]
fn places_hold_what_belongs_to_them() {
    let all = [
        count("m.x", Instance::Package(0)),
        count("m.x", Instance::Package(1)),
        count("m.x", Instance::Link(0, 1)),
        count("m.x", Instance::Link(1, 2)),
        count("m.x", Instance::Cpu(0)),
        count("m.x", Instance::Cpu(7)),
        count("m.x", Instance::Node(1)),
        count("m.x", Instance::Node(3)),
    ];
    let values: Vec<Option<f64>> = (0..8).map(|n| Some(f64::from(1 << n))).collect();
    let at = |place| bound("count = m.x", &all, place).ok().and_then(|b| b.value(&values));
    assert_eq!(at(Instance::Machine), Some(255.0));
    assert_eq!(at(Instance::Node(0)), Some(1.0 + 4.0 + 16.0), "its package has no other node");
    assert_eq!(at(Instance::Node(1)), Some(64.0), "its package has two nodes");
    assert_eq!(at(Instance::Node(2)), Some(32.0));
    assert_eq!(at(Instance::Node(3)), Some(128.0));
    assert_eq!(at(Instance::Package(0)), Some(1.0 + 4.0 + 16.0));
    assert_eq!(at(Instance::Package(1)), Some(2.0 + 8.0 + 32.0 + 64.0));
    assert_eq!(at(Instance::Cpu(7)), Some(32.0));
    assert_eq!(at(Instance::Cpu(5)), None);
}

#[test]
fn the_first_alternative_that_is_there_is_taken() {
    let all = [count("m.a", Instance::Node(1)), count("m.b", Instance::Machine)];
    let values = [Some(1.0), Some(2.0)];
    assert_eq!(value("count = m.b | m.a", &all, &values), Some(2.0));
    assert_eq!(value("count = m.c | m.a + 1 | m.b", &all, &values), Some(2.0));
    assert_eq!(value("count = m.c | m.a", &all, &[None, Some(2.0)]), None, "chosen once, not row by row");
    assert_eq!(value("count = 10 + m.c? + m.a?", &all, &[None, None]), Some(10.0));
    let lost = bound("count = m.c + m.a | 2 * m.b", &all, Instance::Node(1)).unwrap_err();
    let inputs: Vec<(&str, &MissingReason)> = lost.inputs.iter().map(|l| (l.name.as_str(), &l.why)).collect();
    assert_eq!(
        inputs,
        [("m.c", &MissingReason::NoSeries), ("m.b", &MissingReason::NotAt(Instance::Node(1)))]
    );
    assert_eq!(lost.to_string(), "needs m.c: not sampled, or m.b: not sampled per node");
}

#[test]
fn absent_values_and_division_by_zero_give_no_value() {
    let all = [count("m.a", Instance::Machine), count("m.b", Instance::Machine)];
    let of = |formula: &str, a, b| value(formula, &all, &[a, b]);
    assert_eq!(of("count = m.a + m.b", Some(1.0), None), None);
    assert_eq!(of("count = m.a / m.b", Some(1.0), Some(0.0)), None);
    assert_eq!(of("count = m.a / m.b", Some(0.0), Some(0.0)), None);
    assert_eq!(of("count = min(m.a, m.b)", Some(1.0), None), None);
    assert_eq!(of("count = 1 / (m.a * 1e300 * 1e300)", Some(1.0), Some(0.0)), None, "too large is not 0");
    assert_eq!(of("count = m.a", Some(f64::NAN), None), None);
    assert_eq!(of("percent = share(m.a, m.b)", Some(3.0), Some(2.0)), Some(100.0));
    assert_eq!(of("percent = share(m.a, m.b)", Some(-1.0), Some(2.0)), Some(0.0));
    assert_eq!(of("percent = share(m.a, m.b)", Some(0.0), Some(0.0)), None);
    assert_eq!(of("count = -m.a - 2", Some(3.0), None), Some(-5.0));
}

#[test]
fn a_mean_is_of_what_was_measured() {
    let all: Vec<Series> = (0..3).map(|n| count("m.clock", Instance::Package(n))).collect();
    assert_eq!(value("count = mean(m.clock)", &all, &[Some(2.0), None, Some(4.0)]), Some(3.0));
    assert_eq!(value("count = mean(m.clock)", &all, &[None; 3]), None);
}

#[test]
fn units_become_base_units_and_must_fit_here_too() {
    let all = [
        series("m.kib", Unit::Kibibytes, Kind::Gauge, Instance::Machine),
        series("m.pages", Unit::Pages, Kind::Gauge, Instance::Machine),
        series("m.ticks", Unit::Ticks, Kind::COUNTER, Instance::Machine),
    ];
    let values = [Some(2.0), Some(3.0), Some(50.0)];
    assert_eq!(value("bytes = m.kib + m.pages", &all, &values), Some(2048.0 + 12288.0));
    assert_eq!(value("percent = 100 * m.ticks", &all, &values), Some(50.0));
    assert_eq!(value("count = m.pages / 1page", &all, &values), Some(3.0));
    assert_eq!(value("ns = 1e9 * 5us", &all, &values), Some(5000.0));
    let why = bound("bytes = m.kib + m.ticks", &all, Instance::Machine).unwrap_err();
    assert!(why.to_string().contains("m.kib is bytes and m.ticks is count: these cannot be added"), "{why}");
    let unknown = catalog("it: bytes = m.pages\nnumber: count = m.pages / 1page");
    let index = Index::new(&all, None, 0);
    let bind = |name| index.bind(&unknown, unknown.get(name).unwrap(), Instance::Machine);
    assert_eq!(bind("it").unwrap_err().inputs[0].why, MissingReason::NoPageSize);
    assert_eq!(bind("number").unwrap().value(&values), Some(3.0), "a number of pages needs no size");
}

#[test]
fn facts_of_the_machine_are_numbers() {
    let all = [count("m.a", Instance::Machine)];
    assert_eq!(value("count = m.a / topology.cpus", &all, &[Some(16.0)]), Some(2.0));
    let why = bound("bytes/s = topology.read_bandwidth", &all, Instance::Machine).unwrap_err();
    assert_eq!(why.to_string(), "needs topology.read_bandwidth: the machine's firmware does not provide it");
}

/// What an expression means, computed in the simplest way.
fn oracle(expr: &Expr, values: &[Option<f64>]) -> Option<f64> {
    let column = |name: &str| values[usize::from(name.as_bytes()[3] - b'0')];
    let finite = |value: f64| Some(value).filter(|v| v.is_finite());
    match expr {
        Expr::Number(value, _) => Some(*value),
        Expr::Name(name) | Expr::Mean(name) => column(name),
        Expr::OrZero(name) => Some(column(name).unwrap_or(0.0)),
        Expr::Sum(terms) => terms.iter().try_fold(0.0, |sum, (minus, term)| {
            let term = oracle(term, values)?;
            finite(if *minus { sum - term } else { sum + term })
        }),
        Expr::Product(factors) => factors.iter().try_fold(1.0, |product, (divide, factor)| {
            let factor = oracle(factor, values)?;
            finite(if *divide { product / factor } else { product * factor })
        }),
        Expr::First(parts) => oracle(&parts[0], values),
        Expr::Call(function, arguments) => {
            let (a, b) = (oracle(&arguments[0], values)?, oracle(&arguments[1], values)?);
            match function {
                Function::Min => Some(if a < b { a } else { b }),
                Function::Max => Some(if a > b { a } else { b }),
                Function::Share if b <= 0.0 => None,
                Function::Share => finite(100.0 * (a / b)).map(|share| share.clamp(0.0, 100.0)),
            }
        }
    }
}

fn any_expr() -> impl Strategy<Value = Expr> {
    let name = (0usize..4).prop_map(|n| format!("m.c{n}"));
    let leaf = prop_oneof![
        (0u32..1000).prop_map(|n| Expr::Number(f64::from(n) / 8.0, None)),
        name.clone().prop_map(Expr::Name),
        name.clone().prop_map(Expr::OrZero),
        name.prop_map(Expr::Mean),
    ];
    leaf.prop_recursive(5, 64, 4, |inner| {
        let signed = prop::collection::vec((any::<bool>(), inner.clone()), 2..4);
        let first = |mut row: Vec<(bool, Expr)>| {
            row[0].0 = false;
            row
        };
        let function = prop_oneof![Just(Function::Min), Just(Function::Max), Just(Function::Share)];
        prop_oneof![
            signed.clone().prop_map(move |row| Expr::Sum(first(row))),
            signed.prop_map(move |row| Expr::Product(first(row))),
            prop::collection::vec(inner.clone(), 2..3).prop_map(Expr::First),
            (function, inner.clone(), inner).prop_map(|(f, a, b)| Expr::Call(f, Box::new([a, b]))),
        ]
    })
}

proptest! {
    #[test]
    fn evaluation_is_what_the_formula_says(
        expr in any_expr(),
        values in prop::collection::vec(prop::option::of(-1e6f64..1e6), 4),
    ) {
        let all: Vec<Series> = (0..4).map(|n| count(&format!("m.c{n}"), Instance::Machine)).collect();
        let text = format!("ratio = {expr}");
        // 0 fits anything, so a formula that has only numbers may be of any kind; all here are counts.
        let bound = bound(&text, &all, Instance::Machine).unwrap();
        prop_assert_eq!(bound.value(&values), oracle(&expr, &values), "{}", text);
    }

    #[test]
    fn garbage_never_panics(text in "[a-c0-9.:=+*/|?,()# \n-]{0,80}") {
        let mut catalog = Catalog::default();
        let _ = catalog.add(&text, "garbage", &|_| None);
        let _ = catalog.add(&format!("a: count = {text}"), "garbage", &|_| None);
    }
}
