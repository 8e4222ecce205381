//! `numa topo --measured`: measured distances beside those of the firmware, and where the two disagree.

use super::matrix::matrix;
use crate::bench::{BenchStyle, matrix_text, number};
use crate::table::page_table;
use crate::wrap::wrap;
use numakit_bench::BenchResults;
use numakit_bench::distances::{self, DISAGREES, MeasuredDistances, MeasuredPair};
use numakit_model::Topology;
use numakit_model::numbers::{ABSENT, counted};
use std::fmt::Write;

/// Up to this many pairs, all are in the table; of more, those that disagree are.
const MAX_PAIRS: usize = 64;
/// Sentences about pairs.
const MAX_SENTENCES: usize = 20;

/// The whole text.
pub fn measured(
    topology: &Topology,
    results: &BenchResults,
    distances: &MeasuredDistances,
    style: BenchStyle,
) -> String {
    let mut text = String::from("distances that the firmware states\n");
    match &topology.distances {
        Some(stated) => text += &matrix(stated, style.width),
        None => text += "  it states none\n",
    }
    for measured in [distances::latency(results), distances::bandwidth(results)].into_iter().flatten() {
        _ = write!(text, "\n{}", matrix_text(measured, style));
    }
    text.push('\n');
    text += &table(distances);
    text.push('\n');
    for sentence in sentences(distances) {
        for (at, line) in wrap(&sentence, Some(style.width.saturating_sub(2).max(20))).iter().enumerate() {
            _ = writeln!(text, "{}{line}", if at == 0 { "" } else { "  " });
        }
    }
    text
}

fn table(distances: &MeasuredDistances) -> String {
    let is_short = distances.pairs.len() <= MAX_PAIRS;
    let shown = distances.pairs.iter().filter(|pair| is_short || pair.disagrees());
    let rows: Vec<Vec<String>> = shown.map(row).collect();
    page_table(&["CPUs of node, memory of node", "firmware", "measured", "ratio"], &rows, "  ")
}

fn row(pair: &MeasuredPair) -> Vec<String> {
    let or_absent = |text: Option<String>| text.unwrap_or_else(|| ABSENT.to_owned());
    vec![
        format!("{}, {}", pair.from, pair.to),
        or_absent(pair.firmware.map(|firmware| firmware.to_string())),
        format!("{:.1}", pair.measured),
        or_absent(pair.ratio().map(|ratio| format!("{ratio:.2}"))),
    ]
}

/// Where the two disagree.
fn sentences(distances: &MeasuredDistances) -> Vec<String> {
    let wrong: Vec<&MeasuredPair> = distances.pairs.iter().filter(|pair| pair.disagrees()).collect();
    let stated = distances.pairs.iter().filter(|pair| pair.firmware.is_some()).count();
    let limit = 100.0 * DISAGREES;
    let mut sentences: Vec<String> =
        wrong.iter().take(MAX_SENTENCES).map(|pair| disagreement(pair)).collect();
    if wrong.len() > MAX_SENTENCES {
        sentences.push(format!(
            "{} with a difference of more than {limit:.0} %",
            counted(wrong.len() - MAX_SENTENCES, "more pair")
        ));
    }
    if wrong.is_empty() {
        sentences.push(match stated {
            0 => "the firmware states nothing that could be compared".to_owned(),
            1 => "there is one pair: nothing can disagree".to_owned(),
            _ => format!(
                "the firmware's distances of all {stated} pairs are within {limit:.0} % of the measured ones"
            ),
        });
    }
    let latency = |from, to| {
        let pair = distances.pairs.iter().find(|pair| pair.from == from && pair.to == to);
        pair.map_or_else(|| ABSENT.to_owned(), |pair| number(pair.latency.median))
    };
    sentences.extend(distances.orders.iter().map(|order| {
        format!(
            "seen from node {}, the firmware says that node {} is nearer than node {}; measured, it is farther ({} and {} ns)",
            order.from,
            order.stated,
            order.measured,
            latency(order.from, order.stated),
            latency(order.from, order.measured)
        )
    }));
    sentences
}

fn disagreement(pair: &MeasuredPair) -> String {
    let ratio = pair.ratio().unwrap_or(1.0);
    let how = if ratio > 1.0 { "farther" } else { "nearer" };
    format!(
        "memory of node {} is {:.0} % {how} from node {} than the firmware says: {:.1} measured, {} stated",
        pair.to,
        100.0 * (ratio - 1.0).abs(),
        pair.from,
        pair.measured,
        pair.firmware.map_or_else(|| ABSENT.to_owned(), |firmware| firmware.to_string())
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use numakit_bench::distances::measured_distances;

    /// The text of results of three nodes, after a change.
    fn text(change: impl FnOnce(&mut BenchResults)) -> String {
        let file = include_bytes!("../../../bench/fixtures/three-nodes.json");
        let mut results = BenchResults::parse(file).unwrap();
        let machine = results.topology.clone().unwrap();
        change(&mut results);
        let distances = measured_distances(&machine, &results).unwrap();
        measured(&machine, &results, &distances, BenchStyle { color: false, width: 100, all: true })
    }

    #[test]
    fn distances_are_beside_each_other_and_differences_are_said() {
        let text = text(|_| ());
        for line in [
            "     0    10  20  30",
            "                              0 80.0  220  120",
            "  CPUs of node, memory of node  firmware  measured  ratio",
            "  0, 1                                20      27.5   1.38",
            "  1, 2                                20      20.0   1.00",
            "memory of node 1 is 38 % farther from node 0 than the firmware says: 27.5 measured, 20 stated",
            "memory of node 2 is 50 % nearer from node 0 than the firmware says: 15.0 measured, 30 stated",
        ] {
            assert!(text.lines().any(|found| found == line), "no '{line}' in\n{text}");
        }
        assert!(
            text.contains("seen from node 0, the firmware says that node 1 is nearer than node 2;"),
            "{text}"
        );
    }

    #[test]
    fn agreement_is_said() {
        let text = text(|results| {
            // Node 0 sees node 1 as node 1 sees it, and so node 2.
            let cells = &mut results.benchmarks[0].matrices[0].cells;
            (cells[0][1], cells[0][2]) = (cells[1][0], cells[2][0]);
        });
        assert!(text.ends_with("of all 9 pairs are within 25 % of the measured ones\n"), "{text}");
    }
}
