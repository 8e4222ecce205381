//! What no verb takes is refused, and nothing is ignored in silence.

use crate::runner::{Done, Folder};

fn verbs() -> Vec<clap::Command> {
    let mut numa = numakit_cli::command();
    numa.build();
    numa.get_subcommands().filter(|verb| verb.get_name() != "help").cloned().collect()
}

#[test]
fn an_unknown_option_before_the_program_is_refused_with_the_nearest() {
    let folder = Folder::new("unknown");
    let mut with_command = 0;
    for verb in verbs() {
        let verb_name = verb.get_name();
        if !verb.get_positionals().any(|positional| positional.get_id() == "command") {
            continue;
        }
        with_command += 1;
        for unknown in ["--no-such-option", "-Q"] {
            for rest in ["-- true", "true"] {
                let done = folder.run(&format!("{verb_name} {unknown} {rest}"));
                done.says(2, unknown);
                assert!(!done.err.contains("No such file"), "{}", done.err);
            }
        }
    }
    assert!(with_command >= 4, "run, stat, record and live take a command: {with_command}");
    for (line, nearest) in [
        ("run --polcy compact -c 1 ./x", "'--policy'"),
        ("run --polcy=compact -c 1 -- ./x", "'--policy'"),
        ("record --forse -- true", "'--force'"),
        ("stat --intervall 1s -- true", "'--interval'"),
        ("live --no-opn -- true", "'--no-open'"),
    ] {
        folder.run(line).says(2, nearest);
    }
}

#[test]
fn what_stands_behind_the_program_is_the_programs() {
    let folder = Folder::new("behind");
    let run = |line: &str| {
        let mut command = folder.numa(line);
        Done::of(command.env("NUMAKIT_REGISTRY", folder.path("cores")).output().unwrap())
    };
    for line in [
        "run --share -c 1 echo --polcy -c 7 --help -- x",
        "run --share -c 1 -- echo --polcy -c 7 --help -- x",
    ] {
        let done = run(line);
        assert_eq!(done.out, "--polcy -c 7 --help -- x\n", "{}", done.err);
    }
    let done = run("run --share -c 1 -- --polcy");
    assert!(done.code == 127 && done.err.contains("--polcy"), "{}", done.err);
}

#[test]
fn no_verb_ignores_sysroot() {
    let folder = Folder::new("sysroot");
    folder.run("record -i 5ms -e pgfault -o a.arrows -- sleep 0.1").says(0, "samples");
    for verb in verbs() {
        let line = match verb.get_name() {
            "report" | "recover" | "view" => format!("{} a.arrows", verb.get_name()),
            "export" => "export a.arrows --to csv".to_owned(),
            "run" => "run -c 1 -- true".to_owned(),
            "mark" => "mark begin".to_owned(),
            "ctl" => "ctl status".to_owned(),
            name => name.to_owned(),
        };
        let done = folder.run(
            &format!("{line} --sysroot none").replace(" -- true --sysroot none", " --sysroot none -- true"),
        );
        done.says(2, "--sysroot none");
        assert!(done.out.is_empty(), "{line}: {}", done.out);
    }
    // Also where it could be read.
    folder.run("mark end --sysroot /").says(2, "instruction of this processor; leave --sysroot out");
    folder.run("recover a.arrows --sysroot /").says(2, "a recording holds all");
    folder.run("ctl status --sysroot /").says(2, "runs on this machine; leave --sysroot out");
    folder.run("ps --sysroot /").says(2, "run 'numa ps' there");
    folder.run("run --sysroot / -- true").says(2, "this machine only");
}

#[test]
fn what_only_a_new_program_gets_is_refused_for_one_that_runs() {
    let folder = Folder::new("pid-options");
    for option in
        ["--slack 1", "--sched batch", "--thp off", "--no-thp", "--stack 1M", "--no-inherit", "--busy 10"]
    {
        folder.run(&format!("run --pid 1 -c 1 {option}")).says(2, "cannot be used with");
    }
}
