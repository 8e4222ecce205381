//! Two sources compared. Of whole recordings it is what `numa show A B` says, from the same rows; of live samples and of
//! parts it is computed from the means of the history, by the same rules.

use crate::client_request_error::ClientRequestError;
use crate::examiner::has_all;
use crate::source::ShownSource;
use crate::wire::{ComparedInfo, ComparedRange, DifferenceInfo};
use numakit_findings::comparison::{Comparison, Difference, compare};
use numakit_findings::finding::Finding;
use numakit_findings::{Profile, profile};
use numakit_formulas::Catalog;
use numakit_recording::{Header, Reader, read_ahead};
use std::path::Path;
use std::sync::Arc;

/// Completes the header of a recording with what is known of its machine.
pub type HeaderAddition = fn(&mut Header);

/// A recording file whose rows can be read again.
#[derive(Debug, Clone)]
pub struct RecordedRows {
    path: Arc<Path>,
    formulas: Arc<Catalog>,
}

impl RecordedRows {
    /// Those of this file.
    pub fn new(path: &Path, formulas: &Arc<Catalog>) -> Self {
        Self { path: path.into(), formulas: Arc::clone(formulas) }
    }

    /// What is compared with another recording.
    pub fn profile(&self, complete: HeaderAddition) -> Result<Profile, ClientRequestError> {
        let failed = |why: String| ClientRequestError::NotCompared(why);
        let mut reader = Reader::open(&self.path).map_err(|error| failed(error.to_string()))?;
        let mut header = reader.header().clone();
        complete(&mut header);
        let made = read_ahead(&mut reader, |batches| profile(&header, batches, None, &self.formulas));
        made.map_err(|error| failed(error.to_string()))
    }
}

/// One side of a comparison.
pub struct Side<'a> {
    /// The source.
    pub shown: &'a ShownSource,
    /// Its range.
    pub range: ComparedRange,
}

impl Side<'_> {
    /// Whether the range has all samples of the source.
    fn is_all(&self) -> bool {
        has_all(self.shown.data.as_ref(), self.range.from_ns.0, self.range.to_ns.0)
    }

    fn of_range(&self) -> Profile {
        let ComparedRange { from_ns, to_ns, .. } = self.range;
        self.shown.examiner.profile(self.shown.data.as_ref(), from_ns.0, to_ns.0)
    }
}

/// Compares two sources: all of two recordings if the range of the first one has all of it.
pub fn compare_sources(
    first: &Side<'_>,
    second: &Side<'_>,
    complete: HeaderAddition,
) -> Result<ComparedInfo, ClientRequestError> {
    let files = first.shown.rows.as_ref().zip(second.shown.rows.as_ref()).filter(|_| first.is_all());
    let Some((before, after)) = files else {
        return Ok(shown(compare(&first.of_range(), &second.of_range()), false));
    };
    Ok(whole(&before.profile(complete)?, &after.profile(complete)?))
}

/// All of two recordings compared.
pub fn whole(before: &Profile, after: &Profile) -> ComparedInfo {
    shown(compare(before, after), true)
}

fn shown(comparison: Comparison, whole: bool) -> ComparedInfo {
    let says = |found: &[Finding]| found.iter().map(|finding| finding.says.clone()).collect();
    ComparedInfo {
        whole,
        first: comparison.before.words(),
        second: comparison.after.words(),
        compared: comparison.compared_words(),
        program: comparison.of_program().map(difference).collect(),
        machine: comparison.machine.iter().map(difference).collect(),
        gone: says(&comparison.gone),
        new: says(&comparison.new),
        kept: says(&comparison.kept),
        cautions: comparison.cautions,
        verdict: comparison.headline.verdict,
        change: comparison.headline.change,
        action: comparison.headline.action,
    }
}

fn difference(difference: &Difference) -> DifferenceInfo {
    let words = difference.words();
    DifferenceInfo {
        series: difference.name.clone(),
        what: words.what,
        before: words.before,
        after: words.after,
        change: words.change,
        noise: words.noise,
        verdict: words.verdict,
        alike: difference.alike.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::shown as source;
    use crate::wire::Ns;

    fn side(shown: &ShownSource, from: u64, to: u64) -> Side<'_> {
        Side { shown, range: ComparedRange { source: 0, from_ns: Ns(from), to_ns: Ns(to) } }
    }

    #[test]
    fn live_samples_are_compared_by_their_ranges() {
        let live = source(&["a.x"], 20_000);
        const SECOND: u64 = 1_000_000_000;
        let of = |a: (u64, u64), b: (u64, u64)| {
            let sides = (side(&live, a.0 * SECOND, a.1 * SECOND), side(&live, b.0 * SECOND, b.1 * SECOND));
            compare_sources(&sides.0, &sides.1, |_| ()).unwrap()
        };
        // The first series counts up: 0 to 9,999, then 10,000 to 19,999.
        let later = of((1, 11), (11, 21));
        assert!(!later.whole);
        let [row] = &later.machine[..] else { panic!("{later:?}") };
        assert_eq!((row.series.as_str(), row.before.as_str(), row.after.as_str()), ("a.x", "5.00k", "15.0k"));
        let same = of((1, 11), (1, 11));
        assert!(same.machine.is_empty() && same.verdict.contains("do not differ"), "{same:?}");
        let short = of((1, 1), (1, 11));
        assert!(short.verdict.contains("cannot be told"), "{short:?}");
    }
}
