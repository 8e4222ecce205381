//! The findings of a range of a history, live or recorded. Means over buckets take the place of rows, so that a range of any
//! length costs the same and a live history needs no rows of its own for it.

use crate::course::{Watched, Watching};
use crate::facts::Facts;
use crate::finding::Findings;
use crate::headline::{self, Extent};
use crate::profile::{self, Profile};
use crate::rules::{self, Rule};
use crate::series;
use crate::tally::{SLOT, Tally};
use numakit_formulas::{BoundFormula, Catalog};
use numakit_model::Instance;
use numakit_recording::Header;
use std::ops::Range;
use std::sync::Arc;

/// A range of a history in buckets of equal length.
#[derive(Debug, Clone, Copy)]
pub struct RangeMeans<'a> {
    /// When the first bucket begins, ns since 1970.
    pub from: u64,
    /// Length of a bucket in ns.
    pub step: u64,
    /// For each series of the header, in the header's order, the mean in each bucket as a history keeps it: counters per
    /// second, levels as read. NaN means that nothing was measured.
    pub means: &'a [Vec<f32>],
}

/// The best number of buckets for a range, at most `most`. Buckets are not shorter than a tenth of a second: in a shorter
/// one, a single event is a peak.
pub fn bucket_count(range: Range<u64>, most: usize) -> usize {
    let slots = range.end.saturating_sub(range.start) / SLOT.as_nanos() as u64;
    usize::try_from(slots).unwrap_or(usize::MAX).clamp(1, most.max(1))
}

/// The rules that ranges of one source are judged by, bound to its series once: on a machine of 1,024 CPUs that takes longer
/// than judging.
pub struct RangeRules {
    formulas: Arc<Catalog>,
    rules: Vec<Watched<Rule>>,
}

impl RangeRules {
    /// Binds the rules to the series of a source with this header.
    pub fn new(header: &Header, formulas: Arc<Catalog>) -> Self {
        let index = series::index(header);
        let rules = rules::watched(&Watching::new(header, &index, &formulas));
        Self { formulas, rules }
    }

    /// The findings of a range of the source with this header. `labels` are the labels of the range in the order of their
    /// times. Times of findings are seconds after the range begins.
    pub fn findings<'a>(
        &self,
        header: &Header,
        range: &RangeMeans<'_>,
        labels: impl IntoIterator<Item = (u64, &'a str)>,
    ) -> Findings {
        let tally = self.tallied(header, range, labels, |_, _, _| ());
        self.judged(header, &tally, |_, findings| findings)
    }

    /// The values of a range for [`compare`](crate::comparison::compare). They have no run time: a part of its time does not
    /// tell how long a command ran.
    pub fn profile<'a>(
        &self,
        header: &Header,
        range: &RangeMeans<'_>,
        labels: impl IntoIterator<Item = (u64, &'a str)>,
    ) -> Profile {
        let tally = self.tallied(header, range, labels, Tally::block);
        let index = series::index(header);
        let mut profile = self.judged(header, &tally, |facts, findings| {
            profile::profile((header, &index, &self.formulas), facts, &tally, &findings)
        });
        profile.about.run = None;
        profile
    }

    fn judged<T>(&self, header: &Header, tally: &Tally, with: impl FnOnce(&Facts<'_>, Findings) -> T) -> T {
        let index = series::index(header);
        let facts = Facts::new(header, &index, &self.formulas, &tally.phases[0]);
        let findings = headline::findings(&facts, &index, tally, Extent::Range);
        with(&facts, findings)
    }

    /// `also` gets each bucket too.
    fn tallied<'a>(
        &self,
        header: &Header,
        range: &RangeMeans<'_>,
        labels: impl IntoIterator<Item = (u64, &'a str)>,
        also: impl Fn(&mut Tally, u64, &[Option<f64>]),
    ) -> Tally {
        let mut tally = Tally::new(header, None, Vec::new(), self.rules.clone());
        let mut labels = labels.into_iter().peekable();
        let buckets = range.means.iter().map(Vec::len).max().unwrap_or(0);
        let mut rates = vec![None; range.means.len()];
        tally.first = Some(range.from);
        for bucket in 0..buckets {
            let from = range.from.saturating_add(range.step.saturating_mul(bucket as u64));
            let to = from.saturating_add(range.step);
            while let Some((time, text)) = labels.next_if(|(time, _)| *time < to) {
                tally.label(time, text);
            }
            for (rate, means) in rates.iter_mut().zip(range.means) {
                let mean = means.get(bucket).filter(|mean| mean.is_finite());
                *rate = mean.map(|&mean| f64::from(mean));
            }
            tally.bucket(from..to, &rates);
            also(&mut tally, from, &rates);
        }
        tally
    }

    /// The series of the header that a formula reads at a place, such as `card_wait@card1`; empty if the name is no formula.
    pub fn inputs(&self, header: &Header, name: &str) -> Vec<String> {
        let (formula, place) = match name.split_once('@') {
            None => (name, Some(Instance::Machine)),
            Some((formula, place)) => (formula, Instance::parse(place)),
        };
        let index = series::index(header);
        let bound = self.formulas.get(formula).zip(place);
        let bound = bound.and_then(|(formula, place)| index.bind(&self.formulas, formula, place).ok());
        let mut columns: Vec<usize> = bound.iter().flat_map(BoundFormula::columns).collect();
        columns.sort_unstable();
        columns.dedup();
        columns.into_iter().map(|at| header.series[at].name()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use numakit_model::{Instance, Kind, Metric, Series, Unit};

    const SECOND: u64 = 1_000_000_000;

    fn header(series: &[(&str, Instance)]) -> Header {
        let series = series.iter().map(|(name, instance)| {
            let metric = Metric {
                name: (*name).to_owned(),
                unit: Unit::Count,
                kind: Kind::Counter { bits: 64 },
                scope: instance.scope(),
                help: String::new(),
                source: String::new(),
                resolution: std::time::Duration::ZERO,
                confidence: None,
                maximum: None,
            };
            Series::new(&Arc::new(metric), *instance)
        });
        Header { series: series.collect(), interval: 100_000_000, page_size: 4096, ..Header::default() }
    }

    fn nodes() -> Header {
        let of_node = |node| ["node.local_node", "node.other_node"].map(|name| (name, Instance::Node(node)));
        header(&[of_node(0), of_node(1)].concat())
    }

    /// Allocations per second on node 1: local ones, and from `since` on remote ones.
    fn remote(since: usize, buckets: usize) -> Vec<Vec<f32>> {
        let far = (0..buckets).map(|at| if at < since { 0.0 } else { 9000.0 });
        vec![vec![5000.0; buckets], vec![0.0; buckets], vec![1000.0; buckets], far.collect()]
    }

    fn found(means: &[Vec<f32>], labels: &[(u64, &str)]) -> Findings {
        let range = RangeMeans { from: 7 * SECOND, step: SECOND / 4, means };
        RangeRules::new(&nodes(), Arc::new(Catalog::built_in().clone())).findings(
            &nodes(),
            &range,
            labels.iter().copied(),
        )
    }

    #[test]
    fn a_range_has_its_trouble_with_its_beginning() {
        let findings = found(&remote(8, 40), &[]);
        let finding = findings.problems.iter().find(|f| f.rule == "remote-allocation").unwrap();
        assert_eq!((finding.since_seconds, finding.until_seconds), (2.0, None));
        assert!(findings.headline.verdict.contains("allocated by CPUs of other nodes"), "{findings:?}");
        let quiet = found(&remote(40, 40), &[]);
        assert!(quiet.problems.is_empty(), "{:?}", quiet.problems);
        assert!(quiet.headline.verdict.starts_with("Nothing is wrong"), "{}", quiet.headline.verdict);
    }

    #[test]
    fn what_was_not_measured_is_a_gap() {
        let mut means = remote(8, 40);
        means.iter_mut().for_each(|column| column[20..30].fill(f32::NAN));
        let finding =
            found(&means, &[]).problems.into_iter().find(|f| f.rule == "remote-allocation").unwrap();
        assert_eq!((finding.since_seconds, finding.until_seconds), (2.0, Some(5.0)));
        let nothing = found(&[const { Vec::new() }; 4], &[]);
        assert!(nothing.headline.verdict.contains("too short"), "{}", nothing.headline.verdict);
        assert!(nothing.headline.action.contains("longer"), "{}", nothing.headline.action);
    }

    #[test]
    fn ranges_are_compared_as_recordings_are() {
        use crate::comparison::{ComparisonOutcome, compare};
        let rules = RangeRules::new(&nodes(), Arc::new(Catalog::built_in().clone()));
        let of = |since: usize| {
            let means = remote(since, 40);
            let labels = [(8 * SECOND, "numakit:command x"), (9 * SECOND, "numakit:exit 0")];
            rules.profile(&nodes(), &RangeMeans { from: 7 * SECOND, step: SECOND / 4, means: &means }, labels)
        };
        let compared = compare(&of(0), &of(40));
        assert_eq!(compared.outcome, ComparisonOutcome::Better, "{compared:?}");
        assert_eq!(compared.run_time, None);
        assert_eq!(compared.gone.len(), 1, "{compared:?}");
        assert_eq!(compare(&of(40), &of(0)).outcome, ComparisonOutcome::Worse);
        assert_eq!(compare(&of(40), &of(40)).outcome, ComparisonOutcome::Equal);
    }

    #[test]
    fn the_inputs_of_a_formula_are_those_of_its_place() {
        let rules = RangeRules::new(&nodes(), Arc::new(Catalog::built_in().clone()));
        let inputs = |name: &str| rules.inputs(&nodes(), name);
        assert_eq!(inputs("locality@node1"), ["node.local_node@node1", "node.other_node@node1"]);
        assert_eq!(inputs("locality").len(), 4);
        assert_eq!(inputs("node.local_node@node1"), Vec::<String>::new());
        assert_eq!(inputs("locality@nonsense"), Vec::<String>::new());
    }

    #[test]
    fn labels_of_the_range_count() {
        let means = remote(40, 40);
        let status = found(&means, &[(8 * SECOND, "numakit:exit 3")]).headline.verdict;
        assert!(status.contains("exit status 3"), "{status}");
    }

    #[test]
    fn buckets_are_not_shorter_than_a_tenth_of_a_second() {
        assert_eq!(bucket_count(0..10 * SECOND, 300), 100);
        assert_eq!(bucket_count(0..100 * SECOND, 300), 300);
        assert_eq!((bucket_count(0..1, 300), bucket_count(0..SECOND, 0)), (1, 1));
    }
}
