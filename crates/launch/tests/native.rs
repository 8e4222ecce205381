//! The library's own tests, which are in C: preloaded, linked, under sanitizers.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use numakit_skips::{MACHINE, Skip, rounds};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A part of the tests, as make calls it, and how many of its cases pass at least, usually and with `cargo xtask test
/// --thorough`. Without sanitizers and such tools there are fewer.
const PARTS: [(&str, usize, usize); 6] = [
    ("sh test/check", 100, 150),
    ("sh test/explain/check", 100, 130),
    ("sh test/alloc/check", 100, 110),
    ("sh test/count/check", 20, 20),
    // With each MPI that is installed there are more.
    ("sh test/mpi/check", 2, 2),
    ("sh test/sched/check", 40, 40),
];
/// Within this many minutes all of them have run.
const MINUTES: (usize, usize) = (20, 90);

#[test]
fn the_tests_of_the_library_pass() {
    let native = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../native");
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("native");
    let mut make = Command::new("timeout");
    make.args(["-k", "5", &format!("{}m", rounds(MINUTES.0, MINUTES.1)), "make", "-C"]);
    make.arg(native).arg(format!("OUT={}", out.display())).arg("check");
    let output = make.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let skips: Vec<&str> = text.lines().filter(|line| Skip::parse(line).is_some()).collect();
    skips.iter().for_each(|line| println!("{line}"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}\n{errors}", failures(&text));
    for (part, usually, thoroughly) in PARTS {
        let lines = text.lines().skip_while(|line| !line.starts_with(part)).skip(1);
        let lines: Vec<&str> = lines.take_while(|line| !line.starts_with("sh ")).collect();
        let passed = lines.iter().filter(|line| line.starts_with("ok ")).count();
        println!("{part}: {passed} cases passed");
        // Placing threads takes two CPUs.
        let one_cpu =
            lines.iter().any(|line| Skip::parse(line).is_some_and(|skip| skip.kind == MACHINE.name));
        let least = rounds(usually, thoroughly);
        assert!(passed >= least || one_cpu, "{part}: only {passed} cases of {least} passed: {text}");
    }
}

/// What is said of failed tests, without the commands of make and the tests that passed.
fn failures(text: &str) -> String {
    let is_said = |line: &&str| {
        line.starts_with("failed ")
            || !["ok ", "cc ", "ar ", "mkdir ", "make: ", "\t"].iter().any(|start| line.starts_with(start))
    };
    text.lines()
        .skip_while(|line| !line.starts_with("failed "))
        .filter(is_said)
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn the_guide_has_all_settings_of_the_allocator() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |path: &str| std::fs::read_to_string(root.join(path)).unwrap();
    let (source, guide) = (read("native/alloc/settings.c"), read("docs/guide/libnumalloc.md"));
    let rows = source.split_once("rows[] = {").unwrap().1.split_once("};").unwrap().0;
    let declared: Vec<&str> =
        rows.lines().filter_map(|line| line.trim().strip_prefix("{\"")?.split('"').next()).collect();
    let described: Vec<&str> =
        guide.lines().filter_map(|line| line.strip_prefix("| `NUMALLOC_")?.split('`').next()).collect();
    assert!(declared.len() >= 7, "{declared:?}");
    assert_eq!(declared, described);
}

/// ELF's number of the architecture.
const AARCH64: u8 = 183;

/// A command of Zig, which has the names of all functions of each glibc; `None`, and a message, without it.
fn zig(cache: &Path) -> Option<String> {
    let python = std::env::var("NUMAKIT_PYTHON").unwrap_or_else(|_| "python3".into());
    let zig = Command::new(&python).args(["-m", "ziglang", "version"]).output();
    if zig.is_ok_and(|output| output.status.success()) {
        return Some(format!("env ZIG_GLOBAL_CACHE_DIR={} {python} -m ziglang", cache.display()));
    }
    numakit_skips::PYTHON.skip("NUMAKIT_PYTHON names no Python with ziglang");
    None
}

/// Builds a target of native/Makefile.
fn make(out: &Path, words: &[String]) {
    let native = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../native");
    let mut make = Command::new("make");
    make.arg("-C").arg(native).arg(format!("OUT={}", out.display())).arg("CFLAGS=-O2").args(words);
    let output = make.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Has Zig link an empty program: it makes the libraries of that glibc, with names only, in its cache.
fn stubs(zig: &str, out: &Path, target: &str) -> BTreeSet<String> {
    let cache = out.join("cache/o");
    let (program, source) = (out.join("program"), out.join("program.c"));
    std::fs::write(&source, "int main(void) { return 0; }").unwrap();
    let mut words = zig.split(' ');
    let mut cc = Command::new(words.next().unwrap());
    let linked =
        cc.args(words).args(["cc", "-target", target, "-o"]).arg(&program).arg(&source).output().unwrap();
    assert!(linked.status.success(), "{}", String::from_utf8_lossy(&linked.stderr));
    let folders = std::fs::read_dir(cache).unwrap().map(|entry| entry.unwrap().path());
    let libraries = folders.filter(|folder| folder.join("libc.so.6").is_file());
    let files =
        libraries.flat_map(|folder| std::fs::read_dir(folder).unwrap()).map(|entry| entry.unwrap().path());
    let has: BTreeSet<String> = files.flat_map(|file| names(&file, "--dyn-syms", false)).collect();
    assert!(has.len() > 2000, "{}", has.len());
    has
}

/// The functions and variables that a file needs, other than weakly, or has. In libraries they have versions: `NAME@VERSION`.
fn names(file: &Path, table: &str, needed: bool) -> BTreeSet<String> {
    let list = Command::new("readelf").args([table, "--wide"]).arg(file).output().unwrap();
    let text = String::from_utf8(list.stdout).unwrap();
    let name = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (bound, place, name) = (*words.get(4)?, *words.get(6)?, *words.get(7)?);
        let is_wanted = (place == "UND") == needed && (bound == "GLOBAL" || bound == "WEAK" && !needed);
        is_wanted.then(|| name.replace("@@", "@"))
    };
    text.lines().filter_map(name).collect()
}

/// Of the static parts of the compiler and of glibc, which are linked into ours, and of the linker.
const OF_LINKED: [&str; 5] = ["__udivti3", "pthread_atfork", "__ehdr_start", "_end", "_GLOBAL_OFFSET_TABLE_"];
const LIBRARIES: [&str; 6] = ["place", "explain", "apply", "count", "alloc", "mpi"];
/// Folders of a library beside its own.
const MORE: [&str; 4] = ["base", "mpi/openmpi", "mpi/mpich", "mpi/standard"];

#[test]
fn all_libraries_compile_for_aarch64_and_need_only_glibc_2_17() {
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("aarch64");
    std::fs::create_dir_all(&out).unwrap();
    let Some(zig) = zig(&out.join("cache")) else { return };
    // Objects only: Zig's linker does not know '-z initfirst', which a shared library of ours needs.
    let objects_of = |folder: &str| {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../native").join(folder);
        let files = std::fs::read_dir(sources).unwrap().map(|entry| entry.unwrap().file_name());
        let names = files.filter_map(|name| Some(name.to_str()?.strip_suffix(".c")?.to_owned()));
        names.map(|name| out.join(folder).join(name + ".o")).collect::<Vec<PathBuf>>()
    };
    let objects: Vec<PathBuf> = LIBRARIES.iter().chain(&MORE).flat_map(|folder| objects_of(folder)).collect();
    let mut words: Vec<String> = objects.iter().map(|path| path.display().to_string()).collect();
    // With the headers of 2.28, the first that declare C11's threads, which a library defines.
    words.push(format!("CC={zig} cc -target aarch64-linux-gnu.2.28"));
    make(&out, &words);
    let has = stubs(&zig, &out, "aarch64-linux-gnu.2.17");
    let has: BTreeSet<&str> = has.iter().map(|name| name.split('@').next().unwrap()).collect();
    let defined: BTreeSet<String> = objects.iter().flat_map(|path| names(path, "--syms", false)).collect();
    for path in &objects {
        let object = std::fs::read(path).unwrap();
        assert_eq!((&object[..4], object[18]), (&b"\x7fELF"[..], AARCH64), "{}", path.display());
        let of_compiler = |name: &str| name.starts_with("__aarch64_") || OF_LINKED.contains(&name);
        let mut missing = names(path, "--syms", true);
        missing.retain(|name| {
            let plain = name.split('@').next().unwrap_or(name);
            !has.contains(plain) && !defined.contains(name) && !of_compiler(name)
        });
        assert!(missing.is_empty(), "{} needs {missing:?}", path.display());
    }
    assert!(objects.len() > 30, "{}", objects.len());
}

#[test]
#[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
fn what_the_libraries_need_is_in_glibc_2_17() {
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("glibc");
    let Some(zig) = zig(&out.join("cache")) else { return };
    make(&out, &[]);
    let has = stubs(&zig, &out, "x86_64-linux-gnu.2.17");
    for library in LIBRARIES {
        let name =
            if library == "alloc" { "libnumalloc.so".to_owned() } else { format!("libnuma{library}.so") };
        let needs = names(&out.join(&name), "--dyn-syms", true);
        let missing: Vec<&String> = needs.difference(&has).collect();
        assert!(needs.len() > 10 && missing.is_empty(), "{name} needs {missing:?} of {}", needs.len());
    }
}
