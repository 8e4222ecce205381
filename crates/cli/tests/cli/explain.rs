use crate::compiler::builds;
use crate::runner::{Done, Folder, Started};
use numakit_skips::Kind;
use numakit_sys::SysRoot;
use numakit_sys::proc::tree::family;
use numakit_testing::until;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A program of these tests.
pub fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/explain").join(name)
}

/// Compiles a program of this test.
pub fn program(folder: &Folder, compiler: &str, file: &str) -> Option<PathBuf> {
    compiled(folder, compiler, &source(file))
}

/// Compiles a program; none without a compiler.
pub fn compiled(folder: &Folder, compiler: &str, source: &Path) -> Option<PathBuf> {
    let program = folder.path(source.file_stem().unwrap().to_str().unwrap());
    if !builds(compiler, &["-O2", "-g", "-pthread"], source, &program) {
        numakit_skips::COMPILERS.skip(format_args!("there is no {compiler}"));
        return None;
    }
    Some(program)
}

/// What `numa explain --json` says of a command; `None` where samples cannot say it.
fn explained(folder: &Folder, command: &str) -> Option<Value> {
    explained_with(folder, "", command)
}

/// The same, with options.
pub fn explained_with(folder: &Folder, options: &str, command: &str) -> Option<Value> {
    explained_or_not(folder, options, command).map_err(|(kind, why)| kind.skip(why)).ok()
}

/// The same, or why samples cannot say it: there are none, or those of this machine are no use at present, as where the
/// neighbours of a virtual machine disturb them.
pub fn explained_or_not(
    folder: &Folder,
    options: &str,
    command: &str,
) -> Result<Value, (&'static Kind, String)> {
    explained_in(folder, &[], options, command)
}

/// The same, with these variables.
pub fn explained_in(
    folder: &Folder,
    variables: &[(&str, &str)],
    options: &str,
    command: &str,
) -> Result<Value, (&'static Kind, String)> {
    let mut numa = folder.numa(&format!("explain {options} --json result.json -- {command}"));
    let done = Done::of(numa.envs(variables.iter().copied()).output().unwrap());
    if done.code == 2 && done.err.contains("no samples can be taken") {
        return Err((&numakit_skips::SAMPLES, done.err));
    }
    assert_eq!(done.code, 0, "{} {}", done.out, done.err);
    let result: Value = serde_json::from_slice(&std::fs::read(folder.path("result.json")).unwrap()).unwrap();
    if result["regime"] != "precise" {
        let why = "samples of this machine do not name the instruction that waited";
        return Err((&numakit_skips::MACHINE, why.to_owned()));
    }
    Ok(result)
}

pub fn cpus() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

#[test]
fn measuring_contended_lines_are_named_and_nothing_is_said_of_their_twins() {
    let kinds = [("atomic-counters", "false"), ("mutex", "lock"), ("writer-and-reader", "false")];
    contended_lines_are_named("contended", &kinds);
}

#[test]
#[ignore = "thorough: four more kinds of contention, 20 seconds"]
fn measuring_contended_lines_of_every_kind_are_named() {
    let kinds = [
        ("one-atomic", "lock"),
        ("plain-counters", "false"),
        ("counters-with-work", "false"),
        ("spin-lock", "lock"),
    ];
    contended_lines_are_named("contended-more", &kinds);
}

/// The rules of the verdicts on objects.
fn verdicts(explained: &Value) -> Vec<&str> {
    let objects = explained["objects"].as_array().unwrap().iter();
    objects.filter_map(|object| object["verdict"]["rule"].as_str()).collect()
}

/// With kinds of contention and of sharing.
fn contended_lines_are_named(folder: &str, kinds: &[(&str, &str)]) {
    if cpus() < 2 {
        return numakit_skips::MACHINE.skip("two CPUs are needed for contention");
    }
    let folder = Folder::new(folder);
    let Some(program) = program(&folder, "cc", "contended.c") else { return };
    for &(kind, sharing) in kinds {
        let of = |way: &str| explained(&folder, &format!("{} {kind} {way} 2", program.display()));
        let (Some(apart), Some(shared)) = (of("apart"), of("shared")) else { return };
        let line = &shared["lines"][0];
        println!("{kind}: {} {}", line["sharing"], shared["time"]["contended"]);
        assert!(line.is_object(), "{kind}: no contended line of {} samples", shared["samples"]["total"]);
        assert_eq!(line["sharing"], sharing, "{kind}: {}", shared["lines"]);
        assert_eq!(line["users"].as_array().unwrap().len(), 2, "{kind}");
        assert_eq!(apart["lines"], Value::Array(Vec::new()), "{kind}");
        if kind == "atomic-counters" {
            assert!(!verdicts(&apart).contains(&"contended-lines"), "{:?}", verdicts(&apart));
            assert_eq!(verdicts(&shared), ["contended-lines"]);
        }
    }
}

#[test]
fn measuring_the_type_check_of_a_java_machine_is_a_contended_line() {
    if cpus() < 2 {
        return numakit_skips::MACHINE.skip("two CPUs are needed for contention");
    }
    let folder = Folder::new("typecheck");
    let compiled = Command::new("javac").arg("-d").arg(&folder.0).arg(source("TypeCheck.java")).status();
    if !compiled.is_ok_and(|status| status.success()) {
        return numakit_skips::COMPILERS.skip("there is no javac");
    }
    // Not every Java machine has this cache: whether a check takes longer where both threads use it tells the truth.
    let check = |way: &str| {
        let words = ["-cp", ".", "TypeCheck", way, "2"];
        let output = Command::new("java").args(words).current_dir(&folder.0).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        text.trim()
            .strip_suffix(" ns")
            .and_then(|ns| ns.parse::<f64>().ok())
            .unwrap_or_else(|| panic!("{text}"))
    };
    let times_longer = check("shared") / check("apart");
    let Some(shared) = explained(&folder, "java -cp . TypeCheck shared 4") else { return };
    let by_checkers = is_line_of_checkers(&shared);
    println!("a check that is shared takes {times_longer:.1} times as long; contended: {by_checkers}");
    assert!(by_checkers || times_longer < 2.0, "{times_longer}: {}", shared["lines"]);
    assert!(!by_checkers || times_longer > 1.2, "{times_longer}: {}", shared["lines"]);
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
fn measuring_functions_are_named_by_the_time_that_they_wait() {
    let folder = Folder::new("kernels");
    let Some(program) = program(&folder, "g++", "kernels.cpp") else { return };
    let Some(large) = explained(&folder, &format!("{} chain 256 1", program.display())) else { return };
    let (time, samples) = (&large["time"], &large["samples"]);
    let outside = time["local"].as_f64().unwrap() + time["remote"].as_f64().unwrap();
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
    assert!(time["cached"].as_f64().unwrap() > 10.0 * time["local"].as_f64().unwrap(), "{time}");
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
    folder.run("explain --cgroup /no/such/group").says(2, "no process is in such a control group; ");
    folder
        .run("explain --unit no-such-unit-here")
        .says(2, "no process is in a control group of a unit with that name; ");
    folder.run("explain --container no-such-container").says(2, "there is no container with processes");
    folder.run("explain --name no-such-program-here").says(2, "no program that runs has a matching name; ");
    folder.run("explain --name a(b").says(2, "pgrep -d,");
    folder.run("explain --name a --pid 1").says(2, "cannot be used with");
    folder.run("explain --unit a -- true").says(2, "cannot be used with");
    folder
        .run("explain --pid 4194304")
        .says(2, "there is no such process; 'numa top --once' lists the processes");
    folder.run("explain -F 0 -- true").says(2, "1..=10000");
    folder.run("explain --for soon -- true").says(2, "soon");
    let missing = folder.run("explain --json /no/such/folder/x.json -- true");
    if missing.err.contains("no samples can be taken") {
        return numakit_skips::SAMPLES.skip_part(&missing.err);
    }
    missing.says(2, "cannot write /no/such/folder/x.json");
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let to_full = folder.numa("explain -- true").stdout(full).output().unwrap();
    assert_eq!(to_full.status.code(), Some(1), "{}", String::from_utf8_lossy(&to_full.stderr));
}

#[test]
fn a_program_that_runs_on_after_the_time_is_named() {
    let folder = Folder::new("explain-left");
    let left = folder.run("explain --for 100ms sleep 3");
    if left.err.contains("no samples can be taken") {
        numakit_skips::SAMPLES.skip("no samples can be taken");
        return;
    }
    left.says(0, "the time of --for is over, and sleep runs on as process ");
    let done = folder.run("explain --for 60s true");
    assert!(done.code == 0 && !done.err.contains("runs on"), "{}", done.err);
}

#[test]
fn a_running_process_is_observed_until_it_ends_or_the_time_is_over() {
    let folder = Folder::new("explain-pid");
    let spin = ["-c", "while :; do :; done"];
    let running = Started::of(Command::new("sh").args(spin).stdin(Stdio::null()));
    let done = folder.run(&format!("explain --for 2s --json - --pid {}", running.id()));
    drop(running);
    if done.code == 2 {
        assert!(done.err.contains("no samples can be taken"), "{}", done.err);
        return numakit_skips::SAMPLES.skip(&done.err);
    }
    done.says(0, "");
    let result: Value = serde_json::from_str(&done.out).unwrap();
    assert!(result["samples"]["total"].as_u64() > Some(0), "{result}");
}

#[test]
fn a_process_that_ends_while_it_is_observed_has_the_time_of_its_samples() {
    let folder = Folder::new("explain-ended");
    let spin = ["0.4", "sh", "-c", "while :; do :; done"];
    let running = Started::of(Command::new("timeout").args(spin).stdin(Stdio::null()));
    let done = folder.run(&format!("explain --for 60s --json - --pid {}", running.id()));
    if done.code == 2 {
        // It may have ended before anybody looked at it.
        return numakit_skips::SAMPLES.skip(&done.err);
    }
    let result: Value = serde_json::from_str(&done.out).unwrap();
    let samples = result["samples"]["total"].as_u64().unwrap();
    let used = result["threads"]["user"].as_u64().unwrap();
    // 199 samples in a second; the first ones may come early, and the last account has whole ticks.
    assert!(used >= samples * 2_500_000, "{samples} samples, {used} ns");
}

/// A busy process whose program has this name.
fn busy(folder: &Folder, name: &str) -> Started {
    let program = folder.path(name);
    if !program.exists() {
        std::fs::copy("/bin/sh", &program).unwrap();
    }
    Started::of(Command::new(program).args(["-c", "while :; do :; done"]).stdin(Stdio::null()))
}

/// Observes what an option chooses until nothing of it is left, while a second process joins the first one. `join` is called with
/// each of them.
fn joined_by_a_second(
    folder: &Folder,
    option: &[&str],
    name: &str,
    join: &dyn Fn(&Started),
) -> Option<Value> {
    let first = busy(folder, name);
    join(&first);
    let mut observer = Started::of(
        folder.numa("explain --json kept.json").args(option).stdout(Stdio::null()).stderr(Stdio::null()),
    );
    let kept = || std::fs::read(folder.path("kept.json")).unwrap_or_default();
    until!(!kept().is_empty() || observer.child().try_wait().unwrap().is_some());
    if let Some(status) = observer.child().try_wait().unwrap() {
        assert_eq!(status.code(), Some(2));
        return None;
    }
    let second = busy(folder, name);
    join(&second);
    let seen = |pid: u32| {
        let result: Value = serde_json::from_slice(&kept()).unwrap_or_default();
        let processes = result["processes"].as_array().cloned().unwrap_or_default();
        processes.into_iter().find(|process| process["pid"] == pid)
    };
    until!(seen(second.id()).is_some());
    let numbers = [first.id(), second.id()];
    drop((first, second));
    // Nothing is left to observe.
    assert!(observer.wait().success());
    let [first, second] = numbers.map(|pid| seen(pid).unwrap());
    assert_eq!((&first["joined"], &second["joined"]), (&Value::Bool(false), &Value::Bool(true)));
    assert_eq!((&first["ended"], &second["name"]), (&Value::Bool(true), &Value::String(name.to_owned())));
    Some(serde_json::from_slice(&kept()).unwrap())
}

#[test]
fn programs_are_observed_by_their_name_and_those_that_start_later_too() {
    let folder = Folder::new("explain-name");
    let option = ["--name", "^numa-busy-a$"];
    let Some(result) = joined_by_a_second(&folder, &option, "numa-busy-a", &|_| ()) else {
        return numakit_skips::SAMPLES.skip("running processes cannot be sampled");
    };
    // Both have the same stack, which is one object.
    let processes = result["processes"].as_array().unwrap();
    let threads = result["threads_sampled"].as_array().unwrap();
    assert_eq!((processes.len(), threads.len()), (2, 2), "{processes:?}");
    let program = result["program"].as_str().unwrap();
    assert!(program.starts_with("programs named '^numa-busy-a$': numa-busy-a "), "{program}");
}

#[test]
fn a_control_group_is_observed_with_what_joins_it() {
    let folder = Folder::new("explain-group");
    let name = format!("numakit-test-{}", std::process::id());
    // The first hierarchy in which this user may make a group.
    let hierarchies = ["/sys/fs/cgroup", "/sys/fs/cgroup/pids", "/sys/fs/cgroup/freezer"];
    let made = hierarchies.map(|hierarchy| Path::new(hierarchy).join(&name)).into_iter().find(|group| {
        let is_group = || group.join("cgroup.procs").exists();
        std::fs::create_dir(group).is_ok() && (is_group() || std::fs::remove_dir(group).is_err())
    });
    let Some(group) = made else {
        return numakit_skips::ROOT.skip("no control group can be made here");
    };
    let join =
        |process: &Started| std::fs::write(group.join("cgroup.procs"), process.id().to_string()).unwrap();
    let option = ["--cgroup", group.to_str().unwrap()];
    let result = joined_by_a_second(&folder, &option, "numa-busy-b", &join);
    until!(std::fs::remove_dir(&group).is_ok());
    if result.is_none() {
        numakit_skips::SAMPLES.skip("running processes cannot be sampled");
    }
}

#[test]
fn memory_that_processes_share_is_one_object() {
    let folder = Folder::new("explain-shared");
    let Some(program) = program(&folder, "gcc", "forked.c") else { return };
    let Some(result) = explained(&folder, program.to_str().unwrap()) else { return };
    let objects = result["objects"].as_array().unwrap();
    for name in ["table", "shared mmap in main"] {
        let named = |object: &&Value| object["name"].as_str().unwrap().starts_with(name);
        let rows: Vec<&Value> = objects.iter().filter(named).collect();
        let [row] = rows.as_slice() else { panic!("{name}: {rows:?}") };
        // The parent has written it, and may have had samples of that.
        assert!(row["processes"].as_array().unwrap().len() >= 3, "{row}");
    }
    // Of shared memory there is one.
    let shared =
        objects.iter().find(|object| object["name"].as_str().unwrap().starts_with("shared mmap in main"));
    assert_eq!(shared.unwrap()["size"], 64 << 20);
}

#[test]
fn all_that_runs_below_a_process_is_observed() {
    let folder = Folder::new("explain-family");
    // A child and a grandchild are busy before anybody observes them; their parents sleep.
    let script = "spin() { while :; do :; done; }; spin & (spin & wait) & wait";
    let parent = Started::of(Command::new("sh").args(["-c", script]).stdin(Stdio::null()));
    let descendants = || family(&SysRoot::host(), parent.id()).split_off(1);
    until!(descendants().len() == 3);
    let done = folder.run(&format!("explain --for 2s --json - --pid {}", parent.id()));
    let numbers = descendants().iter().map(u32::to_string).collect::<Vec<_>>();
    assert!(Command::new("kill").args(&numbers).status().unwrap().success());
    if done.code == 2 {
        assert!(done.err.contains("no samples can be taken"), "{}", done.err);
        return numakit_skips::SAMPLES.skip(&done.err);
    }
    let result: Value = serde_json::from_str(&done.out).unwrap();
    let threads = result["threads_sampled"].as_array().unwrap();
    let sampled: BTreeSet<u64> = threads.iter().map(|thread| thread["pid"].as_u64().unwrap()).collect();
    assert!(sampled.len() == 2 && !sampled.contains(&u64::from(parent.id())), "{threads:?}");
}

#[test]
fn measuring_threads_with_one_cpu_are_told_who_gave_it_to_them() {
    let allowed = numakit_sys::sched::affinity().unwrap();
    let Some(cpu) = allowed.first().filter(|_| allowed.len() > 1) else {
        return numakit_skips::MACHINE.skip("two CPUs are needed: one for the threads, one that is idle");
    };
    let folder = Folder::new("explain-mask");
    let spin = "for i in 1 2 3; do timeout 2 sh -c 'while :; do :; done' & done; wait";
    let script = format!("taskset -c -p {cpu} $$ >/dev/null; {spin}");
    let mut command = folder.numa("explain --all --json result.json --");
    let done = Done::of(command.args(["sh", "-c", &script]).output().unwrap());
    let Ok(text) = std::fs::read(folder.path("result.json")) else {
        return numakit_skips::SAMPLES.skip(&done.err);
    };
    let result: Value = serde_json::from_slice(&text).unwrap();
    let first = &result["findings"][0];
    assert_eq!(first["rule"], "narrow-cpu-mask", "{}", result["findings"]);
    let says = first["says"].as_str().unwrap();
    assert!(says.starts_with(&format!("3 busy threads may only use CPU {cpu}, and wait for it")), "{says}");
    let words = first["remedy"]["words"].as_str().unwrap();
    assert!(words.starts_with("The program set the mask itself"), "{words}");
    assert!(done.out.contains(says), "{}", done.out);
}

#[test]
fn a_program_that_sleeps_is_not_called_calm() {
    let folder = Folder::new("explain-asleep");
    let running = Started::of(Command::new("sleep").arg("1000").stdin(Stdio::null()));
    let done = folder.run(&format!("explain --all --for 1s --pid {}", running.id()));
    drop(running);
    if done.code == 2 {
        assert!(done.err.contains("no samples can be taken"), "{}", done.err);
        return numakit_skips::SAMPLES.skip(&done.err);
    }
    let mut lines = done.out.lines();
    let (first, second) = (lines.next().unwrap(), lines.next().unwrap());
    assert!(
        first.starts_with("Its one thread is not busy (0.0 % of a CPU); it waits: 100.0 % for a timer"),
        "{first}"
    );
    assert!(
        second.starts_with("Too few samples to tell what it does: 0, since its threads used"),
        "{second}"
    );
}

#[test]
fn what_was_collected_survives_a_kill() {
    let folder = Folder::new("explain-kill");
    if explained(&folder, "true").is_none() {
        return;
    }
    let spin = ["sh", "-c", "echo $$ >pid; while :; do :; done"];
    let mut command = folder.numa("explain --json kept.json --");
    let observer = Started::of(command.args(spin));
    let file = folder.path("kept.json");
    until!(file.exists());
    drop(observer);
    let pid = std::fs::read_to_string(folder.path("pid")).unwrap();
    // It may have ended with its observer.
    let _ = Command::new("kill").args(["-KILL", pid.trim()]).stderr(Stdio::null()).status();
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
