//! Objects that are cured beside others: too small a part of the time for a finding, or seen too rarely to tell their parts alone.
//!
//! The arrays of a program are mostly divided alike. Where the parts of one are sure, few samples are enough to tell whether another
//! has the same: with eight threads, eight samples agree by chance once in ten million times.

use super::parts::{FoundParts, are_of};
use crate::explained::JudgedObject;
use numakit_cure::{Cure, CuredObject, FRACTIONS, ObjectPart, ObjectPolicy, PageSize, PartsOver};
use numakit_explain::CureFacts;
use numakit_explain::objects::ObjectKind;
use numakit_model::thresholds::{MIN_POINTS, REMOTE};

/// The verdict of these objects.
pub(super) const NO_VERDICT: &str = "-";
/// What differs less is as sure: a sample or two at a border.
const AS_SURE: f64 = 0.02;
/// With fewer samples, agreement with the parts of another object may be chance.
const MIN_AGREEING: u64 = 8;

/// The divisions that an object may have: equal parts for the threads that work, as loops with a static schedule make them, and
/// those of other objects.
pub(super) fn divisions(cure: &Cure) -> Vec<Vec<ObjectPart>> {
    let of = |object: &CuredObject| match &object.policy {
        ObjectPolicy::Parts { over: PartsOver::Block, parts } if parts.len() > 1 => Some(parts.clone()),
        _ => None,
    };
    let equal = Some(equal(&cure.threads.working)).filter(|parts| parts.len() > 1);
    equal.into_iter().chain(cure.objects.iter().filter_map(of)).collect()
}

/// Equal parts for these threads, if each gets a fraction at least.
fn equal(threads: &[u32]) -> Vec<ObjectPart> {
    let count = threads.len() as u32;
    if count > FRACTIONS {
        return Vec::new();
    }
    let begin = |place: u32| place * FRACTIONS / count;
    let part = |(place, thread): (u32, &u32)| ObjectPart {
        from: begin(place),
        to: begin(place + 1),
        thread: *thread,
        samples: 0,
        sure: 0.0,
    };
    (0..).zip(threads).map(part).collect()
}

/// Equal parts in place of those that the samples of an object show with holes, if the samples agree with them as well.
pub(super) fn equal_instead(
    facts: &CureFacts,
    shown: &[ObjectPart],
    threads: &[u32],
) -> Option<Vec<ObjectPart>> {
    let equal = are_of(&facts.each, &equal(threads));
    let is_as_sure = equal.sure + AS_SURE >= are_of(&facts.each, shown).sure;
    (shown.len() > 1 && is_as_sure && equal.are_sure()).then_some(equal.parts)
}

/// What an object gets beside others, if threads use remote parts of it. Those that stay in caches count: others write to them, and
/// they are fetched again.
pub(super) fn of(judged: &JudgedObject, divisions: &[Vec<ObjectPart>]) -> Option<(ObjectPolicy, PageSize)> {
    let object = &judged.object;
    let shares = [object.remote, object.facts.used.cached_remote];
    let is_remote = shares.iter().flatten().any(|remote| remote.low > REMOTE);
    let is_placed = matches!(
        object.object.kind,
        ObjectKind::File | ObjectKind::Stack | ObjectKind::ThreadLocal | ObjectKind::SharedMemory
    );
    let facts = object.facts.cure.as_ref().filter(|_| is_remote && !is_placed)?;
    let (over, parts) = own(facts).or_else(|| Some((PartsOver::Block, shared(facts, divisions)?)))?;
    Some((ObjectPolicy::Parts { over, parts }, PageSize::AsItIs))
}

/// Parts that its own samples tell.
fn own(facts: &CureFacts) -> Option<(PartsOver, Vec<ObjectPart>)> {
    let found = (facts.each.samples() >= MIN_POINTS).then(|| FoundParts::of(facts))?;
    found.are_sure().then_some((found.over, found.parts))
}

/// The parts of another object with which its samples agree.
fn shared(facts: &CureFacts, divisions: &[Vec<ObjectPart>]) -> Option<Vec<ObjectPart>> {
    let is_enough = facts.each.samples() >= MIN_AGREEING && facts.each.threads().len() > 1;
    let all = divisions.iter().filter(|_| is_enough);
    all.map(|division| are_of(&facts.each, division)).find(FoundParts::are_sure).map(|found| found.parts)
}
