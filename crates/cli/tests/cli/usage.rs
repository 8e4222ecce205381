//! Unknown options are refused, and none is ignored silently.

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
fn arguments_after_the_program_belong_to_it() {
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
fn a_command_needs_no_dashes_before_it() {
    let folder = Folder::new("no-dashes");
    folder.script("app", "#!/bin/sh\necho \"got $*\"\n");
    for (line, expected) in [
        ("stat -n 1000 -i 10ms ./app -n 9 -- --json", "got -n 9 -- --json\n"),
        ("record -o a.arrows ./app --force", "got --force\n"),
        ("explain ./app --all -x", "got --all -x\n"),
        ("./app -F 1 stat", "got -F 1 stat\n"),
        ("--color never ./app top", "got top\n"),
        ("-F 999 ./app -F 1", "got -F 1\n"),
        ("-- ./app --version", "got --version\n"),
        ("alloc --profile none ./app --rows 3", "got --rows 3\n"),
    ] {
        let done = folder.run(line);
        done.says(0, "");
        assert!(done.out.contains(expected), "{line}: {}", done.out);
    }
    folder.run("./no-such-app -x").says(127, "./no-such-app");
    std::fs::write(folder.path("notes"), "text").unwrap();
    folder.run("./notes").says(126, "./notes");
}

#[test]
fn a_program_that_fails_with_an_option_of_numa_gets_the_right_order() {
    let folder = Folder::new("order");
    folder.script("app", "#!/bin/sh\nexit 3\n");
    let order = "numa: ./app got the option -o a.arrows, which stands after it";
    folder.run("record -o b.arrows ./app --output a.arrows").says(3, &order.replace("-o a", "--output a"));
    folder.run("stat -n 1000 -i 10ms ./app 7 --csv").says(3, "come first: numa stat --csv ./app 7");
    let done = folder.run("record -o c.arrows ./app --of-its-own");
    assert!(done.code == 3 && !done.err.contains("stands after"), "{}", done.err);
}

#[test]
fn a_mistake_gets_the_right_command() {
    let folder = Folder::new("mistakes");
    folder.script("app", "#!/bin/sh\n");
    std::fs::write(folder.path("notes"), "text").unwrap();
    for (line, advice) in [
        ("tpo", "did you mean 'numa topo'?"),
        ("explain 26730", "'numa explain --pid 26730 --for 10s' observes a process"),
        ("explain --pid java", "--name java"),
        ("explain --json ./app", "./app is a program, which a result would replace"),
        ("no-such-program", "neither a verb nor a program in PATH; "),
        ("notes", "'numa show notes' shows a recording or a result, 'numa ./notes' runs a program"),
        ("run --rate 5 true", "unexpected argument '--rate'"),
        ("stat -F 99 true", "'-F' is an option of 'numa explain'"),
        ("topo --thp=on", "'--thp' is an option of 'numa run'"),
        ("--thp on ./app", "'--thp' is an option of 'numa run'"),
    ] {
        folder.run(line).says(2, advice);
    }
}

#[test]
fn without_words_numa_shows_one_screen() {
    let folder = Folder::new("alone");
    let done = folder.run("");
    done.says(0, "");
    let lines: Vec<&str> = done.out.lines().collect();
    assert!(lines.len() <= 24, "{}", done.out);
    assert!(lines[0].starts_with("machine  ") && lines[1].starts_with("now      "), "{}", done.out);
    assert!(!lines[1].contains("cannot be told"), "{}", done.out);
    for verb in ["explain", "run", "top", "plan", "record", "doctor"] {
        let example = format!("\n  numa {verb}");
        assert!(done.out.contains(&example), "{verb}: {}", done.out);
    }
    // Without words there is nothing to select.
    folder.run("--sysroot /").says(2, "");
}

#[test]
fn a_program_inherits_signals_and_streams() {
    let folder = Folder::new("given");
    let block = "import os, signal, sys; signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1, 64])\n\
                 signal.signal(signal.SIGPIPE, signal.SIG_DFL if sys.argv[1] == 'default' else signal.SIG_IGN)\n\
                 os.execvp(sys.argv[2], sys.argv[2:])";
    std::fs::write(folder.path("block.py"), block).unwrap();
    let streams = "exec 9>streams; for n in 0 1; do \
                   if [ -e /proc/$$/fd/$n ]; then echo open >&9; else echo closed >&9; fi; done";
    std::fs::write(folder.path("streams.sh"), streams).unwrap();
    if std::process::Command::new("python3").arg("--version").output().is_err() {
        return numakit_skips::PYTHON.skip("there is no python3, which blocks signals");
    }
    let shell = |line: &str| {
        let mut command = std::process::Command::new("sh");
        assert!(folder.isolate(&mut command).args(["-c", line]).output().unwrap().status.success(), "{line}");
    };
    // Blocked signals, and whether SIGPIPE (13) is ignored, of the program that copies the file.
    let signals = |verb: &str, pipe: &str| {
        shell(&format!("exec python3 block.py {pipe} {verb} cp --no-preserve=all /proc/self/status status"));
        let status = std::fs::read_to_string(folder.path("status")).unwrap();
        let bits = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            u64::from_str_radix(line.trim(), 16).unwrap()
        };
        (bits("SigBlk:"), bits("SigIgn:") & 1 << 12 != 0)
    };
    let streams = |verb: &str, redirected: &str| {
        shell(&format!("exec {verb} sh streams.sh {redirected}"));
        std::fs::read_to_string(folder.path("streams")).unwrap()
    };
    let numa = env!("CARGO_BIN_EXE_numa");
    for verb in ["run --share -c 1 --", "record -e pgfault -o a.arrows --force --"] {
        let verb = format!("{numa} {verb}");
        for (pipe, ignored) in [("default", false), ("ignored", true)] {
            assert_eq!(signals("", pipe), (1 << 9 | 1 << 63, ignored));
            assert_eq!(signals(&verb, pipe), (1 << 9 | 1 << 63, ignored), "{verb} {pipe}");
        }
        for (redirected, told) in
            [("", "open\nopen\n"), ("<&- >&-", "closed\nclosed\n"), (">&-", "open\nclosed\n")]
        {
            assert_eq!(streams("env", redirected), told);
            assert_eq!(streams(&verb, redirected), told, "{verb} {redirected}");
        }
    }
}

#[test]
fn no_verb_ignores_sysroot() {
    let folder = Folder::new("sysroot");
    folder.run("record -i 5ms -e pgfault -o a.arrows -- sleep 0.1").says(0, "samples");
    for verb in verbs() {
        let line = match verb.get_name() {
            "show" | "recover" => format!("{} a.arrows", verb.get_name()),
            "export" => "export a.arrows --to csv".to_owned(),
            "push" => "push a.arrows --to parquet:p".to_owned(),
            "fetch" => "fetch parquet:p --host a --from 1h -o f.arrows".to_owned(),
            "run" => "run -c 1 -- true".to_owned(),
            "explain" => "explain -- true".to_owned(),
            "mark" => "mark begin".to_owned(),
            "alloc-work" => "alloc-work {}".to_owned(),
            "ctl" => "ctl status".to_owned(),
            "file" => "file show a.arrows".to_owned(),
            "alloc" => "alloc -- true".to_owned(),
            "bench" => "bench latency".to_owned(),
            "completions" => "completions bash".to_owned(),
            "help" => continue,
            name => name.to_owned(),
        };
        let done = folder.run(
            &format!("{line} --sysroot none").replace(" -- true --sysroot none", " --sysroot none -- true"),
        );
        done.says(2, "--sysroot none");
        assert!(done.out.is_empty(), "{line}: {}", done.out);
    }
    // Even if it could be read.
    folder.run("mark end --sysroot /").says(2, "instruction of this processor; omit --sysroot");
    folder.run("recover a.arrows --sysroot /").says(2, "a recording contains what it needs");
    folder.run("ctl status --sysroot /").says(2, "runs on this machine; omit --sysroot");
    folder.run("ps --sysroot /").says(2, "run 'numa ps' there");
    folder.run("run --sysroot / -- true").says(2, "this machine only");
}

#[test]
fn options_for_new_programs_are_refused_with_pid() {
    let folder = Folder::new("pid-options");
    for option in
        ["--slack 1", "--sched batch", "--thp off", "--no-thp", "--stack 1M", "--no-inherit", "--busy 10"]
    {
        folder.run(&format!("run --pid 1 -c 1 {option}")).says(2, "cannot be used with");
    }
}

#[test]
fn long_patterns_are_refused_in_a_few_words() {
    let folder = Folder::new("patterns");
    for pattern in ["*".repeat(100_000), "?".repeat(300), "[a]".repeat(50), "a".repeat(300)] {
        for line in
            ["record -o x.arrows -e", "stat -e", "live --no-open -e", "top -e", "list", "run --spread-files"]
        {
            // Paths may be long.
            if line.starts_with("run") && !pattern.starts_with('*') {
                continue;
            }
            let mut numa = folder.numa(line);
            numa.arg(&pattern).args(if line == "list" { &[][..] } else { &["--", "true"] });
            let done = Done::of(numa.output().unwrap());
            done.says(2, "; give at most ");
            assert!(done.err.len() < 1000, "{}", done.err);
        }
    }
}
