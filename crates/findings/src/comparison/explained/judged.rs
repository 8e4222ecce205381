//! What was wrong before and is not after, and the other way round.

use super::saved::{SavedFinding, SavedResult};
use super::without_addresses;
use crate::finding::FindingSubject;
use serde::Serialize;
use std::collections::BTreeSet;

/// A finding that one of two results has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ComparedFinding {
    /// The name of the rule.
    pub rule: String,
    /// The object that it is about; `None` if it is about the program.
    pub object: Option<String>,
    /// What was found, in one sentence.
    pub says: String,
}

/// The findings that are gone, and those that are new. A finding is the same if the rule is, and the object without its address.
pub(super) fn changed(
    before: &SavedResult,
    after: &SavedResult,
    absent: &mut BTreeSet<&'static str>,
) -> [Vec<ComparedFinding>; 2] {
    let (one, other) = match (found(before), found(after)) {
        (Some(one), Some(other)) => (one, other),
        (None, None) => return [Vec::new(), Vec::new()],
        _ => {
            absent.insert("findings");
            return [Vec::new(), Vec::new()];
        }
    };
    let is_same = |a: &ComparedFinding, b: &ComparedFinding| (&a.rule, &a.object) == (&b.rule, &b.object);
    let without = |all: &[ComparedFinding], others: &[ComparedFinding]| {
        let is_missing = |found: &&ComparedFinding| !others.iter().any(|other| is_same(found, other));
        all.iter().filter(is_missing).cloned().collect()
    };
    [without(&one, &other), without(&other, &one)]
}

fn found(result: &SavedResult) -> Option<Vec<ComparedFinding>> {
    let object = |subject| match subject {
        FindingSubject::Object(place) => result.objects.get(place as usize),
        _ => None,
    };
    let compared = |SavedFinding { rule, subject, says }: &SavedFinding| ComparedFinding {
        rule: rule.clone(),
        object: object(*subject).map(|object| without_addresses(&object.name)),
        says: says.clone(),
    };
    Some(result.findings.as_ref()?.iter().map(compared).collect())
}
