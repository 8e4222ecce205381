//! The users of a falsely shared line have the names of the fields that they use.

use crate::explain::{cpus, explained_with, program};
use crate::runner::Folder;

#[test]
fn measuring_users_of_a_line_have_fields_and_blocks_have_offsets() {
    users_of_a_line_have_fields("cc");
}

#[test]
#[ignore = "thorough: the same of another language, 7 seconds"]
fn measuring_users_of_a_line_have_fields_in_cxx() {
    users_of_a_line_have_fields("c++");
}

fn users_of_a_line_have_fields(compiler: &str) {
    if cpus() < 2 {
        return numakit_skips::MACHINE.skip("two CPUs are needed for contention");
    }
    let folder = Folder::new(&format!("fields-{compiler}"));
    let Some(program) = program(&folder, compiler, "fields.c") else { return };
    for (kind, expected) in [
        ("variable", ["stats.counters[0].hits", "stats.counters[1].misses"]),
        ("block", ["bytes 4096-4103 of the block of ", "bytes 4120-4127 of the block of "]),
    ] {
        let command = format!("{} {kind}", program.display());
        let Some(result) = explained_with(&folder, "", &command) else { return };
        let line = &result["lines"][0];
        let users = line["users"].as_array().unwrap_or_else(|| panic!("{kind}: no contended line"));
        let mut names: Vec<&str> =
            users.iter().map(|user| user["fields"][0]["name"].as_str().unwrap()).collect();
        names.sort_unstable();
        assert_eq!(names.len(), 2, "{compiler} {kind}: {line}");
        assert!(names[0].starts_with(expected[0]) && names[1].starts_with(expected[1]), "{names:?}");
        assert!(kind == "variable" || names[0].contains("fields.c:"), "{names:?}");
    }
}

#[test]
fn measuring_objects_have_the_members_that_samples_accessed() {
    let folder = Folder::new("members");
    let Some(program) = program(&folder, "cc", "members.c") else { return };
    let Some(result) = explained_with(&folder, "", &program.display().to_string()) else { return };
    let objects = result["objects"].as_array().unwrap();
    for (start, of_type, member, offset) in
        [("points", "struct point[3000000]", ".y", 8), ("malloc in main", "struct cell[]", ".id", 16)]
    {
        let is_it =
            |object: &&serde_json::Value| object["name"].as_str().is_some_and(|name| name.starts_with(start));
        let object = objects.iter().find(is_it).unwrap_or_else(|| panic!("{start}: {objects:?}"));
        let members = &object["members"];
        let most = &members["used"][0];
        assert_eq!((&members["type"], &most["name"]), (&of_type.into(), &member.into()), "{object}");
        assert_eq!((&most["offset"], &most["size"]), (&offset.into(), &8.into()), "{object}");
        assert!(most["share"].as_f64().unwrap() > 0.8, "{members}");
    }
    // Its source is there, as it was compiled.
    let sources = result["sources"].as_array().unwrap();
    let source = sources.iter().find(|source| source["function"] == "sum_points").unwrap();
    let lines = source["lines"].as_array().unwrap();
    let is_loop =
        |line: &serde_json::Value| line["text"].as_str().unwrap().contains("points[i * STEP % COUNT].y");
    assert!(lines.iter().any(|line| is_loop(line) && line["time"].as_u64().unwrap() > 0), "{source}");
}
