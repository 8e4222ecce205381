//! The file of calibrations in the user's cache: a line for each kind of machine and each method, with when it was measured and
//! how busy the machine was.

use crate::calibration::{Calibration, MachineKind};
use crate::landing::{Landing, LandingCounts};
use crate::method::MethodKind;
use numakit_model::numbers::{counted, duration};
use numakit_model::{CpuSet, time};
use numakit_sys::proc::machine::LoadAverage;
use numakit_sys::{SysRoot, cache, clock};
use std::fmt;
use std::path::PathBuf;

/// Name of the file.
pub(crate) const FILE: &str = "landing";
/// Maximum number of lines in the file: of machines that share a home directory.
const MAX_LINES: usize = 64;
const SECOND: u64 = 1_000_000_000;

/// When a calibration was measured, and how busy the machine was.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CalibrationMoment {
    /// Seconds since 1970, UTC.
    pub time: u64,
    /// The load average of the minute before.
    pub load: f64,
    /// The CPUs that were online.
    pub cpus: u32,
}

impl CalibrationMoment {
    /// The moment now; `None` where the kernel does not show its load.
    pub fn now(root: &SysRoot) -> Option<Self> {
        let online = CpuSet::parse_list(&root.text("/sys/devices/system/cpu/online").ok()?).ok()?;
        let load = LoadAverage::read(root)?.minute;
        Some(Self { time: clock::utc() / SECOND, load, cpus: u32::try_from(online.len()).ok()? })
    }

    /// Whether other programs had to wait for CPUs.
    pub fn was_busy(&self) -> bool {
        self.load >= f64::from(self.cpus)
    }
}

impl fmt::Display for CalibrationMoment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let age = (clock::utc() / SECOND).saturating_sub(self.time);
        write!(
            f,
            "{} ({} ago), load average {:.2} on {}",
            time::utc(self.time.saturating_mul(SECOND)),
            duration(age as f64),
            self.load,
            counted(self.cpus as usize, "CPU")
        )
    }
}

/// A line of the file.
#[derive(Debug, Clone, PartialEq)]
pub struct KeptCalibration {
    /// What it is valid for.
    pub machine: MachineKind,
    /// The result.
    pub calibration: Calibration,
    /// When it was measured; `None` if the file's line does not say so.
    pub moment: Option<CalibrationMoment>,
}

impl KeptCalibration {
    fn line(&self) -> String {
        let MachineKind { processor, product, kernel } = &self.machine;
        let LandingCounts { behind, one_further, block_start, at_load, elsewhere } = self.calibration.counts;
        let method = self.calibration.method.word();
        let moment = self.moment.map(|moment| format!("\t{} {} {}", moment.time, moment.load, moment.cpus));
        format!(
            "{method}\t{processor}\t{product}\t{kernel}\t{behind} {one_further} {block_start} {at_load} {elsewhere}{}",
            moment.unwrap_or_default()
        )
    }

    fn is_for(&self, machine: &MachineKind, method: MethodKind) -> bool {
        self.calibration.method == method && self.machine == *machine
    }

    /// Samples that land in no one place say how busy the machine was, and nothing about the method.
    fn is_conclusive(&self) -> bool {
        self.calibration.landing() != Landing::Other
    }
}

pub(crate) fn folders() -> Vec<PathBuf> {
    cache::folders(FILE)
}

/// The calibration of a method for this machine, from the first folder that has one.
pub(crate) fn find(
    folders: &[PathBuf],
    machine: &MachineKind,
    method: MethodKind,
) -> Option<KeptCalibration> {
    let find = |text: String| {
        text.lines().filter_map(parse).find(|kept| kept.is_for(machine, method) && kept.is_conclusive())
    };
    folders.iter().find_map(|folder| cache::load(folder, FILE).and_then(find))
}

/// Writes a calibration to the first folder where that is possible. If there is none, that is no error: the method can be
/// calibrated again. A result without a clear place is not kept, as it was true only for that moment.
pub(crate) fn keep(folders: &[PathBuf], kept: &KeptCalibration) {
    if !kept.is_conclusive() {
        return;
    }
    let method = kept.calibration.method;
    let stays = |line: &&str| {
        parse(line).is_none_or(|other| other.is_conclusive() && !other.is_for(&kept.machine, method))
    };
    for folder in folders {
        let text = cache::load(folder, FILE).unwrap_or_default();
        let new = kept.line();
        let lines = std::iter::once(new.as_str()).chain(text.lines().filter(stays));
        let content: String = lines.take(MAX_LINES).flat_map(|line| [line, "\n"]).collect();
        if cache::store(folder, FILE, &content).is_ok() {
            return;
        }
    }
}

/// Parses a line of the file; `None` if the line is damaged or from another version.
pub fn parse(line: &str) -> Option<KeptCalibration> {
    let mut fields = line.split('\t');
    let mut field = || fields.next();
    let word = field()?;
    let method = MethodKind::ALL.into_iter().find(|method| method.word() == word)?;
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
    // Lines had no moment once.
    let moment = match field() {
        Some(text) => Some(parse_moment(text)?),
        None => None,
    };
    (fields.next().is_none() && numbers.next().is_none()).then_some(KeptCalibration {
        machine: MachineKind { processor, product, kernel },
        calibration: Calibration { method, counts },
        moment,
    })
}

fn parse_moment(text: &str) -> Option<CalibrationMoment> {
    let mut words = text.split(' ');
    let time = words.next()?.parse().ok()?;
    let load = words.next()?.parse().ok().filter(|load: &f64| load.is_finite() && *load >= 0.0)?;
    let cpus = words.next()?.parse().ok()?;
    words.next().is_none().then_some(CalibrationMoment { time, load, cpus })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(method: MethodKind, behind: u32, at_load: u32) -> KeptCalibration {
        let named = |name: &str| name.to_owned();
        let counts = LandingCounts { behind, at_load, elsewhere: 1, ..LandingCounts::default() };
        KeptCalibration {
            machine: MachineKind {
                processor: named("a CPU"),
                product: named("guest QEMU"),
                kernel: named("6.18"),
            },
            calibration: Calibration { method, counts },
            moment: Some(CalibrationMoment { time: 1_795_202_974, load: 0.52, cpus: 2 }),
        }
    }

    #[test]
    fn a_line_says_what_was_measured_when_and_beside_what() {
        let kept = kept(MethodKind::Perf, 190, 3);
        let line = kept.line();
        assert_eq!(line, "perf\ta CPU\tguest QEMU\t6.18\t190 0 0 3 1\t1795202974 0.52 2");
        assert_eq!(parse(&line), Some(kept.clone()));
        let without = line.rsplit_once('\t').unwrap().0;
        assert_eq!(parse(without), Some(KeptCalibration { moment: None, ..kept.clone() }));
        let text = kept.moment.unwrap().to_string();
        assert!(text.starts_with("2026-11-20 19:29:34 UTC (") && text.contains(" ago), "), "{text}");
        assert!(text.ends_with("load average 0.52 on 2 CPUs"), "{text}");
        for malformed in ["", "perf\ta\tb\tc\t1 2 3 4", "perf\ta\tb\t1 2 3 4 5", "other\ta\tb\tc\t1 2 3 4 5"]
        {
            assert_eq!(parse(malformed), None, "{malformed}");
        }
        for more in [" 1", "\t", "\t1"] {
            assert_eq!(parse(&format!("{line}{more}")), None, "{more:?}");
        }
        for moment in ["1 -1 2", "1 nan 2", "-1 0 2", "1 0"] {
            assert_eq!(parse(&format!("{without}\t{moment}")), None, "{moment}");
        }
    }

    #[test]
    fn a_machine_was_busy_when_no_cpu_was_left() {
        let of = |load| CalibrationMoment { time: 0, load, cpus: 2 }.was_busy();
        assert_eq!([of(0.0), of(1.9), of(2.0)], [false, false, true]);
    }

    #[test]
    fn a_conclusive_line_replaces_that_of_its_method_and_those_that_are_not() {
        let folder = std::env::temp_dir().join(format!("numakit-calibrations-{}", std::process::id()));
        let folders = [folder.clone()];
        let [perf, ptrace] = [kept(MethodKind::Perf, 24, 0), kept(MethodKind::Ptrace, 24, 0)];
        let vague = kept(MethodKind::InProcess, 20, 3);
        let found = |like: &KeptCalibration| find(&folders, &like.machine, like.calibration.method);
        keep(&folders, &vague);
        assert_eq!((found(&vague), folder.exists()), (None, false));
        keep(&folders, &perf);
        let strange = "a line of another version";
        let content = format!("{}\n{}\n{strange}\n", vague.line(), perf.line());
        cache::store(&folder, FILE, &content).unwrap();
        assert_eq!((found(&vague), found(&perf)), (None, Some(perf.clone())));
        keep(&folders, &ptrace);
        let newer = KeptCalibration { moment: None, ..perf };
        keep(&folders, &newer);
        let expected = [newer.line(), ptrace.line(), strange.to_owned()].join("\n") + "\n";
        assert_eq!(cache::load(&folder, FILE), Some(expected));
        std::fs::remove_dir_all(folder).unwrap();
    }
}
