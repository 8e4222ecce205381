use super::*;
use numakit_bench::BenchConditions;
use numakit_bench::{Axis, Curve, NamedTable, NamedValue, PairMatrix, VERSION};

fn around(median: f64) -> Quantiles {
    Quantiles { median, low: median * 0.9, high: median * 1.1, samples: 9 }
}

/// A machine whose values are those of another one times a factor.
fn results(factor: f64) -> BenchResults {
    let mut matrix = PairMatrix::new("load latency", "ns", true, vec![0, 1], vec![0, 1]);
    matrix.set(0, 0, Some(around(80.0)));
    matrix.set(0, 1, Some(around(140.0 * factor)));
    let mut curve = Curve::new("triad", "GB/s", false, Axis::threads());
    curve.add(1.0, Some(around(10.0)));
    curve.add(2.0, Some(around(20.0 * factor)));
    let named = |name: &str, unit: &str| NamedValue {
        name: name.into(),
        unit: unit.into(),
        value: around(5.0 * factor),
        best: None,
    };
    let one = BenchResult {
        name: "all".into(),
        matrices: vec![matrix],
        curves: vec![curve],
        values: vec![named("fault", "ns"), named("reach", "pages")],
        ..BenchResult::default()
    };
    BenchResults {
        version: VERSION,
        machine_key: "0123".into(),
        conditions: BenchConditions::default(),
        topology: None,
        benchmarks: vec![one],
        runs: 1,
        complete: true,
    }
}

#[test]
fn equal_results_and_overlapping_intervals_do_not_differ() {
    for factor in [1.0, 1.2] {
        let same = compare(&results(1.0), &results(factor));
        assert_eq!((same.changes.len(), same.compared, same.same_machine), (0, 6, true), "{same:?}");
        assert!(same.only_first.is_empty() && same.unlike.is_empty());
    }
}

#[test]
fn cells_of_a_table_are_compared_by_their_names() {
    let with = |rows: [&str; 2], factor: f64| {
        let (rows, columns) = (rows.map(str::to_owned).to_vec(), vec!["small".to_owned()]);
        let mut table = NamedTable::new("memory", "%", true, ("allocator", rows), ("work", columns));
        table.set(0, 0, Some(around(100.0)));
        table.set(1, 0, Some(around(120.0 * factor)));
        let mut results = results(1.0);
        results.benchmarks[0].tables.push(table);
        results
    };
    let compared = compare(&with(["a", "b"], 1.0), &with(["a", "b"], 0.5));
    let change = &compared.changes[0];
    assert_eq!((compared.changes.len(), compared.compared), (1, 8));
    assert_eq!((&*change.name, &*change.place, change.is_better), ("memory", "b, small", Some(true)));
    let other = compare(&with(["a", "b"], 1.0), &with(["a", "c"], 1.0));
    assert_eq!((other.compared, other.only_first[0].count, other.only_first[0].of), (7, 1, 2));
}

#[test]
fn what_changed_beyond_noise_is_better_or_worse() {
    let slower = compare(&results(1.0), &results(2.0));
    let of: Vec<(&str, &str, Option<bool>)> =
        slower.changes.iter().map(|c| (c.name.as_str(), c.place.as_str(), c.is_better)).collect();
    assert_eq!(
        of,
        [
            ("fault", "", Some(false)),
            ("load latency", "CPUs of node 0, memory of node 1", Some(false)),
            ("reach", "", None),
            ("triad", "2 threads", Some(true)),
        ]
    );
    assert!(slower.changes.iter().all(|change| change.change_percent == Some(100.0)));
    let back = compare(&results(2.0), &results(1.0));
    assert!(back.changes.iter().all(|change| change.change_percent == Some(-50.0)));
    assert_eq!(back.changes[0].is_better, Some(true));
}

#[test]
fn what_only_one_has_and_other_conditions_are_said() {
    let mut other = results(1.0);
    other.machine_key = "4567".into();
    other.conditions.kernel = "6.1".into();
    other.complete = false;
    let result = &mut other.benchmarks[0];
    result.warnings.push("busy".into());
    result.curves[0].points.remove(0);
    result.values.remove(0);
    result.values[0].unit = "MiB".into();
    let compared = compare(&results(1.0), &other);
    assert!(!compared.same_machine && compared.changes.is_empty() && compared.compared == 3);
    assert_eq!(compared.unlike[0].second, "6.1");
    assert_eq!(compared.unlike.iter().map(|one| one.what).collect::<Vec<_>>(), ["kernel", "interrupted"]);
    let busy = BenchDoubt { benchmark: "all".into(), warning: "busy".into() };
    assert_eq!(compared.doubts, [vec![], vec![busy]]);
    let names = |only: &[UnmatchedValues]| {
        only.iter().map(|one| format!("{} {} of {}", one.name, one.count, one.of)).collect::<Vec<_>>()
    };
    assert_eq!(names(&compared.only_first), ["fault 1 of 1", "reach 1 of 1", "triad 1 of 2"]);
    assert_eq!(names(&compared.only_second), ["reach 1 of 1"]);
}

#[test]
fn a_value_of_zero_has_no_change_in_percent() {
    let mut zero = results(1.0);
    zero.benchmarks[0].values[0].value = Quantiles { median: 0.0, low: 0.0, high: 0.0, samples: 9 };
    let from_zero = compare(&zero, &results(1.0));
    assert_eq!((from_zero.changes.len(), from_zero.changes[0].change_percent), (1, None));
}
