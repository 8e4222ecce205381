//! The options that `stat` and `record` share, and the observation that they describe.

use crate::GlobalArgs;
use crate::peaks;
use crate::sampled_command::{self, CommandSamples, SampledForSeries};
use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use numakit_model::{CpuSet, Topology};
use numakit_recording::{Priority, Settings};
use numakit_sensors::{Probe, Scene, SelectError, Selection, Target};
use numakit_session::setup::{Setup, sampler_cpu, sampler_cpus};
use numakit_session::{Ended, IntervalError, Session, SessionError, interval};
use numakit_sys::SysRoot;
use numakit_sys::command::quoted;
use numakit_sys::proc::TaskDir;
use numakit_sys::stdio::note;
use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

/// Options that `stat` and `record` share.
#[derive(Debug, Args)]
pub struct ObserveArgs {
    /// Events to sample: comma-separated names and patterns, '!' excludes; 'numa list' lists them
    #[arg(short, long, value_name = "LIST")]
    pub events: Option<Selection>,
    /// Observe this process and its descendants with the sensor 'task'
    #[arg(short, long, value_name = "PID", conflicts_with = "command", value_parser = clap::value_parser!(u32).range(1..))]
    pid: Option<u32>,
    /// Samples of instructions in a second of CPU time of a thread, for the sensor 'access'; 0: none
    #[arg(long, value_name = "HZ", default_value = "199", value_parser = clap::value_parser!(u32).range(..=10_000))]
    sample_rate: u32,
    /// Run the sampler on this CPU [default: all allowed CPUs of the first allowed node]
    #[arg(long, value_name = "N")]
    cpu: Option<u32>,
    /// Scheduling priority of the sampler
    #[arg(long, value_name = "PRIORITY", default_value = "auto")]
    priority: PriorityChoice,
    /// Also read control commands from /run/numascope-ctl, the path of NUMAscope (needs root)
    #[arg(long, value_name = "WHEN", num_args = 0..=1, require_equals = true, default_missing_value = "always")]
    ctl_compat: Option<CtlCompat>,
    /// Drop events that are unavailable here, with a message, instead of failing
    #[arg(long)]
    skip_unavailable: bool,
    /// Print which sensors are available, why others are not, and what is sampled
    #[arg(short, long)]
    verbose: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum CtlCompat {
    /// Fail if it cannot be opened
    Always,
    /// Only as root; print a message if it cannot be opened
    Auto,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum PriorityChoice {
    /// Real-time if permitted, otherwise normal
    Auto,
    /// Normal
    Normal,
    /// Real-time; fail if it is not permitted
    Realtime,
}

/// Parses an interval for clap.
pub fn interval_of(text: &str) -> Result<Duration, IntervalError> {
    interval::parse(text)
}

/// An observation that is set up but not started.
pub struct Prepared {
    /// What is sampled.
    pub setup: Setup,
    /// Settings of the sampler.
    pub settings: Settings,
    /// What is observed besides the machine.
    pub program: ObservedProgram,
    ctl_compat: Option<CtlCompat>,
}

/// The observed processes.
pub struct ObservedProgram {
    /// The processes; those of a command are known once it runs.
    target: Option<Target>,
    /// How samples of a command are taken.
    samples: Option<CommandSamples>,
}

impl ObservedProgram {
    /// The root of its processes.
    pub fn target(&self) -> Option<&Target> {
        self.target.as_ref()
    }

    /// The observed process, if it runs.
    pub fn pid(&self) -> Option<u32> {
        self.target.as_ref().and_then(Target::pid)
    }
}

/// The sensor of samples of instructions.
const ACCESS: &str = "access";

impl ObserveArgs {
    /// Reads the topology and selects the sensors.
    pub fn prepare(
        &self,
        global: &GlobalArgs,
        every: Duration,
        default: &Selection,
        command: &[OsString],
    ) -> anyhow::Result<Prepared> {
        let root = global.root()?;
        let mut topology = numakit_topology::read(&root)?;
        let unmeasured = peaks::add(&root, &mut topology);
        if let Some(why) = unmeasured.filter(|_| self.verbose) {
            note(format_args!("no measured peaks of the memory: {why}"));
        }
        let line = (!command.is_empty()).then(|| quoted(command));
        let selection = self.events.as_ref().unwrap_or(default);
        let started_later = || (!command.is_empty()).then(Target::awaited);
        let mut target = self.pid.map(Target::running).or_else(started_later);
        if let Some(pid) = self.pid.filter(|pid| !TaskDir::of(&root, *pid).exists()) {
            bail!(
                "--pid {pid}: there is no such process in {}; 'numa tasks' lists the processes",
                root.name()
            );
        }
        let sampled = self.sampled(&root, &topology, command, selection);
        let (source, samples) = sampled
            .as_ref()
            .map(|sampled| sampled_command::plan(sampled, self.sample_rate))
            .map_or((None, None), |(source, samples)| (Some(source), samples));
        if let Some(source) = &source {
            target = target.map(|target| target.sampled(source.clone()));
        }
        let scene = Scene::new(&root, &topology).observing(target.as_ref()).sampling_all(source.as_ref());
        let available = self.available(&scene, selection)?;
        let mut setup = Setup::new(&scene, available.as_ref().unwrap_or(selection), every, line)?;
        setup.check_interval(every).with_context(|| format!("--interval {}", interval::format(every)))?;
        // Another machine's CPUs do not apply here.
        let here = if root.is_host() { sampler_cpus(&topology) } else { CpuSet::new() };
        let cpus = match self.cpu {
            None => here,
            Some(cpu) => {
                let allowed = numakit_sys::sched::affinity().context("cannot read the allowed CPUs")?;
                sampler_cpu(cpu, allowed).context("--cpu")?
            }
        };
        let priority = match self.priority {
            PriorityChoice::Auto => Priority::Auto,
            PriorityChoice::Normal => Priority::Normal,
            PriorityChoice::Realtime => Priority::Realtime,
        };
        if let (Some(source), Some(sampled)) = (source.filter(|_| has_samples(&setup)), &sampled) {
            sampled_command::attach(&source, self.sample_rate, sampled);
        }
        Ok(Prepared {
            settings: Settings { interval: every, cpus, priority },
            program: ObservedProgram { target, samples: samples.filter(|_| has_samples(&setup)) },
            setup,
            ctl_compat: self.ctl_compat,
        })
    }

    /// What is sampled: the observed program by default, everything that runs if the events name it.
    fn sampled<'a>(
        &self,
        root: &SysRoot,
        topology: &Topology,
        command: &'a [OsString],
        selection: &Selection,
    ) -> Option<SampledForSeries<'a>> {
        let is_named = selection.names_sensor(ACCESS);
        let is_wanted = root.is_host() && self.sample_rate > 0 && (selection.is_default() || is_named);
        let of_program = || match self.pid {
            Some(pid) => Some(SampledForSeries::Process(pid)),
            None => (!command.is_empty()).then_some(SampledForSeries::Command(command)),
        };
        let cpus = || topology.online.clone();
        let of_machine = || is_named.then(|| SampledForSeries::Machine(cpus()));
        is_wanted.then(|| of_program().or_else(of_machine)).flatten()
    }

    /// On request, prints the available sensors, and drops unavailable events from the selection.
    fn available(&self, scene: &Scene<'_>, selection: &Selection) -> Result<Option<Selection>, SelectError> {
        if !self.verbose && !self.skip_unavailable {
            return Ok(None);
        }
        let probe = Probe::new(scene);
        if self.verbose {
            for sensor in &probe.sensors {
                let series = sensor.series();
                let name = series.first().map_or("", |first| first.metric.sensor());
                note(format_args!("detected {name}: {} series", series.len()));
            }
            for (entry, why) in &probe.unavailable {
                note(format_args!("not detected {}: {why}", entry.name));
            }
        }
        let mut sampled = selection.clone();
        if self.skip_unavailable {
            let dropped;
            (sampled, dropped) = probe.available(selection)?;
            dropped.iter().for_each(|why| note(format_args!("dropped: {why}")));
        }
        if self.verbose && sampled != Selection::default() {
            note(format_args!("samples {sampled}"));
        }
        Ok(Some(sampled))
    }
}

impl Prepared {
    /// Opens the session, with a message if it cannot receive control commands.
    pub fn open(&self) -> anyhow::Result<(Session, numakit_session::SessionHandle)> {
        let compatible = match self.ctl_compat {
            None => false,
            Some(CtlCompat::Always) => true,
            Some(CtlCompat::Auto) => numakit_sys::user::id() == 0,
        };
        let (session, waker) = Session::open(self.setup.header.clone(), compatible)?;
        if let Some(error) = session.control_error() {
            if self.ctl_compat == Some(CtlCompat::Always) {
                bail!("--ctl-compat: {error}; run as root, and end any other recorder that uses it");
            }
            note(format_args!("control commands cannot be received: {error}"));
        }
        Ok((session, waker))
    }
}

/// Whether samples of instructions are among the series.
fn has_samples(setup: &Setup) -> bool {
    setup.header.series.iter().any(|series| series.metric.sensor() == ACCESS)
}

/// Starts the command, if there is one, and observes its processes. If it cannot be started, the exit
/// code is that of a shell.
pub fn spawn(
    mut session: Session,
    command: &[OsString],
    program: &ObservedProgram,
) -> Result<Session, ExitCode> {
    if command.is_empty() {
        return Ok(session);
    }
    match start(&mut session, command, program) {
        Ok(pid) => {
            program.target.as_ref().inspect(|t| t.started(pid));
            Ok(session)
        }
        Err(error) => {
            note(error.to_string());
            session.abandon();
            Err(ExitCode::from(error.status()))
        }
    }
}

/// Starts it with the method that samples it; without samples if the method cannot be opened.
fn start(
    session: &mut Session,
    command: &[OsString],
    program: &ObservedProgram,
) -> Result<u32, SessionError> {
    let source = program.target.as_ref().and_then(Target::samples);
    let (Some(samples), Some(source)) = (&program.samples, source) else {
        return session.spawn(command);
    };
    let mut started = None;
    let opened = samples.open(|variables| {
        let result = session.spawn_with(command, variables);
        started = Some(result);
        Ok(())
    });
    match opened {
        Ok(method) => source.attach(method),
        Err(error) => note(format_args!("no samples are taken: {:#}", anyhow::Error::from(error))),
    }
    started.unwrap_or_else(|| session.spawn(command))
}

/// The exit code of an observation: the command's status, or 1 if a recording failed.
pub fn exit_code(ended: &Ended) -> ExitCode {
    ExitCode::from(ended.exit_status())
}
