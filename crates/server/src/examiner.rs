//! What is found in a range of a source: its history's means, judged by the rules of reports.

use crate::comparer::{HeaderAddition, RecordedRows};
use crate::layout::SeriesLayout;
use crate::wire::{EvidenceInfo, FindingInfo, Ns, RangeFindings, UntoldInfo, VALUES};
use numakit_findings::Profile;
use numakit_findings::finding::{Finding, FindingEvidence, Findings, Untold};
use numakit_findings::range::{RangeMeans, RangeRules, bucket_count};
use numakit_formulas::Catalog;
use numakit_history::Source;
use numakit_recording::Header;
use std::collections::HashSet;
use std::sync::{Arc, OnceLock};

/// Maximum number of buckets that a range is divided into.
const BUCKETS: usize = 300;

/// Judges ranges of one source.
pub struct Examiner {
    header: Header,
    /// The column of the header of each measured series.
    order: Vec<usize>,
    /// The names of all series of the source.
    names: HashSet<String>,
    rules: RangeRules,
    /// The findings of a whole recording; `None` if its rows cannot be read again.
    whole: OnceLock<Option<Findings>>,
}

impl Examiner {
    /// For a source with this header, whose series are in this order.
    pub fn new(header: &Header, layout: &SeriesLayout, formulas: &Arc<Catalog>) -> Self {
        let rules = RangeRules::new(header, Arc::clone(formulas));
        let names = layout.names().iter().cloned().collect();
        Self { header: header.clone(), order: layout.order().to_vec(), names, rules, whole: OnceLock::new() }
    }

    /// What is found between these times, as far as there are samples.
    pub fn examine(&self, data: &dyn Source, from: u64, to: u64) -> RangeFindings {
        let (from, to) = within_samples(data, from, to);
        let findings = self.of_means(data, from, to, |range, labels| {
            self.rules.findings(&self.header, range, labels.iter().map(|(time, text)| (*time, text.as_str())))
        });
        self.shown(findings, from, to)
    }

    /// What is found between these times of a recording. Of all of it that is what `numa show` says, from the same rows.
    pub fn examine_rows(
        &self,
        data: &dyn Source,
        rows: Option<(&RecordedRows, HeaderAddition)>,
        (from, to): (u64, u64),
    ) -> RangeFindings {
        let whole = rows.filter(|_| has_all(data, from, to)).and_then(|(rows, complete)| {
            let findings = || rows.profile(complete).ok().map(Profile::into_findings);
            self.whole.get_or_init(findings).clone()
        });
        let Some(findings) = whole else { return self.examine(data, from, to) };
        let (from, to) = within_samples(data, from, to);
        self.shown(findings, from, to)
    }

    /// What is compared of these times, as far as there are samples.
    pub fn profile(&self, data: &dyn Source, from: u64, to: u64) -> Profile {
        let (from, to) = within_samples(data, from, to);
        self.of_means(data, from, to, |range, labels| {
            self.rules.profile(&self.header, range, labels.iter().map(|(time, text)| (*time, text.as_str())))
        })
    }

    /// What `with` makes of the means of a range and of its labels.
    fn of_means<T>(
        &self,
        data: &dyn Source,
        from: u64,
        to: u64,
        with: impl FnOnce(&RangeMeans<'_>, &[(u64, String)]) -> T,
    ) -> T {
        let most = (VALUES / self.order.len().max(1)).min(BUCKETS);
        let measured: Vec<usize> = (0..self.order.len()).collect();
        let buckets = data.buckets(&measured, from, to, bucket_count(from..to, most));
        let mut means = vec![Vec::new(); self.header.series.len()];
        for (column, bucketed) in self.order.iter().zip(buckets.columns) {
            means[*column] = bucketed.mean;
        }
        let labels = data.labels().into_iter().filter(|label| (from..to).contains(&label.time_ns));
        let labels: Vec<(u64, String)> = labels.map(|label| (label.time_ns, label.text)).collect();
        with(&RangeMeans { from: buckets.from_ns, step: buckets.step_ns, means: &means }, &labels)
    }

    fn shown(&self, findings: Findings, from: u64, to: u64) -> RangeFindings {
        let all = |found: Vec<Finding>| found.into_iter().map(|finding| self.info(finding, from)).collect();
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

    fn info(&self, finding: Finding, from: u64) -> FindingInfo {
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
            evidence: finding.evidence.into_iter().map(|evidence| self.evidence(evidence)).collect(),
            remedy: finding.remedy.words,
            commands: finding.remedy.commands,
        }
    }

    /// A formula at a place where the source does not have it is shown by what it is computed from.
    fn evidence(&self, evidence: FindingEvidence) -> EvidenceInfo {
        let FindingEvidence { series, says, .. } = evidence;
        let inputs = match self.names.contains(&series) {
            true => Vec::new(),
            false => self.rules.inputs(&self.header, &series),
        };
        EvidenceInfo { series, inputs, says }
    }
}

/// A page computes with floating-point numbers, in which a time is off by a few hundred ns.
const ROUNDED: u64 = 10_000;

/// Whether a range has all samples of a source.
pub fn has_all(data: &dyn Source, from: u64, to: u64) -> bool {
    let (first, last) = data.span().unwrap_or_default();
    from <= first.saturating_add(ROUNDED) && last <= to.saturating_add(ROUNDED)
}

/// The part of a range in which there are samples.
fn within_samples(data: &dyn Source, from: u64, to: u64) -> (u64, u64) {
    let (first, last) = data.span().unwrap_or_default();
    let (from, to) = (from.max(first), to.min(last.saturating_add(1)));
    (from, to.max(from))
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
