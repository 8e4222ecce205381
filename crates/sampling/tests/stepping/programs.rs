//! The programs that are stepped.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// A program with its command.
pub struct Stepping {
    pub name: &'static str,
    /// Builds it; why it cannot run here, or its words.
    pub words: fn() -> Result<Vec<String>, String>,
    pub warm: Duration,
}

fn source(name: &str) -> String {
    format!("{}/tests/programs/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
}

fn output(words: &[&str]) -> Option<String> {
    let output = Command::new(words[0]).args(&words[1..]).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn need(probe: &[&str]) -> Result<(), String> {
    output(probe).map(drop).ok_or_else(|| format!("there is no {}", probe[0]))
}

/// Builds something with a compiler that is there.
fn build(words: &[&str]) {
    let output = Command::new(words[0]).args(&words[1..]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A file of the folder of the build that is there as a whole at any time: another run of these tests may be using it.
fn file(name: &str, make: impl FnOnce(&str)) -> String {
    let file = folder().join(name);
    let new = file.with_file_name(format!("{}-{name}", std::process::id()));
    make(&new.to_string_lossy());
    std::fs::rename(new, &file).unwrap();
    file.to_string_lossy().into_owned()
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|w| (*w).to_owned()).collect()
}

/// The interpreter itself, not a script that starts it.
fn python() -> Result<Vec<String>, String> {
    let path =
        output(&["python3", "-c", "import sys; print(sys.executable)"]).ok_or("there is no python3")?;
    Ok(vec![path, source("work.py")])
}

fn compiler() -> Result<Vec<String>, String> {
    need(&["g++", "--version"])?;
    let compiler = output(&["g++", "-print-prog-name=cc1plus"]).ok_or("there is no cc1plus")?;
    let text = file("compiled.ii", |text| build(&["g++", "-E", &source("compiled.cpp"), "-o", text]));
    Ok(owned(&[&compiler, "-quiet", "-fpreprocessed", "-O2", &text, "-o", "/dev/null"]))
}

fn structures(what: &str) -> Result<Vec<String>, String> {
    need(&["g++", "--version"])?;
    let make = |program: &str| build(&["g++", "-O2", &source("structures.cpp"), "-o", program]);
    Ok(owned(&[&file(&format!("structures-{what}"), make), what]))
}

fn zstd() -> Result<Vec<String>, String> {
    need(&["zstd", "--version"])?;
    let input = std::env::current_exe().map_err(|e| e.to_string())?;
    let input = large(&input);
    Ok(owned(&["zstd", "-15", "--single-thread", "-q", "-c", &input]))
}

/// A file that takes many seconds to compress.
fn large(seed: &Path) -> String {
    let bytes = std::fs::read(seed).unwrap();
    let mut all = Vec::new();
    for round in 0..8u8 {
        all.extend(bytes.iter().map(|b| b.rotate_left(u32::from(round)) ^ round));
    }
    file("zstd-input", |path| std::fs::write(path, all).unwrap())
}

fn java() -> Result<Vec<String>, String> {
    need(&["javac", "--version"])?;
    let to = folder().join("Work");
    build(&["javac", "-d", &to.to_string_lossy(), &source("Work.java")]);
    Ok(owned(&["java", "-XX:+UseSerialGC", "-Xmx256m", "-cp", &to.to_string_lossy(), "Work"]))
}

fn script(probe: &[&str], words: &[&str]) -> Result<Vec<String>, String> {
    need(probe).map(|()| owned(words))
}

fn sqlite() -> Result<Vec<String>, String> {
    let sql = format!(".read {}", source("work.sql"));
    script(&["sqlite3", "--version"], &["sqlite3", ":memory:", &sql])
}

/// All of them.
pub fn all() -> Vec<Stepping> {
    type Words = fn() -> Result<Vec<String>, String>;
    let program = |name, words: Words, milliseconds| Stepping {
        name,
        words,
        warm: Duration::from_millis(milliseconds),
    };
    vec![
        program("python", python, 700),
        program("sqlite", sqlite, 700),
        program("perl", || script(&["perl", "--version"], &["perl", &source("work.pl")]), 700),
        program("lua", || script(&["lua5.4", "-v"], &["lua5.4", &source("work.lua")]), 500),
        program("node", || script(&["node", "--version"], &["node", &source("work.js")]), 2500),
        program("java", java, 4000),
        program("cc1plus", compiler, 600),
        program("zstd", zstd, 700),
        program("map", || structures("map"), 500),
        program("hash", || structures("hash"), 500),
        program("list", || structures("list"), 500),
        program("search", || structures("search"), 500),
        program("breadth", || structures("breadth"), 500),
    ]
}
