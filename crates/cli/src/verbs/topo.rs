//! `numa topo`.

use crate::to_file::{self, Existing};
use crate::{Examples, GlobalArgs};
use anyhow::{Context, bail};
use clap::Args;
use numakit_bench::distances::measured_distances;
use numakit_bench::{BenchConditions, BenchResults, kept};
use numakit_model::Topology;
use numakit_sys::stdio::{note, print};
use numakit_terminal::bench::BenchStyle;
use numakit_terminal::topology::{
    TreeStyle, hardware, in_ascii, measured, named_machines, summary, svg, tree,
};
use numakit_topology::synthetic::presets::{self, Preset};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Width of a line if standard output is not a terminal.
const WIDTH: usize = 100;

/// Show the topology: packages, nodes, caches, cores and distances
///
/// Without an option, it is printed as a tree. --sysroot shows another machine from a capture,
/// --synthetic a machine from a description, --machine one of many machines by the name of its processors.
///
/// --measured shows results of 'numa bench latency' beside the distances that the firmware states (ACPI SLIT), both with 10
/// for local memory, and says which pairs differ by more than 25 %, and whether another node is nearer. Results of another
/// machine are compared if this one has their nodes.
#[derive(Debug, Args)]
pub struct TopoArgs {
    /// Write JSON
    #[arg(long, conflicts_with_all = ["hardware", "svg"])]
    json: bool,
    /// Write the format of 'numactl --hardware'
    #[arg(long, conflicts_with = "svg")]
    hardware: bool,
    /// Draw the machine to an SVG file; '-' is standard output
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Show the distances beside those in this file, which 'numa bench --json' wrote
    #[arg(long, value_name = "FILE", conflicts_with_all = ["hardware", "svg"])]
    measured: Option<PathBuf>,
    /// Show this machine description, as in 'package:2 node:2(mem=32G) core:4 pu:2', or the machine
    /// in a .json file
    #[arg(long, value_name = "DESCRIPTION|FILE", conflicts_with = "sysroot")]
    synthetic: Option<String>,
    /// Show the machine of this name, as in 'EPYC 9755 x2'; 'list' prints all names
    #[arg(long, value_name = "NAME", conflicts_with_all = ["sysroot", "synthetic"])]
    machine: Option<String>,
}

impl TopoArgs {
    /// The first lines of its help.
    pub const EXAMPLES: Examples = [
        ("numa topo", "nodes, packages, caches, cores and distances of this machine"),
        ("numa topo --machine 'EPYC 9755 x2'", "the same of another machine"),
    ];

    /// Prints the topology.
    pub fn run(self, global: &GlobalArgs) -> anyhow::Result<ExitCode> {
        if self.machine.as_deref() == Some("list") {
            return self.print_machines();
        }
        let topology = described(self.synthetic.as_deref(), self.machine.as_deref(), global)?;
        if let Some(path) = &self.measured {
            self.print_measured(path, &topology, global)?;
        } else if self.json {
            print(numakit_topology::json::text(&topology))?;
        } else if self.hardware {
            print(hardware(&topology))?;
        } else if let Some(path) = &self.svg {
            write_drawing(path, &svg(&topology))?;
        } else {
            let width = numakit_sys::tty::columns().unwrap_or(WIDTH);
            let tree = tree(&topology, TreeStyle { color: global.color(), width });
            print(if global.unicode() { tree } else { in_ascii(&tree) })?;
        }
        Ok(ExitCode::SUCCESS)
    }

    fn print_machines(&self) -> anyhow::Result<ExitCode> {
        if self.json || self.hardware || self.svg.is_some() || self.measured.is_some() {
            bail!("--machine list has no other form; omit the other options, or name a machine");
        }
        let machines: Vec<Preset> = presets::all().collect::<Result<_, _>>()?;
        let row = |machine: &Preset| (machine.name, machine.year, summary(&machine.topology));
        print(named_machines(&machines.iter().map(row).collect::<Vec<_>>()))?;
        Ok(ExitCode::SUCCESS)
    }

    fn print_measured(&self, path: &Path, topology: &Topology, global: &GlobalArgs) -> anyhow::Result<()> {
        let results = BenchResults::read(path)?;
        let distances = measured_distances(topology, &results).with_context(|| path.display().to_string())?;
        // A description has no processor by which it could be told from others.
        let same = match self.synthetic.as_ref().or(self.machine.as_ref()) {
            Some(_) => None,
            None => Some(results.machine_key == kept::key_of(&global.root()?, topology)),
        };
        if self.json {
            let text =
                serde_json::to_string(&distances.report(&results, same)).context("cannot write JSON")?;
            return Ok(print(format_args!("{text}\n"))?);
        }
        if same == Some(false) {
            let BenchConditions { processor, machine, .. } = &results.conditions;
            note(format_args!("the results are of another machine: {processor}, {machine}"));
        }
        let width = numakit_sys::tty::columns().unwrap_or(WIDTH);
        Ok(print(measured(
            topology,
            &results,
            &distances,
            BenchStyle { color: global.color(), width, all: true },
        ))?)
    }
}

/// The described or named machine, or the one that the global options select.
pub(crate) fn described(
    synthetic: Option<&str>,
    name: Option<&str>,
    global: &GlobalArgs,
) -> anyhow::Result<Topology> {
    match (synthetic, name) {
        (Some(description), _) => match numakit_topology::synthetic::load(description) {
            Ok(topology) => Ok(topology),
            Err(error) => bail!("--synthetic: {error}"),
        },
        (None, Some(name)) => named(name),
        (None, None) => numakit_topology::read(&global.root()?).context("cannot read the topology"),
    }
}

/// The machine of a name.
pub(crate) fn named(name: &str) -> anyhow::Result<Topology> {
    match presets::find(name) {
        Ok(machine) => Ok(machine.topology),
        Err(error) => bail!("--machine: {error}"),
    }
}

/// Writes a drawing into a file; '-' is standard output.
pub(crate) fn write_drawing(path: &Path, drawing: &str) -> anyhow::Result<()> {
    to_file::write(path, Existing::Replace, "", |to| Ok(to.write_all(drawing.as_bytes())?))
}
