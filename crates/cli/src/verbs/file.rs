//! `numa file`.

use crate::GlobalArgs;
use crate::files::Found;
use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use numakit_placement::{MemoryRequest, NumberList};
use numakit_sys::stdio::print;
use numakit_terminal::files::ChangedFiles;
use std::path::PathBuf;
use std::process::ExitCode;

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
/// --json of show writes {nodes, files: [{path, size, changed, cached, on, huge, pieces, why: {cached, huge},
/// mapped_by: [{pid, command, mapped, threads}]}], denied, left_out: {links, special, pool, unreadable}}.
/// size, changed, cached, on, huge and mapped are in bytes; on and threads are in the order of nodes. pieces is
/// the file from start to end: a node, "absent", "mixed" or "unknown". What cannot be told is null, with
/// the reason in why. The other actions write {nodes, files: [{path, complete, before, after, notes, ...}]}:
/// before and after are as a file of show; move and spread add way ("in-place", "read-again", "refused"),
/// block in bytes and pages: {moved, there, mapped, busy, full, gone}; load adds read in bytes.
#[derive(Debug, Args)]
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
    /// Write JSON
    #[arg(long)]
    json: bool,
}

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
    /// Does it and prints what is there.
    pub fn run(self, global: &GlobalArgs) -> anyhow::Result<ExitCode> {
        global.only_here("the page cache is that of this machine")?;
        self.check()?;
        let root = global.root()?;
        let topology = numakit_topology::read(&root).context("cannot read the topology")?;
        let found = Found::at(&self.paths, &root, &topology)?;
        match (self.action, self.node, &self.policy) {
            (Action::Move, Some(node), _) => self.report(&found.move_to(node)?),
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
        ];
        match options.into_iter().find(|(given, _, action, _)| *given && *action != self.action) {
            Some((_, option, _, action)) => bail!("{option} is an option of 'numa file {action}'; omit it"),
            None => Ok(()),
        }
    }

    fn report(&self, changed: &ChangedFiles) -> anyhow::Result<ExitCode> {
        match self.json {
            true => print(format_args!("{}\n", changed.json()))?,
            false => print(changed.page())?,
        }
        Ok(ExitCode::from(u8::from(!changed.is_complete())))
    }
}
