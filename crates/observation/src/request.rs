//! What an observation is asked for: the program, the events, how often; and the session that follows.

use crate::interval;
use crate::sampled_program::{self, CommandSamples, SampledForSeries};
use crate::session::{Session, SessionError, SessionHandle};
use crate::setup::{CpuNotAllowed, IntervalTooShort, Setup, sampler_cpu, sampler_cpus};
use numakit_model::{CpuSet, Topology};
use numakit_processes::ChosenProcesses;
use numakit_recording::{Priority, Settings};
use numakit_sensors::{Probe, Scene, SelectError, Selection, Target};
use numakit_sys::command::quoted;
use numakit_sys::stdio::note;
use numakit_sys::{SysRoot, sched};
use std::ffi::OsString;
use std::io;
use std::time::Duration;
use thiserror::Error;

/// The sensor of samples of instructions.
const ACCESS: &str = "access";

/// Whether NUMAscope's path of control commands is read too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OriginalFifo {
    /// No.
    #[default]
    Closed,
    /// As root; with a message if it cannot be opened.
    AsRoot,
    /// Yes; without it there is no observation.
    Required,
}

/// What is observed, and how.
#[derive(Debug)]
pub struct ObservationRequest<'a> {
    /// Where the machine's files are.
    pub root: &'a SysRoot,
    /// The machine.
    pub topology: Topology,
    /// The events.
    pub selection: &'a Selection,
    /// The time between samples.
    pub every: Duration,
    /// The running processes that are observed with their descendants.
    pub chosen: Option<&'a ChosenProcesses>,
    /// The command that is started and observed with its descendants; empty: none.
    pub command: &'a [OsString],
    /// Samples of instructions in a second of CPU time of a thread; 0: none.
    pub sample_rate: u32,
    /// The CPU of the sampler; `None`: all allowed CPUs of the first allowed node.
    pub cpu: Option<u32>,
    /// The priority of the sampler.
    pub priority: Priority,
    /// Whether NUMAscope's path of control commands is read too.
    pub original_fifo: OriginalFifo,
    /// Whether events that are unavailable here are left out, with a message.
    pub skip_unavailable: bool,
    /// Whether messages say which sensors there are, and what is sampled.
    pub verbose: bool,
}

/// Why an observation cannot be prepared.
#[derive(Debug, Error)]
pub enum PrepareError {
    /// The events cannot be sampled.
    #[error(transparent)]
    Select(#[from] SelectError),
    /// A sample takes longer than the time between two.
    #[error("--interval {}: {error}", interval::format(*every))]
    Interval {
        /// The time between samples.
        every: Duration,
        /// Why it is too short.
        error: IntervalTooShort,
    },
    /// The CPU mask cannot be read.
    #[error("cannot read the allowed CPUs: {0}")]
    Affinity(io::Error),
    /// The sampler may not run there.
    #[error("--cpu: {0}")]
    Cpu(#[from] CpuNotAllowed),
    /// The session cannot be opened.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// NUMAscope's path of control commands cannot be opened.
    #[error("--ctl-compat: {0}; run as root, and end any other recorder that uses it")]
    OriginalFifo(io::Error),
}

/// An observation that is set up but not started.
pub struct Prepared {
    /// What is sampled.
    pub setup: Setup,
    /// Settings of the sampler.
    pub settings: Settings,
    /// What is observed besides the machine.
    pub program: ObservedProgram,
    original_fifo: OriginalFifo,
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

    /// The observed processes, if they run.
    pub fn pids(&self) -> Vec<u32> {
        self.target.as_ref().and_then(Target::pids).unwrap_or_default()
    }
}

impl ObservationRequest<'_> {
    /// Selects the sensors and opens what samples a running program.
    pub fn prepare(&self) -> Result<Prepared, PrepareError> {
        let mut target = self.target();
        let sampled = self.sampled();
        let (source, samples) = sampled
            .as_ref()
            .map(|sampled| sampled_program::plan(sampled, self.sample_rate))
            .map_or((None, None), |(source, samples)| (Some(source), samples));
        if let Some(source) = &source {
            target = target.map(|target| target.sampled(source.clone()));
        }
        let scene =
            Scene::new(self.root, &self.topology).observing(target.as_ref()).sampling_all(source.as_ref());
        let available = self.available(&scene)?;
        let line = (!self.command.is_empty()).then(|| quoted(self.command));
        let selection = available.as_ref().unwrap_or(self.selection);
        let every = self.every;
        let mut setup = Setup::new(&scene, selection, every, line)?;
        setup.check_interval(every).map_err(|error| PrepareError::Interval { every, error })?;
        let cpus = self.cpus()?;
        if let (Some(source), Some(sampled)) = (source.filter(|_| has_samples(&setup)), &sampled) {
            sampled_program::attach(&source, self.sample_rate, sampled);
        }
        Ok(Prepared {
            settings: Settings { interval: every, cpus, priority: self.priority },
            program: ObservedProgram { target, samples: samples.filter(|_| has_samples(&setup)) },
            setup,
            original_fifo: self.original_fifo,
        })
    }

    /// The observed processes, if it is not the machine alone.
    fn target(&self) -> Option<Target> {
        let started_later = || (!self.command.is_empty()).then(Target::awaited);
        self.chosen.and_then(Target::chosen).or_else(started_later)
    }

    /// What is sampled: the observed program by default, everything that runs if the events name it.
    fn sampled(&self) -> Option<SampledForSeries<'_>> {
        let is_named = self.selection.names_sensor(ACCESS);
        let is_wanted =
            self.root.is_host() && self.sample_rate > 0 && (self.selection.is_default() || is_named);
        let of_program = || match self.chosen {
            Some(chosen) => Some(SampledForSeries::Processes(chosen.numbers())),
            None => (!self.command.is_empty()).then_some(SampledForSeries::Command(self.command)),
        };
        let of_machine = || is_named.then(|| SampledForSeries::Machine(self.topology.online.clone()));
        is_wanted.then(|| of_program().or_else(of_machine)).flatten()
    }

    /// The CPUs of the sampler. Another machine's CPUs do not apply here.
    fn cpus(&self) -> Result<CpuSet, PrepareError> {
        match self.cpu {
            Some(cpu) => {
                let allowed = sched::affinity().map_err(PrepareError::Affinity)?;
                Ok(sampler_cpu(cpu, allowed)?)
            }
            None if self.root.is_host() => Ok(sampler_cpus(&self.topology)),
            None => Ok(CpuSet::new()),
        }
    }

    /// On request, prints the available sensors, and drops unavailable events from the selection.
    fn available(&self, scene: &Scene<'_>) -> Result<Option<Selection>, SelectError> {
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
        let mut sampled = self.selection.clone();
        if self.skip_unavailable {
            let dropped;
            (sampled, dropped) = probe.available(self.selection)?;
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
    pub fn open(&self) -> Result<(Session, SessionHandle), PrepareError> {
        let is_compatible = match self.original_fifo {
            OriginalFifo::Closed => false,
            OriginalFifo::Required => true,
            OriginalFifo::AsRoot => numakit_sys::user::id() == 0,
        };
        let (mut session, waker) = Session::open(self.setup.header.clone(), is_compatible)?;
        if let Some(error) = session.take_control_error() {
            if self.original_fifo == OriginalFifo::Required {
                return Err(PrepareError::OriginalFifo(error));
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

impl Session {
    /// Starts the command, if there is one, and observes its processes. If it does not start, the observation ends, and the
    /// error is the exit status.
    pub fn spawn_observed(mut self, command: &[OsString], program: &ObservedProgram) -> Result<Self, u8> {
        if command.is_empty() {
            return Ok(self);
        }
        match self.spawn_sampled(command, program) {
            Ok(pid) => {
                program.target.as_ref().inspect(|target| target.started(pid));
                Ok(self)
            }
            Err(error) => {
                note(error.to_string());
                self.abandon();
                Err(error.status())
            }
        }
    }

    /// Starts it with the method that samples it; without samples if the method cannot be opened.
    fn spawn_sampled(
        &mut self,
        command: &[OsString],
        program: &ObservedProgram,
    ) -> Result<u32, SessionError> {
        let source = program.target.as_ref().and_then(Target::samples);
        let (Some(samples), Some(source)) = (&program.samples, source) else {
            return self.spawn(command);
        };
        let mut started = None;
        let opened = samples.open(|variables| {
            let result = self.spawn_with(command, variables);
            started = Some(result);
            Ok(())
        });
        match opened {
            Ok(method) => source.attach(method),
            Err(error) => sampled_program::without_samples(&error),
        }
        started.unwrap_or_else(|| self.spawn(command))
    }
}
