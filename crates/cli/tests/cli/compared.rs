//! `numa show A B` of recordings of real programs: the same one twice, and two that differ.

use crate::explain::compiled;
use crate::runner::{Done, Folder};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// Records a mode of the loads.
fn record(folder: &Folder, name: &str, mode: &str, program: &Path) {
    let script = format!(
        "exec {} record --force -o {name}.arrows -- {} {mode} 5",
        env!("CARGO_BIN_EXE_numa"),
        program.display()
    );
    let recorded = Done::of(folder.isolate(Command::new("sh").args(["-c", &script])).output().unwrap());
    assert!(folder.path(&format!("{name}.arrows")).exists(), "{mode}: {}", recorded.err);
}

fn compared(folder: &Folder, files: &str) -> Value {
    let done = folder.run(&format!("show --json {files}"));
    serde_json::from_str(&done.out).unwrap_or_else(|error| panic!("{error}: {} {}", done.out, done.err))
}

fn names(differences: &Value) -> Vec<String> {
    let of = |difference: &Value| difference["name"].as_str().unwrap().to_owned();
    differences.as_array().unwrap().iter().map(of).collect()
}

#[test]
fn measuring_the_same_program_twice_is_equal_and_another_one_differs() {
    let folder = Folder::new("compared");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/findings/loads.c");
    let Some(program) = compiled(&folder, "cc", &source) else { return };
    record(&folder, "maps", "map-and-unmap", &program);
    record(&folder, "again", "map-and-unmap", &program);
    let same = compared(&folder, "maps.arrows again.arrows");
    assert_eq!(same["outcome"], "equal", "{:?}", same["program"]);
    assert!(names(&same["program"]).is_empty(), "{:?}", same["program"]);
    assert!(same["compared"].as_u64().unwrap() > 50, "{}", same["compared"]);

    record(&folder, "reuses", "reuse", &program);
    let better = compared(&folder, "maps.arrows reuses.arrows");
    let differs = names(&better["program"]);
    assert!(differs.iter().any(|name| name == "fault_share"), "{differs:?}");
    let share = better["program"].as_array().unwrap().iter().find(|d| d["name"] == "fault_share").unwrap();
    assert_eq!(share["is_better"], true);
    assert!(share["change_percent"].as_f64().unwrap() < -20.0 && share["noise"].as_f64().unwrap() > 0.0);
    let gone: Vec<&str> =
        better["gone"].as_array().unwrap().iter().map(|finding| finding["rule"].as_str().unwrap()).collect();
    assert!(gone.contains(&"page-faults"), "{gone:?}");
    let own = |name: &String| name.starts_with("self.") || name.starts_with("task.walk");
    assert!(!names(&better["machine"]).iter().any(own) && !differs.iter().any(own));

    let page = folder.run("show maps.arrows reuses.arrows").out;
    assert!(page.starts_with("Verdict    B is better: "), "{page}");
    assert!(page.contains("\nFindings of A that are gone in B\n"), "{page}");
    let back = folder.run("show reuses.arrows maps.arrows").out;
    assert!(back.starts_with("Verdict    B is worse: ") && back.contains("\nDo         keep A"), "{back}");
}

#[test]
fn recordings_that_are_too_short_are_not_compared() {
    let folder = Folder::new("compared-short");
    folder.run("record -o a.arrows -e vmstat.pgfault -- sleep 0.2");
    let page = folder.run("show a.arrows a.arrows");
    assert_eq!(page.code, 0, "{}", page.err);
    let lines = "Verdict    B took as long as A within noise; whether it is better otherwise cannot be told\nChange     run time 0 % ";
    assert!(page.out.starts_with(lines), "{}", page.out);
    assert!(page.out.contains("\nCompared   no value; 1 is in one only, or has "), "{}", page.out);
    let missing = folder.run("show a.arrows b.arrows");
    assert_eq!(missing.code, 2);
    assert!(missing.err.contains("b.arrows"), "{}", missing.err);
}
