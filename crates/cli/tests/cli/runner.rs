//! A temporary folder, and `numa` in it.

use numakit_model::label::RecorderEvent;
use numakit_recording::{Batch, Header, Reader};
use numakit_testing::until;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Longer than any command of a test takes on a busy machine.
const LIMIT: Duration = Duration::from_secs(600);

pub struct Folder(pub PathBuf);

impl Folder {
    /// With a name that no other test of this program has.
    pub fn new(name: &str) -> Self {
        static NAMES: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
        let is_new = NAMES.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned());
        assert!(is_new, "two tests have a folder '{name}'");
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

    /// `numa` in this folder.
    pub fn numa(&self, arguments: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_numa"));
        self.isolate(&mut command).args(arguments.split_whitespace());
        command
    }

    /// Lets a command keep all that it keeps in this folder: nothing is the user's, and no other test's. Of the caches, which
    /// hold calibrations that take a second, there is one for all tests of a program.
    pub fn isolate<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        for name in ["XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"] {
            command.env_remove(name);
        }
        if std::env::var_os("NUMAKIT_CACHE").is_none() {
            let name = format!("numakit-cli-cache-{}", std::process::id());
            command.env("NUMAKIT_CACHE", std::env::temp_dir().join(name));
        }
        command.current_dir(&self.0).env("HOME", &self.0).env("XDG_STATE_HOME", self.path("state"));
        command.env("XDG_RUNTIME_DIR", self.path("run")).env("NUMAKIT_REGISTRY", self.path("registry"));
        command.stdin(Stdio::null())
    }

    /// Runs it until it ends.
    pub fn run(&self, arguments: &str) -> Done {
        self.spawn(arguments).end()
    }

    /// Starts it; what it prints is read when it ends.
    pub fn spawn(&self, arguments: &str) -> Started {
        Started::of(self.numa(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()))
    }

    /// Starts it, and waits until it accepts commands and has sampled.
    pub fn start(&self, arguments: &str) -> Started {
        self.ready(self.spawn(arguments))
    }

    /// Waits until it accepts commands and has sampled.
    pub fn ready(&self, mut started: Started) -> Started {
        started.fifo = self.path(&format!("run/numakit/{}.fifo", started.id()));
        until!(started.fifo.exists());
        until!({
            let status = self.run(&format!("ctl --pid {} status", started.id()));
            status.code == 0 && !status.out.contains(" 0 samples")
        });
        started
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

/// Whether a line is about programs of other tests, which run at the same time, bound to CPUs by registries of their own.
fn is_of_others(line: &str) -> bool {
    line.contains("bound there, not registered")
}

pub struct Done {
    /// The exit code, or the signal as a negative number.
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Done {
    pub fn of(output: Output) -> Self {
        let err = String::from_utf8(output.stderr).unwrap();
        Self {
            code: output.status.code().unwrap_or_else(|| -output.status.signal().unwrap()),
            out: String::from_utf8(output.stdout).unwrap(),
            err: err.split_inclusive('\n').filter(|line| !is_of_others(line)).collect(),
        }
    }

    /// Checks the exit code, and that standard error contains this text.
    pub fn says(&self, code: i32, text: &str) {
        assert!(self.code == code && self.err.contains(text), "{}: {} {}", self.code, self.out, self.err);
    }
}

/// A small file system in memory, unmounted at the end of the test.
pub struct Mounted(PathBuf);

impl Mounted {
    /// At a new folder of this name, with this option; none, and a message, where that is not permitted.
    pub fn at(folder: &Folder, name: &str, size: &str) -> Option<Self> {
        if numakit_sys::user::id() != 0 {
            numakit_skips::ROOT.skip("mounting a small file system needs root");
            return None;
        }
        let path = folder.path(name);
        std::fs::create_dir(&path).unwrap();
        let mut mount = Command::new("mount");
        if !mount.args(["-t", "tmpfs", "-o", size, "none"]).arg(&path).status().unwrap().success() {
            numakit_skips::PRIVILEGES.skip("this root may not mount a file system");
            return None;
        }
        Some(Self(path))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // Although a process of a test that failed has files there.
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

/// Keeps other tests from the FIFO of NUMAscope, of which there is one on a machine.
pub fn numascopes_fifo() -> MutexGuard<'static, ()> {
    static FIFO: Mutex<()> = Mutex::new(());
    FIFO.lock().unwrap_or_else(PoisonError::into_inner)
}

/// All that a stream has, read by another thread.
fn all_of(stream: Option<impl Into<OwnedFd>>) -> Receiver<Vec<u8>> {
    let (sender, receiver) = channel();
    let stream = stream.map(|stream| File::from(stream.into()));
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        stream.into_iter().for_each(|mut stream| _ = stream.read_to_end(&mut bytes).unwrap());
        let _ = sender.send(bytes);
    });
    receiver
}

/// A running command; a test that fails does not leave it behind.
pub struct Started {
    child: Child,
    pub fifo: PathBuf,
}

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.child.kill().and_then(|()| self.child.wait());
    }
}

impl Started {
    pub fn of(command: &mut Command) -> Self {
        Self::keeps(command.spawn().unwrap())
    }

    pub fn keeps(child: Child) -> Self {
        Self { child, fifo: PathBuf::new() }
    }

    /// Writes to the FIFO once, like `echo`.
    pub fn echo(&self, line: &str) {
        std::fs::File::options().write(true).open(&self.fifo).unwrap().write_all(line.as_bytes()).unwrap();
    }

    pub fn signal(&self, name: &str) {
        let status = Command::new("kill").args(["-s", name, &self.id().to_string()]).status().unwrap();
        assert!(status.success());
    }

    pub fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits until it has ended.
    pub fn wait(&mut self) -> ExitStatus {
        let mut status = None;
        until!({
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap()
    }

    /// Waits until it has ended, and returns what it printed to its pipes.
    pub fn end(mut self) -> Done {
        drop(self.child.stdin.take());
        let streams = [all_of(self.child.stdout.take()), all_of(self.child.stderr.take())];
        let [stdout, stderr] =
            streams.map(|all| all.recv_timeout(LIMIT).unwrap_or_else(|_| panic!("it does not end")));
        Done::of(Output { status: self.wait(), stdout, stderr })
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

    /// Samples and labels.
    pub fn total(&self) -> usize {
        self.batches.iter().map(Batch::len).sum()
    }

    pub fn labels(&self) -> Vec<&str> {
        self.batches.iter().flat_map(|b| b.label.iter().flatten()).map(String::as_str).collect()
    }

    /// The labels but those of missed ticks, of which a busy machine may have some at any time.
    pub fn labels_without_losses(&self) -> Vec<&str> {
        let is_loss = |label: &str| matches!(RecorderEvent::parse(label), Some(RecorderEvent::Lost(_)));
        self.labels().into_iter().filter(|label| !is_loss(label)).collect()
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
