//! The users of a falsely shared line have the names of the fields that they use.

use crate::explain::{explained_with, program};
use crate::runner::Folder;
use serde_json::Value;

/// How often contention is looked for: on a busy machine the two threads may hardly run at the same time.
const TRIES: usize = 5;

#[test]
fn users_of_a_line_have_fields_and_blocks_have_offsets() {
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        return numakit_skips::MACHINE.skip("two CPUs are needed for contention");
    }
    for compiler in ["cc", "c++"] {
        let folder = Folder::new(&format!("fields-{compiler}"));
        let Some(program) = program(&folder, compiler, "fields.c") else { continue };
        for (kind, expected) in [
            ("variable", ["stats.counters[0].hits", "stats.counters[1].misses"]),
            ("block", ["bytes 4096-4103 of the block of ", "bytes 4120-4127 of the block of "]),
        ] {
            let command = format!("{} {kind}", program.display());
            let mut line = Value::Null;
            for _ in 0..TRIES {
                let Some(result) = explained_with(&folder, "", &command) else { return };
                line = result["lines"][0].clone();
                if line != Value::Null {
                    break;
                }
            }
            let users = line["users"].as_array().unwrap_or_else(|| panic!("{kind}: no contended line"));
            let mut names: Vec<&str> =
                users.iter().map(|user| user["fields"][0]["name"].as_str().unwrap()).collect();
            names.sort_unstable();
            assert_eq!(names.len(), 2, "{compiler} {kind}: {line}");
            assert!(names[0].starts_with(expected[0]) && names[1].starts_with(expected[1]), "{names:?}");
            assert!(kind == "variable" || names[0].contains("fields.c:"), "{names:?}");
        }
    }
}
