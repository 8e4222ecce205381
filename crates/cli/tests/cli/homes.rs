//! Folders of another user, as with `sudo -u` that keeps HOME, or in a container.

use crate::runner::{Done, Folder};
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::process::Command;

const NOBODY: &str = "65534";

/// Runs `numa` as the user nobody with a home of root; `None` if this process cannot be two users.
pub fn nobody(folder: &Folder, temporary: &Path, words: &[&str]) -> Option<Done> {
    if numakit_sys::user::id() != 0 || !Path::new("/usr/bin/setpriv").exists() {
        numakit_skips::ROOT.skip("only root with setpriv can be two users");
        return None;
    }
    let (numa, home) = (folder.path("numa"), folder.path("home"));
    if !numa.exists() {
        // By another process: a child that another test starts meanwhile would have the file open, and it could not run.
        let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_numa")).arg(&numa).status().unwrap();
        assert!(copied.success());
        fs::create_dir_all(home.join(".config/numakit")).unwrap();
        fs::create_dir_all(home.join("run")).unwrap();
        fs::write(home.join(".config/numakit/no-huge-pages"), "sh\n").unwrap();
        fs::write(home.join(".config/numakit/formulas.txt"), "no formula\n").unwrap();
        fs::set_permissions(&home, PermissionsExt::from_mode(0o700)).unwrap();
        fs::create_dir(folder.path("own")).unwrap();
        chown(folder.path("own"), Some(65534), Some(65534)).unwrap();
        // The user nobody can write here.
        fs::set_permissions(&folder.0, PermissionsExt::from_mode(0o777)).unwrap();
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"]).arg(numa).args(words);
    command.current_dir(&folder.0).env("HOME", &home).env("TMPDIR", temporary);
    command.env("XDG_RUNTIME_DIR", home.join("run")).env("NUMAKIT_REGISTRY", folder.path("registry"));
    for name in [
        "XDG_CONFIG_HOME",
        "XDG_CACHE_HOME",
        "NUMAKIT_CACHE",
        "NUMAKIT_PRELOAD",
        "NUMAKIT_LIMITS",
        "LD_PRELOAD",
    ] {
        command.env_remove(name);
    }
    Some(Done::of(command.output().unwrap()))
}

const RUN: [&str; 9] = ["run", "-c", "1", "--busy", "off", "--", "sh", "-c", "echo ran ${LD_PRELOAD:-none}"];

#[test]
fn a_program_runs_although_settings_cannot_be_read() {
    let folder = Folder::new("homes");
    let Some(done) = nobody(&folder, &folder.path("own"), &RUN) else { return };
    assert!(done.code == 0 && done.out.ends_with("/libnumaplace.so\n"), "{} {}", done.out, done.err);
    let warning = "numa: warning: ";
    assert!(done.err.starts_with(warning) && done.err.lines().count() == 1, "{}", done.err);
    assert!(done.err.contains("no-huge-pages cannot be read (Permission denied"), "{}", done.err);
}

#[test]
fn a_program_runs_where_no_folder_takes_the_library() {
    let folder = Folder::new("homes-nowhere");
    let Some(done) = nobody(&folder, &folder.path("home"), &RUN) else { return };
    assert_eq!((done.code, done.out.as_str()), (0, "ran none\n"), "{}", done.err);
    let line = done.err.lines().find(|line| line.contains("libnumaplace")).unwrap();
    assert!(
        line.starts_with("numa: sh runs without libnumaplace.so (libnumaplace.so cannot be extracted: "),
        "{line}"
    );
    assert!(line.contains("set NUMAKIT_CACHE to a directory") && line.contains("it runs on CPUs "), "{line}");
    // If the user names a library, a missing one is an error.
    let mut command = folder.numa("run -c 1 --busy off -- true");
    command.env("NUMAKIT_REGISTRY", folder.path("registry")).env("NUMAKIT_PRELOAD", "/no/such/file.so");
    Done::of(command.output().unwrap())
        .says(2, "NUMAKIT_PRELOAD is '/no/such/file.so', where there is no file");
}

#[test]
fn other_verbs_work_without_a_home() {
    let folder = Folder::new("homes-verbs");
    for words in [
        &["topo"][..],
        &["list"],
        &["stat", "-i", "20ms", "--", "true"],
        &["record", "-i", "5ms", "-o", "own/a.arrows", "--", "true"],
        &["show", "own/a.arrows"],
        &["plan", "--threads", "1"],
        &["ps"],
        &["top", "--once"],
    ] {
        let Some(done) = nobody(&folder, &folder.path("own"), words) else { return };
        assert_eq!(done.code, 0, "{words:?}: {}", done.err);
        assert!(!done.err.contains("panicked"), "{words:?}: {}", done.err);
    }
}
