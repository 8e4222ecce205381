//! Opens the chosen method, calibrated.

use crate::calibration::{self, Calibration};
use crate::choice::Choice;
use crate::in_process::InProcessMethod;
use crate::landing::Landing;
use crate::method::{Method, MethodError, MethodKind};
use crate::perf::PerfMethod;
use crate::ptrace::PtraceMethod;
use crate::sample::SampleSettings;
use numakit_model::CpuSet;
use numakit_sys::SysRoot;
use numakit_sys::command::Running;
use numakit_sys::proc::TaskDir;
use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::path::Path;

/// MethodVariables that a program needs in its environment.
pub type MethodVariables = [(OsString, OsString)];

/// Where the samples of a method land. A calibration that fails counts as [`Landing::Other`]: it is no reason to take no
/// samples.
fn landing(method: MethodKind) -> Landing {
    calibration::of_method(method).as_ref().map_or(Landing::Other, Calibration::landing)
}

/// Starts a command on the chosen method: `start` is called with the variables that it needs. `library` is for the method in
/// the program.
pub fn command(
    choice: &Choice,
    settings: &SampleSettings,
    library: Option<&Path>,
    start: impl FnOnce(&MethodVariables) -> io::Result<Running> + Send + 'static,
) -> Result<(Box<dyn Method>, Running), MethodError> {
    if choice.method == MethodKind::Ptrace {
        let (method, running) = PtraceMethod::for_command(settings, landing(choice.method), || start(&[]))?;
        return Ok((Box::new(method), running));
    }
    beside(choice, settings, library, start)
}

/// The same for a caller that keeps what it starts, and for the methods that do not stop the program: without the library
/// that is performance events.
pub fn beside<T: Send>(
    choice: &Choice,
    settings: &SampleSettings,
    library: Option<&Path>,
    start: impl FnOnce(&MethodVariables) -> io::Result<T> + Send,
) -> Result<(Box<dyn Method>, T), MethodError> {
    let landing = landing(choice.method);
    match library {
        None => {
            let (method, started) = PerfMethod::for_command(settings, landing, || start(&[]))?;
            Ok((Box::new(method), started))
        }
        Some(library) => {
            let method = InProcessMethod::new(settings, landing).map_err(MethodError::InProcess)?;
            let started = start(&method.variables(library)).map_err(MethodError::Start)?;
            Ok((Box::new(method), started))
        }
    }
}

/// Samples running processes and their descendants, which only performance events can.
pub fn processes(settings: &SampleSettings, processes: &[u32]) -> Result<Box<dyn Method>, MethodError> {
    let opened = PerfMethod::for_processes(settings, landing(MethodKind::Perf), processes);
    Ok(Box::new(opened.map_err(|error| refused(processes).map_or(error, MethodError::Refused))?))
}

/// The first of these processes that may not be observed: who may do that may also read its mappings.
fn refused(processes: &[u32]) -> Option<u32> {
    let root = SysRoot::host();
    let is_refused = |pid: &u32| {
        let mappings = TaskDir::of(&root, *pid).bytes("maps");
        mappings.is_err_and(|error| error.kind == ErrorKind::PermissionDenied)
    };
    processes.iter().copied().find(is_refused)
}

/// Samples everything that runs on these CPUs, which only performance events can.
pub fn machine(settings: &SampleSettings, cpus: &CpuSet) -> Result<Box<dyn Method>, MethodError> {
    Ok(Box::new(PerfMethod::for_machine(settings, landing(MethodKind::Perf), cpus)?))
}
