//! Standard output that cannot be written: full, closed, or a pipe without a reader.

use crate::runner::{Done, Folder, Started};
use numakit_testing::until;
use std::process::{Command, Stdio};

/// A command line of each verb, and whether it prints to standard output.
fn line(verb: &str) -> (&'static str, bool) {
    match verb {
        "topo" => ("topo", true),
        "bench" => ("bench latency --cpus 0 --size 1M --time 1ms", true),
        "plan" => ("plan", true),
        "tune" => ("tune --no-verdicts --no-generic --with=A=1 --budget 1 -- true", true),
        "run" => ("run --dry-run -c 1 --busy off -- true", true),
        "move" => ("move --dry-run --for 10ms --pid 1", true),
        "ps" => ("ps", true),
        "capture" => ("capture -o c.tar.zst --force", true),
        "doctor" => ("doctor", true),
        "list" => ("list", true),
        "stat" => ("stat -i 10ms -n 2", true),
        "file" => ("file show a.arrows", true),
        "alloc" => ("alloc --profile none -- true", true),
        "explain" => ("explain --rows 0 -- true", true),
        "live" => ("live --no-open --listen 127.0.0.1:0 -- true", true),
        "record" => ("record -e pgfault -o r.arrows --force -- true", false),
        "ctl" => ("ctl status", true),
        "show" => ("show a.arrows", true),
        "export" => ("export a.arrows --to csv", true),
        "jobs" => ("jobs -i 10ms", true),
        "serve" => ("serve --listen 127.0.0.1:0", true),
        "push" => ("push a.arrows --to parquet:p", true),
        "fetch" => ("fetch parquet:p --host none --from 1h -o f.arrows", false),
        "recover" => ("recover a.arrows", true),
        "help" => ("help guide run", true),
        "overview" => ("overview", true),
        "man" => ("man run", true),
        "completions" => ("completions bash", true),
        "mark" => ("mark end", false),
        // It answers requests of 'numa bench alloc' only.
        "alloc-work" => ("alloc-work {}", false),
        "top" => ("top --once -i 10ms", true),
        // It answers requests only.
        "mcp" => ("mcp", false),
        _ => panic!("'{verb}' is new: give it a line here"),
    }
}

/// The page, which one verb serves beside what it prints.
const SERVER: (&str, bool) = ("show --page --no-open --listen 127.0.0.1:0 a.arrows", true);

fn verbs() -> Vec<String> {
    numakit_cli::command().get_subcommands().map(|verb| verb.get_name().to_owned()).collect()
}

/// A folder with a recording.
fn folder(name: &str) -> Folder {
    let folder = Folder::new(name);
    folder.run("record -i 5ms -e pgfault -o a.arrows -- sleep 0.1").says(0, "samples");
    folder
}

/// Runs a line in a shell in which `numa` is this build.
fn shell(folder: &Folder, line: &str) -> Done {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("numa() {{ \"{}\" \"$@\"; }}; {line}", env!("CARGO_BIN_EXE_numa"))]);
    Done::of(folder.isolate(&mut command).output().unwrap())
}

/// An output that takes nothing, by the redirection of a shell.
struct Unwritable {
    redirection: &'static str,
    reason: &'static str,
}

const FULL: Unwritable = Unwritable {
    redirection: "> /dev/full",
    reason: "No space left on device (os error 28); free some space",
};
const CLOSED: Unwritable = Unwritable { redirection: ">&-", reason: "it is closed; open it, as in" };

impl Unwritable {
    /// Runs a line, which fails if it prints and else ends as it does elsewhere.
    fn check(&self, folder: &Folder, line: &str, prints: bool) {
        let done = shell(folder, &format!("numa {line} {}", self.redirection));
        assert!(!done.err.contains("panicked"), "{line}: {}", done.err);
        let messages =
            done.err.lines().filter(|line| line.contains("cannot write to standard output")).count();
        match prints {
            true => {
                assert!(done.code == 1 && messages == 1, "{line}: {} {}", done.code, done.err);
                assert!(done.err.contains(self.reason), "{line}: {}", done.err);
            }
            false => {
                let usual = folder.run(line).code;
                assert!(done.code == usual && messages == 0, "{line}: {} {}", done.code, done.err);
            }
        }
    }

    /// The same for every verb and form.
    fn check_all(&self, name: &str) {
        let folder = folder(name);
        let recorder = folder.start("record -i 10ms -e pgfault -o running.arrows");
        let check = |line: &str, prints: bool| self.check(&folder, line, prints);
        for verb in verbs() {
            let (line, prints) = line(&verb);
            check(line, prints);
            check(&format!("{verb} --help"), true);
        }
        check(SERVER.0, SERVER.1);
        for json in ["topo --json", "plan --json", "list --json", "doctor --json", "top --once -i 1ms --json"]
        {
            check(json, true);
        }
        check("plan --for gomp -c 1", true);
        check("topo --svg -", true);
        for form in ["--json", "--csv", "--html -"] {
            check(&format!("bench latency --cpus 0 --size 1M --time 1ms {form}"), true);
        }
        check("stat -i 10ms -n 2 --csv", true);
        check("--version", true);
        for format in numakit_export::FORMATS {
            check(&format!("export a.arrows --to {}", format.name), true);
        }
        recorder.signal("TERM");
        recorder.end();
    }
}

#[test]
fn a_full_output_is_an_error_of_every_verb() {
    FULL.check_all("output-full");
}

/// Printing is one place, as the test above shows.
#[test]
fn a_closed_output_is_an_error() {
    let folder = folder("output-closed");
    for (line, prints) in [
        ("topo", true),
        ("stat -i 10ms -n 2", true),
        ("export a.arrows --to csv", true),
        ("run --help", true),
        ("record -e pgfault -o r.arrows --force -- true", false),
    ] {
        CLOSED.check(&folder, line, prints);
    }
}

#[test]
#[ignore = "thorough: some 70 more lines with a closed output, 20 seconds"]
fn a_closed_output_is_an_error_of_every_verb() {
    CLOSED.check_all("output-closed-all");
}

/// Whether the process handles SIGINT: it catches it, or blocks and reads it. True after its end too.
fn takes_interrupts(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let mask = |name: &str| {
        let text = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        u64::from_str_radix(text.trim(), 16).unwrap()
    };
    (mask("SigCgt:") | mask("SigBlk:")) & 1 << 1 != 0 || status.contains("State:\tZ")
}

#[test]
fn a_pipe_without_a_reader_ends_every_verb_silently() {
    let folder = folder("output-pipe");
    let recorder = folder.start("record -i 10ms -e pgfault -o running.arrows");
    for (line, prints) in verbs().iter().map(|verb| line(verb)).chain([SERVER]) {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = folder.numa(line);
        let started = Started::of(command.stdout(writer).stderr(Stdio::piped()));
        // A server continues without a reader of its output.
        if line == SERVER.0 || line.starts_with("serve ") {
            until!(takes_interrupts(started.id()));
            started.signal("INT");
        }
        let done = started.end();
        assert!(!done.err.contains("panicked") && !done.err.contains("Broken pipe"), "{line}: {}", done.err);
        // What prints has met SIGPIPE, or ended well although it could not print.
        let ends_well = [0, -13].contains(&done.code);
        assert!(
            ends_well || !prints && done.code == folder.run(line).code,
            "{line}: {} {}",
            done.code,
            done.err
        );
    }
    recorder.signal("TERM");
    recorder.end();
}

#[test]
fn a_nonblocking_output_gets_everything() {
    let folder = folder("output-slow");
    // Another process that shares the pipe made it nonblocking.
    let read = "import os, sys, time\nos.set_blocking(0, False)\ntime.sleep(0.3)\nos.set_blocking(0, True)\nsys.stdout.write(sys.stdin.read())";
    if Command::new("python3").arg("--version").output().is_err() {
        return numakit_skips::PYTHON.skip("there is no python3, which makes such a pipe");
    }
    std::fs::write(folder.path("read.py"), read).unwrap();
    let machine = "topo --json --synthetic 'package:4 node:4(mem=32G) core:64 pu:2'";
    let all = shell(&folder, &format!("numa {machine}")).out;
    assert!(all.len() > 1 << 17, "more than a pipe holds: {}", all.len());
    let write = "import os, subprocess, sys\nos.set_blocking(1, False)\nsys.exit(subprocess.run(sys.argv[1:]).returncode)";
    std::fs::write(folder.path("write.py"), write).unwrap();
    let machine = machine.replace("numa ", "");
    let done = shell(
        &folder,
        &format!("python3 write.py \"{}\" {machine} | python3 read.py", env!("CARGO_BIN_EXE_numa")),
    );
    assert!(done.out == all && done.err.is_empty(), "{} of {}: {}", done.out.len(), all.len(), done.err);
}

#[test]
fn an_error_that_cannot_be_printed_is_no_panic() {
    let folder = folder("output-error");
    for redirection in ["2> /dev/full", "2>&-", "2>&1 > /dev/null | true"] {
        let done = shell(&folder, &format!("numa topo --sysroot none {redirection}; echo $?"));
        assert!(!done.out.contains("101") && !done.err.contains("panicked"), "{}{}", done.out, done.err);
    }
    let done = shell(&folder, "numa topo --sysroot none 2> /dev/full");
    assert_eq!(done.code, 2);
}
