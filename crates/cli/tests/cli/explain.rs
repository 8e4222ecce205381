use crate::runner::{Done, Folder};
use numakit_testing::until;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/explain").join(name)
}

/// Compiles a program of this test.
pub fn program(folder: &Folder, compiler: &str, file: &str) -> Option<PathBuf> {
    compiled(folder, compiler, &source(file))
}

/// Compiles a program; none without a compiler.
pub fn compiled(folder: &Folder, compiler: &str, source: &Path) -> Option<PathBuf> {
    let program = folder.path(source.file_stem().unwrap().to_str().unwrap());
    let mut command = Command::new(compiler);
    command.args(["-O2", "-g", "-pthread", "-o"]).arg(&program).arg(source);
    match command.output() {
        Ok(output) => {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            Some(program)
        }
        Err(error) => {
            numakit_skips::COMPILERS.skip(format_args!("{compiler}: {error}"));
            None
        }
    }
}

/// What `numa explain --json` says of a command; `None` where samples cannot say it.
fn explained(folder: &Folder, command: &str) -> Option<Value> {
    explained_with(folder, "", command)
}

/// The same, with options.
pub fn explained_with(folder: &Folder, options: &str, command: &str) -> Option<Value> {
    let done = folder.run(&format!("explain {options} --json result.json -- {command}"));
    if done.code == 2 && done.err.contains("no samples can be taken") {
        numakit_skips::PRIVILEGES.skip(&done.err);
        return None;
    }
    assert_eq!(done.code, 0, "{} {}", done.out, done.err);
    let result: Value = serde_json::from_slice(&std::fs::read(folder.path("result.json")).unwrap()).unwrap();
    if result["regime"] != "precise" {
        numakit_skips::MACHINE.skip("samples of this machine do not name the instruction that waited");
        return None;
    }
    Some(result)
}

/// How often contention is looked for.
pub const TRIES: usize = 5;

pub fn cpus() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

#[test]
fn contended_lines_are_named_and_nothing_is_said_of_their_twins() {
    if cpus() < 2 {
        return numakit_skips::MACHINE.skip("two CPUs are needed for contention");
    }
    let folder = Folder::new("contended");
    let Some(program) = program(&folder, "cc", "contended.c") else { return };
    for (kind, sharing) in [
        ("atomic-counters", "false"),
        ("one-atomic", "lock"),
        ("plain-counters", "false"),
        ("counters-with-work", "false"),
        ("mutex", "lock"),
        ("spin-lock", "lock"),
        ("writer-and-reader", "false"),
    ] {
        let of = |way: &str| explained(&folder, &format!("{} {kind} {way} 1.5", program.display()));
        let Some(apart) = of("apart") else { return };
        // On a busy machine the two threads may hardly run at the same time.
        let mut runs = (0..TRIES).filter_map(|_| of("shared"));
        let shared = runs
            .find(|run| run["lines"] != Value::Array(Vec::new()))
            .unwrap_or_else(|| panic!("{kind}: no contended line in {TRIES} runs"));
        let line = &shared["lines"][0];
        println!("{kind}: {} {}", line["sharing"], shared["time"]["contended"]);
        assert_eq!(line["sharing"], sharing, "{kind}: {}", shared["lines"]);
        assert_eq!(line["users"].as_array().unwrap().len(), 2, "{kind}");
        assert_eq!(apart["lines"], Value::Array(Vec::new()), "{kind}");
    }
}

#[test]
fn the_type_check_of_a_java_machine_is_a_contended_line() {
    if cpus() < 2 {
        return numakit_skips::MACHINE.skip("two CPUs are needed for contention");
    }
    let folder = Folder::new("typecheck");
    let compiled = Command::new("javac").arg("-d").arg(&folder.0).arg(source("TypeCheck.java")).status();
    if !compiled.is_ok_and(|status| status.success()) {
        return numakit_skips::COMPILERS.skip("there is no javac");
    }
    // Beside other programs, the checkers may run one after the other for all of the three seconds.
    let mut by_checkers = false;
    for _ in 0..3 {
        let Some(shared) = explained(&folder, "java -cp . TypeCheck shared 3") else { return };
        by_checkers = is_line_of_checkers(&shared);
        if by_checkers {
            break;
        }
    }
    // Newer machines do not have this cache any more.
    let version = Command::new("java").arg("-version").output().unwrap();
    let version = String::from_utf8_lossy(&version.stderr).into_owned();
    println!("contended: {by_checkers}, with java {}", version.lines().next().unwrap_or(""));
    assert!(by_checkers || !version.contains("\"17."), "no line is of checkers only, in three runs");
}

/// Whether threads of the program that checks types, and no others, contend for a line.
fn is_line_of_checkers(explained: &Value) -> bool {
    let threads = explained["threads_sampled"].as_array().unwrap();
    let names: Vec<&str> = threads.iter().filter_map(|thread| thread["name"].as_str()).collect();
    explained["lines"].as_array().unwrap().iter().any(|line| {
        line["users"].as_array().unwrap().iter().all(|user| {
            let thread = user["thread"].as_u64().unwrap() as usize;
            names[thread].starts_with("checker-")
        })
    })
}

#[test]
fn functions_are_named_by_the_time_that_they_wait() {
    let folder = Folder::new("kernels");
    let Some(program) = program(&folder, "g++", "kernels.cpp") else { return };
    let Some(large) = explained(&folder, &format!("{} chain 256 1", program.display())) else { return };
    let (time, samples) = (&large["time"], &large["samples"]);
    let outside = time["near"].as_f64().unwrap() + time["far"].as_f64().unwrap();
    println!("chain: {time}");
    assert!(outside > 4.0 * time["computing"].as_f64().unwrap(), "{time}");
    assert!(samples["recovered"].as_u64() >= samples["memory"].as_u64().map(|n| n * 98 / 100), "{samples}");
    let first = large["functions"][0]["function"].as_str().unwrap();
    assert!(first.contains("chain"), "{}", large["functions"]);
    let line = large["source_lines"][0]["line"].as_u64().unwrap() as usize;
    let text = std::fs::read_to_string(source("kernels.cpp")).unwrap();
    assert!(text.lines().nth(line - 1).unwrap().contains("at = at->next"), "{line}");
    let Some(small) = explained(&folder, &format!("{} chain 0.25 1", program.display())) else { return };
    let time = &small["time"];
    println!("small chain: {time}");
    assert!(time["cached"].as_f64().unwrap() > 10.0 * time["near"].as_f64().unwrap(), "{time}");
}

#[test]
fn the_command_is_its_callers_child() {
    let folder = Folder::new("explain-status");
    if explained(&folder, "true").is_none() {
        return;
    }
    let run = |words: &[&str]| {
        let mut command = folder.numa("explain --");
        Done::of(command.args(words).output().unwrap())
    };
    run(&["sh", "-c", "echo out; echo err >&2; exit 7"]).says(7, "err\n");
    assert!(run(&["sh", "-c", "echo out"]).out.starts_with("out\n"));
    run(&["sh", "-c", "kill -TERM $$"]).says(143, "");
    run(&["/no/such/program"]).says(127, "cannot run '/no/such/program'");
    run(&["/"]).says(126, "cannot run '/'");
}

#[test]
fn bad_input_has_an_error_with_its_fix() {
    let folder = Folder::new("explain-errors");
    folder.run("explain").says(2, "--pid");
    folder.run("explain --pid 4194304").says(2, "there is no such process; 'numa tasks' lists the processes");
    folder.run("explain -F 0 -- true").says(2, "1..=10000");
    folder.run("explain --for soon -- true").says(2, "soon");
    let missing = folder.run("explain --json /no/such/folder/x.json -- true");
    if !missing.err.contains("no samples can be taken") {
        missing.says(2, "cannot write /no/such/folder/x.json");
    }
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let to_full = folder.numa("explain -- true").stdout(full).output().unwrap();
    if !String::from_utf8_lossy(&to_full.stderr).contains("no samples can be taken") {
        assert_eq!(to_full.status.code(), Some(1), "{}", String::from_utf8_lossy(&to_full.stderr));
    }
}

#[test]
fn a_running_process_is_observed_until_it_ends_or_the_time_is_over() {
    let folder = Folder::new("explain-pid");
    let spin = ["-c", "while :; do :; done"];
    let mut running = Command::new("sh").args(spin).stdin(Stdio::null()).spawn().unwrap();
    let done = folder.run(&format!("explain --for 500ms --json - --pid {}", running.id()));
    running.kill().unwrap();
    running.wait().unwrap();
    if done.code == 2 {
        assert!(done.err.contains("no samples can be taken"), "{}", done.err);
        return numakit_skips::PRIVILEGES.skip(&done.err);
    }
    done.says(0, "");
    let result: Value = serde_json::from_str(&done.out).unwrap();
    assert!(result["samples"]["total"].as_u64() > Some(0), "{result}");
    assert!(result["far_share"].is_null() || result["nodes"].as_array().is_some());
}

#[test]
fn what_was_collected_survives_a_kill() {
    let folder = Folder::new("explain-kill");
    if explained(&folder, "true").is_none() {
        return;
    }
    let spin = ["sh", "-c", "while :; do :; done"];
    let mut command = folder.numa("explain --json kept.json --");
    let mut observer = command.args(spin).spawn().unwrap();
    let file = folder.path("kept.json");
    until!(file.exists());
    observer.kill().unwrap();
    observer.wait().unwrap();
    let _ = Command::new("pkill").args(["-f", "while :; do :; done"]).status();
    let kept: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    assert_eq!(kept["complete"], false);
    assert!(kept["samples"]["total"].as_u64() > Some(0), "{kept}");
}

#[test]
fn hint_faults_are_refused_on_one_node_with_the_fix() {
    if Path::new("/sys/devices/system/node/node1").exists() {
        return numakit_skips::MACHINE.skip("this machine has several nodes");
    }
    let folder = Folder::new("hints");
    let done = folder.run("explain --hint-faults -- true");
    assert_eq!(done.code, 2, "{}", done.err);
    let fixes = ["has 1 node with memory; leave the option out", "sudo numa explain --hint-faults"];
    assert!(fixes.iter().any(|fix| done.err.contains(fix)), "{}", done.err);
}
