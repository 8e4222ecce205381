//! Completions in a shell.

use crate::runner::{Done, Folder};
use std::process::Command;

const TRY: &str = "try() { COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); \
    _numa_words numa \"${COMP_WORDS[COMP_CWORD]}\" \"${COMP_WORDS[COMP_CWORD - 1]}\"; echo \"${COMPREPLY[@]}\"; }";

#[test]
fn bash_suggests_launchers_series_and_formulas() {
    let folder = Folder::new("completion");
    std::fs::write(folder.path("numa.bash"), folder.run("completions bash").out).unwrap();
    let mut script = format!("source ./numa.bash; {TRY}");
    let lines = [
        ("numa plan --for openmp", "openmpi4"),
        ("numa plan --policy sc", "scatter"),
        ("numa run --memory inter", "interleave"),
        ("numa stat -e vmstat.pgfau", "vmstat.pgfault"),
        ("numa record --events nod", "node.numa_hit"),
        ("numa stat --metrics loc", "locality"),
        ("numa list node.numa_h", "node.numa_hit"),
        ("numa ctl pau", "pause"),
        ("numa export --to par", "parquet"),
        ("numa man numa-re", "numa-record"),
        ("numa completions fi", "fish"),
        ("numa help gu", "guide"),
        ("numa help guide rec", "recording"),
        ("numa plan --machine EPYC-9755", "EPYC-9755-x2"),
        ("numa explain --as Gra", "Grace-x2"),
        ("numa run --dry-r", "--dry-run"),
    ];
    lines.iter().for_each(|(line, _)| script += &format!("; try {line}"));
    let done = match folder.isolate(Command::new("bash").args(["-c", &script])).output() {
        Ok(output) => Done::of(output),
        Err(error) => return numakit_skips::TOOLS.skip(format_args!("there is no bash: {error}")),
    };
    assert_eq!((done.code, done.out.lines().count()), (0, lines.len()), "{}{}", done.out, done.err);
    for (answer, (line, word)) in done.out.lines().zip(lines) {
        assert_eq!(answer.split(' ').filter(|offered| *offered == word).count(), 1, "{line}: {answer}");
        assert!(line.contains("--dry-r") || !answer.contains(" -"), "{line}: {answer}");
    }
}

#[test]
fn a_missing_shell_is_answered_with_the_shells() {
    Folder::new("completion-missing").run("completions").says(2, "bash, elvish, fish, powershell, zsh");
}
