//! The cure of a program: for each object with a verdict the policy that follows, or why there is none.

mod beside;
mod parts;
mod policy;
#[cfg(test)]
mod tests;
mod together;

use crate::explained::JudgedObject;
use crate::finding::{Finding, RuleName};
use crate::objects::remote;
use numakit_cure::{
    Cure, CuredIdentity, CuredObject, LeftObject, ObjectPart, ObjectPolicy, PageSize, PartsOver, SetVariable,
};
use numakit_explain::objects::ObjectKind;
use numakit_explain::sharing::ThreadSharing;
use numakit_explain::{CureProgram, Unidentified};
use policy::Treatment;
use std::cmp::Reverse;
pub use together::SeparatedThreads;
use together::ThreadGroups;
pub(crate) use together::separated;

/// Objects of a cure, at most.
const MAX_OBJECTS: usize = 256;

/// The cure of a program with these objects, whose threads share data like that.
pub(crate) fn of(
    objects: &[JudgedObject],
    program: CureProgram,
    command: &str,
    sharing: Option<&ThreadSharing>,
) -> Cure {
    let CureProgram { file, threads } = program;
    let command = command.to_owned();
    let (sharing, groups) = sharing.map(together::of).unwrap_or_default();
    let mut cure =
        Cure { version: Cure::VERSION, command, program: file, threads, sharing, ..Cure::default() };
    let mut found: Vec<(&JudgedObject, &Finding)> =
        objects.iter().filter_map(|judged| Some((judged, judged.finding.as_ref()?))).collect();
    found.sort_by_key(|(judged, _)| Reverse((judged.object.time_share * 1e6) as u64));
    for (judged, finding) in found {
        add(&mut cure, judged, finding, judged.distinct_name(objects), &groups);
    }
    add_beside(&mut cure, objects);
    cure
}

/// Makes parts equal where samples agree with that, and adds the objects that are cured beside others.
fn add_beside(cure: &mut Cure, objects: &[JudgedObject]) {
    for judged in objects {
        let name = judged.distinct_name(objects);
        let facts = judged.object.facts.cure.as_ref();
        let threads = &cure.threads.working;
        for cured in cure.objects.iter_mut().filter(|cured| cured.name == name) {
            if let (ObjectPolicy::Parts { over: PartsOver::Block, parts }, Some(facts)) =
                (&mut cured.policy, facts)
                && let Some(equal) = beside::equal_instead(facts, parts, threads)
            {
                *parts = equal;
            }
        }
    }
    let divisions = beside::divisions(cure);
    for judged in objects {
        let name = judged.distinct_name(objects);
        // What all share gets its parts where those of others show them.
        let is_settled = |cured: &CuredObject| cured.name == name && cured.policy != ObjectPolicy::Interleave;
        if cure.objects.iter().any(is_settled) {
            continue;
        }
        let Some(Ok(all)) = judged.object.facts.cure.as_ref().map(|facts| &facts.identities) else {
            continue;
        };
        let Some((policy, pages)) = beside::of(judged, &divisions) else { continue };
        let others = cure.objects.iter().filter(|cured| cured.name != name).count();
        if others + all.len() > MAX_OBJECTS {
            return;
        }
        cure.objects.retain(|cured| cured.name != name);
        let (verdict, reason) = match &judged.finding {
            Some(finding) => (finding.rule.to_owned(), finding.says.clone()),
            None => {
                let reason = "threads of other nodes use parts of it, for a small part of the time";
                (beside::NO_VERDICT.to_owned(), reason.to_owned())
            }
        };
        cure.left.retain(|left| left.name != name);
        cure.objects.extend(entries(all, [&name, &verdict, &reason], &policy, pages));
    }
}

/// An object of a cure for each of its identities, with its name, verdict and reason.
fn entries(
    identities: &[CuredIdentity],
    [name, verdict, reason]: [&str; 3],
    policy: &ObjectPolicy,
    pages: PageSize,
) -> impl Iterator<Item = CuredObject> {
    identities.iter().map(move |identity| CuredObject {
        name: name.to_owned(),
        verdict: verdict.to_owned(),
        reason: reason.to_owned(),
        identity: identity.clone(),
        policy: policy.clone(),
        pages,
    })
}

fn add(cure: &mut Cure, judged: &JudgedObject, finding: &Finding, name: String, groups: &ThreadGroups) {
    let (verdict, reason) = (finding.rule.to_owned(), finding.says.clone());
    let mut leave = |why: String| {
        if cure.left.len() < MAX_OBJECTS {
            cure.left.push(LeftObject { name: name.clone(), verdict: verdict.clone(), why });
        }
    };
    let identities = judged.object.facts.cure.as_ref().map(|facts| &facts.identities);
    match (policy::of(judged, finding.rule, groups), identities) {
        (Treatment::Leave(why), _) => leave(why),
        (Treatment::Set(switches), _) => {
            let set = |(name, value): &(&str, &str)| format!("{name}={value}");
            let all: Vec<String> = switches.iter().map(set).collect();
            leave(format!("a switch of its runtime does it: {}", all.join(" ")));
            for (variable, value) in switches {
                let is_known =
                    |known: &SetVariable| (known.name.as_str(), known.value.as_str()) == (variable, value);
                if !cure.environment.iter().any(is_known) {
                    let (variable, value) = ((*variable).to_owned(), (*value).to_owned());
                    let reason = format!("{name}: {reason}");
                    cure.environment.push(SetVariable { name: variable, value, reason });
                }
            }
        }
        (Treatment::Apply(..), None) => leave("no sample shows its addresses".to_owned()),
        (Treatment::Apply(..), Some(Err(why))) => {
            leave(unidentified(judged.object.object.kind, *why).to_owned())
        }
        (Treatment::Apply(..), Some(Ok(all))) if cure.objects.len() + all.len() > MAX_OBJECTS => {
            leave(format!("a cure has at most {MAX_OBJECTS} objects, and those before it wait longer"));
        }
        (Treatment::Apply(policy, pages), Some(Ok(all))) => {
            cure.objects.extend(entries(all, [&name, &verdict, &reason], &policy, pages));
        }
    }
}

fn unidentified(kind: ObjectKind, why: Unidentified) -> &'static str {
    match (why, kind) {
        (Unidentified::Unnamed, ObjectKind::Gone) => "its memory was given back before it was looked at",
        (Unidentified::Unnamed, _) => {
            "another run cannot find it: nothing says which code allocated it. Blocks have that of a program that 'numa explain' starts"
        }
        (Unidentified::NoFile, _) => {
            "another run cannot find it: the file of its code cannot be read, or the code was made while the program ran"
        }
        (Unidentified::NoBuildId, _) => {
            "its program or library has no build ID, so another run cannot tell whether it is the same: link it with -Wl,--build-id"
        }
        (Unidentified::Ambiguous, _) => {
            "the calls that allocate it are those of other objects, as far as its stack shows them"
        }
        (Unidentified::ManyCalls, _) => "too many pieces of code allocate it",
    }
}

/// Puts the command that applies the cure in place of others, in the findings about objects for which it does more.
pub(crate) fn advise(objects: &mut [JudgedObject], cure: &Cure, command: &str) {
    let names: Vec<String> = objects.iter().map(|judged| judged.distinct_name(objects)).collect();
    let mut cured: Vec<&str> = cure.objects.iter().map(|cured| cured.name.as_str()).collect();
    cured.dedup();
    for (judged, name) in objects.iter_mut().zip(&names) {
        let own = cure.objects.iter().find(|cured| cured.name == *name);
        let Some((finding, does)) = judged.finding.as_mut().zip(own.and_then(|own| does(&own.policy))) else {
            continue;
        };
        let others = match cured.len() {
            0 | 1 => String::new(),
            2 => "; and treats another object".to_owned(),
            all => format!("; and treats {} other objects", all - 1),
        };
        finding.remedy.commands = vec![command.to_owned()];
        finding.remedy.expect = Some(format!("{does}{others}").into());
    }
}

/// The rules about memory that may follow its threads, or threads that may follow their memory.
const MOVABLE: [RuleName; 5] = [
    remote::THREAD_LOCAL.name,
    remote::THREAD_MOVED.name,
    remote::OTHER_NODE.name,
    remote::FIRST_TOUCH.name,
    remote::SPREAD.name,
];

/// Puts the command that moves running processes in place of those that start them again.
pub(crate) fn advise_moving(objects: &mut [JudgedObject], processes: &str) {
    for finding in objects.iter_mut().filter_map(|judged| judged.finding.as_mut()) {
        if MOVABLE.contains(&finding.rule) {
            finding.remedy.commands = vec![format!("numa move {processes}")];
            finding.remedy.expect = Some(
                "brings its threads and their pages together while it runs; the same with --back undoes it"
                    .into(),
            );
        }
    }
}

/// What a policy does that no other command does.
fn does(policy: &ObjectPolicy) -> Option<&'static str> {
    match policy {
        ObjectPolicy::Parts { parts, .. } => Some(match parts.as_slice() {
            [ObjectPart { .. }] => {
                "puts it on the node of the thread that uses it, without a change in the source"
            }
            _ => "puts its parts on the nodes of the threads that use them, without a change in the source",
        }),
        ObjectPolicy::Interleave | ObjectPolicy::Weighted => {
            Some("spreads it over the memory of all nodes, and leaves all other memory as it is")
        }
        ObjectPolicy::Near => Some("gives its blocks memory of the node that allocates them"),
        ObjectPolicy::Padded => Some("gives each of its blocks lines of its own"),
        ObjectPolicy::Unchanged => None,
    }
}
