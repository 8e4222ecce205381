//! `numa top --totals`: the allocation counters of every node since boot.

use crate::table::page_table;
use numakit_model::numbers::{ABSENT, grouped};
use numakit_sensors::totals::{NAMES, Totals};
use serde_json::{Map, Value, json};

/// Indices into [`NAMES`].
const HIT: usize = 0;
const LOCAL: usize = 4;
const OTHER: usize = 5;

/// A line for each node and one for all, with the share of local allocations.
pub fn table(totals: &[Totals]) -> String {
    let mut headings = vec!["NODE"];
    headings.extend(NAMES);
    headings.push("LOCAL%");
    let row = |name: String, counts: &[Option<u64>; NAMES.len()]| {
        let cells = counts.iter().map(|count| count.map_or(ABSENT.to_owned(), |n| grouped(n as f64)));
        let local = local(counts).map_or(ABSENT.to_owned(), |share| format!("{share:.1}"));
        [name].into_iter().chain(cells).chain([local]).collect::<Vec<String>>()
    };
    let mut rows: Vec<_> = totals.iter().map(|t| row(t.node.to_string(), &t.counts)).collect();
    if totals.len() > 1 {
        rows.push(row("all".to_owned(), &sum(totals)));
    }
    let mut text = page_table(&headings, &rows, "");
    text.push_str(
        "Allocations since boot, each counted once whatever its size; LOCAL% is the share by CPUs of \
         the node.\n",
    );
    let missed: Vec<String> = totals
        .iter()
        .filter(|t| matches!((t.counts[HIT], t.counts[1]), (Some(hit), Some(miss)) if miss > hit / 100))
        .map(|t| t.node.to_string())
        .collect();
    if !missed.is_empty() {
        text.push_str(&format!(
            "More than 1 % of those on node {} preferred another node, which was full.\n",
            missed.join(", ")
        ));
    }
    text
}

/// The same as JSON: an object for each node, and one for all.
pub fn json(totals: &[Totals]) -> Value {
    let object = |counts: &[Option<u64>; NAMES.len()]| {
        let counted = NAMES.iter().zip(counts).map(|(name, count)| ((*name).to_owned(), json!(count)));
        counted.chain([("local".to_owned(), json!(local(counts)))]).collect::<Map<String, Value>>()
    };
    let nodes = totals.iter().map(|t| {
        let mut value = object(&t.counts);
        value.insert("node".to_owned(), json!(t.node));
        Value::Object(value)
    });
    json!({ "nodes": nodes.collect::<Vec<_>>(), "all": object(&sum(totals)) })
}

fn sum(totals: &[Totals]) -> [Option<u64>; NAMES.len()] {
    std::array::from_fn(|at| {
        totals.iter().map(|t| t.counts[at]).try_fold(0u64, |s, n| Some(s.saturating_add(n?)))
    })
}

/// In percent.
fn local(counts: &[Option<u64>; NAMES.len()]) -> Option<f64> {
    let (local, other) = (counts[LOCAL]? as f64, counts[OTHER]? as f64);
    (local + other > 0.0).then(|| local / (local + other) * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two() -> Vec<Totals> {
        let of = |node, [a, b, c, d, e, f]: [u64; 6]| Totals {
            node,
            counts: [Some(a), Some(b), Some(c), Some(d), Some(e), Some(f)],
        };
        vec![of(0, [1_000_000, 5, 40_000, 7, 900_000, 100_005]), of(2, [500, 40_000, 5, 0, 40_500, 0])]
    }

    #[test]
    fn nodes_are_lines_and_the_last_is_all() {
        let text = table(&two());
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[0][..3], ["NODE", "numa_hit", "numa_miss"]);
        assert_eq!(lines[1], ["0", "1,000,000", "5", "40,000", "7", "900,000", "100,005", "90.0"]);
        assert_eq!(lines[3][..2], ["all", "1,000,500"]);
        assert!(text.contains("on node 2 preferred another node"), "{text}");
        assert_eq!(table(&two()[..1]).lines().count(), 3);
    }

    #[test]
    fn a_missing_counter_is_absent_and_not_zero() {
        let mut totals = two();
        totals[1].counts[OTHER] = None;
        let text = table(&totals);
        assert!(text.lines().nth(2).unwrap().ends_with("-       -"), "{text}");
        let json = json(&totals);
        assert_eq!(
            (&json["nodes"][1]["other_node"], &json["all"]["other_node"]),
            (&Value::Null, &Value::Null)
        );
        assert_eq!((&json["nodes"][1]["node"], &json["all"]["numa_hit"]), (&json!(2), &json!(1_000_500)));
        assert_eq!(json["nodes"][1]["local"], Value::Null);
    }
}
