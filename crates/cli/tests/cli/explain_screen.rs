//! `numa explain` ends with one screen, keeps all that it found, and takes results or a command.

use crate::compiler::builds;
use crate::explain::{cpus, explained_with, program};
use crate::runner::Folder;
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

const LINES: usize = 24;
const COLUMNS: usize = 100;

/// The kept results.
fn kept(folder: &Folder) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder.path("state/numakit/explained")).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn measuring_the_screen_has_the_data_the_line_and_the_next_command() {
    let folder = Folder::new("screen");
    let Some(program) = program(&folder, "cc", "objects.c") else { return };
    let command = format!("{} list", program.display());
    let Some(found) = explained_with(&folder, "", &command) else { return };
    let done = folder.run(&format!("explain {command}"));
    let lines: Vec<&str> = done.out.lines().collect();
    assert!(lines.len() <= LINES, "{} lines: {}", lines.len(), done.out);
    // The path of the program may be longer than a line.
    let long = |line: &&&str| line.chars().count() > COLUMNS && !line.contains("objects");
    assert!(!lines.iter().any(|line| long(&line)), "{}", done.out);
    for expected in ["malloc in ", "DATA", "VERDICT", "objects.c:", "\nnext:   numa ", "all of it: numa show"]
    {
        assert!(done.out.contains(expected), "{expected}: {}", done.out);
    }
    let next = &found["next"][0];
    assert!(next["kind"].is_string() && next["command"].as_str().unwrap().contains("list"), "{next}");
    let all = folder.run(&format!("explain --all {command}"));
    assert!(all.out.contains("OBJECT") && all.out.contains("samples by") && !all.out.contains("next:"));
    let to_file = folder.run(&format!("explain -o all.txt {command}"));
    assert_eq!((to_file.code, to_file.out.as_str()), (0, ""));
    assert!(std::fs::read_to_string(folder.path("all.txt")).unwrap().contains("OBJECT"));
}

#[test]
fn what_was_found_is_kept_for_this_user_alone_and_compared_with() {
    let folder = Folder::new("screen-kept");
    let missing = folder.run("explain --compare true");
    if missing.err.contains("no samples can be taken") {
        return numakit_skips::SAMPLES.skip(&missing.err);
    }
    missing.says(2, "no result of 'true' is kept in ");
    missing.says(2, "observe the program once before the change");
    let Some(_) = explained_with(&folder, "", "true") else { return };
    let [file] = kept(&folder).try_into().unwrap();
    let result: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    assert_eq!((&result["program"], &result["complete"]), (&"true".into(), &true.into()));
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let compared = folder.run("explain --compare true");
    assert!(compared.out.contains("before,") && !compared.out.contains("caution"), "{}", compared.out);
    assert!(
        compared.out.contains("\n\n") && compared.out.contains("all of it: numa show"),
        "{}",
        compared.out
    );
    // Before the program runs, which may take long.
    let other = folder.run("explain --compare sh -c 'echo>ran'");
    other.says(2, "observe the program once before the change");
    assert!(!folder.path("ran").exists());
    folder.run("explain sleep 0.01").says(0, "");
    assert_eq!(kept(&folder).len(), 2);
    let again = folder.run("explain --compare true");
    assert!(again.code == 0 && !again.out.contains("caution"), "{} {}", again.out, again.err);
    // What fails at once tells nothing, and replaces nothing.
    folder.run("explain false").says(1, "this result is not kept");
    assert_eq!(kept(&folder).len(), 2);
}

#[test]
fn a_folder_that_cannot_be_written_is_no_failure() {
    let folder = Folder::new("screen-unkept");
    std::fs::write(folder.path("state"), "a file").unwrap();
    let done = folder.run("explain true");
    if done.code == 2 {
        return numakit_skips::SAMPLES.skip(&done.err);
    }
    assert!(
        done.code == 0 && done.out.ends_with("all of it: the same with --all\n"),
        "{} {}",
        done.out,
        done.err
    );
}

#[test]
fn words_are_results_or_a_command() {
    let folder = Folder::new("screen-words");
    let Some(_) = explained_with(&folder, "", "true") else { return };
    folder.run("explain result.json").says(2, "'numa show result.json' prints it");
    let both = folder.run("explain result.json result.json");
    assert!(both.code == 0 && both.out.contains("compared"), "{} {}", both.out, both.err);
    folder.run("explain --for 1s result.json result.json").says(2, "--for has no meaning");
    folder.run("explain result.json no-such-file").says(2, "no-such-file");
    folder.run("explain no.json none.json").says(2, "no.json");
    // A program comes first: its words may be files.
    let shown = folder.run("explain cat result.json");
    assert!(shown.code == 0 && shown.out.contains("samples by"), "{}", shown.err);
    std::fs::write(folder.path("text"), "no result").unwrap();
    folder.run("explain ./text result.txt").says(126, "cannot run './text result.txt'");
}

/// The program of README, as it is and mended.
#[test]
fn measuring_the_example_of_the_readme_has_the_flaw_that_it_shows() {
    if cpus() < 2 {
        return numakit_skips::MACHINE.skip("two CPUs are needed for contention");
    }
    let folder = Folder::new("readme");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples/words.c");
    for (name, option, expected) in [("words", "-UPADDED", true), ("words-padded", "-DPADDED", false)] {
        let options = ["-O2", "-g", "-pthread", "-Wall", "-Wextra", "-Werror", option];
        if !builds("cc", &options, &source, &folder.path(name)) {
            return numakit_skips::COMPILERS.skip("there is no cc");
        }
        let Some(found) = explained_with(&folder, "", &format!("./{name} 2 512")) else { return };
        let is_counts = |object: &&Value| object["name"] == "counts";
        let counts = found["objects"].as_array().unwrap().iter().find(is_counts);
        let rule = counts.map(|object| object["verdict"]["rule"].as_str().unwrap_or("none"));
        assert_eq!(rule == Some("contended-lines"), expected, "{name}: {rule:?}");
    }
}
