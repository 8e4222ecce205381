//! Verdicts on programs of known behaviour and silence on their controls, and objects whose users are known.

use crate::explain::{explained_with, program};
use crate::runner::Folder;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// What is done, how often, and the verdict on the object that most of the time is at; controls have none.
type Layout = (&'static str, Option<&'static str>);
const LAYOUTS: [Layout; 4] = [
    ("random small 60", Some("random-on-small-pages")),
    ("random huge 80", Some("random")),
    ("list linked 6", Some("chain")),
    ("list array 1200", None),
];
const MORE_LAYOUTS: [Layout; 7] = [
    ("random stream 20", None),
    ("tree linked 25", Some("chain")),
    ("tree cached 500", None),
    ("field records 100", Some("part-of-each-line")),
    ("field fields 1200", None),
    ("matrix columns 8", Some("large-steps")),
    ("matrix rows 60", None),
];
/// Objects with a smaller part of the time at memory are left out.
const MIN_SHARE: f64 = 0.05;

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

/// The setting of transparent huge pages: `always`, `madvise` or `never`.
pub fn huge_pages() -> Option<String> {
    numakit_sys::guard::value(Path::new("/sys/kernel/mm/transparent_hugepage/enabled")).ok()
}

/// Whether a program can have huge pages where it asks for them.
pub fn has_huge_pages() -> bool {
    huge_pages().is_some_and(|setting| setting != "never")
}

#[test]
fn measuring_layouts_have_their_verdicts_and_controls_have_none() {
    layouts_have_their_verdicts("layouts", &LAYOUTS);
}

#[test]
#[ignore = "thorough: seven more layouts, 30 seconds"]
fn measuring_more_layouts_have_their_verdicts_and_controls_have_none() {
    layouts_have_their_verdicts("layouts-more", &MORE_LAYOUTS);
}

fn layouts_have_their_verdicts(folder: &str, layouts: &[Layout]) {
    let folder = Folder::new(folder);
    let Some(program) = program(&folder, "cc", "layouts.c") else { return };
    println!("{:<18} {:<24} {:<24} {:>6} {:>6}", "PROGRAM", "EXPECTED", "FOUND", "TIME%", "WORTH%");
    for &(words, expected) in layouts {
        if words.contains("huge") && !has_huge_pages() {
            numakit_skips::MACHINE.skip_part("there are no huge pages");
            continue;
        }
        let command = format!("{} {words}", program.display());
        let Some(result) = explained_with(&folder, "", &command) else { return };
        let objects = result["objects"].as_array().unwrap();
        let large = || objects.iter().filter(|object| number(&object["time_share"]) > MIN_SHARE);
        let first = large().max_by(|a, b| number(&a["time_share"]).total_cmp(&number(&b["time_share"])));
        let found = first.and_then(|object| object["verdict"]["rule"].as_str());
        let (share, worth) = first
            .map_or((&Value::Null, &Value::Null), |first| (&first["time_share"], &first["worth"]["at_most"]));
        let percent = |value: &Value| value.as_f64().map_or("-".to_owned(), |v| format!("{:.1}", v * 100.0));
        println!(
            "{words:<18} {:<24} {:<24} {:>6} {:>6}",
            expected.unwrap_or("-"),
            found.unwrap_or("-"),
            percent(share),
            percent(worth)
        );
        assert_eq!(found, expected, "{words}: {objects:?}");
        match expected {
            Some(_) => assert!((0.0..=1.0).contains(&number(worth)), "{words}: {worth}"),
            None => assert!(large().all(|object| object["verdict"].is_null()), "{words}: {objects:?}"),
        }
    }
}

/// How the name of an object begins, and the function that alone reads it; a file has its path.
const OWNERS: [(&str, &str); 7] = [
    ("malloc in block", "read_block"),
    ("malloc in reused", "read_reused"),
    ("mmap in of_thread", "read_mapping"),
    ("/", "read_file"),
    ("variable", "read_variable"),
    ("local (thread-local)", "read_local"),
    ("stacks of the other threads", "read_stack"),
];

#[test]
fn measuring_objects_have_the_samples_of_the_functions_that_read_them() {
    let folder = Folder::new("owners");
    let Some(program) = program(&folder, "cc", "owners.c") else { return };
    let command = format!("{} {}", program.display(), folder.path("file").display());
    let Some(result) = explained_with(&folder, "", &command) else { return };
    let mut readers: BTreeMap<&str, f64> = BTreeMap::new();
    let of_reader = |code: &&Value| code["function"].as_str().is_some_and(|name| name.starts_with("read_"));
    let functions = result["functions"].as_array().unwrap();
    for code in functions.iter().filter(of_reader) {
        let at_memory = |place: &str| code["time"][place].as_f64().unwrap_or(0.0);
        readers.insert(code["function"].as_str().unwrap(), at_memory("local") + at_memory("remote"));
    }
    let all: f64 = readers.values().sum();
    let (mut right, mut wrong) = (0.0, 0.0);
    println!("{:<32} {:<16} {:>8} {:>8}", "OBJECT", "FUNCTION", "FOUND%", "TRUE%");
    for object in result["objects"].as_array().unwrap() {
        let (name, share) = (object["name"].as_str().unwrap(), number(&object["time_share"]) * 100.0);
        let reader = OWNERS.iter().find(|(start, _)| name.starts_with(start)).map(|(_, reader)| *reader);
        for code in object["used_by"].as_array().unwrap().iter().filter(of_reader) {
            let is_right = code["function"].as_str() == reader;
            *(if is_right { &mut right } else { &mut wrong }) += share * number(&code["share"]);
        }
        if let Some(reader) = reader {
            let short: String = name.chars().take(32).collect();
            let truth = readers.get(reader).map_or(0.0, |time| 100.0 * time / all);
            println!("{short:<32} {reader:<16} {share:8.1} {truth:8.1}");
            assert!((share - truth).abs() < 5.0, "{name}: {share:.1} % and {truth:.1} % of {reader}");
        }
    }
    println!("right {right:.1} %, wrong {wrong:.1} % of the time at memory");
    assert_eq!(readers.len(), OWNERS.len(), "{readers:?}");
    assert!(right >= 95.0 * (right + wrong) / 100.0 && right > 80.0, "{right} {wrong}");
}
