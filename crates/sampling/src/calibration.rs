//! Where the samples of each road land on this machine: found out by sampling a known chain of loads, and kept in the
//! user's cache for this processor, hypervisor and kernel.

use crate::landing::{Landing, LandingCounts, sentence};
use crate::perf::PerfRoad;
use crate::road::{Road, RoadError, RoadEvent, RoadKind};
use crate::sample::SampleSettings;
use numakit_sys::chain::LoadChain;
use numakit_sys::cpu_timer::CpuTimer;
use numakit_sys::proc::{Processor, machine};
use numakit_sys::ptrace::{Stop, Tracer};
use numakit_sys::{SysRoot, cache, clock};
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
/// CPU time between them, and the time after which it ends in any case.
const BETWEEN: Duration = Duration::from_micros(200);
const MAX_TIME: Duration = Duration::from_millis(200);
/// Samples of a calibration by performance events or by a timer, and the CPU time after which it ends in any case.
const SAMPLES: usize = 24;
const MAX_SAMPLED_TIME: Duration = Duration::from_secs(2);

/// Calibrations until samples land in one place. Where others use the processor, they may land elsewhere for a while: on one
/// virtual machine 70 to 100 % landed behind the load, within a minute.
const ATTEMPTS: usize = 4;

/// The name of the file in the user's cache.
const FILE: &str = "landing";
/// Lines of the file at most: the machines that share a home directory.
const MAX_LINES: usize = 64;

/// The result for a road.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Calibration {
    /// The road.
    pub road: RoadKind,
    /// Where samples of the chain landed.
    pub counts: LandingCounts,
}

impl Calibration {
    /// Where its samples land. Too few samples are no evidence for anything.
    pub fn landing(&self) -> Landing {
        self.counts.landing().unwrap_or(Landing::Other)
    }
}

impl fmt::Display for Calibration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} ({})", self.road, sentence(self.landing()), self.counts)
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
    /// Of a machine; what it does not say is empty.
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

/// Without what separates fields and lines in the file.
fn printed(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The results that the cache has, by road; nothing is measured.
pub fn known() -> Vec<Calibration> {
    let machine = MachineKind::of(&SysRoot::host());
    let find = |road| kept(&machine, road).map(|counts| Calibration { road, counts });
    RoadKind::ALL.into_iter().filter_map(find).collect()
}

/// The result for a road: that in the cache, else it is measured on the calling thread, and kept if there were enough
/// samples and the cache can be written to.
pub fn of_road(road: RoadKind) -> Result<Calibration, RoadError> {
    let machine = MachineKind::of(&SysRoot::host());
    if let Some(counts) = kept(&machine, road) {
        return Ok(Calibration { road, counts });
    }
    let mut calibration = measured(road)?;
    for _ in 1..ATTEMPTS {
        if calibration.landing() == Landing::Other {
            calibration = measured(road)?;
        }
    }
    // What was true for a moment is not kept.
    if calibration.landing() != Landing::Other {
        keep(&machine, &calibration);
    }
    Ok(calibration)
}

fn measured(road: RoadKind) -> Result<Calibration, RoadError> {
    let counts = match road {
        RoadKind::Perf => by_perf()?,
        RoadKind::Ptrace => by_ptrace().map_err(RoadError::Ptrace)?,
        RoadKind::InProcess => by_timer().map_err(RoadError::InProcess)?,
    };
    Ok(Calibration { road, counts })
}

/// Measures the road of performance events, whatever the cache has.
pub fn by_perf() -> Result<LandingCounts, RoadError> {
    let mut chain = LoadChain::new(BYTES);
    let settings = SampleSettings { frequency: FREQUENCY, stack: 0, ..SampleSettings::default() };
    let mut road = PerfRoad::for_caller(&settings, Landing::Other)?;
    let mut counts = LandingCounts::default();
    let end = clock::thread_cpu() + MAX_SAMPLED_TIME.as_nanos() as u64;
    // On a busy machine this thread does not run all the time.
    while counts.total() < SAMPLES as u32 && clock::thread_cpu() < end {
        chain.run(TIME);
        road.drain(&mut |event| {
            if let RoadEvent::Sample(sample) = event
                && !sample.in_kernel
            {
                counts.add(chain.spot(sample.registers.ip));
            }
        })?;
    }
    Ok(counts)
}

/// Measures the road in the program, by a timer of this one: it needs no library.
pub fn by_timer() -> io::Result<LandingCounts> {
    let mut chain = LoadChain::new(BYTES);
    let timer = CpuTimer::every(BETWEEN)?;
    let end = clock::thread_cpu() + MAX_SAMPLED_TIME.as_nanos() as u64;
    // Such timers expire with the kernel's tick.
    while timer.count() < SAMPLES && clock::thread_cpu() < end {
        chain.run(TIME / 10);
    }
    let mut counts = LandingCounts::default();
    timer.places().into_iter().for_each(|ip| counts.add(chain.spot(ip)));
    Ok(counts)
}

/// Measures the road of ptrace, whatever the cache has. The calling thread must not trace anything.
pub fn by_ptrace() -> io::Result<LandingCounts> {
    // As stops of a tracer belong to one thread, one is made for it.
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
            // It has ended.
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

fn folders() -> Vec<PathBuf> {
    cache::folders(FILE)
}

fn kept(machine: &MachineKind, road: RoadKind) -> Option<LandingCounts> {
    let find = |text: String| text.lines().filter_map(parse).find(|(m, r, _)| m == machine && *r == road);
    let counts = folders().iter().find_map(|folder| cache::load(folder, FILE).and_then(find))?.2;
    counts.landing().map(|_| counts)
}

/// Writes it to the first directory where that is possible; nowhere is no error, as it can be measured again.
fn keep(machine: &MachineKind, calibration: &Calibration) {
    if calibration.counts.landing().is_none() {
        return;
    }
    for folder in folders() {
        let text = cache::load(&folder, FILE).unwrap_or_default();
        let is_other =
            |line: &&str| parse(line).is_some_and(|(m, road, _)| m != *machine || road != calibration.road);
        let new = line(machine, calibration);
        let lines = std::iter::once(new.as_str()).chain(text.lines().filter(is_other));
        let content: String = lines.take(MAX_LINES).flat_map(|line| [line, "\n"]).collect();
        if cache::store(&folder, FILE, &content).is_ok() {
            return;
        }
    }
}

fn line(machine: &MachineKind, calibration: &Calibration) -> String {
    let MachineKind { processor, product, kernel } = machine;
    let LandingCounts { behind, one_further, block_start, at_load, elsewhere } = calibration.counts;
    let road = calibration.road.word();
    format!(
        "{road}\t{processor}\t{product}\t{kernel}\t{behind} {one_further} {block_start} {at_load} {elsewhere}"
    )
}

/// Parses a line of the file in the cache; `None` if it is none.
pub fn parse(line: &str) -> Option<(MachineKind, RoadKind, LandingCounts)> {
    let mut fields = line.split('\t');
    let mut field = || fields.next();
    let word = field()?;
    let road = RoadKind::ALL.into_iter().find(|road| road.word() == word)?;
    let [processor, product, kernel] = [field()?, field()?, field()?].map(str::to_owned);
    let mut numbers = field()?.split(' ').map(|number| number.parse::<u16>().ok().map(u32::from));
    let mut number = || numbers.next().flatten();
    let counts = LandingCounts {
        behind: number()?,
        one_further: number()?,
        block_start: number()?,
        at_load: number()?,
        elsewhere: number()?,
    };
    (fields.next().is_none() && numbers.next().is_none()).then_some((
        MachineKind { processor, product, kernel },
        road,
        counts,
    ))
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
        let calibration = Calibration { road: RoadKind::Perf, counts };
        let line = line(&kind, &calibration);
        assert_eq!(parse(&line), Some((kind, RoadKind::Perf, counts)));
        for malformed in ["", "perf\ta\tb\tc\t1 2 3 4", "perf\ta\tb\t1 2 3 4 5", "other\ta\tb\tc\t1 2 3 4 5"]
        {
            assert_eq!(parse(malformed), None, "{malformed}");
        }
        assert_eq!(parse(&format!("{line} 1")), None);
        assert_eq!(
            calibration.to_string(),
            "performance events: samples land right behind the instruction that waited (190 behind, 0 one further, \
             0 at the start of the block, 0 at the load, 3 elsewhere)"
        );
    }

    #[test]
    fn too_few_samples_are_no_evidence() {
        let counts = LandingCounts { behind: 3, ..LandingCounts::default() };
        assert_eq!(Calibration { road: RoadKind::Ptrace, counts }.landing(), Landing::Other);
    }
}
