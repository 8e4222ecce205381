//! The options that `stat` and `record` share, and the observation that they describe.

use crate::Global;
use anyhow::{Context, anyhow, bail};
use clap::{Args, ValueEnum};
use numakit_model::CpuSet;
use numakit_recording::{Priority, Settings};
use numakit_sensors::{Probe, Scene, Selection, Target};
use numakit_session::setup::{Setup, sampler_cpu, sampler_cpus};
use numakit_session::{Ended, Session, interval};
use numakit_sys::command::quoted;
use numakit_sys::proc::TaskDir;
use numakit_sys::stdio::{note, say};
use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

/// Options that `stat` and `record` share.
#[derive(Debug, Args)]
pub struct Observe {
    /// What to sample: names and patterns parted by commas, '!' leaves out; 'numa list' shows all
    #[arg(short, long, value_name = "LIST|GLOB")]
    pub events: Option<Selection>,
    /// Observe this process and all that descend from it; see the sensor 'task'
    #[arg(short, long, value_name = "PID", conflicts_with = "command", value_parser = clap::value_parser!(u32).range(1..))]
    pid: Option<u32>,
    /// Run the sampler on this CPU only, not on all allowed ones of the first allowed node
    #[arg(long, value_name = "N")]
    cpu: Option<u32>,
    /// How the sampler is scheduled
    #[arg(long, value_name = "HOW", default_value = "auto")]
    priority: PriorityChoice,
    /// Also take orders at the path of the original NUMAscope, /run/numascope-ctl (root only)
    #[arg(long)]
    ctl_compat: bool,
    #[arg(skip)]
    original: Option<Original>,
}

/// What the original command line has that ours has not.
#[derive(Debug, Clone, Copy)]
struct Original {
    /// Tell which sensors there are.
    debug: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum PriorityChoice {
    /// Real-time where permitted, else normal
    Auto,
    /// As any other thread
    Normal,
    /// Real-time, or an error
    Realtime,
}

/// Reads an interval for clap.
pub fn interval_of(text: &str) -> Result<Duration, String> {
    interval::parse(text)
}

/// An observation that is set up but not begun.
pub struct Prepared {
    /// What is sampled.
    pub setup: Setup,
    /// How.
    pub settings: Settings,
    /// The processes under observation; a command's are known once it runs.
    pub target: Option<Target>,
    compatible: bool,
    original: bool,
}

impl Observe {
    /// As the original command line has it: its FIFO where it can be had, and events that are not
    /// to be had are dropped.
    pub fn original(events: Option<Selection>, debug: bool) -> Self {
        let ctl_compat = numakit_sys::user::id() == 0;
        let original = Some(Original { debug });
        Self { events, pid: None, cpu: None, priority: PriorityChoice::Auto, ctl_compat, original }
    }

    /// Looks for the machine and its sensors.
    pub fn prepare(
        &self,
        global: &Global,
        every: Duration,
        default: &Selection,
        command: &[OsString],
    ) -> anyhow::Result<Prepared> {
        let root = global.root()?;
        let topology = numakit_topology::read(&root)?;
        let line = (!command.is_empty()).then(|| quoted(command));
        let selection = self.events.as_ref().unwrap_or(default);
        let awaited = || (!command.is_empty()).then(Target::awaited);
        let target = self.pid.map(Target::running).or_else(awaited);
        if let Some(pid) = self.pid.filter(|pid| !TaskDir::of(&root, *pid).exists()) {
            bail!(
                "--pid {pid}: there is no such process in {}; 'numa tasks' lists those that there are",
                root.name()
            );
        }
        let scene = Scene::new(&root, &topology).observing(target.as_ref());
        let had = self.original.map(|original| original.selection(&scene, selection)).transpose()?;
        let mut setup = Setup::new(&scene, had.as_ref().unwrap_or(selection), every, line)?;
        setup.check_interval(every).with_context(|| format!("--interval {}", interval::format(every)))?;
        // Another machine's CPUs say nothing about this one's.
        let here = if root.is_host() { sampler_cpus(&topology) } else { CpuSet::new() };
        let cpus = match self.cpu {
            None => here,
            Some(cpu) => {
                let allowed = numakit_sys::sched::affinity().context("cannot tell the allowed CPUs")?;
                sampler_cpu(cpu, allowed).context("--cpu")?
            }
        };
        let priority = match self.priority {
            PriorityChoice::Auto => Priority::Auto,
            PriorityChoice::Normal => Priority::Normal,
            PriorityChoice::Realtime => Priority::Realtime,
        };
        Ok(Prepared {
            setup,
            settings: Settings { interval: every, cpus, priority },
            target,
            compatible: self.ctl_compat,
            original: self.original.is_some(),
        })
    }
}

impl Original {
    /// What of a selection is to be had; says what is not.
    fn selection(self, scene: &Scene<'_>, selection: &Selection) -> anyhow::Result<Selection> {
        let probe = Probe::new(scene);
        if self.debug {
            for sensor in &probe.sensors {
                let series = sensor.series();
                let name = series.first().map_or("", |first| first.metric.sensor());
                say(format_args!("numascope: detected {name}: {} series\n", series.len()));
            }
            for (entry, why) in &probe.unavailable {
                say(format_args!("numascope: not detected {}: {why}\n", entry.name));
            }
        }
        let (had, dropped) = probe.had(selection)?;
        dropped.iter().for_each(|why| say(format_args!("numascope: dropped: {why}\n")));
        if self.debug && had != Selection::default() {
            say(format_args!("numascope: samples {had}\n"));
        }
        Ok(had)
    }
}

impl Prepared {
    /// Opens the session; says what does not work.
    pub fn open(&self) -> anyhow::Result<(Session, numakit_session::Waker)> {
        let (session, waker) = Session::open(self.setup.header.clone(), self.compatible)?;
        if let Some(error) = session.control_error() {
            if self.compatible && !self.original {
                return Err(anyhow!(
                    "--ctl-compat cannot be had: {error}; run it as root, without another recorder"
                ));
            }
            note(format_args!("orders from outside cannot come in: {error}"));
        }
        Ok((session, waker))
    }
}

/// Starts the command, if there is one, and has its processes observed; when that fails, gives
/// up as a shell would.
pub fn spawn(
    mut session: Session,
    command: &[OsString],
    target: Option<&Target>,
) -> Result<Session, ExitCode> {
    if command.is_empty() {
        return Ok(session);
    }
    match session.spawn(command) {
        Ok(pid) => {
            target.inspect(|t| t.started(pid));
            Ok(session)
        }
        Err(error) => {
            note(error.to_string());
            session.abandon();
            Err(ExitCode::from(error.status()))
        }
    }
}

/// The exit code of an observation: the command's status, or 1 when a recording failed.
pub fn exit_code(ended: &Ended) -> ExitCode {
    ExitCode::from(ended.exit_status())
}
