//! Errors name the fix, and nothing is left behind.

use crate::scene::{Scene, exists, kill};
use numakit_testing::until;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

fn refusal(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_file_that_is_something_else_is_left_alone() {
    let scene = Scene::new("foreign");
    fs::write(scene.registry(), "a letter to somebody").unwrap();
    let message = refusal(&mut scene.hold(&["0", "true"]));
    assert!(message.contains("is not a registry of cores: it begins with \"a letter to some\""), "{message}");
    assert!(
        message.contains("name another file in NUMAKIT_REGISTRY, or let its owner move it away"),
        "{message}"
    );
    assert_eq!(fs::read_to_string(scene.registry()).unwrap(), "a letter to somebody");
    fs::write(scene.registry(), "NUMAKIT CORES 2\n").unwrap();
    let message = refusal(&mut scene.hold(&["0", "true"]));
    assert!(message.contains("of another version of numa") && !message.contains("remove"), "{message}");
    fs::remove_file(scene.registry()).unwrap();
    symlink("/dev/null", scene.registry()).unwrap();
    assert!(refusal(&mut scene.hold(&["0", "true"])).contains("it is a symbolic link; remove the link"));
    fs::remove_file(scene.registry()).unwrap();
    assert!(Command::new("mkfifo").arg(scene.registry()).status().unwrap().success());
    let message = refusal(&mut scene.hold(&["0", "true"]));
    assert!(message.contains("not a regular file; name a regular file in NUMAKIT_REGISTRY"), "{message}");
}

#[test]
fn the_limit_of_open_files_is_no_reason_to_remove_the_registry() {
    let scene = Scene::new("descriptors");
    let script = format!("ulimit -n 100; exec {} 0 true", env!("CARGO_BIN_EXE_hold"));
    let mut command = Command::new("sh");
    command.args(["-c", &script]).env("NUMAKIT_REGISTRY", scene.registry());
    let message = refusal(&mut command);
    let limit = "cannot be opened: this process may have 100 files open";
    assert!(message.contains(limit) && message.contains("'ulimit -n 1024'"), "{message}");
    assert!(!message.contains("remove"), "{message}");
}

#[test]
fn a_folder_has_the_registry_in_it() {
    let scene = Scene::new("folder");
    fs::create_dir(scene.registry()).unwrap();
    assert!(scene.hold(&["0", "true"]).status().unwrap().success());
    assert!(scene.registry().join("numakit-cores").is_file());
}

#[test]
fn a_missing_directory_is_an_error() {
    let scene = Scene::new("nowhere");
    let mut command = scene.hold(&["0", "true"]);
    command.env("NUMAKIT_REGISTRY", "/no/such/folder/cores");
    let message = refusal(&mut command);
    assert!(
        message.contains(
            "/no/such/folder/cores cannot be created: its directory does not exist; create the directory"
        ),
        "{message}"
    );
}

#[test]
fn an_empty_file_is_made_a_registry() {
    let scene = Scene::new("empty");
    fs::write(scene.registry(), "").unwrap();
    assert_eq!(scene.held(), "");
    assert!(scene.hold(&["0", "true"]).status().unwrap().success());
    assert!(fs::read(scene.registry()).unwrap().starts_with(b"NUMAKIT CORES 1\n"));
}

#[test]
fn all_users_may_write_the_file() {
    let scene = Scene::new("mode");
    let script = format!("umask 077; exec {} 0 true", env!("CARGO_BIN_EXE_hold"));
    let mut command = Command::new("sh");
    command.args(["-c", &script]).env("NUMAKIT_REGISTRY", scene.registry());
    assert!(command.status().unwrap().success());
    assert_eq!(fs::metadata(scene.registry()).unwrap().permissions().mode() & 0o777, 0o666);
}

#[test]
fn limits_are_enforced() {
    let scene = Scene::new("limits");
    let file = scene.path("limits");
    let limited = |words: &[&str]| {
        let mut command = scene.hold(words);
        command.env("NUMAKIT_LIMITS", &file);
        command
    };
    let user = numakit_sys::user::real_id();
    fs::write(&file, format!("default 100\nuid {user} 3\n")).unwrap();
    let (mut run, pid) = scene.running(&["0-1", "sh", "-c", "echo $$; exec sleep 1000"]);
    let message = refusal(&mut limited(&["5-6", "true"]));
    let expected =
        format!("may hold 3 and holds 2; request fewer, wait, use --share, or change {}:2", file.display());
    assert!(message.contains("2 cores were requested") && message.contains(&expected), "{message}");
    assert!(limited(&["5", "true"]).status().unwrap().success());
    fs::write(&file, "everybody 3\n").unwrap();
    assert!(refusal(&mut limited(&["5", "true"])).contains(":1: 'everybody 3' is not understood; a line is"));
    fs::remove_file(&file).unwrap();
    assert!(refusal(&mut limited(&["5", "true"])).contains("cannot be read"));
    kill("TERM", pid);
    run.status();
}

#[test]
fn a_full_disk_is_an_error_and_nothing_is_left() {
    let scene = Scene::new("full");
    let mount = scene.path("small");
    fs::create_dir(&mount).unwrap();
    let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=16k", "none"]).arg(&mount).output();
    if !mounted.is_ok_and(|output| output.status.success()) {
        numakit_skips::PRIVILEGES.skip("no file system can be mounted here; root may");
        return;
    }
    let mut command = scene.hold(&["0", "true"]);
    command.env("NUMAKIT_REGISTRY", mount.join("cores"));
    let message = refusal(&mut command);
    let left: Vec<_> = fs::read_dir(&mount).unwrap().collect();
    let read_only = Command::new("mount").args(["-o", "remount,ro"]).arg(&mount).status().unwrap().success();
    let second = refusal(&mut command);
    assert!(Command::new("umount").arg(&mount).status().unwrap().success());
    assert!(message.contains("cannot be created: its file system is full; free space there"), "{message}");
    assert!(left.is_empty(), "{left:?}");
    assert!(read_only && second.contains("its file system is read-only; name a writable file"), "{second}");
}

#[test]
fn a_file_that_only_its_owner_may_use_is_an_error() {
    if numakit_sys::user::id() != 0 || !Path::new("/usr/bin/setpriv").exists() {
        numakit_skips::ROOT.skip("only root with setpriv can be two users");
        return;
    }
    let scene = Scene::new("closed");
    fs::set_permissions(scene.path(""), PermissionsExt::from_mode(0o755)).unwrap();
    // The program is copied to a place that another user can access.
    let program = scene.path("hold");
    fs::copy(env!("CARGO_BIN_EXE_hold"), &program).unwrap();
    let other = |words: &[&str]| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]).arg(&program).args(words);
        command.env("NUMAKIT_REGISTRY", scene.registry());
        command
    };
    assert!(scene.hold(&["0", "true"]).status().unwrap().success());
    let (mut run, pid) = scene.running(&["0-1", "sh", "-c", "echo $$; exec sleep 1000"]);
    assert!(refusal(&mut other(&["1", "true"])).contains("CPUs 0-1 are held by sh of root"));
    assert!(other(&["2", "true"]).status().unwrap().success());
    fs::set_permissions(scene.registry(), PermissionsExt::from_mode(0o600)).unwrap();
    let message = refusal(&mut other(&["2", "true"]));
    let expected =
        "cannot be opened: permission denied (it belongs to root, mode 600); its owner or root can allow";
    assert!(message.contains(expected), "{message}");
    kill("TERM", &pid);
    run.status();
    until!(!exists(Path::new(&format!("/proc/{pid}"))), "it ended");
}
