//! Programs that can be taken into a guest.

use crate::failure::{Failure, finished, on};
use crate::fetch;
use crate::{packages, place};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::SystemTime;

/// The names that our program has.
pub const OURS: [&str; 3] = ["numa", "numascope", "numaplace"];
const FLAGS: [&str; 9] =
    ["-std=gnu11", "-O2", "-Wall", "-Wextra", "-fopenmp", "-pthread", "-Inative/include", "-Inative", "-o"];

/// What programs include, by extension.
const INCLUDED: [(&str, &[&str]); 4] = [
    ("tests/guest/programs", &["h"]),
    ("native/include", &["h"]),
    ("native/base", &["c", "h"]),
    ("native/mpi", &["c", "h"]),
];

/// Where the package has it, with a slash: a prefix of names.
const FORTRAN_COMPILER: &str = "usr/lib/gcc/x86_64-linux-gnu/12/";

/// The folder of guest programs in C.
fn sources() -> PathBuf {
    place::root().join("tests/guest/programs")
}

/// `numa` built from this tree, or the one that `NUMAKIT_NUMA` names.
pub fn numa() -> Result<PathBuf, Failure> {
    static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let built = BUILT.get_or_init(|| build_numa().map_err(|failure| failure.to_string()));
    built.clone().map_err(Failure::Request)
}

fn build_numa() -> Result<PathBuf, Failure> {
    if let Some(given) = std::env::var_os("NUMAKIT_NUMA") {
        let path = PathBuf::from(given);
        let missing = Failure::Request(format!("NUMAKIT_NUMA: there is no file {}", path.display()));
        return path.is_file().then_some(path).ok_or(missing);
    }
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(cargo);
    // Of all packages, as xtask and the tests build it: with fewer, its libraries were compiled again.
    build.args(["build", "--workspace", "--bin", "numa"]).current_dir(place::root());
    // Build scripts run again when what cargo tells of this package, the one that calls, reaches them.
    for (name, _) in std::env::vars_os().filter(|(name, _)| is_of_package(name)) {
        build.env_remove(name);
    }
    // Its progress is shown.
    let status = build.stderr(Stdio::inherit()).status().map_err(on("run cargo for", place::root()))?;
    if !status.success() {
        return Err(Failure::Request(format!("numa cannot be built: cargo ended with {status}")));
    }
    Ok(place::target().join("debug/numa"))
}

/// A command that another one starts, such as `timeout`: with its words, variables and folder.
pub fn wrapped(mut wrapper: Command, command: &Command) -> Command {
    wrapper.arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => wrapper.env(name, value),
            None => wrapper.env_remove(name),
        };
    }
    if let Some(folder) = command.get_current_dir() {
        wrapper.current_dir(folder);
    }
    wrapper
}

/// Whether a variable tells a program of the package that cargo runs it for.
pub fn is_of_package(variable: &std::ffi::OsStr) -> bool {
    let name = variable.to_string_lossy();
    name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")
}

/// The guest program `programs/NAME.c`, compiled; none if there is no such file. Files `NAME.f90` and `NAME.cc` beside it belong
/// to it.
pub fn compiled(name: &str) -> Result<Option<PathBuf>, Failure> {
    let source = sources().join(name).with_extension("c");
    if name.contains('/') || !source.is_file() {
        return Ok(None);
    }
    let _lock = place::locked("programs")?;
    let program = place::folder("programs")?.join(name);
    let mut inputs: Vec<PathBuf> = vec![source.clone()];
    for (folder, extensions) in INCLUDED {
        let folder = place::root().join(folder);
        let files = fs::read_dir(&folder).map_err(on("list", &folder))?.flatten().map(|entry| entry.path());
        let is_included =
            |path: &PathBuf| path.extension().is_some_and(|e| extensions.iter().any(|x| e == *x));
        inputs.extend(files.filter(is_included));
    }
    let [fortran, cpp] =
        ["f90", "cc"].map(|extension| Some(source.with_extension(extension)).filter(|file| file.is_file()));
    inputs.extend(fortran.iter().chain(&cpp).cloned());
    if is_stale(&program, &inputs) {
        // Under another name first: a copy of the program is the old or the new one.
        let fresh = program.with_extension("new");
        let mut cc = Command::new("cc");
        cc.args(FLAGS).arg(&fresh).arg(&source).arg("-lm").current_dir(place::root());
        if let Some(fortran) = fortran {
            cc.arg(fortran_object(&fortran, &program.with_extension("o"))?);
        }
        if let Some(cpp) = cpp {
            cc.arg(cpp_object(&cpp, &program.with_extension("o"))?).arg("-lstdc++");
        }
        finished(&mut cc)?;
        fs::rename(&fresh, &program).map_err(on("rename", &fresh))?;
    }
    Ok(Some(program))
}

/// Compiles a file in C++.
fn cpp_object(source: &Path, object: &Path) -> Result<PathBuf, Failure> {
    let mut cc = Command::new("g++");
    cc.args(["-O2", "-Wall", "-Wextra", "-fopenmp", "-c", "-o"]).arg(object).arg(source);
    finished(&mut cc)?;
    Ok(object.to_owned())
}

/// Compiles a file in Fortran, which may need no library of it: the driver of C takes the compiler where it was unpacked.
fn fortran_object(source: &Path, object: &Path) -> Result<PathBuf, Failure> {
    let installed = Command::new("cc").arg("-print-prog-name=f951").output();
    let is_installed = installed.is_ok_and(|found| found.stdout.starts_with(b"/"));
    let mut cc = Command::new("cc");
    if !is_installed {
        cc.arg("-B").arg(packages::FORTRAN.unpacked().map_err(no_fortran)?.join(FORTRAN_COMPILER));
    }
    let modules = object.parent().unwrap_or(object);
    cc.args(["-O2", "-Wall", "-Wextra", "-fopenmp", "-c", "-J"])
        .arg(modules)
        .arg("-o")
        .arg(object)
        .arg(source);
    finished(&mut cc)?;
    Ok(object.to_owned())
}

fn no_fortran(failure: Failure) -> Failure {
    let (name, fix) = ("compiler of Fortran".to_owned(), "apt-get install gfortran".to_owned());
    Failure::Runtime { name, reason: failure.to_string(), fix }
}

/// The figure that a guest program printed after these words, at the start of a line.
pub fn figure(printed: &str, words: &str) -> Option<f64> {
    let rest = printed.lines().find_map(|line| line.strip_prefix(words)?.strip_prefix(' '))?;
    rest.split(' ').next()?.parse().ok()
}

/// Names of all guest programs.
pub fn all_compiled() -> Result<Vec<String>, Failure> {
    let folder = sources();
    let files = fs::read_dir(&folder).map_err(on("list", &folder))?.flatten().map(|entry| entry.path());
    let programs = files.filter(|path| path.extension().is_some_and(|extension| extension == "c"));
    let mut names: Vec<String> =
        programs.filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned())).collect();
    names.sort();
    Ok(names)
}

/// The guest's own program that runs a step.
pub(crate) fn runner() -> Result<PathBuf, Failure> {
    let source = place::root().join("tests/guest/guest/run.c");
    let _lock = place::locked("programs")?;
    let program = place::folder("own")?.join("run");
    if is_stale(&program, std::slice::from_ref(&source)) {
        let fresh = program.with_extension("new");
        let mut cc = Command::new("cc");
        finished(cc.args(["-std=gnu11", "-O2", "-Wall", "-Wextra", "-o"]).arg(&fresh).arg(&source))?;
        fs::rename(&fresh, &program).map_err(on("rename", &fresh))?;
    }
    Ok(program)
}

/// Whether something is not there or older than what it is made of.
pub(crate) fn is_stale(made: &Path, of: &[PathBuf]) -> bool {
    let time = |path: &Path| fs::metadata(path).and_then(|data| data.modified()).ok();
    let Some(made) = time(made) else { return true };
    of.iter().any(|path| time(path).unwrap_or_else(SystemTime::now) >= made)
}

/// A program of this machine by name or path, installed or from the unpacked packages.
pub fn of_host(name: &str) -> Option<PathBuf> {
    let unpacked = || packages::program(packages::root().ok()?, name).ok();
    place::on_this_machine(name).or_else(|| unpacked().filter(|_| name == "numactl"))
}

/// The library that places threads, built from this tree.
pub fn libnumaplace() -> Result<PathBuf, Failure> {
    library("libnumaplace.so")
}

/// The library that allocates on the node of each thread, built from this tree.
pub fn libnumalloc() -> Result<PathBuf, Failure> {
    library("libnumalloc.so")
}

/// The library that runs OpenMP loops with shares, built from this tree.
pub fn libnumasched() -> Result<PathBuf, Failure> {
    library("libnumasched.so")
}

fn library(name: &str) -> Result<PathBuf, Failure> {
    let _lock = place::locked("native")?;
    let out = place::folder("native")?;
    let mut make = Command::new("make");
    make.arg("-C").arg(place::root().join("native")).arg(format!("OUT={}", out.display()));
    finished(&mut make)?;
    Ok(out.join(name))
}

/// LLVM's OpenMP runtime, which can stand in for libgomp.
pub fn libomp() -> Result<PathBuf, Failure> {
    let folder = |root: &Path| {
        let versions = fs::read_dir(root.join("usr/lib")).into_iter().flatten().flatten();
        let folders = versions.map(|entry| entry.path().join("lib/libomp.so.5"));
        folders.filter(|path| path.is_file()).max()
    };
    let installed = folder(Path::new("/"));
    let found = installed.map_or_else(|| packages::root().map(folder), |path| Ok(Some(path)))?;
    found.ok_or_else(|| packages::missing("libomp.so.5 is not installed"))
}

/// Where a command's program is on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// To be taken into the guest.
    Here(PathBuf),
    /// Busybox has it, so every guest does.
    Inside,
}

/// Looks for a program: ours, a guest program, one of this machine, a part of busybox.
pub fn find(name: &str) -> Result<Found, Failure> {
    if OURS.contains(&name) {
        return numa().map(Found::Here);
    }
    if let Some(path) = compiled(name)? {
        return Ok(Found::Here(path));
    }
    // The guest's own shell and its usual commands are what scripts in it see as well.
    if let Some(path) = of_host(name) {
        return Ok(Found::Here(path));
    }
    let mut list = Command::new(fetch::busybox()?);
    let text = String::from_utf8_lossy(&finished(list.arg("--list"))?.stdout).into_owned();
    let known = text.lines().any(|line| line == name);
    if known { Ok(Found::Inside) } else { Err(Failure::NotFound(name.to_owned())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_newer_makes_stale() {
        let top = std::env::temp_dir().join(format!("numakit-stale-{}", std::process::id()));
        fs::create_dir_all(&top).unwrap();
        let (made, source) = (top.join("made"), top.join("source"));
        assert!(is_stale(&made, &[]));
        let at = |path: &Path, seconds: u64| {
            let file = fs::File::create(path).unwrap();
            file.set_modified(SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(seconds)).unwrap();
        };
        at(&made, 100);
        at(&source, 50);
        assert!(!is_stale(&made, std::slice::from_ref(&source)));
        at(&source, 150);
        assert!(is_stale(&made, std::slice::from_ref(&source)));
        assert!(is_stale(&made, &[top.join("gone")]));
        fs::remove_dir_all(&top).unwrap();
    }

    #[test]
    fn a_program_that_is_nowhere_is_not_compiled() {
        assert_eq!(compiled("no-such-program").unwrap(), None);
        assert_eq!(compiled("../guest/run").unwrap(), None);
    }
}
