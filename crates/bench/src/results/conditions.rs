//! The machine, and what it was doing while something was measured.

use crate::results::BenchResult;
use numakit_model::numbers::counted;
use numakit_model::{CpuSet, Topology};
use numakit_sys::SysRoot;
use numakit_sys::huge_pages::Setting;
use numakit_sys::permissions::{Permission, Permissions};
use numakit_sys::proc::machine::{self, LoadAverage, StatLine};
use numakit_sys::proc::{Processor, TaskDir};
use numakit_sys::sched;
use serde::{Deserialize, Serialize};

/// If the middle four fifths of a value's measurements are wider than this share of its median, the value is not to be
/// believed.
const MAX_SPREAD: f64 = 0.2;
/// If the hypervisor gives more than this share of the time to other guests, values are not to be believed.
const MAX_STEAL: f64 = 0.01;
/// The share by which the frequency may change.
const MAX_DRIFT: f64 = 0.05;

/// Words for what shows on which nodes memory is: by single pages, and by whole mappings.
const MOVE_PAGES: &str = "move_pages";
const NUMA_MAPS: &str = "numa_maps";

/// What a result depends on beside the machine's memory.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct BenchConditions {
    /// The name of the processor.
    pub processor: String,
    /// The release of the kernel.
    pub kernel: String,
    /// Packages, nodes, cores and CPUs: `2 packages, 4 nodes, 32 cores, 64 CPUs`.
    pub machine: String,
    /// Whether a hypervisor runs it.
    pub virtual_machine: bool,
    /// The frequency governors of the CPUs; null where the kernel does not show any.
    pub governor: Option<String>,
    /// The setting of transparent huge pages; null where the kernel has none.
    pub huge_pages: Option<String>,
    /// The load average of the minute before.
    pub load: Option<f64>,
    /// Why memory policies were not used; null if they were.
    pub policies_refused: Option<String>,
    /// Why it is not known on which nodes the memory was; null if it was verified.
    pub unverified: Option<String>,
    /// What showed on which nodes the memory was: `move_pages`, or `numa_maps` where that is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified_by: Option<String>,
}

impl BenchConditions {
    /// Reads the conditions of this machine.
    pub fn read(root: &SysRoot, topology: &Topology, permissions: &Permissions) -> Self {
        let processor = Processor::read(root);
        let refused = |permission| permissions.check(permission).err().map(ToString::to_string);
        let (verified_by, unverified) = verified_by(refused(Permission::MovePages), has_nodes(root));
        Self {
            processor: processor.name,
            kernel: machine::kernel_release(root).unwrap_or_default(),
            machine: parts_of(topology),
            virtual_machine: processor.is_virtual,
            governor: governors(root, &topology.allowed),
            huge_pages: Setting::read(root).map(|setting| setting.to_string()),
            load: LoadAverage::read(root).map(|load| load.minute),
            policies_refused: refused(Permission::Policies),
            unverified,
            verified_by,
        }
    }
}

/// Whether this process can read on which nodes its mappings are.
fn has_nodes(root: &SysRoot) -> bool {
    TaskDir::own(root).bytes("numa_maps").is_ok_and(|text| text.windows(2).any(|two| two == b" N"))
}

/// What shows on which nodes memory is; if nothing does, the reason.
fn verified_by(refused: Option<String>, has_nodes: bool) -> (Option<String>, Option<String>) {
    match (refused, has_nodes) {
        (None, _) => (Some(MOVE_PAGES.to_owned()), None),
        (Some(_), true) => (Some(NUMA_MAPS.to_owned()), None),
        (why, false) => (None, why),
    }
}

/// How many parts the machine has.
fn parts_of(topology: &Topology) -> String {
    let parts = [
        (topology.packages.len(), "package"),
        (topology.nodes.len(), "node"),
        (topology.cores.len(), "core"),
        (topology.online.len(), "CPU"),
    ];
    parts.map(|(count, noun)| counted(count, noun)).join(", ")
}

/// The governors of these CPUs, each once.
fn governors(root: &SysRoot, cpus: &CpuSet) -> Option<String> {
    let of = |cpu| root.text(&format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor")).ok();
    let mut names: Vec<String> = cpus.iter().filter_map(of).map(|name| name.trim().to_owned()).collect();
    names.sort();
    names.dedup();
    (!names.is_empty()).then(|| names.join(", "))
}

/// What the machine counts while something is measured.
#[derive(Debug, Clone, Copy, Default)]
pub struct Noise {
    /// Ticks that the hypervisor gave to other guests, and ticks of all kinds.
    steal: u64,
    all: u64,
    /// Runnable threads.
    running: u32,
    /// kHz of the first CPU.
    frequency: Option<u64>,
}

impl Noise {
    /// Now.
    pub fn read(root: &SysRoot, cpus: &CpuSet) -> Self {
        let mut noise = Self::default();
        let stat = root.bytes("/proc/stat").unwrap_or_default();
        for line in stat.split(|&byte| byte == b'\n') {
            if let StatLine::Cpu(cpu, rest) = machine::stat_line(line)
                && cpus.contains(cpu)
            {
                // user, nice, system, idle, iowait, irq, softirq, steal
                let ticks: Vec<u64> = machine::numbers(rest).take(8).collect();
                noise.all += ticks.iter().sum::<u64>();
                noise.steal += ticks.get(7).copied().unwrap_or(0);
            }
        }
        noise.running = LoadAverage::read(root).map_or(0, |load| load.running);
        let cpu = cpus.first().unwrap_or(0);
        let path = format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_cur_freq");
        noise.frequency = root.text(&path).ok().and_then(|text| text.trim().parse().ok());
        noise
    }

    /// Adds to a result the reasons why it should not be believed. `before` was read before the measurement, and this after
    /// it.
    pub fn judge(self, before: Self, cpus: &CpuSet, result: &mut BenchResult) {
        let busy = u64::from(before.running.saturating_sub(1));
        if busy >= cpus.len() as u64 {
            result.warnings.push(format!(
                "other programs had {} on {}; run it again when the machine is idle",
                counted(busy as usize, "runnable thread"),
                counted(cpus.len(), "CPU")
            ));
        }
        let (steal, all) = (self.steal.saturating_sub(before.steal), self.all.saturating_sub(before.all));
        if all > 0 && steal as f64 > MAX_STEAL * all as f64 {
            let share = 100.0 * steal as f64 / all as f64;
            let (steal, per) = (steal, sched::ticks_per_second());
            result.warnings.push(format!(
                "the hypervisor gave {share:.1} % of the time ({:.1} s) to other guests",
                steal as f64 / per.max(1) as f64
            ));
        }
        if let (Some(before), Some(after)) = (before.frequency, self.frequency)
            && (after as f64 / before.max(1) as f64 - 1.0).abs() > MAX_DRIFT
        {
            result.warnings.push(format!(
                "the frequency of the CPU changed from {} to {} MHz; set the governor 'performance'",
                before / 1000,
                after / 1000
            ));
        }
    }
}

/// Warns about values that varied.
pub(crate) fn judge_spread(result: &mut BenchResult) {
    let all = result.all().count();
    let varied: Vec<(&str, f64)> = result
        .all()
        .map(|(name, value)| (name, value.spread()))
        .filter(|(_, spread)| *spread > MAX_SPREAD)
        .collect();
    let Some((name, worst)) = varied.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1)) else { return };
    let warning = format!(
        "{} of {all} values varied by more than {:.0} % from the 10 % to the 90 % quantile (most: {name}, {:.0} %)",
        varied.len(),
        100.0 * MAX_SPREAD,
        100.0 * worst
    );
    result.warnings.push(warning);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::NamedValue;
    use crate::results::quantiles::Quantiles;

    #[test]
    fn mappings_verify_what_single_pages_may_not() {
        let of = |refused: Option<&str>, has_nodes| verified_by(refused.map(str::to_owned), has_nodes);
        assert_eq!(of(None, true), (Some("move_pages".to_owned()), None));
        assert_eq!(of(Some("a filter"), true), (Some("numa_maps".to_owned()), None));
        assert_eq!(of(Some("a filter"), false), (None, Some("a filter".to_owned())));
    }

    #[test]
    fn parts_are_counted() {
        let machine = numakit_topology::synthetic::parse("package:1 node:1 core:2 pu:2").unwrap();
        assert_eq!(parts_of(&machine), "1 package, 1 node, 2 cores, 4 CPUs");
    }

    #[test]
    fn a_busy_machine_and_values_that_vary_are_said() {
        let cpus = CpuSet::range(0, 1);
        let value = |low, high| Quantiles { median: 10.0, low, high, samples: 9 };
        let named = |value| NamedValue { name: "load".to_owned(), unit: "ns".to_owned(), value, best: None };
        let mut calm = BenchResult { values: vec![named(value(9.5, 10.5))], ..Default::default() };
        let before = Noise { steal: 5, all: 100, running: 1, frequency: Some(2_000_000) };
        Noise { steal: 6, all: 1100, ..before }.judge(before, &cpus, &mut calm);
        judge_spread(&mut calm);
        assert_eq!(calm.warnings, [""; 0]);
        let mut noisy = BenchResult {
            values: vec![named(value(9.0, 13.0)), named(value(9.5, 10.5))],
            ..Default::default()
        };
        let before = Noise { running: 4, ..before };
        Noise { steal: 105, all: 1100, running: 2, frequency: Some(1_500_000) }
            .judge(before, &cpus, &mut noisy);
        judge_spread(&mut noisy);
        assert_eq!(noisy.warnings.len(), 4, "{:?}", noisy.warnings);
        assert!(noisy.warnings[0].contains("3 runnable threads on 2 CPUs"), "{:?}", noisy.warnings);
        let mut single = BenchResult::default();
        let alone = CpuSet::range(0, 0);
        Noise { running: 2, ..before }.judge(Noise { running: 2, ..before }, &alone, &mut single);
        assert!(single.warnings[0].contains("had 1 runnable thread on 1 CPU;"), "{:?}", single.warnings);
        assert!(noisy.warnings[1].contains("10.0 %"), "{:?}", noisy.warnings);
        assert!(noisy.warnings[3].starts_with("1 of 2 values") && noisy.warnings[3].contains("load, 40 %"));
    }
}
