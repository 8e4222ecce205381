//! Values of the same quantity that two benchmarks of a run have. Where they contradict each other, both say so: one of them is
//! wrong, and the results do not tell which.

use crate::results::peak::{IDLE_LATENCY, READ_BANDWIDTH};
use crate::results::quantiles::Quantiles;
use crate::results::{BenchResult, PairMatrix};

/// Medians that differ by less than this factor do not contradict each other.
const EQUAL: f64 = 1.1;

/// A quantity that a benchmark has as a matrix of pairs of nodes, and `curve` as single values.
struct SharedQuantity {
    what: &'static str,
    unit: &'static str,
    benchmark: &'static str,
    matrix: &'static str,
    /// The beginnings of the names of its values in `curve`.
    heads: &'static [&'static str],
    /// Whether the value of the curve may be smaller, since the curve leaves out a core.
    may_be_less: bool,
}

const SHARED: [SharedQuantity; 2] = [
    SharedQuantity {
        what: "the idle latency",
        unit: "ns",
        benchmark: "latency",
        matrix: IDLE_LATENCY,
        heads: &["idle"],
        may_be_less: false,
    },
    SharedQuantity {
        what: "the bandwidth of reads",
        unit: "GB/s",
        benchmark: "bandwidth",
        matrix: READ_BANDWIDTH,
        heads: &["saturated, 100 % reads", "full traffic, 100 % reads"],
        may_be_less: true,
    },
];

/// The two values of one pair of nodes.
struct Two {
    quantity: &'static SharedQuantity,
    /// The node of the CPUs, and the node of the memory.
    pair: (u32, u32),
    matrix: Quantiles,
    curve: Quantiles,
}

/// Adds a warning to both results whose values contradict each other.
pub(crate) fn judge(results: &mut [BenchResult]) {
    let found: Vec<Two> = pairs(results).into_iter().filter(Two::contradict).collect();
    for Two { quantity, pair: (from, memory), matrix, curve } in found {
        let SharedQuantity { what, unit, benchmark, .. } = quantity;
        let words = format!(
            "{what} of CPUs of node {from} with memory of node {memory} is {:.1} {unit} in '{benchmark}' and {:.1} {unit} in 'curve', \
             beyond noise: the machine did something else meanwhile; run both again",
            matrix.median, curve.median,
        );
        let both = results.iter_mut().filter(|result| [*benchmark, "curve"].contains(&result.name.as_str()));
        both.for_each(|result| result.warnings.push(words.clone()));
    }
}

impl Two {
    fn contradict(&self) -> bool {
        let less =
            |a: &Quantiles, b: &Quantiles| a.interval().is_below(b.interval()) && a.median * EQUAL < b.median;
        less(&self.matrix, &self.curve) || (!self.quantity.may_be_less && less(&self.curve, &self.matrix))
    }
}

fn pairs(results: &[BenchResult]) -> Vec<Two> {
    let of = |name: &str| results.iter().find(|result| result.name == name);
    let Some(curve) = of("curve") else { return Vec::new() };
    let two = |quantity: &'static SharedQuantity, (from, memory, matrix): (u32, u32, Quantiles)| {
        let tail = format!(", CPUs of node {from} with memory of node {memory}");
        let is_it = |name: &str| name.strip_suffix(&tail).is_some_and(|head| quantity.heads.contains(&head));
        let curve = curve.values.iter().find(|other| is_it(&other.name))?.value;
        Some(Two { quantity, pair: (from, memory), matrix, curve })
    };
    let of_quantity = |quantity: &'static SharedQuantity| {
        let matrices = of(quantity.benchmark).map_or(&[][..], |result| &result.matrices);
        let cells = cells(matrices.iter().find(|matrix| matrix.name == quantity.matrix));
        cells.into_iter().filter_map(move |cell| two(quantity, cell))
    };
    SHARED.iter().flat_map(of_quantity).collect()
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
