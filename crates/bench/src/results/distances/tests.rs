use super::*;
use crate::results::quantiles::Quantiles;

/// Three nodes with distances 10, 20 and 30. Measured, node 1 is farther from node 0 and node 2 is nearer than that.
fn three_nodes() -> BenchResults {
    BenchResults::parse(include_bytes!("../../../fixtures/three-nodes.json")).unwrap()
}

/// With these latencies of all pairs of nodes in ns.
fn results(rows: &[&[f64]]) -> BenchResults {
    let nodes: Vec<u32> = (0..rows[0].len() as u32).collect();
    let mut matrix = PairMatrix::new(
        crate::results::peak::IDLE_LATENCY,
        "ns",
        true,
        (0..rows.len() as u32).collect(),
        nodes,
    );
    for (row, values) in rows.iter().enumerate() {
        for (column, &median) in values.iter().enumerate() {
            let value = Quantiles { median, low: median * 0.98, high: median * 1.02, samples: 9 };
            matrix.set(row, column, (median > 0.0).then_some(value));
        }
    }
    let mut results = three_nodes();
    results.benchmarks[0].matrices = vec![matrix];
    results
}

fn machine() -> Topology {
    three_nodes().topology.unwrap()
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
    let measured = measured_distances(&machine(), &three_nodes()).unwrap();
    let wrong: Vec<u32> = measured.pairs.iter().filter(|pair| pair.disagrees()).map(|pair| pair.to).collect();
    assert_eq!(wrong, [1, 2]);
    assert_eq!(measured.orders, [UnlikeOrder { from: 0, stated: 1, measured: 2 }]);
    let whole = three_nodes();
    let report = serde_json::to_value(measured.report(&whole, None)).unwrap();
    let pair = &report["pairs"][1];
    assert_eq!(
        [&pair["to"], &pair["firmware"], &pair["measured"], &pair["ratio"], &pair["disagrees"]],
        [&1.into(), &20.into(), &27.5.into(), &1.375.into(), &serde_json::Value::from(true)]
    );
    assert_eq!(
        (&report["latency"]["cells"][0][2]["median"], &report["bandwidth"]),
        (&120.0.into(), &().into())
    );
    assert_eq!((&report["same_machine"], &report["orders"][0]["stated"]), (&().into(), &1.into()));
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
