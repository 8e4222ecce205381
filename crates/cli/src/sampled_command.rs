//! Programs to be sampled: by which road, and with which library.

use numakit_launch::Program;
use numakit_model::{Fix, Unavailable};
use numakit_preload::Library;
use numakit_sampling::choice::{self, Choice, NoRoad, PreloadObstacle, SampledProgram};
use numakit_sampling::{Road, RoadError, RoadKind, SampleSettings, calibration, open};
use numakit_sensors::{SamplingPlan, Target};
use numakit_sys::permissions::Permissions;
use numakit_sys::stdio::note;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

/// The road to samples of a command, and the library for it if that road leads through one.
pub fn choose(
    permissions: &Permissions,
    words: &[OsString],
    asked: Option<RoadKind>,
) -> Result<(Choice, Option<PathBuf>), NoRoad> {
    let obstacle = words.first().and_then(obstacle);
    let chosen = choice::choose(permissions, SampledProgram::Command(obstacle.as_ref()), asked)?;
    if chosen.road != RoadKind::InProcess {
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

/// How samples of a command are taken while it is observed.
pub struct CommandSamples {
    choice: Choice,
    library: Option<PathBuf>,
    settings: SampleSettings,
}

impl CommandSamples {
    /// Opens the road, and starts the command with the variables that it needs.
    pub fn open(
        &self,
        start: impl FnOnce(&open::Variables) -> io::Result<()> + Send,
    ) -> Result<Box<dyn Road>, RoadError> {
        let (road, ()) = open::beside(&self.choice, &self.settings, self.library.as_deref(), start)?;
        Ok(road)
    }
}

fn settings(frequency: u32) -> SampleSettings {
    SampleSettings { frequency, ..SampleSettings::default() }
}

/// The target with what its samples mean, or why there are none; for a command, how they are taken.
pub fn plan(target: Target, frequency: u32, command: &[OsString]) -> (Target, Option<CommandSamples>) {
    let permissions = Permissions::own_of(&choice::PERMISSIONS);
    let chosen = match target.pid() {
        Some(pid) => {
            choice::choose(&permissions, SampledProgram::Process(pid), None).map(|chosen| (chosen, None))
        }
        None => choose(&permissions, command, None),
    };
    let (choice, library) = match chosen.map_err(|error| unavailable(&error.to_string(), error.fix)) {
        // It stops the program's threads, which a recorder must not do for hours.
        Ok((choice, _)) if choice.road == RoadKind::Ptrace => {
            let fix = Fix::Step("'numa explain' takes samples by ptrace".to_owned());
            return (target.sampled(Err(unavailable(&choice.to_string(), fix))), None);
        }
        Ok(chosen) => chosen,
        Err(why) => return (target.sampled(Err(why)), None),
    };
    let landing = calibration::of_road(choice.road).map(|calibration| calibration.landing());
    let landing = landing.unwrap_or(numakit_sampling::Landing::Other);
    let is_command = target.pid().is_none();
    let target = target.sampled(Ok(SamplingPlan { landing, frequency }));
    (target, is_command.then(|| CommandSamples { choice, library, settings: settings(frequency) }))
}

fn unavailable(seen: &str, fix: Fix) -> Unavailable {
    Unavailable::new("samples of instructions", seen, fix)
}

/// Opens the road to samples of a running process; without it there are no values.
pub fn attach(target: &Target, frequency: u32, pid: u32) {
    match open::process(&settings(frequency), pid) {
        Ok(road) => target.attach(road),
        Err(error) => note(format_args!("no samples are taken: {:#}", anyhow::Error::from(error))),
    }
}

/// Why the library cannot be preloaded. A program that is not there fails when it is started.
fn obstacle(name: &OsString) -> Option<PreloadObstacle> {
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/bin:/usr/bin".into());
    let program = Program::find(name, &path).ok()?;
    let obstacle = program.obstacle?;
    // 'numa run' is about the program that it starts, which inherits the library.
    let is_numa =
        std::env::current_exe().is_ok_and(|own| program.code.canonicalize().is_ok_and(|code| code == own));
    (!is_numa).then(|| PreloadObstacle(obstacle.to_string()))
}
