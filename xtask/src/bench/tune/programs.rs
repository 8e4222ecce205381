//! The programs: how each is got and prepared, what is run, and what is measured.

use super::prepare::Step;
use crate::install::Tool;

/// A program that is tuned.
#[derive(Debug)]
pub struct Program {
    pub name: &'static str,
    /// What it does in a run.
    pub work: &'static str,
    /// What must be installed.
    pub tools: &'static [Tool],
    /// What is made before the first run.
    pub steps: &'static [Step],
    pub server: Option<Server>,
    /// The command, or the load of the server. Words are separated by blanks, and paths are relative to the folder of the benchmark.
    pub command: &'static str,
    pub metric: Metric,
    /// What prints the version on its first line, for a shell.
    pub version: &'static str,
}

/// A program that serves others until it is ended.
#[derive(Debug)]
pub struct Server {
    pub command: &'static str,
    /// Succeeds as soon as it serves.
    pub ready: &'static str,
}

/// What of a run is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Metric {
    WallTime,
    /// That of the program and all that it starts: of a program that computes with one thread it is the wall time, without what other
    /// programs take.
    CpuTime,
    /// The number behind this text in the output; more is better.
    Rate(&'static str),
}

impl Program {
    /// What runs with the settings: the server, if there is one.
    pub fn tuned(&self) -> &'static str {
        self.server.as_ref().map_or(self.command, |server| server.command)
    }
}

impl Metric {
    /// Whether more is better.
    pub fn is_rate(self) -> bool {
        matches!(self, Self::Rate(_))
    }

    /// What the guide's table calls less or more of it.
    pub fn gained(self) -> &'static str {
        match self {
            Self::WallTime => "less time",
            Self::CpuTime => "less CPU time",
            Self::Rate(_) => "more",
        }
    }

    /// The expression that finds the number, for `--metric`.
    pub fn expression(self) -> Option<String> {
        match self {
            Self::WallTime | Self::CpuTime => None,
            Self::Rate(before) => Some(format!("{before} *([0-9.]+)")),
        }
    }

    /// The last such number of the output.
    pub fn read(self, output: &str) -> Option<f64> {
        let Self::Rate(before) = self else { return None };
        let numbers = output.match_indices(before).filter_map(|(at, _)| {
            let rest = output[at + before.len()..].trim_start_matches(' ');
            let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
            rest[..end].parse().ok()
        });
        numbers.last()
    }
}

const PYTHON: Tool = (&["python3", "-m", "ensurepip", "--version"], "python3-venv");
const JAVA: Tool = (&["javac", "-version"], "openjdk-17-jdk-headless");
const CXX: Tool = (&["g++", "--version"], "g++");

/// The packages of requirements.txt, in an environment of their own.
const PACKAGES: Step = Step {
    made: "venv/made",
    of: "requirements.txt",
    script: "python3 -m venv --clear venv && venv/bin/pip install -q --disable-pip-version-check --only-binary :all: -r requirements.txt \
             && touch venv/made",
};

/// A program of Python and the packages.
const fn python(
    name: &'static str,
    work: &'static str,
    command: &'static str,
    version: &'static str,
) -> Program {
    program(name, work, &[PYTHON], &[PACKAGES], command, version)
}

/// A program that computes with one thread.
const fn single(program: Program) -> Program {
    Program { metric: Metric::CpuTime, ..program }
}

/// A program whose wall time counts.
const fn program(
    name: &'static str,
    work: &'static str,
    tools: &'static [Tool],
    steps: &'static [Step],
    command: &'static str,
    version: &'static str,
) -> Program {
    Program { name, work, tools, steps, server: None, command, metric: Metric::WallTime, version }
}

/// A server whose answers per second count.
const fn server(
    [name, work, serving, ready, load]: [&'static str; 5],
    tools: &'static [Tool],
    steps: &'static [Step],
    rate: &'static str,
    version: &'static str,
) -> Program {
    let server = Some(Server { command: serving, ready });
    Program { name, work, tools, steps, server, command: load, metric: Metric::Rate(rate), version }
}

/// All, servers first.
pub const PROGRAMS: [Program; 20] = [
    server(
        [
            "postgresql",
            "pgbench -S, scale 20, 2 clients",
            "setpriv --reuid=postgres --regid=postgres --clear-groups /usr/lib/postgresql/15/bin/postgres -D postgres -k /tmp -p 7410 \
             -c listen_addresses= -c shared_buffers=512MB",
            "/usr/lib/postgresql/15/bin/pg_isready -h /tmp -p 7410",
            "setpriv --reuid=postgres --regid=postgres --clear-groups /usr/lib/postgresql/15/bin/pgbench -h /tmp -p 7410 -S -n -c 2 -j 2 \
             -t 15000 postgres",
        ],
        &[(&["/usr/lib/postgresql/15/bin/pgbench", "--version"], "postgresql-15")],
        &[Step { made: "postgres/made", of: "postgres.sh", script: "sh postgres.sh" }],
        "tps =",
        "/usr/lib/postgresql/15/bin/postgres --version",
    ),
    server(
        [
            "nginx",
            "wrk, 32 connections, a file of 11 kB",
            "nginx -p nginx -c nginx.conf",
            "curl -sf -o /dev/null http://127.0.0.1:7413/page.txt",
            "wrk -t 1 -c 32 -d 1s http://127.0.0.1:7413/page.txt",
        ],
        &[
            (&["nginx", "-v"], "nginx-light"),
            (&["dpkg", "-s", "wrk"], "wrk"),
            (&["curl", "--version"], "curl"),
        ],
        &[Step {
            made: "nginx/nginx.conf",
            of: "nginx.conf",
            script: "mkdir -p nginx && seq 2270 > nginx/page.txt && cp nginx.conf nginx",
        }],
        "Requests/sec:",
        "nginx -v",
    ),
    server(
        [
            "redis",
            "redis-benchmark, SET of 256 bytes with a million keys",
            "redis-server redis.conf",
            "redis-cli -p 7411 ping",
            "redis-benchmark -p 7411 -t set -n 300000 -r 1000000 -d 256 -P 8 -q",
        ],
        &[(&["redis-server", "--version"], "redis-server")],
        &[],
        "SET:",
        "redis-server --version",
    ),
    server(
        [
            "memcached",
            "memcaslap, 16 connections",
            "memcached -u root -p 7412 -m 512 -t 2",
            "memcping --servers=127.0.0.1:7412",
            "memcaslap -s 127.0.0.1:7412 -T 1 -c 16 -x 100000",
        ],
        &[(&["memcached", "--version"], "memcached"), (&["memcping", "--version"], "libmemcached-tools")],
        &[],
        "TPS:",
        "memcached --version",
    ),
    single(program(
        "sqlite",
        "150,000 rows of a million by random keys",
        &[PYTHON],
        &[
            PACKAGES,
            Step {
                made: "keys.db",
                of: "keys.py",
                script: "rm -f keys.db && venv/bin/python keys.py keys.db",
            },
        ],
        "venv/bin/python keys.py keys.db 150000",
        "venv/bin/python -c 'import sqlite3; print(sqlite3.sqlite_version)'",
    )),
    python(
        "duckdb",
        "joins two tables of 6 million rows",
        "venv/bin/python join.py 6",
        "venv/bin/pip freeze | grep ^duckdb=",
    ),
    single(python(
        "numpy",
        "arithmetic and random places, 10 million numbers",
        "venv/bin/python arrays.py 10",
        "venv/bin/pip freeze | grep ^numpy=",
    )),
    single(python(
        "pandas",
        "groups and joins 3 million rows",
        "venv/bin/python groups.py 3",
        "venv/bin/pip freeze | grep ^pandas=",
    )),
    python(
        "scikit-learn",
        "a random forest on all cores",
        "venv/bin/python forest.py 8",
        "venv/bin/pip freeze | grep ^scikit-learn=",
    ),
    single(python(
        "python",
        "counts 1.5 million words with a dict",
        "venv/bin/python words.py 1500000",
        "venv/bin/python -V",
    )),
    program(
        "node",
        "counts 700,000 words with a Map and sorts them",
        &[(&["node", "--version"], "nodejs")],
        &[],
        "node words.js 700000",
        "node --version",
    ),
    program(
        "java-false-sharing",
        "two threads add to neighbours in an array",
        &[JAVA],
        &[Step { made: "FalseSharing.class", of: "FalseSharing.java", script: "javac FalseSharing.java" }],
        "java FalseSharing 50000000",
        "java -version",
    ),
    program(
        "java-monitor",
        "four threads count words under one monitor",
        &[JAVA],
        &[Step { made: "Monitor.class", of: "Monitor.java", script: "javac Monitor.java" }],
        "java Monitor 5000000",
        "java -version",
    ),
    program(
        "go",
        "trees of 2^20 nodes on all cores",
        &[(&["go", "version"], "golang-go")],
        &[Step { made: "trees", of: "trees.go", script: "GO111MODULE=off go build trees.go" }],
        "./trees 19",
        "go version",
    ),
    single(program(
        "rust",
        "a HashMap of 3 million random keys",
        &[(&["rustc", "--version"], "rustc")],
        &[Step { made: "map-rs", of: "map.rs", script: "rustc -O -o map-rs map.rs" }],
        "./map-rs 3000000",
        "rustc --version",
    )),
    single(program(
        "c++",
        "an unordered_map of 2 million random keys",
        &[CXX],
        &[Step { made: "map-cpp", of: "map.cpp", script: "g++ -O2 -o map-cpp map.cpp" }],
        "./map-cpp 2000000",
        "g++ --version",
    )),
    single(program(
        "gcc",
        "compiles all headers of the C++ library, preprocessed",
        &[CXX],
        &[Step { made: "headers.ii", of: "headers.cpp", script: "g++ -E -o headers.ii headers.cpp" }],
        "g++ -c -o headers.o headers.ii",
        "g++ --version",
    )),
    program(
        "xz",
        "compresses 16 MB with two threads",
        &[(&["xz", "--version"], "xz-utils"), CXX],
        &[
            Step { made: "headers.ii", of: "headers.cpp", script: "g++ -E -o headers.ii headers.cpp" },
            Step { made: "plain", of: "headers.cpp", script: "cat headers.ii headers.ii headers.ii > plain" },
        ],
        "xz --keep --force --threads=2 --block-size=4MiB plain",
        "xz --version",
    ),
    program(
        "ffmpeg",
        "encodes 2 seconds of 1280x720 with x264",
        &[(&["ffmpeg", "-version"], "ffmpeg")],
        &[Step {
            made: "clip.y4m",
            of: "",
            script: "ffmpeg -loglevel error -y -f lavfi -i testsrc2=duration=2:size=1280x720:rate=30 clip.y4m",
        }],
        "ffmpeg -nostdin -loglevel error -y -i clip.y4m -c:v libx264 -preset medium -f null -",
        "ffmpeg -version",
    ),
    program(
        "llama.cpp",
        "llama-bench, a random model of 53 MB, 512 tokens read and 256 written",
        &[PYTHON, CXX],
        &[
            Step { made: "llama/build/bin/llama-bench", of: "llama.sh", script: "sh llama.sh" },
            Step {
                made: "llama/model.gguf",
                of: "model.py",
                script: "llama/tools/bin/python model.py llama/model.gguf",
            },
        ],
        "llama/build/bin/llama-bench -m llama/model.gguf -t 2 -p 512 -n 256 -r 1",
        "cat llama/version",
    ),
];
