//! `numa top` on a generated machine of 32 nodes and 1,024 CPUs whose counters grow: the time to the first values, and the CPU
//! time at an interval of 1 s.

use super::machine::Machine;
use super::results::Results;
use super::statistics::median;
use crate::{process, workspace};
use anyhow::{Context, Result, bail};
use numakit_sys::poll;
use numakit_sys::pty::Pty;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Write as _;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const NODES: u32 = 32;
const CPUS: u32 = 1024;
const SYNTHETIC: &str = "package:8 node:4 core:32";
/// Processes, each with the files of one that runs here.
const PROCESSES: u32 = 500;
const STARTS: usize = 7;
/// Seconds until it runs evenly, and seconds that are measured.
const WARM: u64 = 10;
const SECONDS: u64 = 30;
/// The screens: the smallest that must do, and a large one.
const SIZES: [(u16, u16); 2] = [(80, 24), (200, 50)];

pub fn run(results: &mut Results) -> Result<()> {
    let machine = Machine::generate(SYNTHETIC, NODES)?;
    add_processes(machine.dir())?;
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let load = scope.spawn(|| work(machine.dir(), &stop));
        let measured = SIZES.into_iter().try_for_each(|size| measure(results, machine.dir(), size));
        stop.store(true, Ordering::Relaxed);
        let worked = load.join().unwrap_or_else(|_| bail!("the counters' thread failed"));
        measured.and(worked)
    })
}

fn measure(results: &mut Results, root: &Path, size: (u16, u16)) -> Result<()> {
    let name = format!("{}x{}", size.0, size.1);
    let starts: Result<Vec<f64>> =
        (0..STARTS).map(|_| Ok(Top::start(root, size)?.first.as_secs_f64() * 1e3)).collect();
    results.at_most(&format!("{name}: start to first values"), median(starts?), "ms", 300.0)?;
    let top = Top::start(root, size)?;
    top.draw(Duration::from_secs(WARM))?;
    let (before, began) = (top.cpu()?, Instant::now());
    let bytes = top.draw(Duration::from_secs(SECONDS))?;
    let elapsed = began.elapsed().as_secs_f64();
    let share = (top.cpu()? - before) / elapsed * 100.0;
    results.at_most(&format!("{name}: CPU at an interval of 1 s"), share, "% of a core", 1.0)?;
    results.show(&format!("{name}: written to the terminal"), bytes as f64 / elapsed / 1024.0, "KiB/s")
}

/// `numa top` at a terminal.
struct Top {
    pty: Pty,
    child: Child,
    first: Duration,
}

impl Top {
    /// Starts it, and waits for values of memory.
    fn start(root: &Path, (columns, rows): (u16, u16)) -> Result<Self> {
        let pty = Pty::open(columns, rows)?;
        let mut command = Command::new(workspace::measured());
        command.args(["top", "--sysroot"]).arg(root).env("TERM", "xterm-256color").env("LC_ALL", "C.UTF-8");
        let began = Instant::now();
        let mut top = Self { child: pty.spawn(&mut command)?, pty, first: Duration::ZERO };
        let mut seen = String::new();
        // Only what changed is drawn: the brackets of the meter stay from the first frame.
        while !seen.contains("iB") {
            if began.elapsed() > Duration::from_secs(20) {
                bail!("numa top shows no memory within 20 s, but {seen:?}");
            }
            seen.push_str(&top.read(Duration::from_millis(1))?);
        }
        top.first = began.elapsed();
        Ok(top)
    }

    /// What it draws within a time.
    fn read(&self, time: Duration) -> Result<String> {
        let mut buffer = [0; 1 << 16];
        if poll::readable(&[self.pty.as_fd()], Some(time))? != [true] {
            return Ok(String::new());
        }
        let count = self.pty.read(&mut buffer)?;
        Ok(String::from_utf8_lossy(&buffer[..count]).into_owned())
    }

    /// Lets it draw for a time; returns the bytes.
    fn draw(&self, time: Duration) -> Result<usize> {
        let end = Instant::now() + time;
        let mut bytes = 0;
        while let Some(left) = end.checked_duration_since(Instant::now()) {
            bytes += self.read(left)?.len();
        }
        Ok(bytes)
    }

    /// CPU time so far in seconds.
    fn cpu(&self) -> Result<f64> {
        process::cpu_seconds(self.child.id())
    }
}

impl Drop for Top {
    fn drop(&mut self) {
        let _ = self.pty.write(b"q");
        let began = Instant::now();
        while self.child.try_wait().is_ok_and(|status| status.is_none()) {
            if began.elapsed() > Duration::from_secs(10) {
                let _ = self.child.kill();
            }
            let _ = self.read(Duration::from_millis(10));
        }
    }
}

/// Copies of the files of this process.
fn add_processes(root: &Path) -> Result<()> {
    let files = ["status", "schedstat", "numa_maps", "maps"]
        .map(|file| (file, fs::read(format!("/proc/self/{file}"))));
    let stat = fs::read_to_string("/proc/self/stat")?;
    let (_, rest) = stat.split_once(' ').context("no number in stat")?;
    for pid in 1000..1000 + PROCESSES {
        let folder = root.join(format!("proc/{pid}"));
        let thread = folder.join(format!("task/{pid}"));
        fs::create_dir_all(&thread)?;
        for place in [&folder, &thread] {
            fs::write(place.join("stat"), format!("{pid} {rest}"))?;
            for (file, content) in &files {
                if let Ok(content) = content {
                    fs::write(place.join(file), content)?;
                }
            }
        }
    }
    Ok(())
}

/// Lets the CPUs work, each at another load, until the stop. The files keep their length: they stay open.
fn work(root: &Path, stop: &AtomicBool) -> Result<()> {
    let began = Instant::now();
    let file: PathBuf = root.join("proc/stat");
    while !stop.load(Ordering::Relaxed) {
        let ticks = began.elapsed().as_millis() as u64 / 10;
        let mut text = String::new();
        for cpu in 0..CPUS {
            let busy = ticks * u64::from(cpu % 100) / 100;
            writeln!(text, "cpu{cpu} {busy:010} 0 0 {:010} 0 0 0 0 0 0", ticks - busy)?;
        }
        write!(
            text,
            "ctxt {:010}\nprocesses {:010}\nprocs_running 0000000009\nprocs_blocked 0000000000\n",
            ticks * 50,
            ticks
        )?;
        File::options().write(true).open(&file)?.write_all(text.as_bytes())?;
        std::thread::sleep(Duration::from_millis(500));
    }
    Ok(())
}
