//! The program that is sampled, and what its samples say.

use numakit_sampling::{Method, MethodError, MethodEvent, Sample};
use numakit_sys::command::Running;
use numakit_testing::wait::wait_for;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// The compiled program; none without a compiler. It stays in the folder of the build.
pub fn program() -> Option<&'static Path> {
    static BUILT: OnceLock<Option<PathBuf>> = OnceLock::new();
    let built = BUILT.get_or_init(|| {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/spin.c");
        let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("spin");
        let new = program.with_extension(std::process::id().to_string());
        let words = ["-O1", "-pthread", "-o"];
        let built = Command::new("gcc").args(words).arg(&new).arg(source).output().ok()?;
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        // Another run of these tests may be executing it.
        std::fs::rename(new, &program).unwrap();
        Some(program)
    });
    if built.is_none() {
        numakit_skips::COMPILERS.skip("there is no gcc to build the sampled program");
    }
    built.as_deref()
}

/// A command line, and the file of its output.
pub struct Prepared {
    pub words: Vec<std::ffi::OsString>,
    output: PathBuf,
}

/// The program with these arguments, its output in a file.
pub fn prepared(arguments: &str) -> Option<Prepared> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = format!("numakit-methods-{}-{number}", std::process::id());
    let output = std::env::temp_dir().join(name);
    let script = format!("exec '{}' {arguments} > '{}'", program()?.display(), output.display());
    let words = ["sh", "-c", &script].map(std::ffi::OsString::from).to_vec();
    Some(Prepared { words, output })
}

impl Prepared {
    /// What follows a word in the output.
    pub fn output(&self, name: &str) -> String {
        let text = std::fs::read_to_string(&self.output).unwrap_or_default();
        text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().to_owned()
    }
}

impl Drop for Prepared {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.output);
    }
}

/// What was sampled of a program that has ended.
#[derive(Debug, Default)]
pub struct Sampled {
    pub samples: Vec<Sample>,
    pub executed: u32,
    pub started: u32,
    pub ended: u32,
    pub status: i32,
    pub output: String,
}

impl Sampled {
    /// The number in a line of the output.
    pub fn number(&self, name: &str) -> u64 {
        let rest = self.output.lines().find_map(|line| line.strip_prefix(name));
        rest.unwrap_or_else(|| panic!("no {name} in {}", self.output)).trim().parse().unwrap()
    }

    /// Samples of the program in user mode.
    pub fn of_program(&self) -> impl Iterator<Item = &Sample> {
        self.samples.iter().filter(|sample| !sample.in_kernel)
    }

    /// The addresses of its spinning function, one for each execution.
    fn functions(&self) -> Vec<Range<u64>> {
        let address = |word: &str| u64::from_str_radix(word.trim_start_matches("0x"), 16).unwrap();
        let lines = self.output.lines().filter_map(|line| line.strip_prefix("function "));
        lines.map(|line| line.split_once(' ').unwrap()).map(|(a, b)| address(a)..address(b)).collect()
    }

    /// The share of samples in user mode that are in the spinning function.
    pub fn share_in_function(&self) -> f64 {
        let functions = self.functions();
        let inside = |sample: &&Sample| functions.iter().any(|f| f.contains(&sample.registers.ip));
        self.of_program().filter(inside).count() as f64 / self.of_program().count().max(1) as f64
    }

    /// The threads that spun, with their processes.
    pub fn threads(&self) -> BTreeSet<(u32, u32)> {
        let mut counts = BTreeMap::new();
        for sample in self.of_program() {
            *counts.entry((sample.process, sample.thread)).or_insert(0) += 1;
        }
        counts.into_iter().filter(|(_, count)| *count >= 5).map(|(thread, _)| thread).collect()
    }

    /// CPU time in ms that the samples represent.
    pub fn weight_ms(&self) -> u64 {
        self.samples.iter().map(|sample| sample.weight).sum::<u64>() / 1_000_000
    }

    pub fn take(&mut self, method: &mut dyn Method) -> Result<u64, MethodError> {
        method.drain(&mut |event| match event {
            MethodEvent::Fault(_) | MethodEvent::Touched(_) => {}
            MethodEvent::Sample(sample) => self.samples.push(sample.clone()),
            MethodEvent::Executed { .. } => self.executed += 1,
            MethodEvent::Started { .. } => self.started += 1,
            MethodEvent::Ended { .. } => self.ended += 1,
            MethodEvent::Mapped { .. } => {}
        })
    }
}

/// Drains the method until the program has ended.
pub fn run(method: &mut dyn Method, mut running: Running, prepared: &Prepared) -> Sampled {
    let mut sampled = Sampled::default();
    sampled.status = wait_for("the end of the program", || {
        let ended = running.ended().unwrap();
        sampled.take(method).unwrap();
        ended
    });
    sampled.output = std::fs::read_to_string(&prepared.output).unwrap_or_default();
    sampled
}
