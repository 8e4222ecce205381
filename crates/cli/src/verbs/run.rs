//! `numa run`.

use crate::place::Place;
use crate::{Global, numaplace};
use anyhow::{Context, bail};
use clap::{Args, Parser, ValueEnum};
use numakit_launch::sufferers::Lists;
use numakit_launch::{BeginError, Choice, Obstacle, Options, Outcome, Program, Ready, Wait, Wish, options};
use numakit_model::Topology;
use numakit_placement::{Policy, Request};
use numakit_sensors::task::search::by_node;
use numakit_sys::SysRoot;
use numakit_sys::command::start_failure_status;
use numakit_sys::huge_pages::HugePages;
use numakit_sys::start::Scheduler;
use numakit_sys::stdio::{note, print, say};
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

/// Percent of a CPU from which on a program that nobody registered is kept apart.
const BUSY: &str = "50";

/// Run a program on the best free cores, thread by thread, with its memory beside them
///
/// Threads get a core each in the order in which they are made, their stacks with them. Nobody
/// else gets these cores until the program and all that it started have ended. Without -c they
/// are all that are free.
///
/// The exit status is the program's, also where a signal ended it; 127 where it is not there, 126
/// where it may not be executed, 2 where it was not started for another reason.
#[derive(Debug, Args)]
pub struct Run {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    with: With,
    /// Tell what is set, unset and decided
    #[arg(short, long)]
    verbose: bool,
    /// Tell why each thread is where it is
    #[arg(long)]
    explain: bool,
    /// Tell what would be done as a line for the shell, and take nothing
    #[arg(long, conflicts_with = "pid")]
    dry_run: bool,
    /// Wait for free cores, so many seconds at most
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, require_equals = true, value_parser = seconds)]
    wait: Option<Option<Duration>>,
    /// Take nothing: others may use the same cores
    #[arg(long, conflicts_with_all = ["wait", "isolate"])]
    share: bool,
    /// Make a control group with these cores alone, where that is allowed
    #[arg(long)]
    isolate: bool,
    /// Keep off CPUs that others use for so many percent without having taken them; 'off' does
    /// not look
    #[arg(long, value_name = "PERCENT|off", default_value = BUSY, value_parser = busy)]
    busy: Busy,
    /// Place a process that runs already, with its memory
    #[arg(long, value_name = "PID", conflicts_with_all = ["command", "wait", "isolate", "busy", "With"],
          value_parser = clap::value_parser!(u32).range(1..))]
    pid: Option<u32>,
    #[arg(skip)]
    main_is_free: bool,
    /// The program and its arguments
    #[arg(value_name = "CMD", trailing_var_arg = true)]
    command: Vec<OsString>,
}

/// What a program gets beside cores and memory.
#[derive(Debug, Args)]
#[command(next_help_heading = "What the program gets")]
struct With {
    /// Huge pages: on, off, or only for memory that asks (madvise, Linux 6.18)
    #[arg(long, value_name = "WHEN")]
    thp: Option<Thp>,
    /// The same as --thp off
    #[arg(long, conflicts_with = "thp")]
    no_thp: bool,
    /// Allocator: none is the program's own; lowmem, uma and numa come with libnumalloc
    #[arg(long, value_name = "PROFILE", default_value = "none")]
    alloc: Alloc,
    /// Largest stack of a thread, as in 16M
    #[arg(long, value_name = "SIZE", value_parser = options::stack)]
    stack: Option<u64>,
    /// Scheduling class: other, batch, idle, fifo:N or rr:N
    #[arg(long, value_name = "CLASS", value_parser = options::scheduler)]
    sched: Option<Scheduler>,
    /// How many nanoseconds its timers may be late
    #[arg(long, value_name = "NS", value_parser = clap::value_parser!(u64).range(1..))]
    slack: Option<u64>,
    /// Do not place what it starts in its turn
    #[arg(long)]
    no_inherit: bool,
    /// Load no library into the program: it gets its CPUs and memory policy, but its threads are not
    /// bound one by one
    #[arg(long)]
    no_library: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Thp {
    On,
    Off,
    Madvise,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Alloc {
    None,
    Lowmem,
    Uma,
    Numa,
}

/// Percent; none does not look.
type Busy = Option<u32>;

fn busy(word: &str) -> Result<Busy, String> {
    match word.parse() {
        _ if word == "off" => Ok(None),
        Ok(percent @ 1..=100) => Ok(Some(percent)),
        _ => Err("give percent of a CPU from 1 to 100, or 'off'".to_owned()),
    }
}

fn seconds(word: &str) -> Result<Duration, String> {
    let seconds = word.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    seconds.ok_or_else(|| "give a number of seconds such as 60".to_owned())
}

/// For the defaults of all options.
#[derive(Debug, Parser)]
struct Alone {
    #[command(flatten)]
    run: Run,
}

impl Run {
    /// As the original command line has it.
    pub fn original(line: numaplace::Line) -> anyhow::Result<Self> {
        let mut run = Alone::try_parse_from(["numaplace"])?.run;
        run.place.set_cores(line.cores);
        run.verbose = line.verbose || line.debug;
        run.explain = line.debug;
        run.with.no_thp = line.no_huge_pages;
        run.with.slack = Some(1);
        run.with.sched = (!line.parent_free).then_some(Scheduler::Batch);
        run.main_is_free = line.parent_free;
        run.command = line.command;
        Ok(run)
    }

    /// Places and runs.
    pub fn run(self, global: &Global) -> anyhow::Result<ExitCode> {
        let root = global.root()?;
        global.only_here("programs run on this machine only")?;
        if self.with.alloc != Alloc::None {
            bail!("--alloc {:?}: libnumalloc is not part of this version; use --alloc none", self.with.alloc);
        }
        let request = self.place.request().for_program(|name| std::env::var(name).ok());
        if let Some(pid) = self.pid {
            return self.replace(&root, &request, pid);
        }
        let Some(name) = self.command.first() else {
            bail!("no program given; name one, as in 'numa run -c 4 -- ./app', or a process with --pid");
        };
        let path = std::env::var_os("PATH").unwrap_or_else(|| "/bin:/usr/bin".into());
        match Program::find(name, &path) {
            Ok(mut program) => {
                if self.with.no_library {
                    program.obstacle = Some(Obstacle::Declined);
                }
                self.start(&root, &request, &program)
            }
            Err(error) => Ok(not_started(name, &error)),
        }
    }

    fn start(&self, root: &SysRoot, request: &Request, program: &Program) -> anyhow::Result<ExitCode> {
        let options = self.options(program)?;
        if let Some(lack) = options.check(root)? {
            note(lack);
        }
        let (program, library) = program.clone().with_library()?;
        let mut topology = topology(root, request)?;
        if topology.allowed != topology.online && numakit_registry::isolate::sweep() {
            topology = self::topology(root, request)?;
        }
        let wish = Wish {
            root,
            topology: &topology,
            words: &self.command,
            program: &program,
            request,
            options: &options,
            library: &library,
            busy: self.busy,
            wait: match self.wait {
                None => Wait::No,
                Some(None) => Wait::Forever,
                Some(Some(time)) => Wait::Upto(time),
            },
            isolate: self.isolate,
        };
        if self.dry_run {
            let ready = wish.only_plan()?;
            self.tell(&ready);
            print(ready.launch.shell())?;
            return Ok(ExitCode::SUCCESS);
        }
        let ready = wish.take()?;
        self.tell(&ready);
        match ready.run() {
            Ok(ending) => Ok(ExitCode::from(ending.imitate())),
            Err(BeginError::Program(error)) => Ok(not_started(program.file.as_os_str(), &error)),
            Err(error) => Err(error.into()),
        }
    }

    fn options(&self, program: &Program) -> anyhow::Result<Options> {
        let huge_pages = match self.with.thp {
            Some(Thp::On) => Some(HugePages::On),
            Some(Thp::Madvise) => Some(HugePages::Advised),
            Some(Thp::Off) => Some(HugePages::Off),
            None if self.with.no_thp => Some(HugePages::Off),
            None => suffers(&program.file).then_some(HugePages::Off),
        };
        Ok(Options {
            huge_pages,
            stack: self.with.stack,
            scheduler: self.with.sched,
            timer_slack: self.with.slack,
            shared: self.share,
            alone: self.with.no_inherit,
            main_is_free: self.main_is_free,
            verbose: self.verbose,
        })
    }

    /// What is known before the program starts.
    fn tell(&self, ready: &Ready) {
        self.reasons(&ready.outcome);
        if self.verbose {
            ready.launch.told.iter().for_each(note);
            ready.launch.changes.iter().for_each(note);
        }
        match &ready.isolated {
            Some(Err(why)) => note(format_args!("--isolate: {why}; the cores are taken all the same")),
            Some(Ok(told)) if self.verbose => note(told),
            _ => {}
        }
        ready.launch.note.iter().for_each(note);
    }

    fn reasons(&self, outcome: &Outcome) {
        outcome.plan.warnings.iter().for_each(|warning| note(format_args!("warning: {warning}")));
        if self.explain {
            say(numakit_terminal::plan::explanation(&outcome.plan, &outcome.reasons));
        }
    }

    fn replace(&self, root: &SysRoot, request: &Request, pid: u32) -> anyhow::Result<ExitCode> {
        let topology = topology(root, request)?;
        let before = by_node(root, &topology, pid);
        let choice = Choice::new(root, &topology, request);
        let (outcome, replaced) = numakit_launch::replace::choose(root, pid, &choice, self.share)?;
        self.reasons(&outcome);
        let after = by_node(root, &topology, pid);
        print(numakit_terminal::replaced::report(
            pid,
            &outcome.plan,
            &replaced,
            before.as_ref(),
            after.as_ref(),
        ))?;
        Ok(ExitCode::from(u8::from(!replaced.failures.is_empty())))
    }
}

fn topology(root: &SysRoot, request: &Request) -> anyhow::Result<Topology> {
    let devices = matches!(request.policy, Policy::Near(_));
    numakit_topology::read_places(root, devices).context("the machine cannot be read")
}

/// Whether a list of the user or of the machine says that a program suffers from huge pages.
fn suffers(program: &Path) -> bool {
    let lists = Lists::usual(std::env::var_os("XDG_CONFIG_HOME"), std::env::var_os("HOME"));
    let found = lists.find(program);
    found.unread.iter().for_each(|problem| note(format_args!("warning: {problem}")));
    if let Some(found) = &found.line {
        let list = found.list.display();
        note(format_args!("no huge pages, since {list} names '{}'; --thp on overrides that", found.line));
    }
    found.line.is_some()
}

/// What a shell says and gives.
fn not_started(name: &std::ffi::OsStr, error: &std::io::Error) -> ExitCode {
    note(format_args!("{}: {error}", name.display()));
    ExitCode::from(start_failure_status(error))
}
