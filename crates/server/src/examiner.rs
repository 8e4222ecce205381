//! What is found in a range of a source: its history's means, judged by the rules of reports.

use crate::layout::SeriesLayout;
use crate::wire::{EvidenceInfo, FindingInfo, Ns, RangeFindings, UntoldInfo, VALUES};
use numakit_analysis::findings::{Finding, Findings, Untold};
use numakit_analysis::range::{RangeMeans, RangeRules, bucket_count};
use numakit_derived::Catalog;
use numakit_history::Source;
use numakit_recording::Header;
use std::sync::Arc;

/// Maximum number of buckets that a range is divided into.
const BUCKETS: usize = 300;

/// Judges ranges of one source.
pub struct Examiner {
    header: Header,
    /// The column of the header of each measured series.
    order: Vec<usize>,
    rules: RangeRules,
}

impl Examiner {
    /// For a source with this header, whose series are in this order.
    pub fn new(header: &Header, layout: &SeriesLayout, formulas: &Arc<Catalog>) -> Self {
        let rules = RangeRules::new(header, Arc::clone(formulas));
        Self { header: header.clone(), order: layout.order().to_vec(), rules }
    }

    /// What is found between these times, as far as there are samples.
    pub fn examine(&self, data: &dyn Source, from: u64, to: u64) -> RangeFindings {
        let (first, last) = data.span().unwrap_or_default();
        let (from, to) = (from.max(first), to.min(last.saturating_add(1)));
        let to = to.max(from);
        let most = (VALUES / self.order.len().max(1)).min(BUCKETS);
        let measured: Vec<usize> = (0..self.order.len()).collect();
        let buckets = data.buckets(&measured, from, to, bucket_count(from..to, most));
        let mut means = vec![Vec::new(); self.header.series.len()];
        for (column, bucketed) in self.order.iter().zip(buckets.columns) {
            means[*column] = bucketed.mean;
        }
        let labels = data.labels();
        let within = labels.iter().filter(|label| (from..to).contains(&label.time_ns));
        let texts = within.map(|label| (label.time_ns, label.text.as_str()));
        let range = RangeMeans { from: buckets.from_ns, step: buckets.step_ns, means: &means };
        shown(self.rules.findings(&self.header, &range, texts), from, to)
    }
}

fn shown(findings: Findings, from: u64, to: u64) -> RangeFindings {
    let all = |found: Vec<Finding>| found.into_iter().map(|finding| info(finding, from)).collect();
    let untold = |untold: Untold| UntoldInfo { what: untold.what.to_owned(), why: untold.why };
    RangeFindings {
        from_ns: Ns(from),
        to_ns: Ns(to),
        verdict: findings.headline.verdict,
        cost: findings.headline.cost,
        action: findings.headline.action,
        problems: all(findings.problems),
        remarks: all(findings.remarks),
        untold: findings.untold.into_iter().map(untold).collect(),
    }
}

fn info(finding: Finding, from: u64) -> FindingInfo {
    let at = |seconds: f64| Ns(from.saturating_add((seconds * 1e9) as u64));
    FindingInfo {
        rule: finding.rule.to_owned(),
        subject: finding.subject.to_string(),
        since_ns: at(finding.since_seconds),
        until_ns: finding.until_seconds.map(at),
        percent: finding.cost.percent(),
        cost: finding.cost.words(),
        certainty: finding.certainty.word().to_owned(),
        says: finding.says,
        evidence: finding
            .evidence
            .into_iter()
            .map(|evidence| EvidenceInfo { series: evidence.series, says: evidence.says })
            .collect(),
        remedy: finding.remedy.words,
        commands: finding.remedy.commands,
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::shown;

    const MS: u64 = 1_000_000;
    const SECOND: u64 = 1000 * MS;

    #[test]
    fn a_range_ends_where_the_samples_do() {
        let source = shown(&["a.x", "a.y"], 4000);
        let all = source.examiner.examine(source.data.as_ref(), 0, u64::MAX);
        assert_eq!((all.from_ns.0, all.to_ns.0), (SECOND, 5 * SECOND - MS + 1));
        assert!(all.verdict.starts_with("Nothing is wrong"), "{all:?}");
        assert!(all.untold.iter().any(|untold| untold.what == "memory bandwidth"), "{:?}", all.untold);
        let short = source.examiner.examine(source.data.as_ref(), 2 * SECOND, 2 * SECOND + 10 * MS);
        assert!(short.verdict.contains("too short"), "{}", short.verdict);
    }

    #[test]
    fn a_range_before_and_a_source_without_samples_are_too_short() {
        let source = shown(&["a.x"], 100);
        let before = source.examiner.examine(source.data.as_ref(), 0, 1);
        let none = shown(&["a.x"], 0);
        let nothing = none.examiner.examine(none.data.as_ref(), 0, u64::MAX);
        assert!(before.verdict.contains("too short") && nothing.verdict.contains("too short"));
    }
}
