//! `numa topo`.

use crate::Global;
use crate::to_file::{self, Existing};
use anyhow::{Context, bail};
use clap::Args;
use numakit_model::Topology;
use numakit_sys::stdio::print;
use numakit_terminal::topology::{Look, hardware, in_ascii, svg, tree};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Characters in a line where there is no terminal that says.
const WIDTH: usize = 100;

/// Show the machine: packages, nodes, caches, cores, distances
///
/// Without an option it prints a tree. The machine may also be another one: a capture with
/// --sysroot, or one that does not exist with --synthetic.
#[derive(Debug, Args)]
pub struct Topo {
    /// Write JSON
    #[arg(long, conflicts_with_all = ["hardware", "svg"])]
    json: bool,
    /// Write what 'numactl --hardware' writes
    #[arg(long, conflicts_with = "svg")]
    hardware: bool,
    /// Draw the machine into a file; '-' is standard output
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Show a machine that is described, as in 'package:2 node:2(mem=32G) core:4 pu:2', or the
    /// one in a file that ends in .json
    #[arg(long, value_name = "DESCRIPTION|FILE", conflicts_with = "sysroot")]
    synthetic: Option<String>,
}

impl Topo {
    /// Shows.
    pub fn run(self, global: &Global) -> anyhow::Result<ExitCode> {
        let topology = machine(self.synthetic.as_deref(), global)?;
        if self.json {
            print(numakit_topology::json::text(&topology))?;
        } else if self.hardware {
            print(hardware(&topology))?;
        } else if let Some(path) = &self.svg {
            write_drawing(path, &svg(&topology))?;
        } else {
            let width = numakit_sys::tty::columns().unwrap_or(WIDTH);
            let tree = tree(&topology, Look { color: global.color(), width });
            print(if global.unicode() { tree } else { in_ascii(&tree) })?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// The machine that is described, or the one that the options of all verbs choose.
pub(crate) fn machine(synthetic: Option<&str>, global: &Global) -> anyhow::Result<Topology> {
    match synthetic {
        Some(description) => match numakit_topology::synthetic::load(description) {
            Ok(topology) => Ok(topology),
            Err(error) => bail!("--synthetic: {error}"),
        },
        None => numakit_topology::read(&global.root()?).context("the machine cannot be read"),
    }
}

/// Writes a drawing into a file; '-' is standard output.
pub(crate) fn write_drawing(path: &Path, drawing: &str) -> anyhow::Result<()> {
    to_file::write(path, Existing::Replaced, "", |to| Ok(to.write_all(drawing.as_bytes())?))
}
