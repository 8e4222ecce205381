//! Runs a server of the page and measures it from outside.

use crate::process::{self, Figures};
use crate::{build, web, workspace};
use anyhow::{Context, Result, bail};
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// A port that is most likely free.
const ADDRESS: &str = "127.0.0.1:17077";

/// A running server.
#[derive(Debug)]
pub struct Served {
    child: Child,
    /// The address of the page for controllers.
    pub url: String,
}

/// Its measurements.
#[derive(Debug, Clone, Copy)]
pub struct Seen {
    /// Microseconds of CPU time per tick.
    pub cpu_us: f64,
    /// Share of a core.
    pub share: f64,
    /// Share of ticks that were missed.
    pub missed: f64,
    /// Memory in use, in MiB.
    pub rss: f64,
    /// Memory of the history, in MiB.
    pub history: f64,
}

impl Served {
    /// `numa live` with these options.
    pub fn live(options: &[&str]) -> Result<Self> {
        let mut numa = Command::new(workspace::measured());
        numa.args(["live", "--no-open", "--listen", ADDRESS]).args(options);
        Self::start(&mut numa)
    }

    /// A simulated machine: `scripted.rs` in crates/server/examples.
    pub fn scripted(series: u32, nodes: u32, interval_ms: u32) -> Result<Self> {
        let mut command = Command::new(build::example("scripted")?);
        command.arg(ADDRESS).args([series, nodes, interval_ms].map(|n| n.to_string()));
        Self::start(&mut command)
    }

    fn start(command: &mut Command) -> Result<Self> {
        let line = process::line(command);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().context(line.clone())?;
        let mut first = String::new();
        if let Some(output) = &mut child.stdout {
            BufReader::new(output).read_line(&mut first)?;
        }
        let Some(url) = first.split_whitespace().last().filter(|url| url.contains('#')) else {
            let _ = child.kill();
            bail!("{line} printed no address; is another one running at {ADDRESS}?");
        };
        Ok(Self { url: url.to_owned(), child })
    }

    /// Measures it for some time while two clients watch the default panels. `interval` is in seconds.
    pub fn watch(&self, warm: u64, seconds: u64, interval: f64) -> Result<Seen> {
        let clients = Clients::enter(&self.url)?;
        std::thread::sleep(Duration::from_secs(warm));
        let (before, began) = (self.cpu()?, Instant::now());
        std::thread::sleep(Duration::from_secs(seconds));
        let (cpu, elapsed) = (self.cpu()? - before, began.elapsed().as_secs_f64());
        let rss = self.rss()?;
        let clients_seen = clients.leave()?;
        let (samples, lost) = (clients_seen.get("samples")?, clients_seen.get("lost")?);
        let missed = lost / (samples + lost);
        let ticks = elapsed / interval * (1.0 - missed);
        let history = clients_seen.get("history_bytes")? / f64::from(1 << 20);
        Ok(Seen { cpu_us: cpu * 1e6 / ticks, share: cpu / elapsed, missed, rss, history })
    }

    /// The open files of /proc and /sys, which are those that it samples.
    pub fn files(&self) -> Result<Vec<PathBuf>> {
        let mut files = Vec::new();
        for entry in fs::read_dir(self.proc("fd"))? {
            let Ok(path) = fs::read_link(entry?.path()) else { continue };
            if ["/proc/", "/sys/"].iter().any(|top| path.starts_with(top)) {
                files.push(path);
            }
        }
        Ok(files)
    }

    /// Memory in use, in MiB.
    pub fn rss(&self) -> Result<f64> {
        let status = fs::read_to_string(self.proc("status"))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
        Ok(line.trim().trim_end_matches(" kB").parse::<f64>()? / 1024.0)
    }

    /// CPU time so far in seconds, including ended threads.
    fn cpu(&self) -> Result<f64> {
        process::cpu_seconds(self.child.id())
    }

    fn proc(&self, file: &str) -> PathBuf {
        format!("/proc/{}/{file}", self.child.id()).into()
    }
}

impl Drop for Served {
    /// Ends it like Ctrl-C.
    fn drop(&mut self) {
        let pid = self.child.id().to_string();
        if process::run(Command::new("kill").args(["-TERM", &pid])).is_err() {
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }
}

/// Two clients that receive what a page would; they end with their input.
struct Clients {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Clients {
    fn enter(url: &str) -> Result<Self> {
        let mut node = web::bench("clients")?;
        let mut child = node.args([url, "2"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let input = child.stdin.take().context("clients have no input")?;
        let mut output = BufReader::new(child.stdout.take().context("clients have no output")?);
        let mut line = String::new();
        output.read_line(&mut line)?;
        if line.trim() != "ready" {
            bail!("the clients cannot connect to {url}");
        }
        Ok(Self { child, input, output })
    }

    fn leave(mut self) -> Result<Figures> {
        drop(self.input);
        let mut text = String::new();
        self.output.read_to_string(&mut text)?;
        self.child.wait()?;
        Ok(Figures::parse(&text))
    }
}
