//! `numa run` with programs of every kind, for other users, and on a terminal.

use crate::compiler::builds;
use crate::run::{numa, run};
use crate::runner::{Done, Folder};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

const NOBODY: u32 = 65534;

/// The program `kinds`, built by this compiler; `None`, and a message, without the compiler.
fn kind(folder: &Folder, name: &str, compiler: &[&str]) -> Option<PathBuf> {
    let program = built(folder, name, compiler);
    if program.is_none() {
        lacking(compiler).skip(format_args!("no {} here that builds", compiler.join(" ")));
    }
    program
}

/// The same for a test that continues with other compilers.
fn one_kind(folder: &Folder, name: &str, compiler: &[&str]) -> Option<PathBuf> {
    let program = built(folder, name, compiler);
    if program.is_none() {
        lacking(compiler).skip_part(format_args!("no {} here that builds", compiler.join(" ")));
    }
    program
}

fn lacking(compiler: &[&str]) -> &'static numakit_skips::Kind {
    if compiler[0] == "clang" { &numakit_skips::CLANG } else { &numakit_skips::COMPILERS }
}

fn built(folder: &Folder, name: &str, compiler: &[&str]) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/guest/programs/kinds.c");
    let program = folder.path(name);
    builds(compiler[0], &[&compiler[1..], &["-pthread"]].concat(), &source, &program).then_some(program)
}

/// One core, and a memory policy that threads can print.
const ON_ONE: [&str; 7] = ["-c", "1", "--busy", "off", "--memory", "interleave:0", "--"];
const LOOKS: [&str; 4] = ["main", "thread", "thread", "main"];

/// Checks that every thread ran on the core with the policy.
fn ran(done: &Done) {
    let expected = LOOKS.map(|name| format!("{name} cpus 1 policy 3 nodes 0\n")).concat();
    assert_eq!((done.code, done.out.as_str()), (0, expected.as_str()), "{}", done.err);
}

/// Checks the message about a program without the library.
fn has_note(done: &Done, is: &str) {
    ran(done);
    let begins = format!("numa: {is}: its threads are not bound one by one and their stacks are not placed");
    assert!(done.err.starts_with(&begins) && done.err.lines().count() == 1, "{}", done.err);
}

#[test]
fn programs_of_musl_are_started_without_the_library() {
    let folder = Folder::new("kinds-musl");
    let Some(program) = kind(&folder, "moved", &["musl-gcc"]) else { return };
    let program = program.to_str().unwrap();
    let done = run(&folder, &[&ON_ONE[..], &[program]].concat());
    has_note(&done, "moved is linked with musl");
    // A shell passes LD_PRELOAD on; the loader of musl ignores the library.
    let below = format!("env | grep ^LD_PRELOAD && {program}");
    let done = run(&folder, &[&ON_ONE[..], &["sh", "-c", &below]].concat());
    let (preload, rest) = done.out.split_once('\n').unwrap();
    assert!(preload.ends_with("/$LIB/libnumaplace.so"), "{preload}");
    ran(&Done { out: rest.to_owned(), ..done });
}

#[test]
fn static_programs_get_mask_and_policy_for_all_their_threads() {
    let folder = Folder::new("kinds-static");
    for (name, compiler) in [
        ("fixed", ["cc", "-static"]),
        ("fixed-musl", ["musl-gcc", "-static"]),
        ("pie", ["cc", "-static-pie"]),
    ] {
        let Some(program) = one_kind(&folder, name, &compiler) else { continue };
        let done = run(&folder, &[&ON_ONE[..], &[program.to_str().unwrap()]].concat());
        has_note(&done, &format!("{name} is statically linked"));
    }
}

/// Checks that the library is loaded: it prints a line about the main thread.
fn placed(done: &Done, status: i32) {
    let message = done.err.lines().find(|line| line.starts_with("numaplace: process"));
    assert!(done.code == status && message.is_some(), "status {}: {}", done.code, done.err);
}

const TOLD_ON_ONE: [&str; 8] = ["-v", "-c", "1", "--busy", "off", "--memory", "interleave:0", "--"];

#[test]
fn programs_with_sanitizers_are_placed() {
    sanitized_programs_are_placed("kinds-sanitized", &[("cc", "address"), ("cc", "thread")]);
}

#[test]
#[ignore = "thorough: other sanitizers than the first test has, 10 seconds"]
fn programs_with_any_sanitizer_are_placed() {
    let of_gcc = ["undefined", "leak"].map(|name| ("cc", name));
    let of_clang = ["address", "thread", "undefined", "memory"].map(|name| ("clang", name));
    sanitized_programs_are_placed("kinds-sanitizers", &[&of_gcc[..], &of_clang].concat());
}

/// With a compiler and the name of a sanitizer each.
fn sanitized_programs_are_placed(folder: &str, kinds: &[(&str, &str)]) {
    let folder = Folder::new(folder);
    let expected = LOOKS.map(|name| format!("{name} cpus 1 policy 3 nodes 0\n")).concat();
    for &(compiler, name) in kinds {
        let option = format!("-fsanitize={name}");
        let Some(program) = one_kind(&folder, &format!("{name}-{compiler}"), &[compiler, &option]) else {
            continue;
        };
        let program = program.to_str().unwrap();
        let done = run(&folder, &[&TOLD_ON_ONE[..], &[program]].concat());
        placed(&done, 0);
        assert_eq!(done.out, expected, "{compiler} {name}");
        // A script may start it with its own options.
        let below = format!("ASAN_OPTIONS=verbosity=0 {program}");
        let done = run(&folder, &[&TOLD_ON_ONE[..], &["sh", "-c", &below]].concat());
        placed(&done, 0);
        assert_eq!(done.out, expected, "{compiler} {name}");
    }
}

#[test]
fn a_program_in_which_a_sanitizer_finds_an_error_ends_as_without_numa() {
    let folder = Folder::new("kinds-faults");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/guest/programs/faults.c");
    let own = "-DOPTIONS=\"exitcode=7\"";
    for (name, options, status) in
        [("faults", &["cc"][..], 1), ("own", &["cc", own], 7), ("static", &["cc", "-static-libasan"], 1)]
    {
        let program = folder.path(name);
        let words = [&options[1..], &["-fsanitize=address", "-pthread"]].concat();
        if !builds(options[0], &words, &source, &program) {
            numakit_skips::COMPILERS
                .skip_part(format_args!("no {} here that builds with -fsanitize=address", options.join(" ")));
            continue;
        }
        // Symbolizing takes long.
        let quickly = |command: &mut Command| command.env("ASAN_OPTIONS", "symbolize=0").output().unwrap();
        let alone = quickly(&mut Command::new(&program));
        assert_eq!(alone.status.code(), Some(status), "{}", String::from_utf8_lossy(&alone.stderr));
        let words = [&TOLD_ON_ONE[..], &[program.to_str().unwrap()]].concat();
        let done = Done::of(quickly(&mut numa(&folder, &words)));
        placed(&done, status);
        assert!(done.err.contains("heap-buffer-overflow"), "{}", done.err);
    }
}

#[test]
fn a_preloaded_sanitizer_stays_after_the_library() {
    let folder = Folder::new("kinds-preloaded");
    let Some(program) = kind(&folder, "plain", &["cc"]) else { return };
    let asked = Command::new("cc").arg("-print-file-name=libasan.so").output().unwrap();
    let sanitizer = String::from_utf8(asked.stdout).unwrap().trim().to_owned();
    if !Path::new(&sanitizer).is_absolute() {
        numakit_skips::COMPILERS.skip("this compiler has no libasan.so");
        return;
    }
    let mut numa = numa(&folder, &[&TOLD_ON_ONE[..], &[program.to_str().unwrap()]].concat());
    let done = Done::of(numa.env("LD_PRELOAD", &sanitizer).output().unwrap());
    placed(&done, 0);
    let order = format!("/libnumaplace.so:{sanitizer}");
    assert!(
        done.err.lines().any(|line| line.contains("set LD_PRELOAD=") && line.contains(&order)),
        "{}",
        done.err
    );
}

#[test]
fn privileged_programs_get_mask_and_policy() {
    if numakit_sys::user::id() != 0 || !Path::new("/usr/bin/setpriv").exists() {
        numakit_skips::ROOT.skip("only root with setpriv can be two users");
        return;
    }
    let folder = Folder::new("kinds-rights");
    let Some(program) = kind(&folder, "plain", &["cc"]) else { return };
    let numa_here = folder.program(env!("CARGO_BIN_EXE_numa").as_ref(), "numa", 0o755);
    // Root creates the registry; the cache of the user nobody is here.
    assert_eq!(run(&folder, &["-c", "1", "--busy", "off", "true"]).code, 0);
    let cache = folder.path("cache");
    std::fs::create_dir(&cache).unwrap();
    std::os::unix::fs::chown(&cache, Some(NOBODY), Some(NOBODY)).unwrap();
    let nobody = |program: &Path| {
        let mut command = Command::new("setpriv");
        let id = NOBODY.to_string();
        command.args(["--reuid", &id, "--regid", &id, "--clear-groups"]).arg(&numa_here).arg("run");
        command.args(ON_ONE).arg(program).current_dir(&folder.0).env("NUMAKIT_CACHE", &cache);
        command.env("NUMAKIT_REGISTRY", folder.path("registry")).env_remove("LD_PRELOAD").env("HOME", "/");
        Done::of(command.output().unwrap())
    };
    let plain = nobody(&program);
    ran(&plain);
    assert_eq!(plain.err, "");
    let copy = |name: &str, mode: u32| folder.program(&program, name, mode);
    let raised = copy("raised", 0o4755);
    has_note(&nobody(&raised), "raised is setuid");
    // For its owner it is an ordinary program.
    assert_eq!(run(&folder, &[&ON_ONE[..], &[raised.to_str().unwrap()]].concat()).err, "");
    has_note(&nobody(&copy("of-group", 0o2755)), "of-group is setgid");
    has_note(&nobody(&copy("closed", 0o711)), "closed cannot be examined (Permission denied (os error 13))");
    let capable = copy("capable", 0o755);
    let set = Command::new("setcap").arg("cap_net_raw+ep").arg(&capable).output();
    match set {
        Ok(output) if output.status.success() => {
            has_note(&nobody(&capable), "capable is with file capabilities")
        }
        _ => numakit_skips::PRIVILEGES.skip_part("no setcap here, or a file system without capabilities"),
    }
}

#[test]
fn programs_for_other_processors_are_reported() {
    let folder = Folder::new("kinds-machine");
    // ELF headers of a 32-bit program for i386 and of a 64-bit one for s390x.
    for (name, class, order, machine) in [("old", 1, 1, [3, 0]), ("large", 2, 2, [0, 22])] {
        let mut head = vec![0; 64];
        head[..6].copy_from_slice(&[0x7f, b'E', b'L', b'F', class, order]);
        head[18..20].copy_from_slice(&machine);
        let size = if class == 1 { 42 } else { 54 };
        head[if order == 1 { size } else { size + 1 }] = if class == 1 { 32 } else { 56 };
        std::fs::write(folder.path(name), head).unwrap();
        std::fs::set_permissions(folder.path(name), PermissionsExt::from_mode(0o755)).unwrap();
        let done = run(&folder, &["-c", "1", "--busy", "off", "--dry-run", "--", &format!("./{name}")]);
        let line = format!("numa: {name} is not built for {} with 64 bits", std::env::consts::ARCH);
        assert!(done.code == 0 && done.err.starts_with(&line), "{}", done.err);
        assert!(!done.out.contains("LD_PRELOAD"), "{}", done.out);
    }
}

#[test]
fn a_background_job_that_reads_stops() {
    let folder = Folder::new("kinds-terminal");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/background.py");
    let mut python = Command::new("python3");
    python.arg(script).arg(env!("CARGO_BIN_EXE_numa")).env("NUMAKIT_REGISTRY", folder.path("registry"));
    let Ok(output) = python.env("HOME", &folder.0).output() else {
        numakit_skips::PYTHON.skip("there is no python3, which makes the terminal");
        return;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn doctor_checks_what_placing_needs() {
    let folder = Folder::new("kinds-doctor");
    let doctor = |name: &str, value: &Path| {
        let output = folder.numa("doctor --json").env(name, value).output().unwrap();
        let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let findings = json["findings"].as_array().unwrap().clone();
        move |about: &str| {
            let found = findings.iter().find(|finding| finding["about"] == about).unwrap();
            ["state", "seen", "fix"].map(|field| found[field].as_str().unwrap().to_owned())
        }
    };
    let fine = doctor("NUMAKIT_REGISTRY", &folder.path("registry"));
    assert_eq!(fine("registry of cores"), ["ok", "no program holds cores", ""]);
    let library = fine("library for programs");
    assert!(library[0] == "ok" && library[1].ends_with("/libnumaplace.so"), "{library:?}");
    let group = fine("control group for 'numa run --isolate'");
    match group[0].as_str() {
        "ok" => assert!(group[1].starts_with("cpuset of /sys/fs/cgroup"), "{group:?}"),
        state => assert!(state == "note" && !group[1].is_empty() && !group[2].is_empty(), "{group:?}"),
    }
    let letter = folder.path("letter");
    std::fs::write(&letter, "a letter").unwrap();
    let registry = doctor("NUMAKIT_REGISTRY", &letter)("registry of cores");
    assert!(registry[0] == "missing" && registry[1].contains("is not a registry of cores"), "{registry:?}");
    assert!(!registry[2].is_empty(), "{registry:?}");
    let library = doctor("NUMAKIT_PRELOAD", Path::new("/no/lib.so"))("library for programs");
    let expected = ["missing", "NUMAKIT_PRELOAD is '/no/lib.so', where there is no file"];
    assert!(library[..2] == expected && library[2].starts_with("unset NUMAKIT_PRELOAD"), "{library:?}");
}

/// A program with a thread, which prints the number of CPUs of its children.
const DRIVER: &str = "import subprocess, sys, threading\n\
    def cpus(**how): return subprocess.run(sys.argv[1:], stdout=subprocess.PIPE, **how).stdout.decode().strip()\n\
    print(cpus())\n\
    thread = threading.Thread(target=lambda: None); thread.start(); thread.join()\n\
    print(cpus(), cpus(close_fds=False), cpus(preexec_fn=lambda: None), cpus(shell=False, start_new_session=True))\n";

#[test]
fn children_of_a_threaded_driver_have_all_its_cpus() {
    let folder = Folder::new("driver");
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        return numakit_skips::MACHINE
            .skip("children of a threaded driver: one CPU is allowed here, two are needed");
    }
    let script = folder.path("driver.py");
    std::fs::write(&script, DRIVER).unwrap();
    let python = ["-c", "2", "--busy", "off", "--", "python3", script.to_str().unwrap()];
    let done = run(&folder, &[&python[..], &["nproc"]].concat());
    assert_eq!((done.code, done.out.as_str()), (0, "2\n2 2 2 2\n"), "{}", done.err);
    // A child without the library.
    let Some(fixed) = kind(&folder, "fixed", &["cc", "-static"]) else { return };
    let done = run(&folder, &[&python[..], &[fixed.to_str().unwrap()]].concat());
    assert_eq!(done.out.matches("main cpus 2 ").count(), 2 * 5, "{}{}", done.out, done.err);
}

#[test]
fn on_request_nothing_is_loaded() {
    let folder = Folder::new("no-library");
    let done = run(&folder, &["-c", "1", "--busy", "off", "--no-library", "--", "sh", "-c", "env; nproc"]);
    assert_eq!(done.code, 0, "{}", done.err);
    assert!(!done.out.contains("LD_PRELOAD=") && !done.out.contains("NUMA_PLACE="), "{}", done.out);
    assert!(done.out.ends_with("\n1\n"), "{}", done.out);
    assert!(done.err.contains("sh is started with --no-library"), "{}", done.err);
}
