//! A thousand simulated hosts that push a row each second into each engine, or as many as it takes beside the senders on this machine.

use super::results::Results;
use crate::{build, peers, process, workspace};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::fs;
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const HOSTS: u32 = 1000;
const SECONDS: u32 = 20;
const ADDRESS: &str = "127.0.0.1:18086";
/// An engine keeps up if at most this share of rows is late or lost.
const LATE: f64 = 0.01;

/// An engine: its program, how it is started in a folder, and the URL for `numa push`.
struct Loaded {
    name: &'static str,
    program: &'static str,
    start: fn(&mut Command, &Path) -> Result<()>,
    prepare: fn() -> Result<()>,
    url: &'static str,
}

const ENGINES: [Loaded; 3] = [
    Loaded {
        name: "InfluxDB 1",
        program: "influxd",
        start: start_influx,
        prepare: || {
            let create = ["-s", "-f", "-d", "q=CREATE DATABASE d", "http://127.0.0.1:18086/query"];
            process::read(Command::new("curl").args(create)).map(drop)
        },
        url: "influxdb1+http://127.0.0.1:18086?db=d",
    },
    Loaded {
        name: "Prometheus remote write",
        program: "prometheus",
        start: |command, folder| {
            fs::write(folder.join("p.yml"), "global:\n  scrape_interval: 1h\n")?;
            command.arg(format!("--config.file={}", folder.join("p.yml").display()));
            command.arg(format!("--storage.tsdb.path={}", folder.join("data").display()));
            command.arg(format!("--web.listen-address={ADDRESS}")).arg("--web.enable-remote-write-receiver");
            Ok(())
        },
        prepare: || Ok(()),
        url: "prometheus+http://127.0.0.1:18086",
    },
    Loaded {
        name: "VictoriaMetrics remote write",
        program: "victoria-metrics",
        start: |command, folder| {
            command.arg(format!("-storageDataPath={}", folder.join("data").display()));
            command.arg(format!("-httpListenAddr={ADDRESS}"));
            Ok(())
        },
        prepare: || Ok(()),
        url: "prometheus+http://127.0.0.1:18086",
    },
];

fn start_influx(command: &mut Command, folder: &Path) -> Result<()> {
    let at = |name: &str| folder.join(name).display().to_string();
    let settings = format!(
        "reporting-disabled = true\nbind-address = \"127.0.0.1:18088\"\n[meta]\ndir = {:?}\n[data]\ndir = {:?}\nwal-dir = {:?}\n\
         [http]\nbind-address = \"{ADDRESS}\"\nlog-enabled = false\n[monitor]\nstore-enabled = false\n",
        at("meta"),
        at("data"),
        at("wal")
    );
    fs::write(folder.join("influxdb.conf"), settings)?;
    command.arg("-config").arg(folder.join("influxdb.conf"));
    Ok(())
}

pub fn run(results: &mut Results) -> Result<()> {
    let load = build::example("load")?;
    let folder = workspace::target().join("bench/load");
    let recording = folder.join("one.arrows");
    fs::create_dir_all(&folder)?;
    let mut numa = Command::new(workspace::measured());
    numa.args(["record", "-i", "100ms", "--force", "-o"]).arg(&recording).args(["--", "sleep", "8"]);
    process::read(&mut numa)?;
    for engine in &ENGINES {
        engine.measure(&load, &recording, &folder, results)?;
    }
    fs::remove_dir_all(&folder)?;
    Ok(())
}

impl Loaded {
    /// Halves the number of hosts until the engine keeps up.
    fn measure(&self, load: &Path, recording: &Path, folder: &Path, results: &mut Results) -> Result<()> {
        let mut hosts = HOSTS;
        loop {
            let folder = folder.join("engine");
            let _ = fs::remove_dir_all(&folder);
            fs::create_dir_all(&folder)?;
            let running = self.start(&folder)?;
            let (hosts_text, seconds) = (hosts.to_string(), SECONDS.to_string());
            let mut command = Command::new(load);
            command.arg(self.url).arg(recording).args([hosts_text, seconds]);
            let seen: Value = serde_json::from_str(&process::read(&mut command)?)?;
            let number = |key: &str| seen[key].as_f64().unwrap_or(f64::NAN);
            let due = f64::from(hosts) * f64::from(SECONDS);
            let missed = (number("late") + number("failed")) / due;
            results.say(&format!("{}: {hosts} hosts: {seen}", self.name));
            let keeps_up = missed <= LATE;
            if !keeps_up && hosts > 50 {
                hosts /= 2;
                continue;
            }
            let name = |what: &str| format!("{}: {what}", self.name);
            results.show(
                &name("hosts that it keeps up with"),
                if keeps_up { hosts.into() } else { 0.0 },
                "",
            )?;
            results.show(&name("rows a second"), number("rows") / number("seconds"), "")?;
            results.show(&name("values a second"), number("values") / number("seconds"), "")?;
            results.show(&name("bytes sent of a value"), number("bytes") / number("values"), "")?;
            results.show(&name("values that it refused"), number("refused"), "")?;
            results.show(&name("99th of 100 requests"), number("p99_ms"), "ms")?;
            let share = 100.0 * process::cpu_seconds(running.0.id())? / running.1.elapsed().as_secs_f64();
            results.show(&name("share of a core"), share, "%")?;
            results.show(&name("memory"), resident(running.0.id())?, "MiB")?;
            let bytes = process::read(Command::new("du").args(["-sb"]).arg(&folder))?;
            let bytes: f64 = bytes.split_whitespace().next().context("du printed nothing")?.parse()?;
            results.show(&name("bytes on disk of a value"), bytes / number("values"), "")?;
            return Ok(());
        }
    }

    fn start(&self, folder: &Path) -> Result<Running> {
        if TcpStream::connect(ADDRESS).is_ok() {
            bail!("another program listens at {ADDRESS}; end it");
        }
        let mut command = Command::new(peers::folder()?.join(self.program));
        (self.start)(&mut command, folder)?;
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let running = Running(child, Instant::now());
        let end = Instant::now() + Duration::from_secs(60);
        while TcpStream::connect(ADDRESS).is_err() {
            if Instant::now() > end {
                bail!("{} does not listen at {ADDRESS}", self.program);
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        std::thread::sleep(Duration::from_secs(2));
        (self.prepare)()?;
        Ok(running)
    }
}

/// A running engine, and since when it runs.
struct Running(Child, Instant);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn resident(process: u32) -> Result<f64> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
    Ok(line.trim().trim_end_matches(" kB").parse::<f64>()? / 1024.0)
}
