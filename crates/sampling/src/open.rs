//! Opens the chosen road, calibrated.

use crate::calibration;
use crate::choice::Choice;
use crate::landing::Landing;
use crate::perf::PerfRoad;
use crate::ptrace::PtraceRoad;
use crate::road::{Road, RoadError, RoadKind};
use crate::sample::SampleSettings;
use numakit_sys::command::Running;
use std::io;

/// Where the samples of a road land. A calibration that fails is no evidence, and no reason to take no samples.
fn landing(road: RoadKind) -> Landing {
    let calibrated = calibration::of_road(road).ok().flatten();
    calibrated.map_or(Landing::Other, |calibration| calibration.landing())
}

/// Starts a command on the chosen road. A library in the program is another one: it is prepared before the command is.
pub fn command(
    choice: &Choice,
    settings: &SampleSettings,
    start: impl FnOnce() -> io::Result<Running> + Send + 'static,
) -> Result<(Box<dyn Road>, Running), RoadError> {
    let landing = landing(choice.road);
    match choice.road {
        RoadKind::Perf => {
            let (road, running) = PerfRoad::for_command(settings, landing, start)?;
            Ok((Box::new(road), running))
        }
        RoadKind::Ptrace => {
            let (road, running) = PtraceRoad::for_command(settings, landing, start)?;
            Ok((Box::new(road), running))
        }
        RoadKind::InProcess => Err(RoadError::NeedsLibrary),
    }
}

/// Samples a running process, which only performance events can.
pub fn process(settings: &SampleSettings, process: u32) -> Result<Box<dyn Road>, RoadError> {
    Ok(Box::new(PerfRoad::for_process(settings, landing(RoadKind::Perf), process)?))
}
