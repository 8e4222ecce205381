//! `cargo xtask fuzz`: libFuzzer on the stable toolchain, one target per CPU at once.

use crate::{install, process, workspace};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output};
use std::sync::Mutex;

/// The settings of cargo-fuzz without sanitizers, which need a nightly compiler.
const INSTRUMENTATION: &str = "--cfg fuzzing -Cdebug-assertions -Ccodegen-units=1 -Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares";

const LIMITS: [&str; 4] =
    ["-rss_limit_mb=1024", "-malloc_limit_mb=512", "-timeout=60", "-print_final_stats=1"];

/// Fuzzes the given targets, or all; exit status 1 if an input crashed one.
pub fn run(words: &[String]) -> Result<ExitCode> {
    let (targets, seconds) = parse(words)?;
    let fuzzer = build()?;
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    println!("{} targets, {seconds} s each, {workers} at a time", targets.len());
    let queue = Mutex::new(targets.iter());
    let next = || queue.lock().ok().and_then(|mut queue| queue.next());
    let worker = || -> Result<bool> {
        let mut passed = true;
        while let Some(target) = next() {
            passed &= fuzz(&fuzzer, target, seconds)?;
        }
        Ok(passed)
    };
    let passed = std::thread::scope(|scope| -> Result<bool> {
        let threads: Vec<_> = (0..workers).map(|_| scope.spawn(worker)).collect();
        let mut passed = true;
        for thread in threads {
            passed &= thread.join().map_err(|_| anyhow::anyhow!("a worker panicked"))??;
        }
        Ok(passed)
    })?;
    Ok(if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn parse(words: &[String]) -> Result<(Vec<String>, u32)> {
    let known = known_targets()?;
    let (mut targets, mut seconds) = (Vec::new(), 60);
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if word == "--seconds" {
            let value = words.next().context("--seconds needs a number")?;
            seconds = value.parse().with_context(|| format!("--seconds {value}: give a whole number"))?;
        } else if known.contains(word) {
            targets.push(word.clone());
        } else {
            bail!("no fuzz target '{word}'; there are: {}", known.join(", "));
        }
    }
    Ok((if targets.is_empty() { known } else { targets }, seconds))
}

/// Each target has a folder of samples; a test checks that.
fn known_targets() -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(samples())? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

fn samples() -> PathBuf {
    workspace::root().join("fuzz/corpus")
}

fn build() -> Result<PathBuf> {
    install::need(&["g++", "--version"], &["g++"])?;
    let version = process::read(Command::new("rustc").arg("-vV"))?;
    let host =
        version.lines().find_map(|line| line.strip_prefix("host: ")).context("rustc -vV names no host")?;
    let target = workspace::target().join("fuzz");
    // With --target, build scripts and macros are not instrumented.
    let words = ["build", "--release", "-p", "numakit-fuzz", "--features", "libfuzzer"];
    let mut cargo = process::cargo(&words);
    cargo.args(["--target", host]);
    process::run(cargo.env("RUSTFLAGS", INSTRUMENTATION).env("CARGO_TARGET_DIR", &target))?;
    Ok(target.join(host).join("release/fuzz"))
}

/// Fuzzes one target; new inputs are stored in target/fuzz, crashing ones are named.
fn fuzz(fuzzer: &Path, target: &str, seconds: u32) -> Result<bool> {
    let found = workspace::target().join("fuzz/corpus").join(target);
    let artifacts = workspace::target().join("fuzz/artifacts").join(target);
    fs::create_dir_all(&found)?;
    fs::create_dir_all(&artifacts)?;
    let mut command = Command::new(fuzzer);
    command.args(LIMITS).arg(format!("-max_total_time={seconds}"));
    command.arg(format!("-artifact_prefix={}/", artifacts.display()));
    command.arg(&found).arg(samples().join(target)).env("NUMAKIT_FUZZ_TARGET", target);
    let Output { status, stderr, .. } = command.output().context("cannot start the fuzzer")?;
    let log = String::from_utf8_lossy(&stderr);
    let runs = log.lines().find_map(|line| line.strip_prefix("stat::number_of_executed_units:"));
    if status.success() {
        let covered = log.lines().rev().find_map(|line| line.split("cov: ").nth(1)?.split(' ').next());
        println!("ok {target}: {} inputs, {} edges", runs.unwrap_or("?").trim(), covered.unwrap_or("?"));
    } else {
        let end: Vec<&str> = log.lines().rev().take(30).collect();
        println!("FAILED {target}: {status}");
        end.iter().rev().for_each(|line| println!("    {line}"));
    }
    Ok(status.success())
}
