//! A simulated machine as files on tmpfs, which are removed when it is dropped.

use crate::{build, process};
use anyhow::{Context, Result};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Files of a node whose lines are series.
const NODE_FILES: [&str; 3] = ["vmstat", "numastat", "meminfo"];

/// A generated /sys and /proc.
#[derive(Debug)]
pub struct Machine {
    dir: PathBuf,
    nodes: u32,
}

impl Machine {
    /// Generates the machine of a synthetic description; its nodes have the counters of node 0 here.
    pub fn generate(synthetic: &str, nodes: u32) -> Result<Self> {
        let machine = Self { dir: format!("/dev/shm/numakit-bench-{}", std::process::id()).into(), nodes };
        process::run(Command::new(build::example("machine")?).arg(synthetic).arg(&machine.dir))?;
        for file in NODE_FILES {
            let path = format!("/sys/devices/system/node/node0/{file}");
            let text = fs::read_to_string(&path).context(path)?;
            machine.write(file, |node| text.replace("Node 0 ", &format!("Node {node} ")))?;
        }
        Ok(machine)
    }

    /// The root of its files.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Adds keys to the vmstat of each node until its files have this number of lines.
    pub fn pad(&self, lines: usize) -> Result<()> {
        let count =
            |file: &str| Ok::<_, anyhow::Error>(fs::read_to_string(self.node(0).join(file))?.lines().count());
        let present: usize = NODE_FILES.iter().map(|file| count(file)).sum::<Result<usize>>()?;
        let mut text = fs::read_to_string(self.node(0).join("vmstat"))?;
        for key in present..lines {
            writeln!(text, "padding_{key} {}", key * 1000)?;
        }
        self.write("vmstat", |_| text.clone())
    }

    /// Writes a list of the files that are read for the topology, one path per line.
    pub fn list_files(&self) -> Result<PathBuf> {
        let files = process::read(Command::new(build::example("read")?).arg("--files").arg(&self.dir))?;
        let list: String = files.lines().map(|path| format!("{}{path}\n", self.dir.display())).collect();
        let path = self.dir.join("files");
        fs::write(&path, list)?;
        Ok(path)
    }

    /// Reads the topology; returns the time in microseconds.
    pub fn read_time(&self) -> Result<f64> {
        let output = process::read(Command::new(build::example("read")?).arg(&self.dir))?;
        let time = output.trim().strip_suffix(" us").and_then(|text| text.rsplit(' ').next());
        Ok(time.with_context(|| format!("no time in: {output}"))?.parse()?)
    }

    fn node(&self, node: u32) -> PathBuf {
        self.dir.join(format!("sys/devices/system/node/node{node}"))
    }

    fn write(&self, file: &str, content: impl Fn(u32) -> String) -> Result<()> {
        for node in 0..self.nodes {
            let path = self.node(node).join(file);
            fs::write(&path, content(node)).with_context(|| path.display().to_string())?;
        }
        Ok(())
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.dir) {
            eprintln!("cannot remove {}: {error}", self.dir.display());
        }
    }
}
