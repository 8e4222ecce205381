//! Rules about source files that no lint covers.

use crate::{files, read};
use std::path::Path;

const MAX_LINES: usize = 800;
const MEANINGLESS: [&str; 8] = ["util", "utils", "common", "helper", "helpers", "misc", "shared", "stuff"];

fn sources_of_crates() -> Vec<std::path::PathBuf> {
    let mut sources = files(&["rs"]);
    sources.retain(|path| path.starts_with("crates"));
    sources
}

/// The workspace forbids unsafe code; only crates/sys opts out.
#[test]
fn every_package_except_sys_has_the_lints_of_the_workspace() {
    assert!(read("Cargo.toml").contains("unsafe_code = \"forbid\""));
    for path in files(&["toml"]).iter().filter(|p| p.ends_with("Cargo.toml")) {
        let manifest = read(path);
        let is_package = manifest.contains("[package]");
        if is_package && path != Path::new("crates/sys/Cargo.toml") {
            assert!(
                manifest.contains("[lints]\nworkspace = true"),
                "{}: add [lints] workspace = true",
                path.display()
            );
        }
    }
}

#[test]
fn files_are_short() {
    for path in files(&["rs", "c", "h", "py", "ts", "md"]) {
        let lines = written_lines(&read(&path));
        assert!(lines <= MAX_LINES, "{} has {lines} lines, at most {MAX_LINES}", path.display());
    }
}

/// Number of lines without generated tables, which end with `<!-- end -->`.
fn written_lines(text: &str) -> usize {
    let mut generated = false;
    let written = text.lines().filter(|line| {
        generated = (generated || line.starts_with("<!-- ")) && *line != "<!-- end -->";
        !generated
    });
    let all = text.lines().count();
    if text.contains("<!-- end -->") { written.count() } else { all }
}

#[test]
fn files_are_named_after_their_content() {
    for path in files(&["rs", "c", "h", "py", "ts"]) {
        let vague = path
            .iter()
            .filter_map(|part| Path::new(part).file_stem()?.to_str())
            .find(|stem| MEANINGLESS.contains(stem));
        assert_eq!(vague, None, "{}: say what is in it", path.display());
    }
}

/// Exit codes are returned from main, so that files are closed and buffers written.
#[test]
fn only_main_exits() {
    for path in sources_of_crates() {
        if !path.ends_with("src/main.rs") {
            assert!(!read(&path).contains("process::exit("), "{} ends the process", path.display());
        }
    }
}

/// `cargo xtask test --require` needs the kinds, so each skip names a declared one.
#[test]
fn skips_have_a_kind() {
    let mut sources = files(&["rs", "c", "ts"]);
    sources.push("native/test/check".into());
    // The declaration, and the parsers of such lines.
    sources.retain(|path| !path.starts_with("tests/skips") && !path.starts_with("xtask"));
    for path in sources {
        let text = read(&path);
        let name = path.display();
        assert!(!text.contains("\"skipped: "), "{name}: a skip names a kind of tests/skips");
        for start in ["\"skipped (", "\"skipped in part ("] {
            let kinds = text.split(start).skip(1).filter_map(|rest| rest.split(')').next());
            for kind in kinds {
                assert!(numakit_skips::kind(kind).is_some(), "{name}: tests/skips has no kind '{kind}'");
            }
        }
    }
}

/// What ends processes by a pattern ends those of other tests and of the user as well.
#[test]
fn no_process_is_ended_by_a_pattern() {
    for path in files(&["rs", "c", "h", "py", "ts", "sh", "mjs"]) {
        if path.ends_with("house/rules.rs") {
            continue;
        }
        let text = read(&path);
        for name in ["\"pkill", "pkill -", "\"killall", "killall -", "kill(-1"] {
            let found = text.lines().find(|line| line.contains(name));
            assert_eq!(
                found,
                None,
                "{}: keep the process and end that one, not all that match",
                path.display()
            );
        }
    }
}

/// Files that open files otherwise, and why.
const OTHER_OPENERS: [(&str, &str); 1] =
    [("crates/launch/src/isolate.rs", "reads files of control groups, which the kernel makes")];

/// A user, a program or a variable of the environment may name a FIFO, a device or a file without end. Crates that read such files open
/// them by `numakit_sys::file`, which never waits.
#[test]
fn files_that_others_name_are_opened_one_way() {
    const READERS: [&str; 8] =
        ["explain", "sampling", "launch", "allocations", "mcp", "recording", "server", "cli"];
    let opens = |line: &str| {
        let is_ours = |at: usize| line[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
        let direct = line.match_indices("File::open(").any(|(at, _)| !is_ours(at));
        // A library that is given a path opens it too.
        let by_library = ["pem_file_iter(", "from_pem_file("].iter().any(|call| line.contains(call));
        direct || by_library || line.contains("fs::read(") || line.contains("fs::read_to_string(")
    };
    for path in sources_of_crates() {
        let mut parts = path.iter().skip(1).filter_map(|part| part.to_str());
        let is_reader =
            parts.next().is_some_and(|name| READERS.contains(&name)) && parts.next() == Some("src");
        let is_test = path.iter().any(|part| part == "tests" || part == "tests.rs");
        if !is_reader || is_test {
            continue;
        }
        let text = read(&path);
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        let found = code.lines().find(|line| opens(line));
        if OTHER_OPENERS.iter().any(|(other, _)| path == Path::new(other)) {
            assert!(found.is_some(), "{} needs no exception", path.display());
            continue;
        }
        assert_eq!(found, None, "{}: use numakit_sys::file::open_to_read", path.display());
    }
}
