//! The launcher mirrors the program: status, signals, stopping, standard input and output.

use crate::scene::{Scene, kill, state};
use numakit_testing::until;
use std::process::Stdio;

/// Counts signals; TERM ends it, with the count as its status.
const COUNT: &str =
    "n=0; trap 'n=$((n+1)); echo $n' USR1; trap 'exit $n' TERM; echo $$; while :; do sleep 0.02; done";

#[test]
fn the_status_is_the_programs() {
    let scene = Scene::new("status");
    for status in [0, 1, 42, 126, 127, 255] {
        let ended = scene.hold(&["0", "sh", "-c", &format!("exit {status}")]).status().unwrap();
        assert_eq!(ended.code(), Some(status));
    }
}

#[test]
fn the_launcher_dies_of_the_signal_that_killed_the_program() {
    use std::os::unix::process::ExitStatusExt;
    let scene = Scene::new("death");
    for (name, number) in [("KILL", 9), ("TERM", 15), ("SEGV", 11), ("INT", 2), ("HUP", 1), ("USR2", 12)] {
        let ended =
            scene.hold(&["0", "sh", "-c", &format!("ulimit -c 0; kill -{name} $$")]).status().unwrap();
        assert_eq!(ended.signal(), Some(number), "{name}");
        assert!(!ended.core_dumped());
    }
}

#[test]
fn a_program_that_cannot_be_started_gives_status_127_or_126() {
    let scene = Scene::new("missing");
    let missing = scene.hold(&["0", "/no/such/program"]).output().unwrap();
    assert_eq!(missing.status.code(), Some(127));
    let folder = scene.hold(&["0", "/tmp"]).output().unwrap();
    assert_eq!(folder.status.code(), Some(126));
    // More than a kernel supports.
    let bound = scene.hold(&["--bind", "8191", "true"]).output().unwrap();
    let message = String::from_utf8_lossy(&bound.stderr).into_owned();
    assert!(bound.status.code() == Some(2) && message.contains("its CPUs cannot be set"), "{message}");
    assert_eq!(scene.held(), "");
}

#[test]
fn a_signal_to_the_launcher_reaches_the_program_once() {
    let scene = Scene::new("once");
    let (mut run, _) = scene.running(&["0", "sh", "-c", COUNT]);
    for count in 1..=5 {
        kill("USR1", run.pid());
        assert_eq!(run.line(), count.to_string());
    }
    kill("TERM", run.pid());
    assert_eq!(run.status(), 5);
}

#[test]
fn a_signal_to_the_whole_group_reaches_the_program_once() {
    let scene = Scene::new("group");
    let (mut run, _) = scene.running(&["0", "sh", "-c", COUNT]);
    for count in 1..=5 {
        kill("USR1", format!("-{}", run.pid()));
        assert_eq!(run.line(), count.to_string());
        // A second delivery would arrive within this time.
        std::thread::sleep(std::time::Duration::from_millis(30));
    }
    kill("TERM", format!("-{}", run.pid()));
    assert_eq!(run.status(), 5);
    scene.until_held("");
}

#[test]
fn a_program_in_a_group_of_its_own_gets_what_the_launchers_group_gets() {
    let scene = Scene::new("apart");
    let (mut run, _) = scene.running(&["0", "setsid", "sh", "-c", COUNT]);
    kill("USR1", format!("-{}", run.pid()));
    assert_eq!(run.line(), "1");
    kill("TERM", format!("-{}", run.pid()));
    assert_eq!(run.status(), 1);
}

#[test]
fn the_launcher_stops_and_continues_with_the_program() {
    let scene = Scene::new("standstill");
    let (mut run, pid) = scene.running(&["0", "sh", "-c", COUNT]);
    let program: u32 = pid.parse().unwrap();
    let launcher = run.pid();
    let stopped = |pid: u32| move || state(pid) == 'T';
    for to in [launcher.to_string(), format!("-{launcher}")] {
        kill("STOP", program);
        until!(stopped(program)(), "the program is stopped");
        until!(stopped(launcher)(), "the launcher is stopped");
        kill("CONT", to);
        until!(!stopped(program)(), "the program continues");
        until!(!stopped(launcher)(), "the launcher continues");
    }
    // Only the program is continued.
    kill("STOP", program);
    until!(stopped(launcher)(), "the launcher is stopped");
    kill("CONT", program);
    until!(!stopped(launcher)(), "the launcher continues");
    kill("USR1", launcher);
    assert_eq!(run.line(), "1");
    kill("TERM", launcher);
    assert_eq!(run.status(), 1);
}

#[test]
fn input_and_output_are_the_programs() {
    use std::io::Write;
    let scene = Scene::new("input");
    let mut command = scene.hold(&["0", "sh", "-c", "cat; echo done >&2; pwd"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).current_dir("/usr");
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"hello\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.stdout.as_slice(), output.stderr.as_slice()), (&b"hello\n/usr\n"[..], &b"done\n"[..]));
}

#[test]
fn other_descriptors_pass_through() {
    let scene = Scene::new("others");
    let file = scene.path("third");
    let hold = env!("CARGO_BIN_EXE_hold");
    let script = format!("{hold} 0 sh -c 'echo third >&7' 7>{}", file.display());
    let mut ended = std::process::Command::new("sh");
    ended.args(["-c", &script]).env("NUMAKIT_REGISTRY", scene.registry());
    assert!(ended.status().unwrap().success());
    assert_eq!(std::fs::read_to_string(file).unwrap(), "third\n");
}
