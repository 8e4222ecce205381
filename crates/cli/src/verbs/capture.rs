//! `numa capture`.

use crate::to_file::{self, Existing, is_standard_output, no_terminal};
use crate::{Examples, GlobalArgs};
use anyhow::Context;
use clap::Args;
use numakit_sensors::{Probe, Scene};
use numakit_sys::stdio::{print, say};
use numakit_topology::capture::Capture as MachineCapture;
use std::fmt::Write;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

/// Save the topology and the counters of this machine to a file
///
/// The file contains only what numa reads from /sys and /proc: no names of users, hosts or
/// networks and no serial numbers. Verbs that read the machine accept it with --sysroot.
#[derive(Debug, Args)]
pub struct CaptureArgs {
    /// The file, a tar archive compressed with zstd; '-' is standard output
    #[arg(short, long, value_name = "FILE", default_value = "capture.tar.zst")]
    output: PathBuf,
    /// Replace the file if it exists
    #[arg(long)]
    force: bool,
}

impl CaptureArgs {
    /// The first lines of its help.
    pub const EXAMPLES: Examples = [
        ("numa capture", "writes this machine to a file"),
        ("numa topo --sysroot capture.tar.zst", "reads such a file"),
    ];

    /// Copies the files and lists them.
    pub fn run(self, global: &GlobalArgs) -> anyhow::Result<ExitCode> {
        let root = global.root()?;
        let capture =
            MachineCapture::take(&root, |root, topology| drop(Probe::new(&Scene::new(root, topology))))
                .context("cannot read the topology")?;
        let (path, existing) = (&self.output, Existing::forced(self.force));
        if is_standard_output(path) {
            no_terminal("a capture")?;
        }
        let fix_if_exists = "give another name with -o, or replace the file with --force";
        to_file::write(path, existing, fix_if_exists, |to| Ok(capture.write(to)?))?;
        self.report(&capture)?;
        Ok(ExitCode::SUCCESS)
    }

    /// Lists the contents; on standard error if the archive itself is on standard output.
    fn report(&self, capture: &MachineCapture) -> anyhow::Result<()> {
        let (contents, topology) = (capture.contents(), capture.topology());
        let files: usize = contents.iter().map(|c| c.files).sum();
        let mut text = String::new();
        let to_standard_output = is_standard_output(&self.output);
        if !to_standard_output {
            let size = fs::metadata(&self.output)?.len();
            writeln!(text, "{}: {size} bytes, {files} files", self.output.display())?;
        }
        for content in &contents {
            writeln!(text, "  {:>7} files {:>10} bytes  {}", content.files, content.bytes, content.place)?;
        }
        write!(text, "{} nodes, {} CPUs", topology.nodes.len(), topology.online.len())?;
        if to_standard_output {
            say(format_args!("{text}\n"));
            return Ok(());
        }
        Ok(print(format_args!("{text}; show it with: numa topo --sysroot {}\n", self.output.display()))?)
    }
}
