//! Values of the same quantity that two benchmarks of a run have. Where they contradict each other, both say so: one of them is
//! wrong, and the results do not tell which.

use crate::results::peak::{IDLE_LATENCY, READ_BANDWIDTH};
use crate::results::quantiles::Quantiles;
use crate::results::{BenchResult, PairMatrix};

/// Medians that differ by less than this factor do not contradict each other.
const EQUAL: f64 = 1.1;

/// What two benchmarks have of one pair of nodes.
struct Two {
    what: &'static str,
    unit: &'static str,
    /// From the CPUs of this node to the memory of that one.
    pair: (u32, u32),
    /// Of the benchmark whose matrix it is, and of `curve`.
    one: (&'static str, Quantiles),
    curve: Quantiles,
    /// Whether the curve may have less, as it leaves out a core.
    may_be_less: bool,
}

/// Adds a warning to both results that have a contradiction.
pub(crate) fn judge(results: &mut [BenchResult]) {
    let found: Vec<Two> = pairs(results).into_iter().filter(Two::contradict).collect();
    for two in found {
        let (from, memory) = two.pair;
        let words = format!(
            "{} of CPUs of node {from} with memory of node {memory} is {:.1} {unit} in '{}' and {:.1} {unit} in 'curve', beyond \
             noise: the machine did something else meanwhile; run both again",
            two.what,
            two.one.1.median,
            two.one.0,
            two.curve.median,
            unit = two.unit
        );
        let both = results.iter_mut().filter(|result| [two.one.0, "curve"].contains(&result.name.as_str()));
        both.for_each(|result| result.warnings.push(words.clone()));
    }
}

impl Two {
    fn contradict(&self) -> bool {
        let (one, curve) = (&self.one.1, &self.curve);
        let less =
            |a: &Quantiles, b: &Quantiles| a.interval().is_below(b.interval()) && a.median * EQUAL < b.median;
        less(one, curve) || (!self.may_be_less && less(curve, one))
    }
}

fn pairs(results: &[BenchResult]) -> Vec<Two> {
    let of = |name: &str| results.iter().find(|result| result.name == name);
    let Some(curve) = of("curve") else { return Vec::new() };
    let matrix = |benchmark: &str, name: &str| {
        of(benchmark).and_then(|result| result.matrices.iter().find(|matrix| matrix.name == name))
    };
    let mut found = Vec::new();
    for (from, memory, value) in cells(matrix("latency", IDLE_LATENCY)) {
        let name = format!("idle, CPUs of node {from} with memory of node {memory}");
        found.extend(curve.values.iter().find(|other| other.name == name).map(|other| Two {
            what: "the idle latency",
            unit: "ns",
            pair: (from, memory),
            one: ("latency", value),
            curve: other.value,
            may_be_less: false,
        }));
    }
    for (from, memory, value) in cells(matrix("bandwidth", READ_BANDWIDTH)) {
        let tail = format!(", 100 % reads, CPUs of node {from} with memory of node {memory}");
        let is_most = |name: &str| matches!(name.strip_suffix(&tail), Some("saturated" | "full traffic"));
        found.extend(curve.values.iter().find(|other| is_most(&other.name)).map(|other| Two {
            what: "the bandwidth of reads",
            unit: "GB/s",
            pair: (from, memory),
            one: ("bandwidth", value),
            curve: other.value,
            may_be_less: true,
        }));
    }
    found
}

/// The values of a matrix with the nodes of CPUs and memory.
fn cells(matrix: Option<&PairMatrix>) -> Vec<(u32, u32, Quantiles)> {
    let Some(matrix) = matrix else { return Vec::new() };
    let pairs = matrix.rows.iter().flat_map(|&row| matrix.columns.iter().map(move |&column| (row, column)));
    pairs.filter_map(|(row, column)| Some((row, column, *matrix.of(row, column)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::NamedValue;

    fn around(median: f64) -> Quantiles {
        Quantiles { median, low: 0.98 * median, high: 1.02 * median, samples: 9 }
    }

    /// Warnings of latency, bandwidth and curve.
    fn warnings(latency: f64, bandwidth: f64, idle: f64, reads: Quantiles) -> [usize; 3] {
        let of = |benchmark: &str, name: &str, unit: &str, median: f64| {
            let mut matrix = PairMatrix::new(name, unit, true, vec![0, 2], vec![2]);
            matrix.set(1, 0, Some(around(median)));
            BenchResult { name: benchmark.to_owned(), matrices: vec![matrix], ..BenchResult::default() }
        };
        let named = |name: &str, unit: &str, value| NamedValue {
            name: format!("{name}, CPUs of node 2 with memory of node 2"),
            unit: unit.to_owned(),
            value,
            best: None,
        };
        let values =
            vec![named("idle", "ns", around(idle)), named("full traffic, 100 % reads", "GB/s", reads)];
        let curve = BenchResult { name: "curve".to_owned(), values, ..BenchResult::default() };
        let mut results = [
            of("latency", IDLE_LATENCY, "ns", latency),
            of("bandwidth", READ_BANDWIDTH, "GB/s", bandwidth),
            curve,
        ];
        judge(&mut results);
        let text: String = results.iter().flat_map(|result| result.warnings.clone()).collect();
        assert_eq!(text.contains("CPUs of node 2 with memory of node 2 is"), !text.is_empty(), "{text}");
        results.map(|result| result.warnings.len())
    }

    #[test]
    fn two_values_of_one_quantity_are_doubted_where_they_contradict_each_other() {
        assert_eq!(warnings(150.0, 40.0, 155.0, around(41.0)), [0, 0, 0]);
        assert_eq!(warnings(150.0, 40.0, 190.0, around(30.0)), [1, 0, 1]);
        assert_eq!(warnings(190.0, 40.0, 150.0, around(40.0)), [1, 0, 1]);
        // One core less makes less traffic, but not more.
        assert_eq!(warnings(150.0, 40.0, 150.0, around(50.0)), [0, 1, 1]);
        let wide = Quantiles { low: 40.0, ..around(50.0) };
        assert_eq!(warnings(150.0, 40.0, 150.0, wide), [0, 0, 0]);
    }

    #[test]
    fn a_benchmark_alone_has_nothing_to_contradict() {
        let mut alone = [BenchResult { name: "curve".to_owned(), ..BenchResult::default() }];
        judge(&mut alone);
        judge(&mut []);
        assert_eq!(alone[0].warnings.len(), 0);
    }
}
