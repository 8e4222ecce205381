use super::*;
use crate::finding::{Certainty, CostBasis, FindingCost, FindingRemedy, FindingSubject, RuleName};
use crate::objects::{layout, remote};
use numakit_cure::SharingThreads;
use numakit_cure::{CuredThreads, FRACTIONS, PageSize, ProgramFile};
use numakit_explain::contended::Sharing;
use numakit_explain::object_use::NodeShare;
use numakit_explain::objects::BlockOrigins;
use numakit_explain::part_use::PartUse;
use numakit_explain::python::ScriptShares;
use numakit_explain::runtime::{MallocLibrary, ProgramRuntime};
use numakit_explain::share::ShareEstimate;
use numakit_explain::{CureFacts, ExplainedObject, ObjectFacts, SampledObject};
use std::collections::BTreeMap;

/// A thread in each fraction, seen this often.
fn used(samples: u64, threads: impl Fn(u32) -> Vec<u32>) -> PartUse {
    let seen =
        |at: u32| -> BTreeMap<u32, u64> { threads(at).into_iter().map(|thread| (thread, samples)).collect() };
    PartUse((0..FRACTIONS).map(seen).collect())
}

/// Threads that each use an eighth.
fn eighths(at: u32) -> Vec<u32> {
    vec![at / 8]
}

fn blocks(count: u64, bytes: u64) -> CuredIdentity {
    CuredIdentity::Blocks {
        by: "malloc".to_owned(),
        chain: Vec::new(),
        count,
        smallest: bytes,
        largest: bytes,
    }
}

fn facts(each: PartUse) -> CureFacts {
    let module = ProgramFile { file: "app".to_owned(), build_id: "ab".to_owned() };
    let variable = CuredIdentity::Variable { module, address: 0x4040, bytes: 1 << 20 };
    CureFacts { identities: Ok(vec![variable]), each, blocks: PartUse::default(), count: 1 }
}

fn judged(rule: RuleName, cure: CureFacts) -> JudgedObject {
    let finding = Finding {
        rule,
        subject: FindingSubject::Object(0),
        says: "it is so".to_owned(),
        since_seconds: 0.0,
        until_seconds: None,
        cost: FindingCost::at_most(CostBasis::CpuTime, 10.0),
        certainty: Certainty::Likely,
        evidence: Vec::new(),
        remedy: FindingRemedy {
            commands: vec!["numa run --memory interleave ./app".to_owned()],
            ..FindingRemedy::default()
        },
    };
    let object = SampledObject {
        pid: 7,
        processes: vec![7],
        kind: ObjectKind::Variable,
        pieces: 1,
        size: 64 << 20,
        blocks: BlockOrigins::default(),
        name: rule.to_owned(),
    };
    let object = ExplainedObject {
        object,
        home: Vec::new(),
        used_from: [0, 1].map(|node| NodeShare { node, share: 0.5 }).to_vec(),
        nodes: Vec::new(),
        time_share: 0.5,
        remote: None,
        in_cache: 0.0,
        contended: 0.0,
        hint_faults: None,
        first_touch: Vec::new(),
        members: None,
        used_by: Vec::new(),
        python_use: ScriptShares::default(),
        python_allocation: ScriptShares::default(),
        facts: ObjectFacts { cure: Some(cure), ..ObjectFacts::default() },
    };
    JudgedObject { object, finding: Some(finding) }
}

fn cure(objects: &[JudgedObject]) -> Cure {
    let file = ProgramFile { file: "app".to_owned(), build_id: "ab".to_owned() };
    let program = CureProgram {
        file,
        threads: CuredThreads { working: vec![0, 1], count: 8, cpus: 8, open_mp: false },
    };
    of(objects, program, "./app", None)
}

/// What one object gets.
fn treated(rule: RuleName, each: PartUse, change: impl FnOnce(&mut ExplainedObject)) -> Cure {
    let mut judged = judged(rule, facts(each));
    change(&mut judged.object);
    cure(&[judged])
}

fn policy(cure: &Cure) -> Option<(&ObjectPolicy, PageSize)> {
    cure.objects.first().map(|cured| (&cured.policy, cured.pages))
}

fn why(cure: &Cure) -> &str {
    cure.left.first().map_or("", |left| left.why.as_str())
}

fn parts(cure: &Cure) -> usize {
    match policy(cure) {
        Some((ObjectPolicy::Parts { parts, .. }, _)) => parts.len(),
        _ => 0,
    }
}

#[test]
fn what_threads_use_in_parts_gets_parts() {
    for rule in [remote::FIRST_TOUCH, remote::SPREAD, remote::BOUND_MEMORY, remote::THREAD_MOVED] {
        let cured = treated(rule.name, used(5, eighths), |_| {});
        assert_eq!((parts(&cured), policy(&cured).unwrap().1), (8, PageSize::AsItIs), "{}", rule.name);
    }
    let small = treated(remote::HUGE_PAGES_ACROSS_PARTS.name, used(5, eighths), |_| {});
    assert_eq!((parts(&small), policy(&small).unwrap().1), (8, PageSize::Small));
    let cured = &treated(remote::FIRST_TOUCH.name, used(5, eighths), |_| {}).objects[0];
    assert_eq!((cured.verdict.as_str(), cured.reason.as_str()), ("first-touch", "it is so"));
}

#[test]
fn without_clear_parts_the_rule_decides() {
    let mixed = || used(2, |_| vec![0, 1, 2, 3]);
    let interleaved = treated(remote::FIRST_TOUCH.name, mixed(), |_| {});
    assert_eq!(policy(&interleaved), Some((&ObjectPolicy::Interleave, PageSize::AsItIs)));
    let shared = treated(remote::SHARED_BY_ALL.name, mixed(), |_| {});
    assert_eq!(policy(&shared), Some((&ObjectPolicy::Interleave, PageSize::AsItIs)));
    let few = treated(remote::SHARED_BY_ALL.name, PartUse::default(), |_| {});
    assert_eq!(policy(&few), Some((&ObjectPolicy::Interleave, PageSize::AsItIs)));
    // The thread that filled it for others is one of those that share it, for the rule.
    assert_eq!(parts(&treated(remote::SHARED_BY_ALL.name, used(5, eighths), |_| {})), 8);
    assert_eq!(parts(&treated(remote::OTHER_NODE.name, mixed(), |_| {})), 1);
    assert_eq!(parts(&treated(remote::SPREAD_AWAY.name, mixed(), |_| {})), 1);
    let one_node = |object: &mut ExplainedObject| object.used_from = vec![NodeShare { node: 1, share: 1.0 }];
    assert_eq!(parts(&treated(remote::BOUND_MEMORY.name, mixed(), one_node)), 1);
    let spread = treated(remote::SPREAD.name, mixed(), |_| {});
    assert!(why(&spread).contains("25 % are of the thread"), "{}", why(&spread));
    let few = treated(remote::FIRST_TOUCH.name, used(1, |at| if at < 9 { vec![0] } else { vec![] }), |_| {});
    assert!(few.objects.is_empty() && why(&few).contains("9 samples"), "{}", why(&few));
}

#[test]
fn pages_lines_and_blocks_have_policies_of_their_own() {
    let huge = Some((&ObjectPolicy::Unchanged, PageSize::Huge));
    let on_small = |object: &mut ExplainedObject| object.facts.huge_pages = Some(0.0);
    let random = treated(layout::RANDOM_ON_SMALL_PAGES.name, used(5, eighths), on_small);
    assert_eq!(policy(&random), huge);
    assert_eq!(policy(&treated(layout::CHAIN.name, used(5, eighths), on_small)), huge);
    assert_eq!(policy(&treated(layout::CHAIN.name, used(5, eighths), |_| {})), None);
    let near = treated(remote::REUSED_ACROSS_NODES.name, used(5, eighths), |_| {});
    assert_eq!(policy(&near), Some((&ObjectPolicy::Near, PageSize::AsItIs)));
    let contended = |sharing, identity: CuredIdentity| {
        treated(remote::CONTENDED_LINES.name, used(5, eighths), |object| {
            object.facts.sharing = Some(sharing);
            object.facts.cure.as_mut().unwrap().identities = Ok(vec![identity]);
        })
    };
    let padded = contended(Sharing::False, blocks(100, 48));
    assert_eq!(policy(&padded), Some((&ObjectPolicy::Padded, PageSize::AsItIs)));
    let array = contended(Sharing::False, blocks(1, 1 << 20));
    assert!(why(&array).contains("neighbours in one array"), "{}", why(&array));
    assert!(why(&contended(Sharing::Lock, blocks(100, 48))).contains("the same data"));
}

#[test]
fn runtimes_and_allocators_have_switches() {
    let java = |rule| {
        treated(rule, used(5, eighths), |object| {
            object.object.kind = ObjectKind::Mapping;
            object.facts.runtime = ProgramRuntime::Java;
        })
    };
    let cured = java(remote::FIRST_TOUCH.name);
    let set = &cured.environment[0];
    assert_eq!((set.name.as_str(), set.value.as_str()), ("JDK_JAVA_OPTIONS", "-XX:+UseNUMA"));
    assert_eq!(why(&cured), "a switch of its runtime does it: JDK_JAVA_OPTIONS=-XX:+UseNUMA");
    let pages = java(layout::RANDOM_ON_SMALL_PAGES.name);
    assert_eq!(pages.environment[0].value, "-XX:+UseTransparentHugePages");
    let small = treated(layout::RANDOM_ON_SMALL_PAGES.name, used(5, eighths), |object| {
        object.object.blocks.are_small = true;
        object.facts.malloc = Some(MallocLibrary::C);
    });
    assert_eq!(small.environment[0].name, "GLIBC_TUNABLES");
}

#[test]
fn what_cannot_be_found_or_has_a_better_tool_is_left_and_named() {
    let unknown = |why| {
        let unidentified = |object: &mut ExplainedObject| {
            object.facts.cure.as_mut().unwrap().identities = Err(why);
        };
        treated(remote::FIRST_TOUCH.name, used(5, eighths), unidentified)
    };
    assert!(why(&unknown(Unidentified::NoBuildId)).contains("--build-id"));
    assert!(why(&unknown(Unidentified::Unnamed)).contains("'numa explain' starts"));
    let of_kind = |rule, kind| treated(rule, used(5, eighths), |object| object.object.kind = kind);
    assert!(why(&of_kind(remote::PAGE_CACHE.name, ObjectKind::File)).contains("numa file spread"));
    assert!(why(&of_kind(remote::THREAD_LOCAL.name, ObjectKind::Stack)).contains("'numa run' places"));
    let left = treated(layout::PART_OF_EACH_LINE.name, used(5, eighths), |_| {});
    assert_eq!(
        (why(&left), left.left[0].name.as_str()),
        ("only a change in the source helps", "part-of-each-line")
    );
}

#[test]
fn the_command_that_cures_takes_the_place_of_one_that_does_less() {
    let mut objects = [
        judged(remote::FIRST_TOUCH.name, facts(used(5, eighths))),
        judged(remote::SHARED_BY_ALL.name, facts(used(5, |_| vec![0, 1, 2]))),
        judged(layout::RANDOM_ON_SMALL_PAGES.name, facts(used(5, eighths))),
        judged(layout::RANDOM.name, facts(used(5, eighths))),
    ];
    let cured = cure(&objects);
    advise(&mut objects, &cured, "numa run --apply last ./app");
    let told: Vec<(&str, &str)> = objects
        .iter()
        .filter_map(|judged| judged.finding.as_ref())
        .map(|finding| (finding.remedy.commands[0].as_str(), finding.remedy.expect.as_deref().unwrap_or("")))
        .collect();
    let apply = "numa run --apply last ./app";
    assert_eq!((told[0].0, told[1].0), (apply, apply));
    assert!(told[0].1.starts_with("puts its parts on the nodes") && told[0].1.ends_with("2 other objects"));
    assert_eq!(
        (told[2].0, told[3].0),
        ("numa run --memory interleave ./app", "numa run --memory interleave ./app")
    );
}

#[test]
fn a_cure_is_bounded_and_has_what_waits_longest() {
    let mut objects: Vec<JudgedObject> =
        (0..MAX_OBJECTS + 10).map(|_| judged(remote::FIRST_TOUCH.name, facts(used(5, eighths)))).collect();
    for (number, judged) in objects.iter_mut().enumerate() {
        judged.object.object.name = format!("table {number}");
        judged.object.time_share = number as f64 / 1000.0;
    }
    let cured = cure(&objects);
    assert_eq!((cured.objects.len(), cured.left.len()), (MAX_OBJECTS, 10));
    assert_eq!(cured.objects[0].name, format!("table {}", MAX_OBJECTS + 9));
    assert!(why(&cured).contains("at most 256 objects"), "{}", why(&cured));
}

#[test]
fn a_cure_is_read_back_as_it_was() {
    let cured = treated(remote::FIRST_TOUCH.name, used(5, eighths), |_| {});
    let text = serde_json::to_string(&cured).unwrap();
    assert!(
        text.contains(
            "\"variable\":{\"module\":{\"file\":\"app\",\"build_id\":\"ab\"},\"address\":\"0x4040\""
        )
    );
    assert_eq!(serde_json::from_str::<Cure>(&text).unwrap(), cured);
}

/// An object without a finding, which threads of other nodes use in these fractions.
fn small(name: &str, fractions: &[u32], remote: f64) -> JudgedObject {
    let each = used(1, |at| if fractions.contains(&at) { eighths(at) } else { Vec::new() });
    let mut small = judged(remote::FIRST_TOUCH.name, facts(each));
    small.finding = None;
    small.object.object.name = name.to_owned();
    small.object.remote = Some(ShareEstimate { share: remote, low: remote, high: remote });
    small
}

#[test]
fn what_is_too_small_for_a_finding_is_cured_beside_others() {
    let large = || judged(remote::FIRST_TOUCH.name, facts(used(5, eighths)));
    let nine = [0, 9, 18, 27, 36, 45, 54, 63, 5];
    let both = cure(&[large(), small("q", &nine, 0.7)]);
    assert_eq!(both.objects.len(), 2);
    assert_eq!((both.objects[1].verdict.as_str(), both.objects[1].name.as_str()), ("-", "q"));
    let ObjectPolicy::Parts { parts, .. } = &both.objects[1].policy else { panic!("{both:?}") };
    assert_eq!((parts.len(), parts[0].samples, parts[0].sure), (8, 2, 1.0));
    let alone = |object: JudgedObject| cure(&[large(), object]).objects.len() == 1;
    assert!(alone(small("q", &nine[..7], 0.7)), "seven samples may agree by chance");
    assert!(alone(small("q", &nine, 0.1)), "most of it is local");
    let mut cached = small("q", &nine, 0.7);
    cached.object.facts.used.cached_remote = cached.object.remote.take();
    assert!(!alone(cached), "what stays in caches is fetched again when others have written to it");
    assert_eq!(cure(&[small("q", &nine, 0.7)]).objects.len(), 0, "there is nothing beside it");
    let all: Vec<u32> = (0..FRACTIONS).collect();
    assert_eq!(cure(&[small("q", &all, 0.7)]).objects.len(), 1, "its own samples tell its parts");
    let mut mixed = small("q", &nine, 0.7);
    mixed.object.facts.cure = Some(facts(used(1, |_| vec![0, 1, 2, 3])));
    assert!(alone(mixed));
}

#[test]
fn what_few_samples_would_spread_gets_the_parts_of_others() {
    let mut few = small("q", &[0, 9, 18, 27, 36, 45, 54, 63], 0.7);
    few.finding = judged(remote::SHARED_BY_ALL.name, facts(PartUse::default())).finding;
    assert_eq!(
        policy(&cure(&[judged(remote::SHARED_BY_ALL.name, facts(PartUse::default()))])).unwrap().0,
        &ObjectPolicy::Interleave
    );
    let both = cure(&[judged(remote::FIRST_TOUCH.name, facts(used(5, eighths))), few]);
    assert_eq!(both.objects.len(), 2);
    assert!(both.objects.iter().all(|cured| matches!(cured.policy, ObjectPolicy::Parts { .. })), "{both:?}");
}

#[test]
fn equal_parts_close_the_holes_between_few_samples() {
    // Half of the fractions were seen, and the last two threads too rarely to be distinguished.
    let sparse = |at: u32| if at.is_multiple_of(2) || at > 52 { Vec::new() } else { eighths(at) };
    let each = PartUse(
        (0..FRACTIONS).map(|at| sparse(at).into_iter().map(|thread| (thread, 4)).collect()).collect(),
    );
    let file = ProgramFile { file: "app".to_owned(), build_id: "ab".to_owned() };
    let threads = CuredThreads { working: (0..8).collect(), count: 8, cpus: 8, open_mp: true };
    let program = CureProgram { file, threads };
    let cured = of(&[judged(remote::FIRST_TOUCH.name, facts(each))], program.clone(), "./app", None);
    let ObjectPolicy::Parts { parts, .. } = &cured.objects[0].policy else { panic!("{cured:?}") };
    let ranges: Vec<(u32, u32, u32)> = parts.iter().map(|part| (part.from, part.to, part.thread)).collect();
    assert_eq!(ranges, (0..8).map(|thread| (thread * 8, thread * 8 + 8, thread)).collect::<Vec<_>>());
    // What is divided otherwise stays as it was seen.
    let other = used(5, |at| vec![if at < 4 { 0 } else { 1 + (at - 4) / 10 }]);
    let cured = of(&[judged(remote::FIRST_TOUCH.name, facts(other))], program, "./app", None);
    let ObjectPolicy::Parts { parts, .. } = &cured.objects[0].policy else { panic!("{cured:?}") };
    assert_eq!((parts[0].to, parts[1].thread), (4, 1));
}

#[test]
fn threads_that_share_a_node_have_parts_together() {
    let file = ProgramFile { file: "app".to_owned(), build_id: "ab".to_owned() };
    let threads = CuredThreads { working: (0..4).collect(), count: 4, cpus: 4, open_mp: false };
    let program = CureProgram { file, threads };
    // Two threads use each half in turn.
    let each = used(5, |at| vec![at / 32, at / 32 + 2]);
    let pairs = [[0, 2], [1, 3]].map(|threads| SharingThreads { threads, share: 0.25 });
    let sharing = ThreadSharing {
        threads: (0..4).collect(),
        node_threads: 2,
        pairs: pairs.to_vec(),
        ..ThreadSharing::default()
    };
    let objects = [judged(remote::FIRST_TOUCH.name, facts(each))];
    let alone = of(&objects, program.clone(), "./app", None);
    assert_eq!((&alone.objects[0].policy, alone.sharing.len()), (&ObjectPolicy::Interleave, 0));
    let together = of(&objects, program, "./app", Some(&sharing));
    let ObjectPolicy::Parts { parts, .. } = &together.objects[0].policy else { panic!("{together:?}") };
    let ranges: Vec<(u32, u32, u32)> = parts.iter().map(|part| (part.from, part.to, part.thread)).collect();
    assert_eq!((ranges, together.sharing), (vec![(0, 32, 0), (32, 64, 1)], pairs.to_vec()));
}

#[test]
fn what_runs_is_moved_and_not_started_again() {
    let mut objects = [
        judged(remote::FIRST_TOUCH.name, facts(used(5, eighths))),
        judged(remote::SHARED_BY_ALL.name, facts(used(5, eighths))),
    ];
    advise_moving(&mut objects, "--pid 7");
    let command = |judged: &JudgedObject| judged.finding.as_ref().unwrap().remedy.commands.clone();
    assert_eq!(command(&objects[0]), ["numa move --pid 7"]);
    assert_eq!(command(&objects[1]), ["numa run --memory interleave ./app"]);
}
