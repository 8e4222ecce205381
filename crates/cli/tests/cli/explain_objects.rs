//! Objects are named by what they are, and have the verdict of how they are used.

use crate::explain::{explained_with, program};
use crate::runner::Folder;
use serde_json::Value;

/// The object that most of the time at memory belongs to.
pub fn first(result: &Value) -> &Value {
    let objects = result["objects"].as_array().unwrap();
    objects
        .iter()
        .max_by(|a, b| a["time_share"].as_f64().unwrap().total_cmp(&b["time_share"].as_f64().unwrap()))
        .unwrap()
}

#[test]
fn measuring_objects_have_names_and_verdicts() {
    let folder = Folder::new("objects");
    let Some(program) = program(&folder, "cc", "objects.c") else { return };
    let program = program.display();
    for (mode, kind, name, verdict) in [
        ("list", "allocated", "malloc in ", Some("chain")),
        ("field", "allocated", "malloc in ", Some("part-of-each-line")),
        ("variable", "variable", "table", None),
        ("thread-local", "thread-local", "own (thread-local)", None),
    ] {
        let Some(result) = explained_with(&folder, "", &format!("{program} {mode}")) else { return };
        let object = first(&result);
        assert!(object["time_share"].as_f64().unwrap() > 0.8, "{mode}: {object}");
        assert_eq!(object["kind"], kind, "{mode}: {object}");
        assert!(object["name"].as_str().unwrap().starts_with(name), "{mode}: {object}");
        assert_eq!(object["verdict"]["rule"].as_str(), verdict, "{mode}: {object}");
        if kind == "allocated" {
            let name = object["name"].as_str().unwrap();
            assert!(name.contains("objects.c:"), "{name}");
            let touch = object["first_touch"].get(0);
            assert!(touch.is_some() || result["road"] != "by performance events", "{object}");
            // Other methods may have too few samples to see it.
            let Some(touch) = touch else { continue };
            let chain = touch["chain"].as_array().unwrap();
            assert!(touch["share"].as_f64().unwrap() > 0.9, "{touch}");
            assert!(chain.iter().any(|frame| frame.as_str().unwrap().contains("objects.c:")), "{touch}");
        }
    }
}

#[test]
fn without_a_log_blocks_are_named_by_their_mapping() {
    let folder = Folder::new("objects-unnamed");
    let Some(program) = program(&folder, "cc", "objects.c") else { return };
    let command = format!("{} field", program.display());
    let Some(result) = explained_with(&folder, "--no-allocations", &command) else { return };
    let object = first(&result);
    assert!(object["name"].as_str().unwrap().starts_with("anonymous memory"), "{object}");
    let above = explained_with(&folder, "--min-size 1G", &command).unwrap();
    // Of blocks below the least size the log has a sample: larger ones are always in it.
    let name = first(&above)["name"].as_str().unwrap();
    assert!(name.starts_with("blocks of 201326592 bytes, malloc in "), "{name}");
}

#[test]
fn measuring_it_is_said_first_that_nothing_is_wrong() {
    let folder = Folder::new("objects-nothing");
    let Some(program) = program(&folder, "cc", "objects.c") else { return };
    let done = folder.run(&format!("explain --all -- {} compute", program.display()));
    if done.code == 2 && done.err.contains("no samples can be taken") {
        return numakit_skips::SAMPLES.skip(&done.err);
    }
    let first = done.out.lines().next().unwrap();
    // On a busy machine the program mostly waits for a CPU.
    assert!(first.contains("no memory is remote") || first.starts_with("Nothing is remote"), "{first}");
}

#[test]
fn a_least_size_is_a_size() {
    let folder = Folder::new("objects-size");
    for (size, error) in [("64Q", "is not a size"), ("100", "less than 256 bytes")] {
        let done = folder.run(&format!("explain --min-size {size} -- true"));
        assert!(done.code == 2 && done.err.contains(error), "{}", done.err);
    }
}

#[test]
fn measuring_two_results_are_compared() {
    let folder = Folder::new("objects-compared");
    let Some(program) = program(&folder, "cc", "objects.c") else { return };
    for (mode, file) in [("list", "list.json"), ("field", "field.json")] {
        if explained_with(&folder, "", &format!("{} {mode}", program.display())).is_none() {
            return;
        }
        std::fs::rename(folder.path("result.json"), folder.path(file)).unwrap();
    }
    let same = folder.run("explain list.json list.json");
    assert!(
        same.code == 0 && same.out.contains("no share changed beyond noise"),
        "{} {}",
        same.out,
        same.err
    );
    let other = folder.run("explain list.json field.json");
    assert!(other.code == 0 && other.out.contains("follow_a_list"), "{} {}", other.out, other.err);
    std::fs::write(folder.path("damaged.json"), "{").unwrap();
    for (command, error) in [
        ("explain list.json damaged.json", "is not a result"),
        ("explain list.json", "AFTER"),
        ("explain list.json none.json", "none.json"),
    ] {
        let done = folder.run(command);
        assert!(done.code == 2 && done.err.contains(error), "{command}: {} {}", done.code, done.err);
    }
}
