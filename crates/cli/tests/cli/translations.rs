//! Command lines of numascope and numaplace as command lines of `numa`: the table in the guide.

use crate::runner::{Done, Folder, numascopes_fifo};
use numakit_cli::originals::{ORIGINALS, Original};
use numakit_sys::command::quoted;
use std::ffi::OsString;
use std::process::Command;

/// The examples of the guide.
const LINES: [&str; 14] = [
    "numascope -list",
    "numascope -interval 100 stat",
    "numascope -discrete -events n2RdBlkXSent,pgfault stat",
    "numascope -debug -events pgfault stat ./app -x",
    "numascope record ./app",
    "numascope -overwrite -filename run.json record ./app",
    "numascope -discrete -filename=run.arrows record",
    "numascope -listenAddr 127.0.0.1:8080 live",
    "numaplace ./app",
    "numaplace -c 6 ./app -x",
    "numaplace -d -c 2 ./app",
    "numaplace --cores=4 --no-thp ./app",
    "numaplace -tvc 4 ./app",
    "numaplace -ap -c 2 ./app",
];

fn translated(line: &str) -> (&'static Original, Vec<OsString>) {
    let mut words = line.split(' ');
    let name = words.next().unwrap();
    let original = ORIGINALS.iter().find(|original| original.name == name).unwrap();
    (original, (original.translate)(words.map(OsString::from).collect()).unwrap().words)
}

#[test]
fn the_guide_has_the_translations() {
    let row = |line: &str| format!("| `{line}` | `{}` |\n", quoted(&translated(line).1));
    let table = LINES.map(row).concat();
    let content = format!("| command line | equivalent |\n|---|---|\n{table}");
    numakit_testing::guide::check_part("docs/guide/originals.md", "translations", &content);
}

#[test]
fn numa_accepts_every_translation() {
    for line in LINES {
        let (_, words) = translated(line);
        let parsed = numakit_cli::command().try_get_matches_from(&words);
        assert!(parsed.is_ok(), "{line}: {words:?}: {}", parsed.unwrap_err());
    }
}

/// Every option of both programs is in an example.
#[test]
fn the_examples_have_every_option() {
    for original in &ORIGINALS {
        let lines: Vec<&str> = LINES.into_iter().filter(|line| line.starts_with(original.name)).collect();
        for option in (original.command)().get_opts() {
            let long = option.get_long().unwrap();
            let short = option.get_short();
            let used = |word: &str| {
                let letters =
                    word.strip_prefix('-').filter(|word| !word.starts_with('-')).unwrap_or_default();
                let name = word.trim_start_matches('-').split('=').next().unwrap();
                word.starts_with('-') && name == long || short.is_some_and(|short| letters.contains(short))
            };
            let found = lines.iter().any(|line| line.split(' ').any(used));
            assert!(found || long == "verbose", "no example of {} has --{long}", original.name);
        }
    }
}

#[test]
fn the_translation_runs_and_is_shown() {
    let (folder, _fifo) = (Folder::new("translations"), numascopes_fifo());
    for original in &ORIGINALS {
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_numa"), folder.path(original.name)).unwrap();
    }
    let run = |line: &str| {
        let mut words = line.split(' ');
        let mut command = Command::new(folder.path(words.next().unwrap()));
        Done::of(folder.isolate(&mut command).args(words).output().unwrap())
    };
    for line in ["numaplace -v -c 1 true", "numascope -v -interval 5 -events pgfault record true"] {
        let (original, words) = translated(line);
        let done = run(line);
        done.says(0, &format!("{}: runs: {}\n", original.name, quoted(&words)));
        assert!(!run(&line.replace(" -v", "")).err.contains("runs:"), "{line}");
    }
    let done = run("numascope -v -list");
    assert!(done.code == 0 && done.err == "numascope: runs: numa list\n", "{}", done.err);
    assert_eq!(done.out, folder.run("list").out);
}
