//! `numa serve` beside node_exporter: CPU time, private memory, the time of a scrape; and on a simulated machine of 128 nodes and
//! 4,096 CPUs its CPU time and its number of series.

use super::machine::Machine;
use super::results::Results;
use crate::{peers, process, workspace};
use anyhow::{Context, Result, bail};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Ports that are most likely free.
const OURS: &str = "127.0.0.1:19477";
const PEER: &str = "127.0.0.1:19100";
/// A round of jobs is every ten seconds.
const SECONDS: u64 = 60;
const WARM: u64 = 12;
/// Scrapes whose median is measured.
const SCRAPES: usize = 51;
const NODES: u32 = 128;
const LARGE: &str = "package:128 node:1 l3:2 l2:8 core:1 pu:2 numbering=sequential";

pub fn run(results: &mut Results) -> Result<()> {
    let cpus = std::thread::available_parallelism()?.get() as f64;
    let exporter = peers::folder()?.join("prometheus-node-exporter");
    let peer = Exporter::start(Command::new(exporter).arg(format!("--web.listen-address={PEER}")), PEER)?;
    let machine = measure("of the machine", &["--no-jobs"], &peer, results)?;
    results.at_most("of the machine: share of a core", machine.share, "%", 0.1)?;
    results.at_most("of the machine: private memory", machine.private, "MiB", 16.0)?;
    results.at_most("of the machine: a scrape", machine.scrape, "ms", 2.0)?;
    let jobs = measure("with jobs", &["--sample-rate", "0"], &peer, results)?;
    results.at_most("with jobs: share of a core", jobs.share, "%", 0.2)?;
    results.at_most("with jobs: private memory", jobs.private, "MiB", 16.0)?;
    let samples = measure("with samples", &[], &peer, results)?;
    results.at_most("with samples: share of each CPU", samples.share / cpus, "%", 0.3)?;
    results.show("with samples: private memory", samples.private, "MiB")?;
    drop(peer);
    large(results)
}

/// The simulated machine's files are on tmpfs, where reading is cheaper than in the kernel's own folders.
fn large(results: &mut Results) -> Result<()> {
    let machine = Machine::generate(LARGE, NODES)?;
    let root = machine.dir().to_string_lossy().into_owned();
    let ours = Exporter::ours(&["--no-jobs", "--sysroot", &root])?;
    let seen = ours.watch()?;
    results.at_most("128 nodes: share of a core", seen.share, "%", 1.0)?;
    results.at_most("128 nodes: a scrape", seen.scrape, "ms", 2.0)?;
    results.at_most("128 nodes: series", ours.scrape()?.series as f64, "", 300.0)
}

/// Measures ours and the peer at the same time, both scraped once a second.
fn measure(name: &str, options: &[&str], peer: &Exporter, results: &mut Results) -> Result<Watched> {
    let ours = Exporter::ours(options)?;
    let (seen, other) = std::thread::scope(|scope| {
        let other = scope.spawn(|| peer.watch());
        let seen = ours.watch();
        (seen, other.join())
    });
    let Ok(other) = other else { bail!("the thread that scrapes node_exporter panicked") };
    let (seen, other) = (seen?, other?);
    results.show(&format!("{name}: series"), ours.scrape()?.series as f64, "")?;
    results.show(&format!("{name}: node_exporter, share of a core"), other.share, "%")?;
    results.show(&format!("{name}: node_exporter, private memory"), other.private, "MiB")?;
    results.show(&format!("{name}: node_exporter, a scrape"), other.scrape, "ms")?;
    Ok(seen)
}

/// What was seen of an exporter.
#[derive(Debug, Clone, Copy)]
struct Watched {
    /// Percent of a core.
    share: f64,
    /// MiB.
    private: f64,
    /// Median in ms.
    scrape: f64,
}

struct OneScrape {
    ms: f64,
    series: usize,
}

/// A running exporter.
struct Exporter {
    child: Child,
    address: &'static str,
}

impl Exporter {
    fn ours(options: &[&str]) -> Result<Self> {
        let mut numa = Command::new(workspace::measured());
        let mut started = Self::start(numa.args(["serve", "--listen", OURS]).args(options), OURS)?;
        let mut line = String::new();
        if let Some(output) = started.child.stdout.take() {
            BufReader::new(output).read_line(&mut line)?;
        }
        Ok(started)
    }

    fn start(command: &mut Command, address: &'static str) -> Result<Self> {
        if TcpStream::connect(address).is_ok() {
            bail!("another program listens at {address}; end it");
        }
        let child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let started = Self { child, address };
        let end = Instant::now() + Duration::from_secs(60);
        while started.scrape().is_err() {
            if Instant::now() > end {
                bail!("{} does not answer at {address}", process::line(command));
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(started)
    }

    /// CPU time while it is scraped every 15 seconds, as Prometheus does; then memory, and the time of many scrapes.
    fn watch(&self) -> Result<Watched> {
        std::thread::sleep(Duration::from_secs(WARM));
        let (before, began) = (self.cpu()?, Instant::now());
        for _ in 0..SECONDS / 15 {
            std::thread::sleep(Duration::from_secs(15));
            self.scrape()?;
        }
        let share = 100.0 * (self.cpu()? - before) / began.elapsed().as_secs_f64();
        let private = self.private()?;
        let mut times = Vec::new();
        for _ in 0..SCRAPES {
            times.push(self.scrape()?.ms);
            // Ours sends the same text for a tenth of a second.
            std::thread::sleep(Duration::from_millis(110));
        }
        times.sort_by(f64::total_cmp);
        Ok(Watched { share, private, scrape: times[SCRAPES / 2] })
    }

    fn scrape(&self) -> Result<OneScrape> {
        let start = Instant::now();
        let mut stream = TcpStream::connect(self.address)?;
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        write!(stream, "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let ms = start.elapsed().as_secs_f64() * 1e3;
        let (head, body) = answer.split_once("\r\n\r\n").context("no answer")?;
        if !head.starts_with("HTTP/1.1 200 ") {
            bail!("{} answered {head}", self.address);
        }
        let series = body.lines().filter(|line| line.contains(' ') && !line.starts_with('#')).count();
        Ok(OneScrape { ms, series })
    }

    /// CPU time so far in seconds, including ended threads.
    fn cpu(&self) -> Result<f64> {
        process::cpu_seconds(self.child.id())
    }

    /// Memory that only this process has and that is not a part of a file, in MiB.
    fn private(&self) -> Result<f64> {
        let rollup = fs::read_to_string(format!("/proc/{}/smaps_rollup", self.child.id()))?;
        let line = rollup
            .lines()
            .find_map(|line| line.strip_prefix("Private_Dirty:"))
            .context("no Private_Dirty")?;
        Ok(line.trim().trim_end_matches(" kB").parse::<f64>()? / 1024.0)
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        let pid = self.child.id().to_string();
        if process::run(Command::new("kill").args(["-TERM", &pid])).is_err() {
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }
}
