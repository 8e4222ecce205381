//! The kernel's description of PMUs: `/sys/bus/event_source/devices/NAME`.

use super::format::FormatError;
use super::format::Formats;
use numakit_model::{CpuSet, Fix, ParseSetError, Unavailable};
use numakit_sys::{ReadError, SysRoot};
use std::collections::BTreeMap;
use thiserror::Error;

/// The folder of PMUs.
pub const DEVICES: &str = "/sys/bus/event_source/devices";

/// A PMU.
#[derive(Debug, Clone, PartialEq)]
pub struct Pmu {
    /// Name of its folder: `uncore_imc_3`.
    pub name: String,
    /// Its type, as for `perf_event_open`.
    pub kind: u32,
    /// Whether it counts events of cores.
    pub core: bool,
    /// For a core PMU, its CPUs; empty: all. For any other, the CPUs on which its events are opened,
    /// one for each package or node that it counts for; empty if the kernel names none.
    pub cpus: CpuSet,
    /// The fields of its events.
    pub formats: Formats,
    /// Events that the kernel names, with their terms.
    pub events: BTreeMap<String, String>,
}

/// The PMUs of a machine.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Devices {
    /// Those that can be used, in the order of their names.
    pub found: Vec<Pmu>,
    /// Names of those that cannot, each with the reason.
    pub skipped: Vec<(String, Unavailable)>,
}

/// Why a PMU cannot be used.
#[derive(Debug, Error)]
enum DeviceError {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error("{path} is '{text}', not a number")]
    Number { path: String, text: String },
    #[error(transparent)]
    Format(#[from] FormatError),
    #[error("{path}: {error}")]
    Cpus { path: String, error: ParseSetError },
    #[error("{0} names no CPU")]
    NoCpu(String),
}

/// Reads the PMUs with selected names: large machines have hundreds, each with dozens of files.
pub fn devices(root: &SysRoot, wanted: impl Fn(&str) -> bool) -> Devices {
    let mut devices = Devices::default();
    for name in names(root).into_iter().filter(|n| wanted(n)) {
        match read(root, &name) {
            Ok(device) => devices.found.push(device),
            Err(error) => {
                let fix = Fix::OtherKernel("that describes it fully, or leave it out".to_owned());
                let why = Unavailable::new(format!("the PMU {name}"), error.to_string(), fix);
                devices.skipped.push((name, why));
            }
        }
    }
    devices
}

/// The names of all PMUs; empty without performance events in the kernel.
pub fn names(root: &SysRoot) -> Vec<String> {
    root.list(DEVICES).unwrap_or_default()
}

/// Whether a PMU counts events of cores: it has a file `cpus`, or is called `cpu`.
pub fn is_core(root: &SysRoot, name: &str) -> bool {
    name == "cpu" || root.exists(&format!("{DEVICES}/{name}/cpus"))
}

/// The number at the end of a name: 3 of `uncore_imc_3`.
pub fn number(name: &str) -> Option<u32> {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    name[stem.len()..].parse().ok()
}

fn read(root: &SysRoot, name: &str) -> Result<Pmu, DeviceError> {
    let folder = format!("{DEVICES}/{name}");
    let path = format!("{folder}/type");
    let text = root.text(&path)?;
    let kind = text.trim().parse();
    let kind = kind.map_err(|_| DeviceError::Number { path, text: text.trim().to_owned() })?;
    let formats = files(root, &format!("{folder}/format"))?;
    let formats = Formats::parse(formats.iter().map(|(name, text)| (name.as_str(), text.as_str())))?;
    let mut events = files(root, &format!("{folder}/events"))?;
    // NAME.unit, NAME.scale and the like describe an event; they are not events.
    events.retain(|name, _| !name.contains('.'));
    let core = is_core(root, name);
    let cpus = cpus(root, &format!("{folder}/{}", if core { "cpus" } else { "cpumask" }))?;
    Ok(Pmu { name: name.to_owned(), kind, core, cpus, formats, events })
}

/// The content of each file in a folder; nothing if there is no folder.
fn files(root: &SysRoot, folder: &str) -> Result<BTreeMap<String, String>, ReadError> {
    let names = root.list(folder).unwrap_or_default().into_iter();
    let content = names.map(|name| {
        let text = root.text(&format!("{folder}/{name}"))?;
        Ok((name, text.trim().to_owned()))
    });
    content.collect()
}

fn cpus(root: &SysRoot, path: &str) -> Result<CpuSet, DeviceError> {
    let text = match root.text(path) {
        Ok(text) => text,
        Err(error) if error.is_missing() => return Ok(CpuSet::new()),
        Err(error) => return Err(error.into()),
    };
    let cpus = CpuSet::parse_list(text.trim());
    let cpus = cpus.map_err(|error| DeviceError::Cpus { path: path.to_owned(), error })?;
    if cpus.is_empty() { Err(DeviceError::NoCpu(path.to_owned())) } else { Ok(cpus) }
}

#[cfg(test)]
mod tests;
