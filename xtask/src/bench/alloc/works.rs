//! What the allocators are measured with: workloads in C, and programs that people use.

use crate::bench::floor;
use crate::{peers, process, workspace};
use anyhow::{Context, Result};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A fixed amount of work.
#[derive(Debug)]
pub struct Work {
    /// The name of its program.
    pub name: &'static str,
    pub kind: Kind,
    /// What starts the measuring program: nothing, or a program with its arguments.
    starter: Vec<OsString>,
    command: Vec<OsString>,
    environment: Vec<(&'static str, OsString)>,
}

/// What a work is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Small blocks; each is written that often.
    Small(u32),
    Large,
    Program,
}

/// How often an object is written: the gain of a fast path shows without, the gain of locality with many.
pub const TOUCHES: [u32; 3] = [0, 1, 20];
const THREADS: &str = "2";
const SMALL: [&str; 8] =
    ["larson", "exchange", "producer", "survivors", "simple", "strings", "trees", "storm"];
const LARGE: [&str; 8] = ["fragments", "mesh", "large", "grow", "zeroed", "live", "recycled", "nothing"];
/// A program that people use, or why it is missing; it may put files into the folder.
type Get = fn(&Path) -> Result<Work>;

const PROGRAMS: [(&str, Get); 9] = [
    ("python", |_| python("python", &[])),
    ("python-malloc", |_| python("python-malloc", &[("PYTHONMALLOC", "malloc")])),
    ("sqlite", |_| script("sqlite", "sqlite3", &[":memory:", ".read work.sql"])),
    ("perl", |_| script("perl", "perl", &["work.pl"])),
    ("lua", |_| script("lua", "lua", &["work.lua"])),
    ("gcc", compiler),
    ("redis", redis),
    ("mariadb", mariadb),
    ("json", json),
];

impl Work {
    /// The command that does it with a library preloaded and prints what it took.
    pub fn measured(&self, measure: &Path, library: &Path) -> Command {
        let start = self.starter.iter().cloned().chain([measure.into(), library.into()]);
        let mut words = start.chain(self.command.iter().cloned());
        let mut command = Command::new(words.next().unwrap_or_default());
        command.args(words).envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.current_dir(scripts());
        command
    }

    /// The name in tables.
    pub fn title(&self) -> String {
        match self.kind {
            Kind::Small(touches) => format!("{}/{touches}", self.name),
            _ => self.name.to_owned(),
        }
    }

    fn of(name: &'static str, kind: Kind, command: impl IntoIterator<Item = OsString>) -> Self {
        Self {
            name,
            kind,
            starter: Vec::new(),
            command: command.into_iter().collect(),
            environment: Vec::new(),
        }
    }
}

/// The names of all.
pub fn names() -> Vec<&'static str> {
    SMALL.into_iter().chain(LARGE).chain(PROGRAMS.map(|(name, _)| name)).collect()
}

/// Those with these names, and why others are missing.
pub fn get(wanted: &[&str]) -> Result<(Vec<Work>, Vec<String>)> {
    let dir = built()?;
    let program = |name: &str, touches: u32| {
        [dir.join(name).into(), THREADS.into(), "0".into(), touches.to_string().into()]
    };
    let (mut works, mut missing) = (Vec::new(), Vec::new());
    for touches in TOUCHES {
        for name in SMALL.into_iter().filter(|name| wanted.contains(name)) {
            works.push(Work::of(name, Kind::Small(touches), program(name, touches)));
        }
    }
    for name in LARGE.into_iter().filter(|name| wanted.contains(name)) {
        works.push(Work::of(name, Kind::Large, program(name, 1)));
    }
    for (name, get) in PROGRAMS.iter().filter(|(name, _)| wanted.contains(name)) {
        match get(&dir) {
            Ok(work) => works.push(work),
            Err(error) => missing.push(format!("{name} is missing: {error:#}")),
        }
    }
    Ok((works, missing))
}

/// The program that measures another one.
pub fn measure() -> Result<PathBuf> {
    Ok(built()?.join("measure"))
}

/// The folder of the workloads in C, which are compiled when their sources have changed.
fn built() -> Result<PathBuf> {
    let dir = workspace::target().join("bench/alloc");
    fs::create_dir_all(&dir)?;
    let headers = ["work.h", "ring.h"].map(source);
    for name in SMALL.into_iter().chain(LARGE).chain(["measure"]) {
        let (source, program) = (source(&format!("{name}.c")), dir.join(name));
        let inputs: Vec<&Path> = headers.iter().map(PathBuf::as_path).chain([source.as_path()]).collect();
        if floor::is_older(&program, &inputs) {
            let mut gcc = Command::new("gcc");
            gcc.args(["-std=gnu11", "-O2", "-fno-builtin", "-Wall", "-Wextra", "-Werror", "-o"]);
            process::run(gcc.arg(&program).arg(&source).args(["-pthread", "-lm"]))?;
        }
    }
    Ok(dir)
}

fn source(name: &str) -> PathBuf {
    workspace::root().join("xtask/alloc").join(name)
}

fn scripts() -> PathBuf {
    source("programs")
}

/// Not a wrapper's own work: the interpreter itself.
fn python(name: &'static str, environment: &[(&'static str, &str)]) -> Result<Work> {
    let path = process::read(Command::new("python3").args(["-c", "import sys; print(sys.executable)"]))?;
    let mut work = Work::of(name, Kind::Program, [path.trim().into(), "work.py".into()]);
    work.environment = environment.iter().map(|(name, value)| (*name, value.into())).collect();
    Ok(work)
}

fn script(name: &'static str, program: &str, arguments: &[&str]) -> Result<Work> {
    let path = process::read(Command::new("sh").args(["-c", "command -v \"$1\"", "sh", program]))
        .ok()
        .with_context(|| format!("'{program}' is not installed"))?;
    Ok(Work::of(name, Kind::Program, [path.trim()].iter().chain(arguments).map(OsString::from)))
}

/// The compiler at work on a large file.
fn compiler(dir: &Path) -> Result<Work> {
    let text = process::read(Command::new("awk").arg("-f").arg(scripts().join("large.awk")))?;
    let file = dir.join("large.c");
    fs::write(&file, text)?;
    let words = ["gcc", "-O1", "-S", "-o", "/dev/null"].map(OsString::from);
    Ok(Work::of("gcc", Kind::Program, words.into_iter().chain([file.into()])))
}

/// A server, unpacked; the script has the client.
fn redis(dir: &Path) -> Result<Work> {
    let (peer, libraries) = peers::database("redis")?;
    let programs = peer.join("usr/bin");
    let socket = dir.join("redis.sock");
    let server = [programs.join("redis-server"), "--port".into(), "0".into(), "--unixsocket".into()];
    let server = server.into_iter().chain([socket.clone(), "--save".into(), "".into()]);
    let mut work = Work::of("redis", Kind::Program, server.map(OsString::from));
    work.starter = vec!["sh".into(), "redis.sh".into(), socket.into()];
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths([programs].into_iter().chain(std::env::split_paths(&path)))?;
    work.environment = vec![("PATH", path), ("LD_LIBRARY_PATH", std::env::join_paths(libraries)?)];
    Ok(work)
}

/// A database server that does what a file says, and ends.
fn mariadb(dir: &Path) -> Result<Work> {
    let (peer, libraries) = peers::database("mariadb")?;
    let data = dir.join("mariadb");
    let option = |name: &str, path: &Path| format!("--{name}={}", path.display());
    let mut words: Vec<OsString> = vec![peer.join("usr/sbin/mariadbd").into()];
    words.extend(
        ["--no-defaults", "--bootstrap", "--user=root", "--innodb-buffer-pool-size=32M"].map(OsString::from),
    );
    words.push(option("datadir", &data).into());
    words.push(option("lc-messages-dir", &peer.join("usr/share/mysql")).into());
    let mut work = Work::of("mariadb", Kind::Program, words);
    work.starter = vec!["sh".into(), "mariadb.sh".into(), data.into()];
    work.environment = vec![("LD_LIBRARY_PATH", std::env::join_paths(libraries)?)];
    Ok(work)
}

/// A parser of JSON, with a program over a large document.
fn json(dir: &Path) -> Result<Work> {
    let peer = workspace::target().join("peers/jq");
    peers::unpacked(&["jq", "libjq1", "libonig5"], &peer)?;
    let document = dir.join("large.json");
    fs::write(&document, process::read(Command::new("awk").arg("-f").arg(scripts().join("json.awk")))?)?;
    let words = [peer.join("usr/bin/jq"), "-c".into(), "-f".into(), "work.jq".into(), document];
    let mut work = Work::of("json", Kind::Program, words.map(OsString::from));
    work.environment = vec![("LD_LIBRARY_PATH", std::env::join_paths(peers::libraries(&peer)?)?)];
    Ok(work)
}
