//! A command to be sampled: by which road, and with which library.

use numakit_launch::Program;
use numakit_preload::Library;
use numakit_sampling::RoadKind;
use numakit_sampling::choice::{self, Choice, NoRoad, PreloadObstacle, SampledProgram};
use numakit_sys::permissions::Permissions;
use std::ffi::OsString;
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

/// Why the library cannot be preloaded. A program that is not there fails when it is started.
fn obstacle(name: &OsString) -> Option<PreloadObstacle> {
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/bin:/usr/bin".into());
    let obstacle = Program::find(name, &path).ok()?.obstacle?;
    Some(PreloadObstacle(obstacle.to_string()))
}
