//! What the objects of a program get by a cure, and what was done, a line for each.

pub(crate) mod offered;

use numakit_cure::{
    CoreOrder, CuredIdentity, CuredObject, FittedPolicy, NoOrder, ObjectPolicy, PageSize, PartsOver,
    ProgramFile,
};
use numakit_launch::apply::{AppliedCure, AppliedObject, ObjectState};
use numakit_model::CpuSet;
use numakit_model::numbers::{NumberStyle, counted};
use numakit_sys::apply_table::{ApplyOutcome, COUNTED_NODES, ObjectOutcome};
use std::collections::BTreeMap;
use std::io;

/// Nodes that are named one by one, at most.
const MAX_NODES: usize = 8;

/// What is planned for each object, and which objects are left alone.
pub fn planned(applied: &AppliedCure) -> Vec<String> {
    let cure = &applied.cure;
    let objects = cure.objects.iter().zip(&applied.states).map(|(object, state)| {
        let what = match state {
            ObjectState::Planned(fitted) => policy(object, fitted),
            ObjectState::Refused(why) => format!("nothing: {why}"),
            ObjectState::NoRoom => {
                "nothing: the cure has more objects or files than a run can have".to_owned()
            }
        };
        format!("{}, {}: {what}", object.name, identity(object))
    });
    let order = applied.order.iter().map(order);
    let variables = cure.environment.iter().map(|set| format!("{}={}: {}", set.name, set.value, set.reason));
    let left = cure.left.iter().map(|left| format!("{}: left alone: {}", left.name, left.why));
    order.chain(objects).chain(variables).chain(left).collect()
}

/// That the program is another one than the one that was observed, or another build of it. It may start that one.
pub fn other_program(applied: &AppliedCure) -> Option<String> {
    let found = applied.other_program.as_ref()?;
    let ProgramFile { file, build_id } = &applied.cure.program;
    Some(match found.file == *file {
        true => format!(
            "the cure is for another build of {file} (build ID {build_id}, and this one has {}): its objects get nothing; observe \
             this build with 'numa explain'",
            found.build_id
        ),
        false => format!(
            "the cure is for {file} (build ID {build_id}): {} gets nothing itself, only that build if it is started",
            found.file
        ),
    })
}

/// What was done for each object, after the program has ended.
pub fn done(applied: &AppliedCure) -> Vec<String> {
    let (outcome, objects) = applied.outcome();
    let mut lines: Vec<String> = applied.order.iter().map(order).chain(whole(&outcome)).collect();
    if outcome.processes > outcome.stepped_aside {
        let all = applied.cure.objects.iter().zip(&applied.states).zip(&objects);
        let (found, lost): (Vec<_>, Vec<_>) = all.partition(|(_, done)| done.not_loaded.is_none());
        lines.extend(found.iter().map(|((object, state), done)| {
            let what = match state {
                ObjectState::Planned(fitted) => object_done(object, fitted, done),
                ObjectState::Refused(why) => format!("nothing was done: {why}"),
                ObjectState::NoRoom => "nothing was done: the cure has too many objects or files".to_owned(),
            };
            format!("{}: {what}", object.name)
        }));
        lines.extend(not_loaded(lost.into_iter().map(|((object, _), done)| (object, done))));
    }
    lines
}

/// Where threads that share data are, or why they are where they would be without a cure.
fn order(order: &Result<CoreOrder, NoOrder>) -> String {
    let percent = |share: f64| NumberStyle::Percent.words(100.0 * share);
    match order {
        Ok(CoreOrder { within, before, .. }) => format!(
            "threads that share data: {} of what they share is within nodes; {} in the order of their creation",
            percent(*within),
            percent(*before)
        ),
        Err(why) => format!("threads that share data keep the order of their creation: {why}"),
    }
}

/// The objects that were not found, a line for each of their files.
fn not_loaded<'a>(lost: impl Iterator<Item = (&'a CuredObject, &'a AppliedObject)>) -> Vec<String> {
    let mut files: BTreeMap<&ProgramFile, Vec<&str>> = BTreeMap::new();
    for (object, done) in lost {
        if let Some(file) = &done.not_loaded {
            files.entry(file).or_default().push(&object.name);
        }
    }
    let line = |(file, names): (&ProgramFile, Vec<&str>)| {
        format!(
            "not found: {}: no process loaded the build of {} that was observed (build ID {})",
            names.join(", "),
            file.file,
            file.build_id
        )
    };
    files.into_iter().map(line).collect()
}

/// What concerns all objects.
fn whole(outcome: &ApplyOutcome) -> Vec<String> {
    let mut lines = Vec::new();
    if outcome.processes == 0 {
        lines.push(
            "nothing was done: the program did not load libnumaapply.so (it may be static, set the user ID, or clear its \
             environment)"
                .to_owned(),
        );
    }
    if outcome.stepped_aside > 0 {
        lines.push(format!(
            "{} without cure: a sanitizer, or a filter of system calls that it had already",
            counted(outcome.stepped_aside as usize, "process")
        ));
    }
    if outcome.policies_refused {
        lines.push(
            "memory policies are refused here: memory was touched first from its nodes instead, and is resident from then on"
                .to_owned(),
        );
    }
    let others = [
        (
            outcome.mappings_exhausted,
            "block",
            "got nothing, since the process had nearly as many mappings as vm.max_map_count allows",
        ),
        (outcome.overridden, "call", "of the program for its own policies of these objects left out"),
        (outcome.filtered, "process", "set a filter of system calls, and got nothing from then on"),
        (
            outcome.deep_bindings,
            "call",
            "of dlopen without the RTLD_DEEPBIND that the program wanted: with it a library cannot free blocks of the cure",
        ),
    ];
    let some = others.into_iter().filter(|(count, ..)| *count > 0);
    lines.extend(some.map(|(count, what, says)| format!("{} {says}", counted(count as usize, what))));
    lines
}

fn object_done(object: &CuredObject, fitted: &FittedPolicy, done: &AppliedObject) -> String {
    let Some(ObjectOutcome { applied, bytes, refused, error, other_size, touched, pages_on }) = &done.counted
    else {
        return "nothing was done".to_owned();
    };
    let noun = match object.identity {
        CuredIdentity::Variable { .. } => "variable",
        CuredIdentity::Blocks { .. } => "block",
    };
    let mut parts = Vec::new();
    if applied + touched > 0 {
        let count = counted((applied + touched) as usize, noun);
        parts.push(format!("{count}, {}: {}", size(*bytes), policy(object, fitted)));
    }
    if *refused > 0 {
        let error = io::Error::from_raw_os_error(*error);
        parts.push(format!("refused for {}: {error}", counted(*refused as usize, noun)));
    }
    if *other_size > 0 {
        parts.push(format!("{} of other sizes left alone", counted(*other_size as usize, noun)));
    }
    if parts.is_empty() {
        return match object.identity {
            CuredIdentity::Variable { .. } => "not found: no process has this variable".to_owned(),
            CuredIdentity::Blocks { .. } => "not found: its code allocated nothing".to_owned(),
        };
    }
    parts.extend(pages(pages_on));
    parts.join("; ")
}

/// How an object is found, in words.
fn identity(object: &CuredObject) -> String {
    match &object.identity {
        CuredIdentity::Variable { module, bytes, .. } => {
            format!("variable of {}, {}", module.file, size(*bytes))
        }
        CuredIdentity::Blocks { count, smallest, largest, chain, .. } => {
            let file = chain.last().map_or("", |call| call.module.file.as_str());
            let sizes = match smallest == largest {
                true => size(*largest),
                false => format!("{} to {}", size(*smallest), size(*largest)),
            };
            format!("{} of {sizes} by {file}", counted(*count as usize, "block"))
        }
    }
}

fn policy(object: &CuredObject, fitted: &FittedPolicy) -> String {
    let placed = match (&object.policy, fitted) {
        (_, FittedPolicy::Parts { over, node }) => {
            let nodes: CpuSet = node.iter().flatten().copied().collect();
            let what = if *over == PartsOver::Blocks { "blocks" } else { "parts" };
            Some(format!("{what} on the nodes of their threads ({nodes})"))
        }
        (ObjectPolicy::Interleave, _) => Some("pages on all nodes in turn".to_owned()),
        (ObjectPolicy::Weighted, _) => Some("pages on all nodes by their weights".to_owned()),
        (ObjectPolicy::Near, _) => Some("each block on the node that allocates it".to_owned()),
        (ObjectPolicy::Padded, _) => Some("each block on lines of its own".to_owned()),
        (ObjectPolicy::Parts { .. } | ObjectPolicy::Unchanged, _) => None,
    };
    placed.into_iter().chain(pages_words(object.pages)).collect::<Vec<_>>().join(", ")
}

/// The size of pages that an object gets, if it gets another one.
fn pages_words(pages: PageSize) -> Option<String> {
    match pages {
        PageSize::AsItIs => None,
        PageSize::Huge => Some("huge pages".to_owned()),
        PageSize::Small => Some("small pages".to_owned()),
    }
}

/// Where the pages that were looked at are; `None` if none were.
fn pages(pages_on: &[u64]) -> Option<String> {
    let all: u64 = pages_on.iter().sum();
    let mut nodes: Vec<(usize, u64)> =
        pages_on.iter().copied().enumerate().filter(|(_, pages)| *pages > 0).collect();
    nodes.sort_by_key(|(node, pages)| (u64::MAX - pages, *node));
    nodes.truncate(MAX_NODES);
    nodes.sort_by_key(|(node, _)| *node);
    let one = |(node, pages): &(usize, u64)| {
        let share = NumberStyle::Percent.words(100.0 * *pages as f64 / all as f64);
        match *node + 1 == COUNTED_NODES {
            true => format!("{share} on nodes from {node} on"),
            false => format!("{share} on node {node}"),
        }
    };
    let words: Vec<String> = nodes.iter().map(one).collect();
    (all > 0).then(|| format!("pages: {}", words.join(", ")))
}

fn size(bytes: u64) -> String {
    NumberStyle::Bytes.words(bytes as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(policy: ObjectPolicy) -> CuredObject {
        let module = ProgramFile { file: "app".to_owned(), build_id: "ab".to_owned() };
        CuredObject {
            name: "p".to_owned(),
            verdict: "first-touch".to_owned(),
            reason: String::new(),
            identity: CuredIdentity::Variable { module, address: 16, bytes: 8 << 20 },
            policy,
            pages: PageSize::Small,
        }
    }

    #[test]
    fn what_was_done_has_its_pages() {
        let mut pages_on = vec![0; COUNTED_NODES];
        (pages_on[0], pages_on[3], pages_on[63]) = (8, 24, 32);
        let counted = ObjectOutcome { applied: 1, bytes: 8 << 20, pages_on, ..ObjectOutcome::default() };
        let done = AppliedObject { counted: Some(counted), not_loaded: None };
        let node = Box::new(std::array::from_fn(|at| Some(at as u32 / 32)));
        let fitted = FittedPolicy::Parts { over: PartsOver::Block, node };
        let text = object_done(&object(ObjectPolicy::Unchanged), &fitted, &done);
        assert_eq!(
            text,
            "1 variable, 8.00 MiB: parts on the nodes of their threads (0-1), small pages; pages: 12.5 % on node 0, 37.5 % on node 3, \
             50.0 % on nodes from 63 on"
        );
    }

    #[test]
    fn threads_that_share_data_have_a_line() {
        let found = CoreOrder { cores: Vec::new(), within: 1.0, before: 0.125 };
        assert_eq!(
            order(&Ok(found)),
            "threads that share data: 100 % of what they share is within nodes; 12.5 % in the order of their creation"
        );
        assert!(
            order(&Err(NoOrder::OtherBuild)).contains("keep the order of their creation: the program is")
        );
    }

    #[test]
    fn what_was_not_done_says_why() {
        let done = |counted: ObjectOutcome| {
            let done = AppliedObject { counted: Some(counted), not_loaded: None };
            object_done(&object(ObjectPolicy::Interleave), &FittedPolicy::Same, &done)
        };
        let none = ObjectOutcome::default();
        assert_eq!(done(none.clone()), "not found: no process has this variable");
        let refused = ObjectOutcome { refused: 1, error: 1, ..none.clone() };
        assert_eq!(done(refused), "refused for 1 variable: Operation not permitted (os error 1)");
        let file = ProgramFile { file: "lib.so".to_owned(), build_id: "ff".to_owned() };
        let (object, lost) =
            (object(ObjectPolicy::Interleave), AppliedObject { counted: None, not_loaded: Some(file) });
        let lines = not_loaded([(&object, &lost), (&object, &lost)].into_iter());
        assert_eq!(
            lines,
            ["not found: p, p: no process loaded the build of lib.so that was observed (build ID ff)"]
        );
    }

    #[test]
    fn programs_that_did_not_load_the_library_are_said() {
        assert!(whole(&ApplyOutcome::default())[0].contains("did not load libnumaapply.so"));
        let some =
            ApplyOutcome { processes: 1, overridden: 2, policies_refused: true, ..ApplyOutcome::default() };
        assert_eq!(whole(&some).len(), 2);
        let late = ApplyOutcome { processes: 1, filtered: 1, deep_bindings: 2, ..ApplyOutcome::default() };
        let [filter, libraries] = &whole(&late)[..] else { panic!("{:?}", whole(&late)) };
        assert_eq!(filter, "1 process set a filter of system calls, and got nothing from then on");
        assert!(libraries.starts_with("2 calls of dlopen without the RTLD_DEEPBIND"), "{libraries}");
    }
}
