use super::*;
use crate::conditions::BenchConditions;
use crate::quantiles::Quantiles;
use crate::results::{BenchResult, VERSION};

/// Latencies of all pairs of nodes in ns.
fn results(rows: &[&[f64]]) -> BenchResults {
    let nodes: Vec<u32> = (0..rows[0].len() as u32).collect();
    let mut matrix =
        PairMatrix::new(crate::peak::IDLE_LATENCY, "ns", true, (0..rows.len() as u32).collect(), nodes);
    for (row, values) in rows.iter().enumerate() {
        for (column, &median) in values.iter().enumerate() {
            let value = Quantiles { median, low: median * 0.98, high: median * 1.02, samples: 9 };
            matrix.set(row, column, (median > 0.0).then_some(value));
        }
    }
    let one = BenchResult { name: "latency".into(), matrices: vec![matrix], ..BenchResult::default() };
    BenchResults {
        version: VERSION,
        machine_key: String::new(),
        conditions: BenchConditions::default(),
        topology: None,
        benchmarks: vec![one],
        runs: 1,
        complete: true,
    }
}

/// Three nodes with distances 10, 20 and 30.
fn machine() -> Topology {
    let mut topology = numakit_topology::synthetic::parse("package:1 node:3 core:1").unwrap();
    let rows = vec![vec![10, 20, 30], vec![20, 10, 20], vec![30, 20, 10]];
    topology.distances = numakit_model::topology::Distances::new(vec![0, 1, 2], rows).ok();
    topology
}

#[test]
fn distances_that_agree_are_said_to_agree() {
    let measured =
        measured_distances(&machine(), &results(&[&[80.0, 160.0, 240.0], &[150.0, 80.0, 170.0]])).unwrap();
    assert_eq!((measured.pairs.len(), measured.orders.len()), (6, 0));
    assert!(measured.pairs.iter().all(|pair| !pair.disagrees()), "{measured:?}");
    let far = measured.pairs[2];
    assert_eq!((far.to, far.firmware, far.measured, far.ratio()), (2, Some(30), 30.0, Some(1.0)));
}

#[test]
fn pairs_and_orders_that_disagree_are_found() {
    let measured = measured_distances(&machine(), &results(&[&[80.0, 220.0, 120.0]])).unwrap();
    let wrong: Vec<u32> = measured.pairs.iter().filter(|pair| pair.disagrees()).map(|pair| pair.to).collect();
    assert_eq!(wrong, [1, 2]);
    assert_eq!(measured.orders, [UnlikeOrder { from: 0, stated: 1, measured: 2 }]);
    // Within noise there is no order.
    let measured = measured_distances(&machine(), &results(&[&[80.0, 201.0, 200.0]])).unwrap();
    assert_eq!(measured.orders, []);
}

#[test]
fn a_node_without_memory_begins_at_its_nearest() {
    let measured = measured_distances(&machine(), &results(&[&[0.0, 100.0, 150.0]])).unwrap();
    let distances: Vec<f64> = measured.pairs.iter().map(|pair| pair.measured).collect();
    assert_eq!(distances, [10.0, 15.0]);
}

#[test]
fn results_that_do_not_fit_are_refused() {
    let other = measured_distances(&machine(), &results(&[&[80.0, 90.0, 90.0, 90.0]])).unwrap_err();
    assert!(other.to_string().contains("nodes 0-3, and the machine has 0-2"), "{other}");
    let mut none = results(&[&[80.0]]);
    none.benchmarks.clear();
    let none = measured_distances(&machine(), &none).unwrap_err();
    assert!(none.to_string().contains("numa bench latency --json"), "{none}");
}
