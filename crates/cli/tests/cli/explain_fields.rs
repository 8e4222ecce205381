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
