//! `numa file`.

use crate::by_use::{self, SampledUse};
use crate::choose::ProcessArgs;
use crate::files::Found;
use crate::to_file::{self, Existing};
use crate::verbs::explain::method;
use crate::{Examples, GlobalArgs};
use anyhow::{Context, bail};
use clap::{ArgGroup, Args, ValueEnum};
use numakit_observation::interval;
use numakit_placement::{MemoryRequest, NumberList};
use numakit_sampling::MethodKind;
use numakit_sys::stdio::print;
use numakit_sys::{SysRoot, sched};
use numakit_terminal::files::{ChangedFiles, FileByUse, FilesByUse};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Width of a line if standard output is not a terminal.
const WIDTH: usize = 100;

/// Show on which nodes the page cache of files is, and put it elsewhere
///
/// show reads nothing from the disk: it asks which pages are cached, and for the node of these. Folders are
/// entered; links in them, FIFOs, sockets and devices are left out. Processes that map a file are listed
/// with the nodes where their threads run or ran last.
///
/// move and spread move cached pages in memory; if the kernel refuses that here and no process maps the file,
/// they remove it from the cache and read it again. Pages that other processes map move only with
/// CAP_SYS_NICE. evict writes dirty pages first. load reads files with several threads; what is cached
/// already stays where it is. The exit code is 1 if pages stayed that should have moved or left.
///
/// spread --by-use observes running processes (--pid and the like) or a command (-- CMD) as 'numa explain' does, and moves each page to the node
/// whose threads use it; pages that several nodes use are spread over these, and those that nobody uses stay. For a command
/// pages move after its end, so that the next start is faster. Only mapped files have samples.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("observed").requires("by_use"))]
pub struct FileArgs {
    /// What to do
    #[arg(value_name = "ACTION")]
    action: Action,
    /// Files, and folders with files
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// With move: the node
    #[arg(long, value_name = "N", required_if_eq("action", "move"))]
    node: Option<u32>,
    /// With spread: these nodes [default: all with memory]
    #[arg(long, value_name = "LIST")]
    nodes: Option<NumberList>,
    /// With load: interleave[:LIST], weighted[:LIST], bind:LIST, prefer:LIST or local
    #[arg(long, value_name = "POLICY", required_if_eq("action", "load"))]
    policy: Option<MemoryRequest>,
    /// With spread: each page to the node whose threads use it
    #[arg(long, requires = "observed", conflicts_with = "nodes")]
    by_use: bool,
    #[command(flatten, next_help_heading = "With --by-use")]
    processes: ProcessArgs,
    /// With --by-use: observe for this time [default: 10s, or until the command ends]
    #[arg(long = "for", value_name = "TIME", requires = "by_use", value_parser = interval::parse_length)]
    duration: Option<Duration>,
    /// With --by-use: samples in a second of CPU time of a thread [default: 997]
    #[arg(short = 'F', long, value_name = "HZ", requires = "by_use", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    frequency: Option<u32>,
    /// With --by-use: take samples by this method instead of the best one that is permitted: perf, in-process or ptrace
    #[arg(long, alias = "road", value_name = "METHOD", requires = "by_use", value_parser = method())]
    method: Option<MethodKind>,
    /// With --by-use: write the plan to this file
    #[arg(long, value_name = "FILE", requires = "by_use")]
    save: Option<PathBuf>,
    /// With spread: move pages by a plan of --save, as after the file was removed from the cache and loaded again
    #[arg(long, value_name = "FILE", conflicts_with_all = ["by_use", "nodes"])]
    plan: Option<PathBuf>,
    /// With --by-use or --plan: show the plan and move nothing
    #[arg(long)]
    dry_run: bool,
    /// Write JSON
    #[arg(long)]
    json: bool,
    /// With --by-use: the command to run and observe, with its arguments
    #[arg(last = true, value_name = "CMD", group = "observed", requires = "by_use")]
    command: Vec<OsString>,
}

/// Samples in a second for the use of files: a prime number, so that they do not follow what programs do in its rhythm.
const FREQUENCY: u32 = 997;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Action {
    /// Show which pages are cached, and on which nodes
    Show,
    /// Move all cached pages to one node
    Move,
    /// Move cached pages to several nodes in turn
    Spread,
    /// Remove the files from the cache
    Evict,
    /// Read the files into the cache by a memory policy
    Load,
}

impl FileArgs {
    /// The first lines of its help.
    pub const EXAMPLES: Examples = [
        ("numa file show /data/model.gguf", "on which nodes its page cache is"),
        ("numa file spread /data/model.gguf", "spreads it over all nodes"),
    ];

    /// Does it and prints what is there.
    pub fn run(self, global: &GlobalArgs) -> anyhow::Result<ExitCode> {
        global.only_here("the page cache is that of this machine")?;
        self.check()?;
        let root = global.root()?;
        let topology = numakit_topology::read(&root).context("cannot read the topology")?;
        let found = Found::at(&self.paths, &root, &topology)?;
        match (self.action, self.node, &self.policy) {
            (Action::Move, Some(node), _) => self.report(&found.move_to(node)?),
            (Action::Spread, ..) if self.by_use => self.spread_by_use(found),
            (Action::Spread, ..) if self.plan.is_some() => self.spread_as_planned(found),
            (Action::Spread, ..) => self.report(&found.spread(self.nodes.as_ref())?),
            (Action::Evict, ..) => self.report(&found.evict()?),
            (Action::Load, _, Some(policy)) => self.report(&found.load(policy)?),
            _ => {
                let shown = found.show()?;
                match self.json {
                    true => print(format_args!("{}\n", shown.json()))?,
                    false => print(shown.page(numakit_sys::tty::columns().unwrap_or(WIDTH)))?,
                }
                Ok(ExitCode::SUCCESS)
            }
        }
    }

    /// Refuses options of other actions.
    fn check(&self) -> anyhow::Result<()> {
        let options = [
            (self.node.is_some(), "--node", Action::Move, "move"),
            (self.nodes.is_some(), "--nodes", Action::Spread, "spread"),
            (self.policy.is_some(), "--policy", Action::Load, "load"),
            (self.by_use, "--by-use", Action::Spread, "spread"),
            (self.plan.is_some(), "--plan", Action::Spread, "spread"),
        ];
        if self.dry_run && !self.by_use && self.plan.is_none() {
            bail!("--dry-run is an option of 'numa file spread' with --by-use or --plan; omit it");
        }
        match options.into_iter().find(|(given, _, action, _)| *given && *action != self.action) {
            Some((_, option, _, action)) => bail!("{option} is an option of 'numa file {action}'; omit it"),
            None => Ok(()),
        }
    }

    /// Observes, plans, and moves.
    fn spread_by_use(&self, found: Found<'_>) -> anyhow::Result<ExitCode> {
        // Before the program runs, whose observation would be lost.
        self.save.as_ref().map_or(Ok(()), |path| to_file::check(path, Existing::Replace))?;
        let chosen = self.processes.find(&SysRoot::host())?;
        let sampled = SampledUse {
            chosen: chosen.as_ref(),
            command: &self.command,
            duration: self.duration,
            frequency: self.frequency.unwrap_or(FREQUENCY),
            method: self.method,
        };
        let observed = match sampled.observe(&found)? {
            Ok(observed) => observed,
            Err(code) => return Ok(code),
        };
        if let Some(path) = &self.save {
            by_use::save(path, &found, &observed.files)?;
        }
        let done = self.carry_out(found, observed.files)?;
        let done = FilesByUse { taken: Some(observed.taken), ..done };
        self.report_by_use(&done)
    }

    fn spread_as_planned(&self, found: Found<'_>) -> anyhow::Result<ExitCode> {
        let Some(path) = &self.plan else { bail!("--plan FILE is missing") };
        let plans = by_use::saved(path, &found)?;
        let files = plans.into_iter().map(|plan| FileByUse { plan, ..FileByUse::default() }).collect();
        self.report_by_use(&self.carry_out(found, files)?)
    }

    /// Moves pages as planned, if that is wanted.
    fn carry_out(&self, found: Found<'_>, files: Vec<FileByUse>) -> anyhow::Result<FilesByUse> {
        let nodes = found.topology().node_ids().iter().collect();
        let files: Vec<_> = found.files().iter().cloned().zip(files).collect();
        let plans: Vec<_> = files.iter().map(|(_, by_use)| by_use.plan.clone()).collect();
        let changed = if self.dry_run { None } else { Some(found.spread_by_use(&plans)?) };
        Ok(FilesByUse { nodes, page: sched::page_size(), files, taken: None, changed })
    }

    fn report_by_use(&self, done: &FilesByUse) -> anyhow::Result<ExitCode> {
        match self.json {
            true => print(format_args!("{}\n", done.json()))?,
            false => print(done.page())?,
        }
        Ok(ExitCode::from(u8::from(!done.is_complete())))
    }

    fn report(&self, changed: &ChangedFiles) -> anyhow::Result<ExitCode> {
        match self.json {
            true => print(format_args!("{}\n", changed.json()))?,
            false => print(changed.page())?,
        }
        Ok(ExitCode::from(u8::from(!changed.is_complete())))
    }
}
