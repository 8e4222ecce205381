//! Programs to be sampled: by which method, and with which library.

use numakit_launch::preload::Library;
use numakit_launch::{Obstacle, Program};
use numakit_model::{CpuSet, Fix, Unavailable};
use numakit_sampling::choice::{self, Choice, NoMethod, PreloadObstacle, SampledProgram};
use numakit_sampling::{Method, MethodError, MethodKind, SampleSettings, calibration, in_process, open};
use numakit_sensors::SampleSource;
use numakit_sys::allocation_log::{AllocationLog, LogThreshold};
use numakit_sys::permissions::Permissions;
use numakit_sys::stdio::note;
use std::error::Error;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

/// Allocations that the log holds: at 5 ms between looks, 3 million a second.
const LOG_RECORDS: usize = 1 << 14;

/// The method by which a command is sampled, and the library for it if that method needs one.
pub(crate) fn choose(
    permissions: &Permissions,
    words: &[OsString],
    asked: Option<MethodKind>,
) -> Result<(Choice, Option<PathBuf>), NoMethod> {
    let obstacle = words.first().and_then(obstacle);
    let chosen = choice::choose(permissions, SampledProgram::Command(obstacle.as_ref()), asked)?;
    if chosen.method != MethodKind::InProcess {
        return Ok((chosen, None));
    }
    match Library::Explain.extract() {
        Ok(library) => Ok((chosen, Some(library))),
        Err(error) => {
            let obstacle = PreloadObstacle(format!("runs without {} ({error})", Library::Explain.name()));
            Ok((choice::choose(permissions, SampledProgram::Command(Some(&obstacle)), asked)?, None))
        }
    }
}

/// The log of what a command allocates, and the variables beside those of the method that it needs; `None` where the library
/// cannot be preloaded.
pub(crate) fn log(
    words: &[OsString],
    threshold: LogThreshold,
    library: Option<&Path>,
) -> Option<(AllocationLog, Vec<(OsString, OsString)>)> {
    let (library, is_preloaded) = match library {
        Some(library) => (library.to_owned(), true),
        None if words.first().and_then(program).is_some_and(|program| !loads_a_library(&program)) => {
            return None;
        }
        None => (Library::Explain.extract().ok()?, false),
    };
    let log = AllocationLog::create(LOG_RECORDS, threshold).ok()?;
    let own =
        log.environment().into_iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
    // The method in the program has it preloaded already.
    let preload = (!is_preloaded).then(|| in_process::preloaded(&library));
    let variables = own.chain(preload).collect();
    Some((log, variables))
}

/// How samples of a command are taken while it is observed.
pub(crate) struct CommandSamples {
    choice: Choice,
    library: Option<PathBuf>,
    settings: SampleSettings,
}

impl CommandSamples {
    /// Opens the method, and starts the command with the variables that it needs.
    pub(crate) fn open(
        &self,
        start: impl FnOnce(&open::MethodVariables) -> io::Result<()> + Send,
    ) -> Result<Box<dyn Method>, MethodError> {
        let (method, ()) = open::beside(&self.choice, &self.settings, self.library.as_deref(), start)?;
        Ok(method)
    }
}

fn settings(frequency: u32) -> SampleSettings {
    SampleSettings { frequency, ..SampleSettings::default() }
}

/// What is sampled for series.
pub(crate) enum SampledForSeries<'a> {
    /// A command that is started later.
    Command(&'a [OsString]),
    /// Running processes.
    Processes(&'a [u32]),
    /// All that runs on these CPUs.
    Machine(CpuSet),
}

/// The samples for series, or why there are none; for a command, how they are taken.
pub(crate) fn plan(sampled: &SampledForSeries<'_>, frequency: u32) -> (SampleSource, Option<CommandSamples>) {
    let permissions = Permissions::own_of(&choice::PERMISSIONS);
    let of_running = |program| choice::choose(&permissions, program, None).map(|chosen| (chosen, None));
    let chosen = match sampled {
        SampledForSeries::Processes(_) => of_running(SampledProgram::Running),
        SampledForSeries::Machine(_) => of_running(SampledProgram::Machine),
        SampledForSeries::Command(words) => choose(&permissions, words, None),
    };
    let (choice, library) = match chosen.map_err(|error| unavailable(&error.to_string(), error.fix)) {
        // It stops the program's threads, which a recorder must not do for hours.
        Ok((choice, _)) if choice.method == MethodKind::Ptrace => {
            let fix = Fix::Step("'numa explain' takes samples by ptrace".to_owned());
            return (SampleSource::new(Err(unavailable(&choice.to_string(), fix))), None);
        }
        Ok(chosen) => chosen,
        Err(why) => return (SampleSource::new(Err(why)), None),
    };
    let landing = calibration::of_method(choice.method).map(|calibration| calibration.landing());
    let source = SampleSource::new(Ok(landing.unwrap_or(numakit_sampling::Landing::Other)));
    let is_command = matches!(sampled, SampledForSeries::Command(_));
    (source, is_command.then(|| CommandSamples { choice, library, settings: settings(frequency) }))
}

fn unavailable(seen: &str, fix: Fix) -> Unavailable {
    Unavailable::new("samples of instructions", seen, fix)
}

/// Opens the method that samples what runs already; without it there are no values.
pub(crate) fn attach(source: &SampleSource, frequency: u32, sampled: &SampledForSeries<'_>) {
    let opened = match sampled {
        SampledForSeries::Processes(pids) => open::processes(&settings(frequency), pids),
        SampledForSeries::Machine(cpus) => open::machine(&settings(frequency), cpus),
        SampledForSeries::Command(_) => return,
    };
    match opened {
        Ok(method) => source.attach(method),
        Err(error) => without_samples(&error),
    }
}

/// Says that a method failed: the observation goes on without its samples.
pub(crate) fn without_samples(error: &MethodError) {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(&format!(": {cause}"));
        source = cause.source();
    }
    note(format_args!("no samples are taken: {text}"));
}

/// A program that is not there fails when it is started.
fn program(name: &OsString) -> Option<Program> {
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/bin:/usr/bin".into());
    Program::find(name, &path).ok()
}

/// Whether the program, or one that it starts in its place, may load a library.
fn loads_a_library(program: &Program) -> bool {
    program.obstacle.as_ref().is_none_or(Obstacle::allows_children)
}

/// Why the library cannot be preloaded.
fn obstacle(name: &OsString) -> Option<PreloadObstacle> {
    let program = program(name)?;
    let obstacle = program.obstacle?;
    // 'numa run' is about the program that it starts, which inherits the library.
    let is_numa =
        std::env::current_exe().is_ok_and(|own| program.code.canonicalize().is_ok_and(|code| code == own));
    (!is_numa).then(|| PreloadObstacle(obstacle.to_string()))
}
