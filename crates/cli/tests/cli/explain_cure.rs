//! What `numa explain` knows of objects and threads for a cure, of programs that are known.

use crate::explain::program;
use crate::explain_truth::huge_pages;
use crate::runner::Folder;
use numakit_cure::{Cure, CuredIdentity, FRACTIONS, ObjectPolicy, PageSize, ReturnAddress};
use numakit_explain::explainer::{Explainer, Observed};
use numakit_explain::part_use::PartUse;
use numakit_explain::thread_order::ThreadOrder;
use numakit_explain::{CureFacts, Explained};
use numakit_launch::preload::Library;
use numakit_model::Topology;
use numakit_sampling::choice::{self, SampledProgram};
use numakit_sampling::{MethodKind, SampleSettings, in_process, open};
use numakit_sys::allocation_log::{AllocationLog, LogThreshold};
use numakit_sys::command::Running;
use numakit_sys::permissions::Permissions;
use numakit_testing::until;
use std::ffi::OsString;
use std::ops::Range;
use std::path::Path;
use std::process::Command;

const LOG_RECORDS: usize = 1 << 12;
/// The threads of `divided.c`.
const THREADS: u32 = 4;

fn log() -> AllocationLog {
    AllocationLog::create(LOG_RECORDS, LogThreshold::default()).unwrap()
}

fn variables(log: &AllocationLog) -> Vec<(OsString, OsString)> {
    log.environment().map(|(name, value)| (name.into(), value.into())).to_vec()
}

/// What an observation of a program finds.
fn explained(program: &Path, arguments: &[&str]) -> Option<Explained> {
    let library = Library::Explain.extract().unwrap();
    let permissions = Permissions::own_of(&choice::PERMISSIONS);
    let choice =
        choice::choose(&permissions, SampledProgram::Command(None), Some(MethodKind::InProcess)).ok();
    let Some(choice) = choice else {
        numakit_skips::SAMPLES.skip("no samples can be taken in the program");
        return None;
    };
    let (log, settings) = (log(), SampleSettings { frequency: 997, ..SampleSettings::default() });
    let own = variables(&log);
    let words: Vec<OsString> =
        std::iter::once(program.into()).chain(arguments.iter().map(OsString::from)).collect();
    let (method, mut running) = open::command(&choice, &settings, Some(&library), move |of_method| {
        Running::start_with(&words, &[of_method, &own].concat())
    })
    .unwrap();
    let observed = Observed { program: program.display().to_string(), ..Observed::default() };
    let mut explainer =
        Explainer::new(method, observed, &[running.id()], Topology::default()).with_log(Some(log));
    until!({
        explainer.drain().unwrap();
        running.ended().unwrap().is_some()
    });
    explainer.drain().unwrap();
    Some(explainer.explained(true, Some(0)))
}

/// The object whose name contains a text.
fn facts<'a>(explained: &'a Explained, name: &str) -> &'a CureFacts {
    let found = explained.objects.iter().find(|object| object.object.name.contains(name));
    let names: Vec<&str> = explained.objects.iter().map(|object| object.object.name.as_str()).collect();
    found.and_then(|object| object.facts.cure.as_ref()).unwrap_or_else(|| panic!("{name}: {names:?}"))
}

/// The part of samples that are of the threads which have these fractions.
fn of_threads(used: &PartUse, count: u32) -> f64 {
    let own = |(at, seen): (u32, &std::collections::BTreeMap<u32, u64>)| {
        seen.get(&(at * count / FRACTIONS)).copied().unwrap_or(0)
    };
    let own: u64 = (0..).zip(&used.0).map(own).sum();
    own as f64 / used.samples().max(1) as f64
}

#[test]
fn measuring_parts_of_arrays_belong_to_the_threads_that_use_them() {
    let folder = Folder::new("parts");
    let Some(program) = program(&folder, "cc", "divided.c") else { return };
    let Some(explained) = explained(&program, &["3"]) else { return };
    for name in ["table", "malloc in make_first", "malloc in make_second"] {
        let facts = facts(&explained, name);
        let share = of_threads(&facts.each, THREADS);
        println!("{name}: {share:.3} of {} samples", facts.each.samples());
        assert!(facts.each.samples() > 60 && share > 0.9, "{name}: {facts:?}");
    }
    let is_own = |facts: &&CureFacts| facts.count == u64::from(THREADS);
    let mut all = explained.objects.iter().filter_map(|object| object.facts.cure.as_ref());
    let own = all.find(is_own).unwrap();
    assert!(own.blocks.samples() > 10 && of_threads(&own.blocks, THREADS) > 0.9, "{own:?}");
    let cured = explained.cured.as_ref().unwrap();
    assert_eq!(cured.threads.working, (0..THREADS).collect::<Vec<_>>());
    assert_eq!(cured.file.file, "divided");
}

/// The addresses of the functions and variables of a program.
fn symbols(program: &Path) -> impl Fn(&str) -> Range<u64> {
    let listed = Command::new("nm").arg("-S").arg(program).output().unwrap();
    let text = String::from_utf8(listed.stdout).unwrap();
    move |name: &str| {
        let line = text.lines().find(|line| {
            let symbol = line.rsplit(' ').next().unwrap_or_default();
            symbol == name || symbol.starts_with(&format!("{name}.constprop")) && !symbol.ends_with(".cold")
        });
        let words: Vec<&str> = line.unwrap_or_else(|| panic!("{name}")).split(' ').collect();
        let [start, size] = [0, 1].map(|at| u64::from_str_radix(words[at], 16).unwrap());
        start..start + size
    }
}

#[test]
fn measuring_a_cure_names_variables_and_the_calls_of_blocks_in_the_terms_of_the_file() {
    let folder = Folder::new("cure");
    if huge_pages().is_some_and(|setting| setting == "always") {
        return numakit_skips::MACHINE.skip("the program has huge pages without a cure");
    }
    let Some(program) = program(&folder, "cc", "random.c") else { return };
    let done =
        folder.run(&format!("explain -F 997 --cure cure.json --json result.json -- {}", program.display()));
    if done.code == 2 && done.err.contains("no samples can be taken") {
        return numakit_skips::SAMPLES.skip(done.err);
    }
    assert_eq!(done.code, 0, "{} {}", done.out, done.err);
    let read = |file: &str| std::fs::read(folder.path(file)).unwrap();
    let cure: Cure = serde_json::from_slice(&read("cure.json")).unwrap();
    let result: serde_json::Value = serde_json::from_slice(&read("result.json")).unwrap();
    if result["regime"] != "precise" {
        return numakit_skips::MACHINE
            .skip("samples of this machine do not name the instruction that waited");
    }
    assert_eq!(serde_json::from_value::<Cure>(result["cure"].clone()).unwrap(), cure);
    assert_eq!((cure.program.file.as_str(), cure.threads.working.as_slice()), ("random", &[0][..]));
    let symbol = symbols(&program);
    let mut found = Vec::new();
    for object in &cure.objects {
        assert_eq!((&object.policy, object.pages), (&ObjectPolicy::Unchanged, PageSize::Huge), "{object:?}");
        match &object.identity {
            CuredIdentity::Variable { module, address, bytes } => {
                assert_eq!((module, symbol("table")), (&cure.program, *address..address + bytes));
            }
            CuredIdentity::Blocks { by, chain, count, smallest, largest } => {
                assert_eq!((by.as_str(), *count, *smallest, *largest), ("malloc", 1, 64 << 20, 64 << 20));
                let is_in = |at: &ReturnAddress| {
                    assert_eq!(at.module, cure.program);
                    let functions = ["main", "checked_malloc", "make_first", "make_second"];
                    functions.into_iter().find(|name| symbol(name).contains(&(at.address - 1)))
                };
                let functions: Vec<&str> = chain.iter().map(|at| is_in(at).unwrap()).collect();
                found.push(functions.join(" < "));
            }
        }
    }
    found.sort();
    println!("{found:?}");
    assert_eq!(cure.objects.len(), found.len() + 1, "{:?}", cure.left);
    let expected = ["checked_malloc < make_first", "checked_malloc < make_second", "main"];
    assert_eq!(found, expected, "{:?}", cure.left);
}

#[test]
fn threads_have_their_order_of_creation_as_numbers() {
    let folder = Folder::new("many-threads");
    let Some(program) = program(&folder, "cc", "many_threads.c") else { return };
    let library = Library::Explain.extract().unwrap();
    for _ in 0..5 {
        let (mut log, output) = (log(), std::fs::File::create(folder.path("threads")).unwrap());
        let variables = [variables(&log), vec![in_process::preloaded(&library)]].concat();
        let mut running = Running::start_to(&[program.clone().into()], &variables, Some(&output)).unwrap();
        let mut order = ThreadOrder::default();
        until!({
            log.drain(&mut |record| order.note(record));
            running.ended().unwrap().is_some()
        });
        log.drain(&mut |record| order.note(record));
        let printed = std::fs::read_to_string(folder.path("threads")).unwrap();
        let threads: Vec<u32> = printed.lines().map(|line| line.parse().unwrap()).collect();
        let numbers = order.numbers(threads[0]);
        let found: Vec<Option<u32>> = threads.iter().map(|thread| numbers.get(thread).copied()).collect();
        assert_eq!(found, (0..64).map(Some).collect::<Vec<_>>());
    }
}

#[test]
fn a_cure_that_cannot_be_written_is_refused_before_the_program_runs() {
    let folder = Folder::new("cure-refused");
    let done = folder.run("explain --cure - --json - -- true");
    assert_eq!(done.code, 2, "{}", done.err);
    assert!(done.err.contains("two results cannot go to standard output"), "{}", done.err);
    let done = folder.run("explain --cure /no/such/folder/cure -- true");
    assert_eq!(done.code, 2, "{}", done.err);
    assert!(done.err.contains("cannot write /no/such/folder/cure"), "{}", done.err);
    let done = folder.run("explain --cure /bin/true");
    assert!(done.code == 2 && done.err.contains("is a program"), "{} {}", done.code, done.err);
}
