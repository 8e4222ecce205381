//! The model of a machine's CPUs.

use crate::glob::Pattern;
use numakit_sys::SysRoot;
use std::collections::HashSet;
use std::fmt;

const CPUINFO: &str = "/proc/cpuinfo";
/// More than the kernel prints about one CPU.
const FRONT: usize = 16 << 10;
const MIDR: &str = "/sys/devices/system/cpu/cpu0/regs/identification/midr_el1";

/// The model of a CPU, as tables name it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Identity {
    /// x86: vendor, family, model and stepping, such as `GenuineIntel-6-8F-8`; model and
    /// stepping are hexadecimal.
    pub cpu: Option<String>,
    /// Arm: implementer and part.
    pub midr: Option<(u64, u64)>,
    /// POWER: the processor version register.
    pub pvr: Option<u64>,
    /// x86: the CPU flags; empty for others. `None` if nothing could be read.
    pub flags: Option<HashSet<String>>,
}

impl Identity {
    /// Reads the model of the first CPU.
    pub fn read(root: &SysRoot) -> Self {
        // One read returns the first CPU. On machines with hundreds of equal CPUs, the whole file takes
        // long.
        let mut front = [0; FRONT];
        let read = root.front(CPUINFO, &mut front).ok();
        let text = String::from_utf8_lossy(&front[..read.unwrap_or(0)]);
        let of = |key: &str| {
            let lines = text.lines().filter_map(|line| line.split_once(':'));
            lines.map(|(k, v)| (k.trim(), v.trim())).find(|(k, _)| *k == key).map(|(_, v)| v)
        };
        let midr = root.text(MIDR).ok().and_then(|text| hex(text.trim()));
        let parts = midr.map(|midr| (midr >> 24 & 0xff, midr >> 4 & 0xfff));
        Self {
            cpu: x86(&of),
            midr: parts.or_else(|| Some((hex(of("CPU implementer")?)?, hex(of("CPU part")?)?))),
            pvr: of("revision").and_then(pvr),
            flags: read
                .map(|_| of("flags").unwrap_or_default().split_whitespace().map(str::to_owned).collect()),
        }
    }

    /// Whether the CPU has this flag.
    pub fn has(&self, flag: &str) -> bool {
        self.flags.as_ref().is_some_and(|flags| flags.contains(flag))
    }

    /// Whether a line of a table names this CPU: `key` is the kind of name; patterns after `!` exclude.
    pub(super) fn is_one_of(&self, key: &str, patterns: &str) -> bool {
        let mut fits = false;
        for pattern in patterns.split_whitespace() {
            match pattern.strip_prefix('!') {
                Some(pattern) if self.is(key, pattern) => return false,
                Some(_) => {}
                None => fits |= self.is(key, pattern),
            }
        }
        fits
    }

    fn is(&self, key: &str, pattern: &str) -> bool {
        match key {
            "cpu" => self.cpu.as_deref().is_some_and(|cpu| {
                let model = cpu.rsplit_once('-').map_or(cpu, |(model, _)| model);
                let pattern = Pattern::new(pattern);
                pattern.fits(cpu) || pattern.fits(model)
            }),
            "midr" => {
                let wanted = pattern.split_once('-').and_then(|(a, b)| Some((hex(a)?, hex(b)?)));
                wanted.is_some() && wanted == self.midr
            }
            _ => hex(pattern).is_some_and(|wanted| self.pvr == Some(wanted)),
        }
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.cpu, self.midr, self.pvr) {
            (Some(cpu), ..) => f.write_str(cpu),
            (_, Some((by, part)), _) => write!(f, "midr {by:#04x}-{part:#05x}"),
            (.., Some(pvr)) => write!(f, "pvr {pvr:#06x}"),
            _ => f.write_str("an unknown CPU"),
        }
    }
}

fn x86<'a>(of: &impl Fn(&str) -> Option<&'a str>) -> Option<String> {
    let number = |key: &str| of(key)?.parse::<u32>().ok();
    let (family, model) = (number("cpu family")?, number("model")?);
    let stepping = number("stepping").unwrap_or(0);
    Some(format!("{}-{family}-{model:X}-{stepping:X}", of("vendor_id")?))
}

/// The number in `2.0 (pvr 0080 0200)`.
fn pvr(revision: &str) -> Option<u64> {
    let (_, numbers) = revision.split_once("(pvr ")?;
    u64::from_str_radix(numbers.split(' ').next()?, 16).ok()
}

fn hex(text: &str) -> Option<u64> {
    let digits = text.strip_prefix("0x")?;
    u64::from_str_radix(digits, 16).ok().filter(|_| !digits.starts_with('+'))
}
