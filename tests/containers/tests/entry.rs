//! `numa` as the entry point of an image: signals of the runtime, exit status, orphans.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use numakit_containers::{Container, Profile, are_here};
use numakit_testing::children::Lines;

fn docker() -> Container {
    Container::new(Profile::Docker).file("/.dockerenv", "")
}

#[test]
fn the_status_of_the_program_is_that_of_the_container() {
    if !are_here() {
        return;
    }
    for (command, status) in
        [("exit 0", 0), ("exit 7", 7), ("kill -9 $$", 137), ("exec no-such-program 2> /dev/null", 127)]
    {
        let words = ["numa", "run", "--busy", "off", "-c", "1", "--", "sh", "-c", command];
        assert_eq!(docker().output(&words).unwrap().status.code(), Some(status), "{command}");
    }
    let none =
        docker().output(&["numa", "run", "--busy", "off", "-c", "1", "--", "no-such-program"]).unwrap();
    assert_eq!(none.status.code(), Some(127));
}

#[test]
fn the_runtime_stops_the_program_by_a_signal() {
    if !are_here() {
        return;
    }
    let script = "trap 'echo stopped; exit 7' TERM; echo ready; while :; do sleep 0.1; done";
    let mut running =
        docker().start(&["numa", "run", "--busy", "off", "-c", "1", "--", "sh", "-c", script]).unwrap();
    let mut lines = Lines::of(running.child.stdout.take().unwrap());
    assert_eq!(lines.next().as_deref(), Some("ready"));
    running.signal("TERM").unwrap();
    assert_eq!(lines.next().as_deref(), Some("stopped"));
    assert_eq!(running.wait().unwrap().status.code(), Some(7));
}

#[test]
fn orphans_of_the_program_are_reaped() {
    if !are_here() {
        return;
    }
    // Its child ends as an orphan while the program runs: that it is gone is waited for, for at most a minute.
    let script = "sh -c 'sleep 0.2 & echo $! >/tmp/orphan'; tries=0
        while [ -e /proc/$(cat /tmp/orphan) ] && [ $tries -lt 600 ]; do sleep 0.1; tries=$((tries + 1)); done
        grep -l '^State:.Z' /proc/[0-9]*/status 2> /dev/null | wc -l";
    let output =
        docker().output(&["numa", "run", "--busy", "off", "-c", "1", "--", "sh", "-c", script]).unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "0");
}
