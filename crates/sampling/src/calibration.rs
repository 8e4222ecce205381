//! Where the samples of each method land on this machine: found out by sampling a known chain of loads, and kept in the
//! user's cache for this processor, hypervisor and kernel.

pub use crate::calibration_file::{CalibrationMoment, KeptCalibration, parse};

use crate::calibration_file as file;
use crate::landing::{Landing, LandingCounts, sentence};
use crate::method::{Method, MethodError, MethodEvent, MethodKind};
use crate::perf::PerfMethod;
use crate::sample::SampleSettings;
use numakit_sys::chain::LoadChain;
use numakit_sys::cpu_timer::CpuTimer;
use numakit_sys::proc::{Processor, machine};
use numakit_sys::ptrace::{Stop, Tracer};
use numakit_sys::{SysRoot, clock};
use std::fmt;
use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::time::Duration;

/// Memory of the chain: more than the private caches of a core.
const BYTES: usize = 16 << 20;
/// How long the chain is followed between two looks at the samples.
const TIME: Duration = Duration::from_millis(30);
/// Samples per second meanwhile.
const FREQUENCY: u32 = 4000;
/// Stops of a calibration by ptrace.
const STOPS: u32 = 100;
/// CPU time between two stops, and the time after which the calibration ends in any case.
const BETWEEN: Duration = Duration::from_micros(200);
const MAX_TIME: Duration = Duration::from_millis(200);
/// Samples of a calibration by performance events or by a timer, and the CPU time after which it ends in any case.
const SAMPLES: usize = 24;
const MAX_SAMPLED_TIME: Duration = Duration::from_secs(2);

/// Maximum number of calibrations until samples land in one place. While other programs use the processor, samples may land
/// elsewhere: on one virtual machine 70 to 100 % landed behind the load, within a minute.
const ATTEMPTS: usize = 4;

/// The result for a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Calibration {
    /// The method.
    pub method: MethodKind,
    /// Where samples of the chain landed.
    pub counts: LandingCounts,
}

impl Calibration {
    /// Where the method's samples land. Too few samples are no evidence for any place, and count as [`Landing::Other`].
    pub fn landing(&self) -> Landing {
        self.counts.landing().unwrap_or(Landing::Other)
    }
}

impl fmt::Display for Calibration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} ({})", self.method, sentence(self.landing()), self.counts)
    }
}

/// What a calibration is valid for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MachineKind {
    /// The model of the processor.
    pub processor: String,
    /// The hypervisor or the product, as the firmware says.
    pub product: String,
    /// The release of the kernel.
    pub kernel: String,
}

impl MachineKind {
    /// The kind of a machine. What the machine does not state is empty.
    pub fn of(root: &SysRoot) -> Self {
        let processor = Processor::read(root);
        let firmware = |file: &str| root.text(&format!("/sys/class/dmi/id/{file}")).unwrap_or_default();
        let guest = if processor.is_virtual { GUEST } else { "" };
        let [vendor, name] = ["sys_vendor", "product_name"].map(firmware);
        Self {
            processor: printed(&processor.name),
            product: printed(&[guest, vendor.trim(), name.trim()].join(" ")),
            kernel: printed(&machine::kernel_release(root).unwrap_or_default()),
        }
    }

    /// Whether it is a virtual machine.
    pub fn is_virtual(&self) -> bool {
        self.product.split(' ').next() == Some(GUEST)
    }
}

/// The first word of the product of a virtual machine.
const GUEST: &str = "guest";

/// The text without the characters that separate fields and lines in the file.
fn printed(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The results that the cache has for this machine, by method; nothing is measured.
pub fn known() -> Vec<KeptCalibration> {
    let (folders, machine) = (file::folders(), MachineKind::of(&SysRoot::host()));
    MethodKind::ALL.into_iter().filter_map(|method| file::find(&folders, &machine, method)).collect()
}

/// The calibration of a method: the one in the cache, or a new one if the cache has none.
pub fn of_method(method: MethodKind) -> Result<Calibration, MethodError> {
    let machine = MachineKind::of(&SysRoot::host());
    found(&file::folders(), &machine, method, || measured(method))
}

/// Calibrates a method anew, on the calling thread. The result replaces the one in the cache if the samples landed in one
/// place and the cache can be written to.
pub fn again(method: MethodKind) -> Result<Calibration, MethodError> {
    let machine = MachineKind::of(&SysRoot::host());
    renewed(&file::folders(), &machine, || measured(method))
}

fn found(
    folders: &[PathBuf],
    machine: &MachineKind,
    method: MethodKind,
    measure: impl FnMut() -> Result<Calibration, MethodError>,
) -> Result<Calibration, MethodError> {
    match file::find(folders, machine, method) {
        Some(kept) => Ok(kept.calibration),
        None => renewed(folders, machine, measure),
    }
}

/// Measures until samples land in one place, at most [`ATTEMPTS`] times.
fn renewed(
    folders: &[PathBuf],
    machine: &MachineKind,
    mut measure: impl FnMut() -> Result<Calibration, MethodError>,
) -> Result<Calibration, MethodError> {
    // Measuring is a load too.
    let moment = CalibrationMoment::now(&SysRoot::host());
    let mut calibration = measure()?;
    for _ in 1..ATTEMPTS {
        if calibration.landing() == Landing::Other {
            calibration = measure()?;
        }
    }
    file::keep(folders, &KeptCalibration { machine: machine.clone(), calibration, moment });
    Ok(calibration)
}

fn measured(method: MethodKind) -> Result<Calibration, MethodError> {
    let counts = match method {
        MethodKind::Perf => by_perf()?,
        MethodKind::Ptrace => by_ptrace().map_err(MethodError::Ptrace)?,
        MethodKind::InProcess => by_timer().map_err(MethodError::InProcess)?,
    };
    Ok(Calibration { method, counts })
}

/// Measures the method of performance events, whatever the cache has.
pub fn by_perf() -> Result<LandingCounts, MethodError> {
    let mut chain = LoadChain::new(BYTES);
    let settings = SampleSettings { frequency: FREQUENCY, stack: 0, ..SampleSettings::default() };
    let mut method = PerfMethod::for_caller(&settings, Landing::Other)?;
    let mut counts = LandingCounts::default();
    let end = clock::thread_cpu() + MAX_SAMPLED_TIME.as_nanos() as u64;
    // On a busy machine this thread does not run all the time, so only its CPU time counts.
    while counts.total() < SAMPLES as u32 && clock::thread_cpu() < end {
        chain.run(TIME);
        method.drain(&mut |event| {
            if let MethodEvent::Sample(sample) = event
                && !sample.in_kernel
            {
                counts.add(chain.spot(sample.registers.ip));
            }
        })?;
    }
    Ok(counts)
}

/// Calibrates the method in the program by a timer of this process, which needs no library.
pub fn by_timer() -> io::Result<LandingCounts> {
    let mut chain = LoadChain::new(BYTES);
    let timer = CpuTimer::every(BETWEEN)?;
    let end = clock::thread_cpu() + MAX_SAMPLED_TIME.as_nanos() as u64;
    // These timers expire only with the kernel's tick, so the loop waits for their number.
    while timer.count() < SAMPLES && clock::thread_cpu() < end {
        chain.run(TIME / 10);
    }
    let mut counts = LandingCounts::default();
    timer.places().into_iter().for_each(|ip| counts.add(chain.spot(ip)));
    Ok(counts)
}

/// Measures the method of ptrace, whatever the cache has. The calling thread must not trace anything.
pub fn by_ptrace() -> io::Result<LandingCounts> {
    // The stops of a tracer belong to one thread, so a thread is started for them.
    std::thread::scope(|scope| {
        let thread =
            std::thread::Builder::new().name("calibration".to_owned()).spawn_scoped(scope, trace_chain)?;
        thread.join().unwrap_or_else(|_| Err(io::Error::other("the calibrating thread panicked")))
    })
}

fn trace_chain() -> io::Result<LandingCounts> {
    let (chain, tracer) = (LoadChain::new(BYTES), Tracer::new()?);
    let child = chain.in_child()?;
    tracer.seize(child.id())?;
    let mut counts = LandingCounts::default();
    let end = clock::monotonic() + MAX_TIME.as_nanos() as u64;
    while counts.total() < STOPS && clock::monotonic() < end {
        std::thread::sleep(BETWEEN);
        match tracer.interrupt(child.id()) {
            Ok(()) => {}
            // The traced child has ended.
            Err(error) if error.raw_os_error().is_some() => break,
            Err(error) => return Err(error),
        }
        match tracer.next(true) {
            Ok(Some((thread, Stop::Interrupted))) => {
                if let Some(found) = tracer.registers(thread)?.filter(|found| !found.in_call) {
                    counts.add(chain.spot(found.registers.ip));
                }
                tracer.resume(thread, 0)?;
            }
            Ok(Some((_, Stop::Ended(_)))) => break,
            Ok(Some((thread, Stop::Signal(signal)))) => tracer.resume(thread, signal)?,
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => break,
            Err(error) => return Err(error),
        }
    }
    Ok(counts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use numakit_sys::root::FileTree;

    fn machine() -> SysRoot {
        let mut tree = FileTree::new();
        let cpu = "processor\t: 0\nmodel name\t: Some  CPU @ 2 GHz\nflags\t\t: fpu hypervisor sse\n\n";
        tree.file("/proc/cpuinfo", cpu.repeat(2));
        tree.file("/sys/class/dmi/id/sys_vendor", "QEMU\n").file("/sys/class/dmi/id/product_name", "Q35\n");
        tree.file("/proc/sys/kernel/osrelease", "6.18.0\n");
        SysRoot::of_tree(tree)
    }

    #[test]
    fn a_result_is_for_this_kind_of_machine() {
        let kind = MachineKind::of(&machine());
        assert_eq!((kind.processor.as_str(), kind.product.as_str()), ("Some CPU @ 2 GHz", "guest QEMU Q35"));
        let counts = LandingCounts { behind: 190, elsewhere: 3, ..LandingCounts::default() };
        assert_eq!(
            Calibration { method: MethodKind::Perf, counts }.to_string(),
            "performance events: samples land right behind the instruction that waited (190 behind, 0 one further, \
             0 at the start of the block, 0 at the load, 3 elsewhere)"
        );
    }

    /// What a calibration finds whose samples land behind the load, at it and elsewhere in these numbers.
    fn script(behind: u32, at_load: u32, elsewhere: u32) -> Calibration {
        let counts = LandingCounts { behind, at_load, elsewhere, ..LandingCounts::default() };
        Calibration { method: MethodKind::InProcess, counts }
    }

    #[test]
    fn samples_in_no_one_place_are_tried_again_and_never_kept() {
        let folder = std::env::temp_dir().join(format!("numakit-calibration-{}", std::process::id()));
        let (folders, kind) = ([folder.clone()], MachineKind::of(&machine()));
        let (vague, clear) = (script(20, 3, 1), script(23, 0, 1));
        // An earlier version kept it.
        let old = format!("in-process\t{}\t{}\t{}\t20 0 0 3 1\n", kind.processor, kind.product, kind.kernel);
        numakit_sys::cache::store(&folder, file::FILE, &old).unwrap();
        let mut measurements = 0;
        let mut find = |script: &[Calibration]| {
            let mut script = script.iter().copied();
            let measure = || {
                measurements += 1;
                script.next().ok_or_else(|| MethodError::InProcess(io::Error::other("the script has ended")))
            };
            let found = found(&folders, &kind, MethodKind::InProcess, measure).unwrap();
            (found.counts, measurements)
        };
        assert_eq!(find(&[vague; 4]), (vague.counts, 4));
        assert_eq!(find(&[vague, vague, clear]), (clear.counts, 7));
        assert_eq!(find(&[]), (clear.counts, 7), "the kept one");
        let kept = file::find(&folders, &kind, MethodKind::InProcess).unwrap();
        assert!(kept.moment.is_some_and(|moment| moment.cpus > 0 && moment.time > 1_700_000_000), "{kept:?}");
        // A new one that is vague replaces nothing; a clear one does.
        let renew = |calibration| renewed(&folders, &kind, || Ok(calibration)).unwrap();
        renew(vague);
        assert_eq!(find(&[]).0, clear.counts);
        let newest = renew(script(8, 0, 0));
        assert_eq!(find(&[]).0, newest.counts);
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn too_few_samples_are_no_evidence() {
        let counts = LandingCounts { behind: 3, ..LandingCounts::default() };
        assert_eq!(Calibration { method: MethodKind::Ptrace, counts }.landing(), Landing::Other);
    }
}
