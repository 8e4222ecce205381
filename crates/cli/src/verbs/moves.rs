//! `numa move`.

use crate::choose::ProcessArgs;
use crate::cure;
use crate::refused;
use crate::registry::RegistryArgs;
use crate::{Examples, GlobalArgs};
use anyhow::bail;
use clap::Args;
use numakit_launch::options;
use numakit_mover::{MoveError, MoveReport, MoveSession, MoveSettings, RecordError, Restored, WatchEnd};
use numakit_observation::interval;
use numakit_placement::{NumberList, PlacementRequest};
use numakit_processes::ChosenProcesses;
use numakit_sys::SysRoot;
use numakit_sys::stdio::{note, print};
use numakit_terminal::moves;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Move the threads of running programs to cores, and their memory to them
///
/// The program is observed as 'numa explain' does it. Then each busy thread gets a core of its own, the busiest first, as 'numa run'
/// chooses them: near its pages if all threads that use these fit on their node, else where it is. Then pages go to the node
/// whose threads use them: stacks and thread-local storage, and parts of arrays of which one node has at least 80 % of the
/// samples, those with most remote samples first. Pages move in pieces of about a millisecond. What
/// threads of several nodes use stays.
///
/// Before anything changes, a file is written that says how it was: --back undoes the move, also after numa was killed, and 'numa
/// doctor' lists what can be undone. One page moves at most once in 30 seconds, except back.
///
/// The exit code is 1 if nothing could be decided, or if pages stayed that should have moved.
#[derive(Debug, Args)]
pub struct MoveArgs {
    #[command(flatten, next_help_heading = "Which processes")]
    processes: ProcessArgs,
    /// Move threads; without --pages, memory stays
    #[arg(long)]
    threads: bool,
    /// Move memory; without --threads, threads stay as they are
    #[arg(long)]
    pages: bool,
    /// Move the variables that a cure names to the nodes of their threads, also without samples: a file of 'numa explain --cure'
    /// or --json, or 'last'
    ///
    /// 'last' is the newest cure of this build of the program that 'numa explain' has kept. Threads are those of the cure in their
    /// order of creation. Which memory the blocks of a cure are is not known in a running process: samples decide about them. A process
    /// that runs another build is left as it is, with the exit code 2.
    #[arg(long, value_name = "FILE|last")]
    apply: Option<PathBuf>,
    /// Observe for this time before and after
    #[arg(long = "for", value_name = "TIME", default_value = "5s", value_parser = interval::parse_length)]
    duration: Duration,
    /// Use only cores of these nodes
    #[arg(long, value_name = "LIST", allow_hyphen_values = true)]
    nodes: Option<NumberList>,
    /// Move at most this much memory in a second, as in 100M
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = options::size)]
    rate: u64,
    /// Print what would move, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Stay, look again every 10 seconds, and repair what wanders or becomes remote; Ctrl-C ends it, and the program stays as it is
    #[arg(long, conflicts_with = "dry_run")]
    watch: bool,
    /// Undo: restore CPU masks, and move pages back to where they were
    #[arg(long, conflicts_with_all = ["threads", "pages", "apply", "duration", "nodes", "dry_run", "watch"])]
    back: bool,
    /// Write JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    registry: RegistryArgs,
}

impl MoveArgs {
    /// The first lines of its help.
    pub const EXAMPLES: Examples = [
        ("numa move --pid 1234 --dry-run", "what is far from its threads, and what would move"),
        ("numa move --pid 1234", "moves it; 'numa move --pid 1234 --back' undoes that"),
    ];

    /// Moves, or moves back.
    pub fn run(self, global: &GlobalArgs) -> anyhow::Result<ExitCode> {
        global.only_here("programs run on this machine only")?;
        let root = global.root()?;
        self.registry.apply()?;
        if self.rate == 0 {
            bail!("--rate 0: nothing would ever move; give the bytes in a second, as in 100M");
        }
        let Some(chosen) = self.processes.find(&root)? else {
            bail!(
                "nothing to move is given: name running processes with --pid, --cgroup, --unit, --container or --name"
            );
        };
        match self.back {
            true => self.restore(&root, &chosen),
            false => self.go(&root, &chosen),
        }
    }

    fn go(&self, root: &SysRoot, chosen: &ChosenProcesses) -> anyhow::Result<ExitCode> {
        let both = self.threads == self.pages;
        let cure =
            self.apply.as_deref().map(|name| cure::of_running(name, root, chosen.numbers())).transpose()?;
        let settings = MoveSettings {
            threads: self.threads || both,
            pages: self.pages || both || cure.is_some(),
            time: self.duration,
            rate: self.rate,
            request: PlacementRequest { nodes: self.nodes.clone(), ..PlacementRequest::default() },
            cure,
            dry_run: self.dry_run,
        };
        let explained = |error| explained(error, chosen);
        let mut session = MoveSession::new(root, chosen, settings).map_err(explained)?;
        let report = session.once().map_err(explained)?;
        self.show(&report)?;
        if self.watch && report.stopped.is_none() {
            note("looks again every 10 s until Ctrl-C; the program stays as it is then");
            let end = session.watch(&report, |report| -> Result<(), WatchError> { Ok(self.show(report)?) });
            match end {
                Ok(WatchEnd::Signal) => {}
                Ok(WatchEnd::Ended) => note(format_args!("{chosen}: ended")),
                Err(WatchError::Move(error)) => return Err(explained(error)),
                Err(WatchError::Other(error)) => return Err(error),
            }
            return Ok(ExitCode::SUCCESS);
        }
        Ok(ExitCode::from(u8::from(report.too_few || report.remaining() > 0)))
    }

    fn show(&self, report: &MoveReport) -> anyhow::Result<()> {
        match self.json {
            true => print(format_args!("{}\n", serde_json::to_string_pretty(report)?))?,
            false => {
                let undo = format!("numa move {} --back", self.processes.words());
                print(moves::text(report, &undo))?;
            }
        }
        Ok(())
    }

    /// Moves back what was moved of the chosen processes and of those that descend from them.
    fn restore(&self, root: &SysRoot, chosen: &ChosenProcesses) -> anyhow::Result<ExitCode> {
        let mut all: Vec<Restored> = Vec::new();
        let processes = numakit_sys::proc::tree::families(root, chosen.numbers());
        for process in processes {
            match numakit_mover::restore(root, process, self.rate) {
                Ok(restored) => all.push(restored),
                Err(MoveError::Record(RecordError::None(_)) | MoveError::NoProcess(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        if all.is_empty() {
            let process = chosen.numbers().first().copied().unwrap_or(0);
            return Err(RecordError::None(process).into());
        }
        match self.json {
            true => print(format_args!("{}\n", serde_json::to_string_pretty(&all)?))?,
            false => all.iter().try_for_each(|restored| print(moves::restored(restored)))?,
        }
        let is_complete =
            all.iter().all(|restored| restored.is_complete && restored.moved == restored.elsewhere);
        Ok(ExitCode::from(u8::from(!is_complete)))
    }
}

/// What ended watching.
enum WatchError {
    Move(MoveError),
    Other(anyhow::Error),
}

impl From<MoveError> for WatchError {
    fn from(error: MoveError) -> Self {
        Self::Move(error)
    }
}

impl From<anyhow::Error> for WatchError {
    fn from(error: anyhow::Error) -> Self {
        Self::Other(error)
    }
}

/// The error; where processes may not be observed, with what works instead.
fn explained(error: MoveError, chosen: &ChosenProcesses) -> anyhow::Error {
    match error {
        MoveError::Samples(error) if error.is_refused() => refused::of_running(&error, chosen),
        error => error.into(),
    }
}
