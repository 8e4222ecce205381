//! Which policy follows from a rule and from how threads use an object.

use super::parts::FoundParts;
use super::together::ThreadGroups;
use crate::explained::JudgedObject;
use crate::finding::RuleName;
use crate::objects::layout::{self, is_on_small_pages};
use crate::objects::remedy::{GLIBC_HUGE, JAVA_HUGE, JAVA_NUMA, JEMALLOC_HUGE, MIMALLOC_HUGE, Switches};
use crate::objects::remote;
use numakit_cure::{CuredIdentity, ObjectPolicy, PageSize};
use numakit_explain::contended::Sharing;
use numakit_explain::memory_policies::BoundBy;
use numakit_explain::objects::ObjectKind;
use numakit_explain::runtime::{MallocLibrary, ProgramRuntime};
use numakit_explain::{CureFacts, ExplainedObject};
use numakit_model::thresholds::{MIN_POINTS, SURE};

/// Larger blocks are contended within, where padding between them does not help.
const MAX_PADDED: u64 = 1 << 10;

/// What is done about an object.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Treatment {
    /// It gets a policy.
    Apply(ObjectPolicy, PageSize),
    /// Its runtime has a switch.
    Set(Switches),
    /// It is left as it is.
    Leave(String),
}

fn leave(why: &str) -> Treatment {
    Treatment::Leave(why.to_owned())
}

fn apply(policy: ObjectPolicy) -> Treatment {
    Treatment::Apply(policy, PageSize::AsItIs)
}

/// What follows for an object from the rule that found it.
pub(super) fn of(judged: &JudgedObject, rule: RuleName, groups: &ThreadGroups) -> Treatment {
    let ExplainedObject { object, facts, .. } = &judged.object;
    match object.kind {
        ObjectKind::File => return leave("'numa file spread' moves the pages of files"),
        ObjectKind::Stack | ObjectKind::ThreadLocal if rule == remote::THREAD_LOCAL.name => {
            return leave("'numa run' places stacks and thread-local storage without a cure");
        }
        ObjectKind::SharedMemory if object.processes.len() > 1 => {
            return leave("processes share it, and their threads have no order");
        }
        _ => {}
    }
    match facts.runtime {
        ProgramRuntime::Java if facts.malloc.is_none() && is_mapping(object.kind) => {
            java(&judged.object, rule)
        }
        _ => by_rule(&judged.object, rule, groups),
    }
}

fn is_mapping(kind: ObjectKind) -> bool {
    matches!(kind, ObjectKind::Mapping | ObjectKind::Mapped)
}

/// The heap of a Java machine.
fn java(object: &ExplainedObject, rule: RuleName) -> Treatment {
    if wants_huge_pages(object, rule) {
        return Treatment::Set(JAVA_HUGE);
    }
    match REMOTE.contains(&rule) {
        true => Treatment::Set(JAVA_NUMA),
        false => leave(SOURCE),
    }
}

const SOURCE: &str = "only a change in the source helps";

/// The rules about memory that the wrong node has.
const REMOTE: [RuleName; 8] = [
    remote::BOUND_MEMORY.name,
    remote::THREAD_MOVED.name,
    remote::OTHER_NODE.name,
    remote::FIRST_TOUCH.name,
    remote::SHARED_BY_ALL.name,
    remote::SPREAD_AWAY.name,
    remote::HUGE_PAGES_ACROSS_PARTS.name,
    remote::SPREAD.name,
];

fn wants_huge_pages(object: &ExplainedObject, rule: RuleName) -> bool {
    let is_chain = rule == layout::CHAIN.name && is_on_small_pages(&object.object, &object.facts);
    is_chain || rule == layout::RANDOM_ON_SMALL_PAGES.name
}

fn by_rule(object: &ExplainedObject, rule: RuleName, groups: &ThreadGroups) -> Treatment {
    if wants_huge_pages(object, rule) {
        return huge_pages(object);
    }
    if rule == remote::REUSED_ACROSS_NODES.name {
        return apply(ObjectPolicy::Near);
    }
    if rule == remote::CONTENDED_LINES.name {
        return padded(object);
    }
    if !REMOTE.contains(&rule) && rule != remote::PAGES_MOVED.name {
        return leave(SOURCE);
    }
    let is_cpuset = object.facts.bound.as_ref().is_some_and(|bound| bound.by == BoundBy::Cpuset);
    if rule == remote::BOUND_MEMORY.name && is_cpuset {
        return leave("the cpuset of the program forbids memory of other nodes");
    }
    let Some(facts) = &object.facts.cure else { return leave("no sample shows its addresses") };
    let points = facts.each.samples();
    // What has no parts, as far as is known, needs no points.
    if points < MIN_POINTS && rule == remote::SHARED_BY_ALL.name {
        return apply(ObjectPolicy::Interleave);
    }
    if points < MIN_POINTS {
        return Treatment::Leave(format!(
            "too little is known of its parts: {points} samples show which thread uses which part, and {MIN_POINTS} are needed"
        ));
    }
    let pages = match rule == remote::HUGE_PAGES_ACROSS_PARTS.name {
        true => PageSize::Small,
        false => PageSize::AsItIs,
    };
    let found = FoundParts::of(facts);
    if found.are_sure() {
        return Treatment::Apply(parts(found), pages);
    }
    // Threads that share a node may have a part together.
    let of_groups = groups.use_of(facts).map(|facts| FoundParts::of(&facts));
    match of_groups.filter(FoundParts::are_sure) {
        Some(found) => Treatment::Apply(parts(found), pages),
        None => without_parts(object, rule, facts, &found),
    }
}

fn parts(found: FoundParts) -> ObjectPolicy {
    ObjectPolicy::Parts { over: found.over, parts: found.parts }
}

/// What follows where the parts are not those of threads.
fn without_parts(
    object: &ExplainedObject,
    rule: RuleName,
    facts: &CureFacts,
    found: &FoundParts,
) -> Treatment {
    let is_of_one_node =
        object.used_from.iter().any(|node| node.share >= 1.0 - numakit_model::thresholds::REMOTE);
    let all_to_one = || FoundParts::of_one(facts).map(|one| apply(parts(one)));
    let is_bound = rule == remote::BOUND_MEMORY.name;
    let is_of_other = [remote::OTHER_NODE.name, remote::SPREAD_AWAY.name].contains(&rule);
    if is_of_other || is_bound && is_of_one_node {
        return all_to_one().unwrap_or_else(|| leave(SOURCE));
    }
    if is_bound || [remote::FIRST_TOUCH.name, remote::SHARED_BY_ALL.name].contains(&rule) {
        return apply(ObjectPolicy::Interleave);
    }
    if rule == remote::HUGE_PAGES_ACROSS_PARTS.name {
        return Treatment::Apply(ObjectPolicy::Unchanged, PageSize::Small);
    }
    Treatment::Leave(format!(
        "its parts are not those of threads: of the samples in them {:.0} % are of the thread that uses most, and {:.0} % are needed",
        100.0 * found.sure,
        100.0 * SURE
    ))
}

/// Huge pages by a policy, or by a switch of the allocator that has it as small blocks.
fn huge_pages(object: &ExplainedObject) -> Treatment {
    let is_found = object.facts.cure.as_ref().is_some_and(|facts| facts.identities.is_ok());
    let is_in_heap = object.object.blocks.are_small || !is_found;
    match object.facts.malloc {
        Some(MallocLibrary::C) if is_in_heap => Treatment::Set(GLIBC_HUGE),
        Some(MallocLibrary::Jemalloc) if is_in_heap => Treatment::Set(JEMALLOC_HUGE),
        Some(MallocLibrary::Mimalloc) if is_in_heap => Treatment::Set(MIMALLOC_HUGE),
        _ => Treatment::Apply(ObjectPolicy::Unchanged, PageSize::Huge),
    }
}

/// Blocks that share lines get lines of their own. What shares a line within a block is the program's.
fn padded(object: &ExplainedObject) -> Treatment {
    let is_small = |identity: &CuredIdentity| match identity {
        CuredIdentity::Blocks { count, largest, .. } => *count > 1 && *largest <= MAX_PADDED,
        CuredIdentity::Variable { .. } => false,
    };
    let identities = object.facts.cure.as_ref().and_then(|facts| facts.identities.as_ref().ok());
    let are_small = identities.is_some_and(|all| all.iter().all(is_small));
    match (object.facts.sharing, are_small) {
        (Some(Sharing::False), true) => apply(ObjectPolicy::Padded),
        (Some(Sharing::False), false) => {
            leave("neighbours in one array or structure share lines: the source must change")
        }
        (Some(Sharing::True | Sharing::Lock) | None, _) => {
            leave("threads change the same data: the source must change")
        }
    }
}
