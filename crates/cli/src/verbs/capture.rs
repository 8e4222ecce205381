//! `numa capture`.

use crate::Global;
use crate::to_file::{self, Existing, is_standard_output, no_terminal};
use anyhow::Context;
use clap::Args;
use numakit_sensors::{Probe, Scene};
use numakit_sys::stdio::{print, say};
use numakit_topology::capture::Capture as Taken;
use std::fmt::Write;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

/// Put this machine's topology and counters into a file
///
/// The file holds what numa reads of /sys and /proc and nothing else: no names of people,
/// machines or networks and no serial numbers. Every verb that reads takes it with --sysroot.
#[derive(Debug, Args)]
pub struct Capture {
    /// The file, a tar archive packed with zstd; '-' is standard output
    #[arg(short, long, value_name = "FILE", default_value = "capture.tar.zst")]
    output: PathBuf,
    /// Replace the file if it is there
    #[arg(long)]
    force: bool,
}

impl Capture {
    /// Takes the files and says what they are.
    pub fn run(self, global: &Global) -> anyhow::Result<ExitCode> {
        let root = global.root()?;
        let capture = Taken::take(&root, |root, topology| drop(Probe::new(&Scene::new(root, topology))))
            .context("the machine cannot be read")?;
        let (path, existing) = (&self.output, Existing::forced(self.force));
        if is_standard_output(path) {
            no_terminal("a capture")?;
        }
        let taken = "name another file with -o, or replace it with --force";
        to_file::write(path, existing, taken, |to| Ok(capture.write(to)?))?;
        self.report(&capture)?;
        Ok(ExitCode::SUCCESS)
    }

    /// What is in it; on standard error where the archive itself is on standard output.
    fn report(&self, capture: &Taken) -> anyhow::Result<()> {
        let (contents, topology) = (capture.contents(), capture.topology());
        let files: usize = contents.iter().map(|c| c.files).sum();
        let mut text = String::new();
        let aside = is_standard_output(&self.output);
        if !aside {
            let size = fs::metadata(&self.output)?.len();
            writeln!(text, "{}: {size} bytes, {files} files", self.output.display())?;
        }
        for content in &contents {
            writeln!(text, "  {:>7} files {:>10} bytes  {}", content.files, content.bytes, content.place)?;
        }
        write!(text, "{} nodes, {} CPUs", topology.nodes.len(), topology.online.len())?;
        if aside {
            say(format_args!("{text}\n"));
            return Ok(());
        }
        Ok(print(format_args!("{text}; see it with: numa topo --sysroot {}\n", self.output.display()))?)
    }
}
