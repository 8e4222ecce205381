//! `numa top`.

mod batch;

use crate::formulas::FormulaArgs;
use crate::global::OF_A_RECORDING;
use crate::observe::{self, ObserveArgs};
use crate::{Examples, GlobalArgs};
use anyhow::{Context, anyhow, bail};
use batch::{BatchArgs, ListRequest};
use clap::{Arg, ArgGroup, Args, ValueEnum};
use numakit_formulas::Catalog;
use numakit_history::{RecordedHistory, Source, plain};
use numakit_observation::request::Prepared;
use numakit_observation::{ControlCommand, Ended, SessionHandle};
use numakit_processes::ProcessRanking;
use numakit_sensors::Selection;
use numakit_sys::command::quoted;
use numakit_sys::signal::{self, Signals};
use numakit_sys::stdio::print;
use numakit_sys::{file, poll};
use numakit_top::follow::{self, Follower};
use numakit_top::machine::MachineMeters;
use numakit_top::playback::Playback;
use numakit_top::replay::Player;
use numakit_top::screen::{self, ScreenError};
use numakit_top::show::{self, ScreenEvent, Stops};
use numakit_top::table::{ProcessOrder, ProcessSelection};
use numakit_top::theme::Theme;
use numakit_top::view::{Request, SourceState, View};
use numakit_top::watch::{self, Interval};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Seek};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Show findings, nodes, CPUs and processes in the terminal, or print processes
///
/// What the last minute shows stands first: what is wrong, what it costs, what to do. Below are the nodes
/// as meters, the CPUs as a map, and the processes with their memory by node. The key h shows all keys.
///
/// A value that is unknown is shown as '-'; the last lines and the help say why. Reading processes takes at
/// most 0.35 % of a core, so with hundreds of processes their numbers are older than the interval.
///
/// With a command, only its processes are shown at first (the key a shows all), and its output is printed
/// when numa top ends.
///
/// --once prints a list of processes instead, to a terminal or a pipe, and -n COUNT prints several. --pid describes
/// the memory of single processes, by kind and node.
/// --totals prints the counters of every node since boot, as numastat does. --affinity prints the
/// CPU affinity and memory policy of processes and their threads, as taskset -p and numactl --show
/// do, and explains them.
///
/// REMOTE% is the share of a process's memory that is not on the node where it runs, weighted
/// with the CPU time of its threads; for an idle process, with the last CPUs of its threads.
/// Processes that spent most CPU time away from their memory come first in a printed list. Memory is in MiB.
///
/// The memory of the busiest processes is examined first, for the length of the interval (at least
/// a second). The last lines of a list say how many processes were not examined, for lack of time or of
/// permission. Kernel threads are omitted. The exit code is 1 if a process given with -p does not
/// exist, and 2 if none of them exists.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new(BATCH).multiple(true), mut_args(of_screen))]
pub struct TopArgs {
    /// Interval of samples, from 100us to 1h, or a frequency such as 50Hz or 2kHz
    #[arg(short, long, value_name = "TIME", default_value = "1s", value_parser = observe::interval_of)]
    interval: Duration,
    /// Sort key of processes [default: cpu; remote where they are printed]
    #[arg(long, value_name = "KEY")]
    sort: Option<Sort>,
    #[command(flatten)]
    batch: BatchArgs,
    /// Play this recording instead of observing this machine
    #[arg(long, value_name = "FILE", conflicts_with_all = ["observed", "events"])]
    replay: Option<PathBuf>,
    #[command(flatten)]
    formulas: FormulaArgs,
    #[command(flatten)]
    observe: ObserveArgs,
    /// The command to run and observe, with its arguments
    #[arg(trailing_var_arg = true, value_name = "CMD", group = "observed")]
    command: Vec<OsString>,
}

/// The options that print lines.
const BATCH: &str = "batch";

/// The options of the screen exclude those that print lines.
fn of_screen(arg: Arg) -> Arg {
    const OPTIONS: [&str; 9] = [
        "replay",
        "files",
        "events",
        "sample_rate",
        "cpu",
        "priority",
        "ctl_compat",
        "skip_unavailable",
        "verbose",
    ];
    match OPTIONS.contains(&arg.get_id().as_str()) {
        true => arg.conflicts_with(BATCH),
        false => arg,
    }
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Sort {
    /// CPU time
    Cpu,
    /// CPU time multiplied by the share of remote memory
    Remote,
    /// Resident memory
    Memory,
    /// Page faults
    Faults,
    /// Pages that NUMA balancing moved
    Moved,
    /// Process ID
    Pid,
    /// Name of the program
    Name,
}

impl Sort {
    fn key(self) -> ProcessOrder {
        match self {
            Self::Cpu => ProcessOrder::Cpu,
            Self::Remote => ProcessOrder::Remote,
            Self::Memory => ProcessOrder::Memory,
            Self::Faults => ProcessOrder::Faults,
            Self::Moved => ProcessOrder::Moved,
            Self::Pid => ProcessOrder::Pid,
            Self::Name => ProcessOrder::Name,
        }
    }

    /// The order of a printed list.
    fn ranking(self) -> ProcessRanking {
        match self {
            Self::Cpu => ProcessRanking::Cpu,
            Self::Remote => ProcessRanking::Remote,
            Self::Memory => ProcessRanking::Memory,
            Self::Faults => ProcessRanking::Faults,
            Self::Moved => ProcessRanking::Moved,
            Self::Pid => ProcessRanking::Pid,
            Self::Name => ProcessRanking::Name,
        }
    }
}

/// How often the observation and the screen are checked.
const CHECK: Duration = Duration::from_millis(250);
/// The first samples are taken this soon after each other, so that rates are shown soon.
const AT_START: Duration = Duration::from_millis(200);
/// After this number of samples the interval is that of the user.
const SAMPLES_AT_START: u64 = 3;
/// Memory for the levels of a recording.
const LEVELS: usize = 256 << 20;

/// What the screen's thread returns.
type Shown = JoinHandle<Result<(), ScreenError>>;

impl TopArgs {
    /// The first lines of its help.
    pub const EXAMPLES: Examples = [
        ("numa top", "what is wrong, nodes, CPUs and processes, live"),
        ("numa top --once", "prints the processes with the most remote memory"),
    ];

    /// Draws until the user ends it, or prints.
    pub fn run(self, global: &GlobalArgs) -> anyhow::Result<ExitCode> {
        if self.batch.is_asked() {
            return self.print(global);
        }
        // What the options say is wrong before the terminal is.
        match &self.replay {
            Some(_) => global.only_here(OF_A_RECORDING)?,
            None => drop(global.root()?),
        }
        screen::check(std::env::var("TERM").ok().as_deref())?;
        let formulas = Arc::new(self.formulas.load()?);
        match &self.replay {
            Some(file) => self.replay(file, formulas, theme(global)),
            None => self.live(global, formulas),
        }
    }

    fn print(&self, global: &GlobalArgs) -> anyhow::Result<ExitCode> {
        if !self.command.is_empty() {
            let command = quoted(&self.command);
            bail!(
                "processes that run already are printed, and none is started; 'numa stat {command}' prints counters while it \
                 runs, 'numa explain {command}' says where its time goes"
            );
        }
        let (root, processes) = (global.root()?, &self.observe.processes);
        let pids = processes.numbers().to_vec();
        let among = match pids.is_empty() {
            true => processes.find(&root)?.map(|chosen| chosen.numbers().to_vec()),
            false => None,
        };
        let sort = self.sort.map_or(ProcessRanking::Remote, Sort::ranking);
        self.batch.run(&root, &ListRequest { interval: self.interval, sort, pids, among })
    }

    /// The order of processes on the screen.
    fn order(&self) -> ProcessOrder {
        self.sort.unwrap_or(Sort::Cpu).key()
    }

    fn live(&self, global: &GlobalArgs, formulas: Arc<Catalog>) -> anyhow::Result<ExitCode> {
        let root = global.root()?;
        let mut prepared =
            self.observe.prepare(global, self.interval, &Selection::default(), &self.command)?;
        prepared.settings.interval = self.interval.min(AT_START);
        let header = prepared.setup.header.clone();
        let machine = Arc::new(MachineMeters::new(&header, &formulas));
        signal::ignore_broken_pipe();
        let stops = Stops::collect().context("cannot collect signals")?;
        let (mut session, waker) = prepared.open()?;
        let ring = Arc::new(follow::ring(&header)?);
        let (to, events) = channel();
        let output = self.output()?;
        if let Some(output) = &output {
            session.redirect_commands(output.try_clone()?);
        }
        let Prepared { setup, settings, program, .. } = prepared;
        session.start(setup.sensors, settings, Some(Arc::clone(&ring)))?;
        let session = match session.spawn_observed(&self.command, &program) {
            Ok(session) => session,
            Err(status) => return Ok(ExitCode::from(status)),
        };
        let topology = header.topology.clone().unwrap_or_default();
        Follower { header, formulas, machine: Arc::clone(&machine), to: to.clone() }.start(ring)?;
        let every = Interval::new(self.interval);
        watch::start(root, topology, every.clone(), to.clone())?;
        stops.follow(to.clone())?;
        show::read_keys(to.clone())?;
        let source = SourceState::Live { interval: self.interval, paused: false, ended: None };
        let of = program.pids();
        let view = View::new(
            machine,
            source,
            ProcessSelection { sort: self.order(), of, ..ProcessSelection::default() },
        );
        let waker = Arc::new(waker);
        let shown = draw(view, theme(global), events, changing(Arc::clone(&waker), every))?;
        let mut is_starting = self.interval > AT_START;
        let ended = session.run(CHECK, |status| {
            if is_starting && status.samples >= SAMPLES_AT_START {
                is_starting = false;
                waker.send(ControlCommand::Interval(self.interval), Box::new(|_| {}));
            }
        })?;
        self.after(&ended, &to, shown)?;
        if let Some(output) = output {
            print_output(output)?;
        }
        Ok(ExitCode::from(ended.exit_status()))
    }

    /// Where the command prints.
    fn output(&self) -> anyhow::Result<Option<File>> {
        if self.command.is_empty() {
            return Ok(None);
        }
        let folder = std::env::temp_dir();
        let file = file::create_unnamed(&folder).with_context(|| {
            format!("the output of the command cannot be stored in {}; set TMPDIR", folder.display())
        })?;
        Ok(Some(file))
    }

    /// After the end of a command, the screen stays until the user has seen it.
    fn after(&self, ended: &Ended, to: &Sender<ScreenEvent>, shown: Shown) -> anyhow::Result<()> {
        let by_itself = ended.status.filter(|_| !self.command.is_empty() && !shown.is_finished());
        match by_itself {
            Some(status) => {
                let _ =
                    to.send(ScreenEvent::Ended(format!("the command ended with status {status}; q quits")));
                wait(to, shown)
            }
            None => {
                let _ = to.send(ScreenEvent::End);
                joined(shown)
            }
        }
    }

    fn replay(&self, file: &Path, formulas: Arc<Catalog>, theme: Theme) -> anyhow::Result<ExitCode> {
        let recording = RecordedHistory::open(file, LEVELS, plain())?;
        let name = file.file_name().unwrap_or(file.as_os_str()).to_string_lossy().into_owned();
        let span = recording.span().with_context(|| format!("{} has no samples", file.display()))?;
        let machine = Arc::new(MachineMeters::new(recording.header(), &formulas));
        let playback = Playback::new(name, span, self.interval);
        signal::ignore_broken_pipe();
        let stops = Stops::collect().context("cannot collect signals")?;
        let signals = Signals::collect(&ENDS).context("cannot collect signals")?;
        let (to, events) = channel();
        let (commands, received) = channel();
        let source = SourceState::Replay(playback.clone());
        let view = View::new(
            Arc::clone(&machine),
            source,
            ProcessSelection { sort: self.order(), ..ProcessSelection::default() },
        );
        Player { recording, formulas, machine, playback, to: to.clone() }.start(received)?;
        stops.follow(to.clone())?;
        show::read_keys(to.clone())?;
        let shown = draw(view, theme, events, move |request| {
            if let Request::Play(command) = request {
                let _ = commands.send(command);
            }
        })?;
        wait_for(&signals, &to, shown)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Signals that end the program.
const ENDS: [i32; 3] = [signal::INTERRUPT, signal::TERMINATE, signal::HANGUP];

fn theme(global: &GlobalArgs) -> Theme {
    Theme { color: global.color(), unicode: global.unicode() }
}

/// Changes the interval when the screen requests it.
fn changing(waker: Arc<SessionHandle>, every: Interval) -> impl FnMut(Request) + Send + 'static {
    move |request| {
        if let Request::Interval(interval) = request {
            every.set(interval);
            waker.send(ControlCommand::Interval(interval), Box::new(|_| {}));
        }
    }
}

/// Draws in a thread of its own. Its end is like Ctrl-C: it reaches the command first, if there is one.
fn draw(
    view: View,
    theme: Theme,
    events: Receiver<ScreenEvent>,
    requests: impl FnMut(Request) + Send + 'static,
) -> io::Result<Shown> {
    std::thread::Builder::new().name("screen".into()).spawn(move || {
        let result = show::show(view, theme, &events, requests);
        signal::send_to_self(signal::INTERRUPT);
        result
    })
}

/// Waits until the screen ends or a signal arrives.
fn wait(to: &Sender<ScreenEvent>, shown: Shown) -> anyhow::Result<()> {
    let signals = Signals::collect(&ENDS).context("cannot collect signals")?;
    wait_for(&signals, to, shown)
}

fn wait_for(signals: &Signals, to: &Sender<ScreenEvent>, shown: Shown) -> anyhow::Result<()> {
    while !shown.is_finished() {
        poll::readable(&[signals.as_fd()], Some(CHECK)).context("cannot wait")?;
        if signals.next().is_some() {
            let _ = to.send(ScreenEvent::End);
        }
    }
    joined(shown)
}

fn joined(shown: Shown) -> anyhow::Result<()> {
    match shown.join().map_err(|_| anyhow!("drawing failed"))? {
        // The terminal is gone.
        Err(ScreenError::Output(error)) if error.is_closed_by_reader() => Ok(()),
        result => Ok(result?),
    }
}

fn print_output(mut output: File) -> anyhow::Result<()> {
    output.rewind()?;
    let mut text = Vec::new();
    io::Read::read_to_end(&mut output, &mut text)?;
    Ok(print(String::from_utf8_lossy(&text))?)
}
