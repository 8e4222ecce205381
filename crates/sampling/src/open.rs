//! Opens the chosen road, calibrated.

use crate::calibration::{self, Calibration};
use crate::choice::Choice;
use crate::in_process::InProcessRoad;
use crate::landing::Landing;
use crate::perf::PerfRoad;
use crate::ptrace::PtraceRoad;
use crate::road::{Road, RoadError, RoadKind};
use crate::sample::SampleSettings;
use numakit_model::CpuSet;
use numakit_sys::command::Running;
use std::ffi::OsString;
use std::io;
use std::path::Path;

/// RoadVariables that a program needs in its environment.
pub type RoadVariables = [(OsString, OsString)];

/// Where the samples of a road land. A calibration that fails is no evidence, and no reason to take no samples.
fn landing(road: RoadKind) -> Landing {
    calibration::of_road(road).as_ref().map_or(Landing::Other, Calibration::landing)
}

/// Starts a command on the chosen road: `start` is called with the variables that it needs. `library` is for the road in
/// the program.
pub fn command(
    choice: &Choice,
    settings: &SampleSettings,
    library: Option<&Path>,
    start: impl FnOnce(&RoadVariables) -> io::Result<Running> + Send + 'static,
) -> Result<(Box<dyn Road>, Running), RoadError> {
    if choice.road == RoadKind::Ptrace {
        let (road, running) = PtraceRoad::for_command(settings, landing(choice.road), || start(&[]))?;
        return Ok((Box::new(road), running));
    }
    beside(choice, settings, library, start)
}

/// The same for a caller that keeps what it starts, and on the roads that do not stop the program: without the library
/// that is performance events.
pub fn beside<T: Send>(
    choice: &Choice,
    settings: &SampleSettings,
    library: Option<&Path>,
    start: impl FnOnce(&RoadVariables) -> io::Result<T> + Send,
) -> Result<(Box<dyn Road>, T), RoadError> {
    let landing = landing(choice.road);
    match library {
        None => {
            let (road, started) = PerfRoad::for_command(settings, landing, || start(&[]))?;
            Ok((Box::new(road), started))
        }
        Some(library) => {
            let road = InProcessRoad::new(settings, landing).map_err(RoadError::InProcess)?;
            let started = start(&road.variables(library)).map_err(RoadError::Start)?;
            Ok((Box::new(road), started))
        }
    }
}

/// Samples a running process, which only performance events can.
pub fn process(settings: &SampleSettings, process: u32) -> Result<Box<dyn Road>, RoadError> {
    Ok(Box::new(PerfRoad::for_process(settings, landing(RoadKind::Perf), process)?))
}

/// Samples everything that runs on these CPUs, which only performance events can.
pub fn machine(settings: &SampleSettings, cpus: &CpuSet) -> Result<Box<dyn Road>, RoadError> {
    Ok(Box::new(PerfRoad::for_machine(settings, landing(RoadKind::Perf), cpus)?))
}
