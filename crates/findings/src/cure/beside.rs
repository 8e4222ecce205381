//! Objects that are cured beside others: too small a part of the time for a finding, or seen too rarely to tell their parts alone.
//!
//! The arrays of a program are mostly divided alike. Where the parts of one are sure, few samples are enough to tell whether another
//! has the same: with eight threads, eight samples agree by chance once in ten million times.

use super::parts::{FoundParts, are_of};
use crate::explained::JudgedObject;
use numakit_cure::{CuredObject, ObjectPart, ObjectPolicy, PageSize, PartsOver};
use numakit_explain::CureFacts;
use numakit_explain::objects::ObjectKind;
use numakit_model::thresholds::{MIN_POINTS, REMOTE};

/// The verdict of these objects.
pub(super) const NO_VERDICT: &str = "-";
/// With fewer samples, agreement with the parts of another object may be chance.
const MIN_AGREEING: u64 = 8;

/// Divisions that other objects have.
pub(super) fn divisions(cured: &[CuredObject]) -> Vec<Vec<ObjectPart>> {
    let of = |object: &CuredObject| match &object.policy {
        ObjectPolicy::Parts { over: PartsOver::Block, parts } if parts.len() > 1 => Some(parts.clone()),
        _ => None,
    };
    cured.iter().filter_map(of).collect()
}

/// What an object gets beside others, if threads use remote parts of it.
pub(super) fn of(judged: &JudgedObject, divisions: &[Vec<ObjectPart>]) -> Option<(ObjectPolicy, PageSize)> {
    let object = &judged.object;
    let is_remote = object.remote.is_some_and(|remote| remote.low > REMOTE);
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
