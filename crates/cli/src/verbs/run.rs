//! `numa run`.

use super::topo::named;
use crate::cure;
use crate::files;
use crate::mpi::MpiReporter;
use crate::peaks;
use crate::placement::{PlacementArgs, with_another_machine};
use crate::registry::RegistryArgs;
use crate::{Examples, GlobalArgs};
use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use numakit_bench::collectives_table;
use numakit_launch::apply::RunCure;
use numakit_launch::blacklist::Blacklists;
use numakit_launch::collectives::{self, CollectivesOption};
use numakit_launch::loops::{self, LoopsOption};
use numakit_launch::options::{self, Allocator, few_huge_pages};
use numakit_launch::preload::Library;
use numakit_launch::{
    CoreSelector, ExplainedPlan, Isolation, LaunchRequest, Obstacle, PreparedLaunch, Program, RunOptions,
    StartError, Wait,
};
use numakit_model::plan::Mode;
use numakit_model::{CpuSet, Topology};
use numakit_placement::{CorePolicy, PlacementRequest};
use numakit_processes::memory_by_node;
use numakit_sys::SysRoot;
use numakit_sys::command::{quoted, start_failure_status};
use numakit_sys::huge_pages::{HugePages, Setting};
use numakit_sys::permissions::Surroundings;
use numakit_sys::sched::affinity;
use numakit_sys::start::Scheduler;
use numakit_sys::stdio::{note, print, say};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// CPUs are avoided that unregistered programs use for this percentage of the time.
pub const BUSY: &str = "50";

/// Run a program on free cores, one thread per core, with node-local memory
///
/// Each thread is bound to a core of its own in the order of creation, and its stack is on the
/// node of that core. The cores are reserved until the program and all its descendants have ended.
/// Without -c, the program gets all free cores.
///
/// The exit status is that of the program, or numa ends by the signal that killed it. If the program
/// cannot be started, numa says why, and the status is 127 (there is no such program), 126 (it is not
/// executable) or 2.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// Print what is set, unset and decided
    #[arg(short, long)]
    verbose: bool,
    /// Print why each thread is placed where it is
    #[arg(long)]
    explain: bool,
    /// Print the equivalent shell command, and neither run it nor reserve cores
    #[arg(long, conflicts_with = "pid")]
    dry_run: bool,
    /// With --dry-run: for the machine of this name, as in 'EPYC 9755 x2', when it is idle; 'numa topo --machine list'
    /// prints all names
    #[arg(long, value_name = "NAME")]
    machine: Option<String>,
    /// Wait until enough cores are free, for at most SECONDS
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, require_equals = true, value_parser = seconds)]
    wait: Option<Option<Duration>>,
    /// Do not reserve cores: other programs may use them too
    #[arg(long, conflicts_with_all = ["wait", "isolate"])]
    share: bool,
    /// Create a cpuset partition (cgroup) with these cores, if permitted
    #[arg(long)]
    isolate: bool,
    /// Avoid CPUs that programs without reserved cores use for PERCENT of the time or more; 'off' does not look
    #[arg(long, value_name = "PERCENT|off", default_value = BUSY, value_parser = busy)]
    busy: Busy,
    /// Bind a running process instead, and move its memory
    #[arg(long, value_name = "PID", conflicts_with_all = ["command", "wait", "isolate", "busy", "With"],
          value_parser = clap::value_parser!(u32).range(1..))]
    pid: Option<u32>,
    /// The program and its arguments
    #[arg(value_name = "CMD", trailing_var_arg = true)]
    command: Vec<OsString>,
    #[command(flatten)]
    registry: RegistryArgs,
    #[command(flatten)]
    place: PlacementArgs,
    #[command(flatten)]
    with: With,
}

/// What a program gets in addition to cores and memory.
#[derive(Debug, Args)]
#[command(next_help_heading = "What the program gets")]
struct With {
    /// Transparent huge pages: on, off, or only where the program calls madvise (Linux 6.18)
    #[arg(long, value_name = "WHEN")]
    thp: Option<Thp>,
    /// Same as --thp off
    #[arg(long, conflicts_with = "thp")]
    no_thp: bool,
    /// Allocator: 'none' is that of the program; the others preload libnumalloc
    #[arg(long, value_name = "PROFILE", default_value = "none")]
    alloc: Alloc,
    /// Stack size limit of a thread, as in 16M
    #[arg(long, value_name = "SIZE", value_parser = options::stack)]
    stack: Option<u64>,
    /// Scheduling class: other, batch, idle, fifo:N or rr:N
    #[arg(long, value_name = "CLASS", value_parser = options::scheduler)]
    sched: Option<Scheduler>,
    /// Timer slack in nanoseconds
    #[arg(long, value_name = "NS", value_parser = clap::value_parser!(u64).range(1..))]
    slack: Option<u64>,
    /// Give the objects that a cure names their nodes as they come to be: a file of 'numa explain --cure' or --json, or 'last'
    ///
    /// 'last' is the newest cure of this build of the program that 'numa explain' has kept, of the same command line if there is one. The library libnumaapply.so is preloaded.
    /// After the run a line on standard error says for each object what was done.
    #[arg(long, value_name = "FILE|last", conflicts_with = "pid")]
    apply: Option<PathBuf>,
    /// Loops of gcc's OpenMP: shares as of schedule(static) first, then members without work steal; chunks of at least CHUNK iterations
    ///
    /// This concerns schedule(dynamic), schedule(guided) and schedule(runtime), unless OMP_SCHEDULE says static. The library
    /// libnumasched.so is preloaded. With NUMASCHED_STATS=1 it prints at the end what loops did.
    #[arg(long, value_name = "adaptive[,CHUNK]", value_parser = loops::loops, conflicts_with = "pid")]
    loops: Option<LoopsOption>,
    /// Print to standard error what the calls of MPI programs cost: by communicator, operation and size; who waits for whom; who
    /// sends to whom; with =FILE also as JSON into FILE
    ///
    /// The library libnumampi.so is preloaded, which sends no messages. Where FILE is '-', JSON goes to standard output, and what CMD
    /// prints there goes to standard error. 'numa plan --from FILE' orders ranks by who sends to whom.
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, conflicts_with_all = ["pid", "dry_run"])]
    mpi_report: Option<Option<PathBuf>>,
    /// Same as --mpi-report=-
    #[arg(long, requires = "mpi_report")]
    json: bool,
    /// Small collectives of MPI programs on this machine (barrier; broadcast, reduce, allreduce up to 4 KiB): the library's own, not the MPI's
    ///
    /// 'small' means always; 'auto' where 'numa bench mpi' has measured on this machine that it pays. The library libnumampi.so is preloaded.
    /// With NUMAMPI_STATS=1 each rank prints at the end how many there were.
    #[arg(long, value_name = "auto|small", value_parser = collectives::collectives, conflicts_with = "pid")]
    collectives: Option<CollectivesOption>,
    /// Read files into the page cache before the start, page by page on the nodes of the program; GLOB is a quoted
    /// pattern such as '/models/*.gguf'
    #[arg(long, value_name = "GLOB", conflicts_with_all = ["pid", "dry_run"])]
    spread_files: Option<OsString>,
    /// Run without the policy of --memory where a container refuses memory policies
    #[arg(long)]
    memory_try: bool,
    /// Do not place the processes that the program starts
    #[arg(long)]
    no_inherit: bool,
    /// Do not bind the main thread: it may run on all CPUs of the program
    #[arg(long)]
    no_bind_main: bool,
    /// Do not preload libnumaplace: the program gets its CPUs and memory policy, but its threads are
    /// not bound individually
    #[arg(long)]
    no_library: bool,
    /// Warn if the kernel does not use huge pages for all memory
    #[arg(long, hide = true)]
    warn_thp: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Thp {
    On,
    Off,
    Madvise,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Alloc {
    /// The program's own
    None,
    /// Gives free memory back at once
    Lowmem,
    /// Keeps free memory and uses it again, without regard to nodes
    Uma,
    /// Keeps free memory and uses it again on its node
    Numa,
}

impl Alloc {
    fn allocator(self) -> anyhow::Result<Option<Allocator>> {
        let profile = match self {
            Self::None => return Ok(None),
            Self::Lowmem => "lowmem",
            Self::Uma => "uma",
            Self::Numa => "numa",
        };
        Ok(Some(Allocator { library: Library::Alloc.extract()?, profile }))
    }
}

/// Percent; none disables the check.
type Busy = Option<u32>;

fn busy(word: &str) -> Result<Busy, String> {
    match word.parse() {
        _ if word == "off" => Ok(None),
        Ok(percent @ 1..=100) => Ok(Some(percent)),
        _ => Err("give a percentage from 1 to 100, or 'off'".to_owned()),
    }
}

fn seconds(word: &str) -> Result<Duration, String> {
    let seconds = word.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    seconds.ok_or_else(|| "give a number of seconds such as 60".to_owned())
}

impl RunArgs {
    /// The first lines of its help.
    pub const EXAMPLES: Examples = [
        ("numa run ./app", "free cores, a thread on each, with its memory on its node"),
        ("numa run --thp on ./app", "huge pages for what malloc allocates"),
    ];

    /// Places and runs.
    pub fn run(self, global: &GlobalArgs) -> anyhow::Result<ExitCode> {
        let root = global.root()?;
        global.only_here("programs run on this machine only")?;
        self.registry.apply()?;
        if let Some(name) = self.machine.as_ref().filter(|_| !self.dry_run) {
            named(name)?;
            bail!(
                "--machine: programs run on this machine, and '{name}' is another one; add --dry-run, which prints the command for it"
            );
        }
        let request = self.place.request(CorePolicy::default()).for_program(|name| std::env::var(name).ok());
        if let Some(pid) = self.pid {
            return self.rebind(&root, &request, pid);
        }
        let Some(name) = self.command.first() else {
            bail!("no program given; name one, as in 'numa run -c 4 ./app', or a process with --pid");
        };
        let path = std::env::var_os("PATH").unwrap_or_else(|| "/bin:/usr/bin".into());
        let found = match Program::find(name, &path) {
            Err(_) if self.dry_run && self.machine.is_some() => Ok(Program::elsewhere(name)),
            found => found,
        };
        match found {
            Ok(mut program) => {
                if self.with.no_library {
                    program.obstacle = Some(Obstacle::Declined);
                }
                self.start(&root, &request, &program)
            }
            Err(error) => Ok(not_started(name, &error)),
        }
    }

    fn start(
        &self,
        root: &SysRoot,
        request: &PlacementRequest,
        program: &Program,
    ) -> anyhow::Result<ExitCode> {
        let reporter = self.reporter()?;
        let mut options = self.options(program)?;
        options.mpi = reporter.as_ref().map(MpiReporter::observer).transpose()?;
        if let Some(lack) = options.check(root)? {
            note(lack);
        }
        if self.with.warn_thp
            && let Some(lack) = few_huge_pages(Setting::read(root))
        {
            note(format_args!("warning: {lack}"));
        }
        let (program, library) = program.clone().with_library()?;
        let mut topology = match &self.machine {
            Some(name) => named(name)?,
            None => topology(root, request)?,
        };
        if topology.allowed != topology.online && numakit_launch::isolate::remove_abandoned() {
            topology = self::topology(root, request)?;
        }
        self.name_table(&mut options, &topology);
        let request = LaunchRequest {
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
                Some(None) => Wait::Indefinitely,
                Some(Some(time)) => Wait::UpTo(time),
            },
            isolate: self.isolate,
        };
        if self.dry_run {
            return self.print_command(&request);
        }
        let launch = request.prepare().map_err(|error| self.never(error))?;
        self.explain(&launch);
        if self.verbose {
            self.say_weights(&topology, request.request);
        }
        if let Some(pattern) = &self.with.spread_files {
            let mut nodes = CpuSet::new();
            launch.plan.plan.steps.iter().for_each(|step| nodes.insert_all(&step.memory.nodes));
            files::spread_before_start(pattern, &nodes)?;
        }
        match launch.run() {
            Ok((ending, cure)) => {
                cure.iter().flat_map(numakit_terminal::cure::done).for_each(note);
                if let Some(reporter) = reporter {
                    reporter.finish(&self.command, root, &topology)?;
                }
                Ok(ExitCode::from(ending.mirror()))
            }
            Err(StartError::Program(error)) => Ok(not_started(program.file.as_os_str(), &error)),
            Err(error) => Err(error.into()),
        }
    }

    /// Names the table of what `numa bench mpi` has measured, which is of this machine.
    fn name_table(&self, options: &mut RunOptions, topology: &Topology) {
        if let Some(collectives) = options.collectives.as_mut().filter(|_| self.machine.is_none()) {
            collectives.table = collectives_table(topology);
        }
    }

    /// Prints the command that does the same here, or on the machine that is named.
    fn print_command(&self, request: &LaunchRequest<'_>) -> anyhow::Result<ExitCode> {
        let launch = match self.machine {
            Some(_) => request.dry_run_elsewhere()?,
            None => request.dry_run().map_err(|error| self.never(error))?,
        };
        self.explain(&launch);
        self.say_weights(request.topology, request.request);
        if let Some(name) = &self.machine {
            note(format_args!(
                "for {name}: numakit must be installed there, and 'numa run{} {}' there finds its own library and free cores",
                self.place.cores_words(),
                quoted(&self.command)
            ));
        }
        print(launch.command.shell())?;
        Ok(ExitCode::SUCCESS)
    }

    fn never(&self, error: StartError) -> anyhow::Error {
        let command = format!("numa run --dry-run{}", self.place.cores_words());
        with_another_machine(error, &command, &self.command)
    }

    fn options(&self, program: &Program) -> anyhow::Result<RunOptions> {
        let huge_pages = match self.with.thp {
            Some(Thp::On) => Some(HugePages::On),
            Some(Thp::Madvise) => Some(HugePages::Advised),
            Some(Thp::Off) => Some(HugePages::Off),
            None if self.with.no_thp => Some(HugePages::Off),
            None => is_blacklisted(&program.file).then_some(HugePages::Off),
        };
        Ok(RunOptions {
            huge_pages,
            stack: self.with.stack,
            scheduler: self.with.sched,
            timer_slack: self.with.slack,
            memory_try: self.with.memory_try,
            shared: self.share,
            no_inherit: self.with.no_inherit,
            no_bind_main: self.with.no_bind_main,
            verbose: self.verbose,
            allocator: self.with.alloc.allocator()?,
            loops: self.with.loops.map(LoopsOption::with_library).transpose()?,
            cure: self.with.apply.as_deref().map(|name| self.cure(name, program)).transpose()?,
            mpi: None,
            collectives: self.with.collectives.map(CollectivesOption::with_library).transpose()?,
        })
    }

    fn reporter(&self) -> anyhow::Result<Option<MpiReporter>> {
        let report = self.with.mpi_report.as_ref();
        report.map(|path| MpiReporter::new(path.as_deref(), self.with.json)).transpose()
    }

    fn cure(&self, name: &Path, program: &Program) -> anyhow::Result<RunCure> {
        Ok(RunCure { cure: cure::named(name, program, &self.command)?, library: Library::Apply.extract()? })
    }

    /// Prints warnings and explanations before the program starts.
    fn explain(&self, launch: &PreparedLaunch) {
        self.explain_plan(&launch.plan);
        if self.verbose {
            launch.command.messages.iter().for_each(note);
            launch.command.changes.iter().for_each(note);
        }
        match &launch.isolation {
            Some(Isolation::Shared(why)) => {
                note(format_args!("--isolate: {why}; the cores are reserved without a partition"))
            }
            Some(Isolation::Partition(text)) if self.verbose => note(text),
            _ => {}
        }
        launch.command.notes.iter().for_each(note);
        if let Some(applied) = &launch.command.cure {
            numakit_terminal::cure::other_program(applied).iter().for_each(note);
            if self.dry_run || self.verbose {
                numakit_terminal::cure::planned(applied).iter().for_each(note);
            }
        }
        if self.cannot_see_others(launch) {
            note(
                "programs in other containers are not visible and may use the same cores; mount a folder into \
                 all of them and name it with --registry DIR",
            );
        }
    }

    /// Which weights the kernel uses, if it interleaves by them; --explain says so anyway.
    fn say_weights(&self, topology: &Topology, request: &PlacementRequest) {
        if let Some(weights) = numakit_placement::weights(topology, request).filter(|_| !self.explain) {
            note(weights);
        }
    }

    /// Whether the cores were selected from more CPUs than needed, without a view of other containers.
    fn cannot_see_others(&self, launch: &PreparedLaunch) -> bool {
        let is_contained = || Surroundings::own().runtime.is_container();
        let has_choice = || affinity().is_ok_and(|mask| mask != launch.plan.plan.cpus());
        !self.share
            && self.machine.is_none()
            && numakit_registry::location::named().is_none()
            && is_contained()
            && has_choice()
    }

    fn explain_plan(&self, plan: &ExplainedPlan) {
        plan.plan.warnings.iter().for_each(|warning| note(format_args!("warning: {warning}")));
        if self.explain {
            say(numakit_terminal::plan::explanation(&plan.plan, &plan.reasons));
        }
    }

    fn rebind(&self, root: &SysRoot, request: &PlacementRequest, pid: u32) -> anyhow::Result<ExitCode> {
        let mut topology = topology(root, request)?;
        let before = memory_by_node(root, &topology, pid);
        before.iter().for_each(|memory| numakit_launch::rebind::count_as_free(&mut topology, memory));
        let selector = CoreSelector::new(root, &topology, request);
        let (plan, report) = numakit_launch::rebind::select_and_bind(root, pid, &selector, self.share)?;
        self.explain_plan(&plan);
        let after = memory_by_node(root, &topology, pid);
        print(numakit_terminal::rebind::report(pid, &plan.plan, &report, before.as_ref(), after.as_ref()))?;
        Ok(ExitCode::from(u8::from(!report.failures.is_empty())))
    }
}

fn topology(root: &SysRoot, request: &PlacementRequest) -> anyhow::Result<Topology> {
    let devices = matches!(request.policy, CorePolicy::Near(_));
    let mut topology =
        numakit_topology::read_for_placement(root, devices).context("cannot read the topology")?;
    if request.memory.mode == Mode::Weighted {
        numakit_topology::read_weights(root, &mut topology);
        let _ = peaks::add(root, &mut topology);
    }
    Ok(topology)
}

/// Whether a blacklist of the user or of the machine disables huge pages for a program.
fn is_blacklisted(program: &Path) -> bool {
    let lists = Blacklists::of_this_user(std::env::var_os("XDG_CONFIG_HOME"), std::env::var_os("HOME"));
    let found = lists.find(program);
    found.warnings.iter().for_each(|problem| note(format_args!("warning: {problem}")));
    if let Some(found) = &found.line {
        let list = found.list.display();
        note(format_args!("no huge pages, because {list} lists '{}'; --thp on overrides this", found.line));
    }
    found.line.is_some()
}

/// The message and exit status of a shell.
fn not_started(name: &std::ffi::OsStr, error: &std::io::Error) -> ExitCode {
    note(format_args!("{}: {error}", name.display()));
    ExitCode::from(start_failure_status(error))
}
