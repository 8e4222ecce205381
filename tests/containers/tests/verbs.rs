//! Every verb once in containers as Docker and Podman start them, as root and not: its exit status
//! and what it says of what is refused.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use numakit_containers::{Container, Profile, are_here};
use std::fmt::Write;
use std::path::Path;

/// Each verb with a command line that needs nothing but this machine.
const VERBS: [(&str, &str); 28] = [
    ("topo", "numa topo"),
    ("list", "numa list"),
    ("stat", "numa stat -e cpu.user -- true"),
    ("record", "numa record -o $HOME/a.numa -- true"),
    ("show", "numa show $HOME/a.numa"),
    ("export", "numa export --to csv -o - $HOME/a.numa"),
    ("recover", "numa recover --help"),
    ("show --page", "numa show --page --help"),
    ("live", "numa live --help"),
    ("ctl", "numa ctl --help"),
    ("top --once", "numa top --once"),
    ("file show", "numa file show $HOME/a.numa"),
    ("file move", "numa file move --node 0 $HOME/a.numa"),
    ("file load", "numa file load --policy local $HOME/a.numa"),
    ("file load bind", "numa file load --policy bind:0 $HOME/a.numa"),
    ("file load interleave", "numa file load --policy interleave $HOME/a.numa"),
    ("bench", "numa bench all --size 1M --time 1ms"),
    ("explain", "numa explain --rows 0 -- true"),
    ("ps", "numa ps"),
    // What cannot be told stands below the table.
    ("jobs", "sh -c 'numa jobs --interval 100ms >&2'"),
    ("serve", SERVED),
    ("plan", "numa plan -c 1"),
    ("run", "numa run --busy off -c 1 -- true"),
    ("run --memory bind", "numa run --busy off -c 1 --memory bind:0 -- true"),
    ("run --memory-try", "numa run --busy off -c 1 --memory bind:0 --memory-try -- true"),
    ("man", "numa man"),
    ("completions", "numa completions bash"),
    ("capture", "numa capture -o $HOME/a.tar.gz"),
];

/// Serves until it has said where, and is ended then.
const SERVED: &str = "sh -c 'numa serve --listen 127.0.0.1:0 >$HOME/url & serve=$!; \
    until grep -q http $HOME/url; do kill -0 $serve || break; sleep 0.1; done; kill -TERM $serve; wait $serve'";

fn containers() -> Vec<(&'static str, Container)> {
    let docker = || Container::new(Profile::Docker).file("/.dockerenv", "");
    let podman = || Container::new(Profile::Podman).file("/run/.containerenv", "");
    vec![
        ("no filter, root", Container::new(Profile::Open)),
        ("Docker, root", docker()),
        ("Docker, root, SYS_NICE", docker().capability("SYS_NICE")),
        ("Docker, root, PERFMON", docker().capability("PERFMON")),
        ("Docker, root, read-only", docker().read_only()),
        ("Docker, user 1000", docker().user(1000)),
        ("Docker, user 1000, SYS_NICE", docker().user(1000).capability("SYS_NICE")),
        ("Podman, root", podman()),
        ("Podman, root, SYS_ADMIN", podman().capability("SYS_ADMIN")),
        ("Podman, user 1000", podman().user(1000)),
    ]
}

/// Runs all verbs in one container: a line with the status of each, and those of its lines that tell
/// what is refused.
fn table() -> String {
    let mut script = String::new();
    for (name, command) in VERBS {
        _ = writeln!(
            script,
            "{command} > /dev/null 2> $HOME/err; status=$?; echo \"  {name}: $status\"; \
             grep -E 'refuse|cannot be set' $HOME/err | sed 's/^/    /'"
        );
    }
    script.push_str("numa doctor | sed -n '/^Permissions/,$p' | grep -E '^Permissions|refused|fix:'\n");
    let mut table = String::new();
    for (name, container) in containers() {
        // A read-only root has no folder that can be written to but this one.
        let run = format!("export HOME=/dev/shm; cd /; {script}");
        let output = container.output(&["sh", "-c", &run]).unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        _ = writeln!(table, "{name}\n{text}");
        print!("{}", String::from_utf8_lossy(&output.stderr));
    }
    table
}

#[test]
fn every_verb_works_or_says_what_permits_it() {
    if !are_here() {
        return;
    }
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/verbs.txt");
    let table = table();
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&golden, &table).unwrap();
    }
    let expected = std::fs::read_to_string(&golden).unwrap();
    assert!(table == expected, "UPDATE=1 writes the new table:\n{table}");
}
