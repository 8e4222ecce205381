//! A temporary folder, and `numa` in it.

use numakit_recording::{Batch, Header, Reader};
use numakit_testing::until;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("numakit-cli-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(path.join("run")).unwrap();
        Self(path)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// A copy of a program, with this mode. Another process makes it: while a file is open for writing here, children of other
    /// threads may have it open as well, and the kernel starts no such program.
    pub fn program(&self, from: &Path, name: &str, mode: u32) -> PathBuf {
        let path = self.path(name);
        let copied = Command::new("install").arg(format!("-m{mode:o}")).args([from, &path]).status();
        assert!(copied.unwrap().success(), "{}", path.display());
        path
    }

    /// The same for a script with this text.
    pub fn script(&self, name: &str, text: &str) -> PathBuf {
        let source = self.path(&format!("{name}.text"));
        std::fs::write(&source, text).unwrap();
        self.program(&source, name, 0o755)
    }

    /// `numa` in this folder, with its run directory here too.
    pub fn numa(&self, arguments: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_numa"));
        command.current_dir(&self.0).env("XDG_RUNTIME_DIR", self.path("run")).stdin(Stdio::null());
        command.args(arguments.split_whitespace());
        command
    }

    /// Runs it until it ends.
    pub fn run(&self, arguments: &str) -> Done {
        Done::of(self.numa(arguments).output().unwrap())
    }

    /// Starts it, and waits until it accepts commands and has sampled.
    pub fn start(&self, arguments: &str) -> Started {
        let child = self.numa(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let started = Started { child, fifo: PathBuf::new() };
        let fifo = self.path(&format!("run/numakit/{}.fifo", started.child.id()));
        until!(fifo.exists());
        until!({
            let status = self.run(&format!("ctl --pid {} status", started.child.id()));
            status.code == 0 && !status.out.contains(" 0 samples")
        });
        Started { fifo, ..started }
    }

    /// All rows of a recording.
    pub fn read(&self, name: &str) -> Rows {
        read(&self.path(name))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub struct Done {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Done {
    pub fn of(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Checks the exit code, and that standard error contains this text.
    pub fn says(&self, code: i32, text: &str) {
        assert!(self.code == code && self.err.contains(text), "{}: {} {}", self.code, self.out, self.err);
    }
}

pub struct Started {
    pub child: Child,
    pub fifo: PathBuf,
}

impl Started {
    /// Writes to the FIFO once, like `echo`.
    pub fn echo(&self, line: &str) {
        std::fs::File::options().write(true).open(&self.fifo).unwrap().write_all(line.as_bytes()).unwrap();
    }

    pub fn signal(&self, name: &str) {
        let status = Command::new("kill").args(["-s", name, &self.child.id().to_string()]).status().unwrap();
        assert!(status.success());
    }

    pub fn end(self) -> Done {
        Done::of(self.child.wait_with_output().unwrap())
    }
}

pub struct Rows {
    pub header: Header,
    pub batches: Vec<Batch>,
    pub damage: Option<String>,
}

impl Rows {
    pub fn samples(&self) -> usize {
        self.batches.iter().map(|b| b.label.iter().filter(|l| l.is_none()).count()).sum()
    }

    pub fn labels(&self) -> Vec<&str> {
        self.batches.iter().flat_map(|b| b.label.iter().flatten()).map(String::as_str).collect()
    }

    /// The measured values of a series.
    pub fn values(&self, name: &str) -> Vec<u64> {
        let column = self.header.series.iter().position(|s| s.name() == name).unwrap();
        let rows = |b: &Batch| (0..b.len()).filter_map(|row| b.columns[column].get(row)).collect::<Vec<_>>();
        self.batches.iter().flat_map(rows).collect()
    }
}

pub fn read(path: &Path) -> Rows {
    let mut reader = Reader::open(path).unwrap();
    let batches = std::iter::from_fn(|| reader.next_batch()).collect();
    Rows { header: reader.header().clone(), batches, damage: reader.damage().map(str::to_owned) }
}
