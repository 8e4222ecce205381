//! Samples of a program: it is started or attached to, and what its method delivers is taken until it ends.

use crate::stopping::Stopping;
use crate::{node_names, sampled_program};
use numakit_explain::explainer::Explainer;
use numakit_processes::ChosenProcesses;
use numakit_sampling::choice::{self, NoMethod, SampledProgram};
use numakit_sampling::{Method, MethodError, MethodKind, SampleSettings, open};
use numakit_sys::allocation_log::{AllocationLog, LogThreshold};
use numakit_sys::command::{Running, quoted, start_failure_status};
use numakit_sys::permissions::Permissions;
use numakit_sys::proc::{TaskDir, tree};
use numakit_sys::stdio::note;
use numakit_sys::{SysRoot, clock, poll, sched};
use std::collections::HashSet;
use std::ffi::OsString;
use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};
use thiserror::Error;

/// How often samples are taken from the ring buffers.
const DRAIN: Duration = Duration::from_millis(5);

/// Why no samples are taken.
#[derive(Debug, Error)]
pub enum SamplesError {
    /// No method can take samples of it.
    #[error(transparent)]
    NoMethod(#[from] NoMethod),
    /// The method failed.
    #[error(transparent)]
    Method(MethodError),
    /// The command did not start.
    #[error("cannot run '{command}': {error}")]
    Command {
        /// The command line.
        command: String,
        /// The error of the system.
        error: io::Error,
    },
    /// A system call failed.
    #[error("{what}")]
    System {
        /// The action.
        what: &'static str,
        /// The error of the system.
        #[source]
        error: io::Error,
    },
}

impl SamplesError {
    /// Whether this user or this container may not take the samples.
    pub fn is_refused(&self) -> bool {
        matches!(self, Self::NoMethod(_) | Self::Method(MethodError::Refused(_)))
    }

    /// The exit status of a command that did not start: 127 or 126.
    pub fn command_status(&self) -> Option<u8> {
        match self {
            Self::Command { error, .. } => Some(start_failure_status(error)),
            _ => None,
        }
    }
}

fn system(what: &'static str) -> impl FnOnce(io::Error) -> SamplesError {
    move |error| SamplesError::System { what, error }
}

/// What is sampled, and how.
#[derive(Debug)]
pub struct SampleRequest<'a> {
    /// Processes that run, which are observed with their descendants; `None`: the command.
    pub chosen: Option<&'a ChosenProcesses>,
    /// The command and its arguments.
    pub command: &'a [OsString],
    /// The method that was asked for; `None`: the best one that is permitted.
    pub method: Option<MethodKind>,
    /// How often, and what beside the registers.
    pub settings: SampleSettings,
    /// Which allocations of the command are logged, if any are.
    pub log: Option<LogThreshold>,
    /// Whether a command of Node.js writes the names of its functions.
    pub names: bool,
}

/// An open method.
#[derive(Debug)]
pub struct OpenedSamples {
    /// The method.
    pub method: Box<dyn Method>,
    /// Why it is not a better one, if it is not and nobody asked for it.
    pub reason: Option<String>,
    /// What the command allocates, if that is logged.
    pub log: Option<AllocationLog>,
    /// Whether the command writes names of its functions since it is observed.
    pub writes_maps: bool,
}

/// A program that is sampled, from its start or from now on.
#[derive(Debug)]
pub struct SampledRun {
    stopping: Stopping,
    processes: Vec<u32>,
    /// The chosen ones, if it is not a command that was started.
    chosen: Option<FollowedProcesses>,
}

/// Running processes that are observed until they have ended.
#[derive(Debug)]
struct FollowedProcesses {
    chosen: ChosenProcesses,
    /// Those that the last look found.
    last: HashSet<u32>,
    /// Looks in a row that found none.
    without: u32,
}

/// How the observation of a program ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SampledEnd {
    /// The status of the command, if it has ended.
    pub status: Option<i32>,
    /// The signal that ended the observation before the program.
    pub signal: Option<i32>,
}

impl SampleRequest<'_> {
    /// Opens a method, and starts the command. Must be called before other threads exist.
    pub fn open(&self) -> Result<(OpenedSamples, SampledRun), SamplesError> {
        let mut stopping = Stopping::collect().map_err(system("cannot receive signals"))?;
        let Some(chosen) = self.chosen else {
            let (samples, running) = self.start()?;
            let processes = vec![running.id()];
            stopping.follow(Some(running));
            return Ok((samples, SampledRun { stopping, processes, chosen: None }));
        };
        let samples = self.attach(chosen.numbers())?;
        let processes = tree::families(&SysRoot::host(), chosen.numbers());
        let last = processes.iter().copied().collect();
        let followed = FollowedProcesses { chosen: chosen.clone(), last, without: 0 };
        Ok((samples, SampledRun { stopping, processes, chosen: Some(followed) }))
    }

    fn attach(&self, pids: &[u32]) -> Result<OpenedSamples, SamplesError> {
        let permissions = Permissions::own_of(&choice::PERMISSIONS);
        let chosen = choice::choose(&permissions, SampledProgram::Running, self.method)?;
        let method = open::processes(&self.settings, pids).map_err(SamplesError::Method)?;
        Ok(OpenedSamples { method, reason: self.reason(&chosen), log: None, writes_maps: false })
    }

    fn start(&self) -> Result<(OpenedSamples, Running), SamplesError> {
        let permissions = Permissions::own_of(&choice::PERMISSIONS);
        let (chosen, library) = sampled_program::choose(&permissions, self.command, self.method)?;
        let threshold = self.log.filter(|_| chosen.method != MethodKind::Ptrace);
        let log =
            threshold.and_then(|threshold| sampled_program::log(self.command, threshold, library.as_deref()));
        let (log, of_log) = log.unzip();
        let (words, mut own) = (self.command.to_vec(), of_log.unwrap_or_default());
        let of_node = if self.names { node_names::variable(self.command) } else { None };
        let writes_maps = of_node.is_some();
        own.extend(of_node);
        let start =
            move |variables: &open::MethodVariables| Running::start_with(&words, &[variables, &own].concat());
        let opened = open::command(&chosen, &self.settings, library.as_deref(), start);
        let (method, running) = opened.map_err(|error| match error {
            MethodError::Start(error) => SamplesError::Command { command: quoted(self.command), error },
            other => SamplesError::Method(other),
        })?;
        Ok((OpenedSamples { method, reason: self.reason(&chosen), log, writes_maps }, running))
    }

    /// Nobody is told about better methods than the one that they asked for.
    fn reason(&self, chosen: &choice::Choice) -> Option<String> {
        (self.method.is_none() && !chosen.closed.is_empty()).then(|| chosen.to_string())
    }
}

impl SampledRun {
    /// The processes that are sampled now; others may descend from them.
    pub fn processes(&self) -> &[u32] {
        &self.processes
    }

    /// Takes samples until the program ends, the time is over or a signal ends it. Calls `each` every few milliseconds.
    pub fn observe<E: From<SamplesError>>(
        self,
        explainer: &mut Explainer,
        duration: Option<Duration>,
        each: impl FnMut(&mut Explainer) -> Result<(), E>,
    ) -> Result<SampledEnd, E> {
        // Memory and registers belong together for a moment only: on a busy machine normal priority is too late.
        let is_realtime = sched::set_realtime().is_ok();
        let ended = self.follow(explainer, duration, each)?;
        if is_realtime {
            sched::set_normal().map_err(system("cannot return to normal priority"))?;
        }
        Ok(ended)
    }

    fn follow<E: From<SamplesError>>(
        mut self,
        explainer: &mut Explainer,
        duration: Option<Duration>,
        mut each: impl FnMut(&mut Explainer) -> Result<(), E>,
    ) -> Result<SampledEnd, E> {
        let end = duration.map(|duration| Instant::now() + duration);
        let mut ended = SampledEnd::default();
        loop {
            poll::readable(&[self.stopping.as_fd()], Some(DRAIN)).map_err(system("cannot wait"))?;
            explainer.drain().map_err(SamplesError::Method)?;
            if self.stopping.is_stopped() {
                ended.signal = self.stopping.asked();
                break;
            }
            ended.status = self.stopping.ended().map_err(system("cannot wait for the command"))?;
            let have_gone = self.chosen.as_mut().is_some_and(|of| of.follow(explainer, duration.is_some()));
            if ended.status.is_some() || have_gone || end.is_some_and(|end| Instant::now() >= end) {
                break;
            }
            each(explainer)?;
        }
        explainer.drain().map_err(SamplesError::Method)?;
        Ok(ended)
    }
}

/// Looks in a row without a process, after which those that were chosen have ended.
const WITHOUT: u32 = 2;

impl FollowedProcesses {
    /// Attaches to processes that now belong to the choice. Returns whether all have ended and nothing is to be waited for:
    /// others may come as long as `has_time`, where the user has said how long to observe.
    fn follow(&mut self, explainer: &mut Explainer, has_time: bool) -> bool {
        let root = SysRoot::host();
        if !self.chosen.may_grow() {
            let pids = self.chosen.numbers();
            // One whose parent does not take its status stays in the list.
            let has_gone = |pid: &u32| TaskDir::of(&root, *pid).stat().map_or(true, |stat| stat.has_ended());
            let have_gone = pids.iter().all(has_gone);
            return have_gone && self.say_ended();
        }
        let Some(now) = self.chosen.look(&root, &clock::monotonic) else { return false };
        let now: HashSet<u32> = now.into_iter().collect();
        let new: Vec<u32> = now.difference(&self.last).copied().collect();
        self.without = if now.is_empty() { self.without + 1 } else { 0 };
        self.last = now;
        // Children of observed processes are among these, but are observed already.
        if !new.is_empty()
            && let Err(error) = explainer.attach(&new)
        {
            note(format_args!("processes that come from now on are not observed: {error}"));
            self.chosen.keep();
        }
        self.without >= WITHOUT && !has_time && self.say_ended()
    }

    fn say_ended(&self) -> bool {
        let has = if self.chosen.numbers().len() == 1 { "has" } else { "have" };
        note(format_args!("{} {has} ended", self.chosen));
        true
    }
}
