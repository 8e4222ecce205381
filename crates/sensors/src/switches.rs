//! Counters that the kernel can disable. While they are disabled they do not change, which must not
//! look like a measured zero.

use numakit_model::{Fix, Unavailable};
use numakit_sys::SysRoot;

/// Counters of page allocations by node, under both of their names.
pub const ALLOCATION: &[&str] = &[
    "numa_hit",
    "numa_miss",
    "numa_foreign",
    "numa_interleave",
    "numa_local",
    "numa_other",
    "interleave_hit",
    "local_node",
    "other_node",
];

/// Counters of automatic NUMA balancing.
pub const BALANCING: &[&str] = &[
    "numa_pte_updates",
    "numa_huge_pte_updates",
    "numa_hint_faults",
    "numa_hint_faults_local",
    "numa_pages_migrated",
    "numa_task_migrated",
    "numa_task_swapped",
];

/// The kernel setting that enables counters of allocations by node.
pub const NUMA_STAT: &str = "/proc/sys/vm/numa_stat";
/// The kernel setting that enables NUMA balancing.
pub const NUMA_BALANCING: &str = "/proc/sys/kernel/numa_balancing";

/// The command that enables it.
pub const COUNT_ALLOCATIONS: &str = "sysctl vm.numa_stat=1";
/// The command that enables it.
pub const BALANCE: &str = "sysctl kernel.numa_balancing=1";

/// The state of these settings.
#[derive(Debug, Clone, Default)]
pub struct KernelSwitches {
    allocation_off: Option<Unavailable>,
    balancing_off: Option<Unavailable>,
    balancing_known: bool,
}

impl KernelSwitches {
    /// Reads them. A kernel without such a setting always counts, if it has the counters.
    pub fn read(root: &SysRoot) -> Self {
        let off = |path: &str, missing: &str, command: &str| {
            let value = root.text(path).ok()?;
            let why = || Unavailable::new(missing, format!("{path} is 0"), Fix::command(command));
            (value.trim() == "0").then(why)
        };
        Self {
            allocation_off: off(NUMA_STAT, "counters of allocations by node", COUNT_ALLOCATIONS),
            balancing_off: off(NUMA_BALANCING, "counters of automatic NUMA balancing", BALANCE),
            balancing_known: root.exists(NUMA_BALANCING),
        }
    }

    /// Why a counter that the kernel shows is disabled.
    pub fn why_off(&self, name: &str) -> Option<&Unavailable> {
        if ALLOCATION.contains(&name) {
            self.allocation_off.as_ref()
        } else if BALANCING.contains(&name) {
            self.balancing_off.as_ref()
        } else {
            None
        }
    }

    /// Why a file does not show the counters of allocations by node.
    pub fn allocation_not_shown(&self, path: &str) -> Unavailable {
        Unavailable::new(
            "counters of allocations by node",
            format!("{path} has no numa_hit"),
            Fix::BuildOption("CONFIG_NUMA".to_owned()),
        )
    }

    /// Why a file does not show the counters of automatic NUMA balancing.
    pub fn balancing_not_shown(&self, path: &str) -> Unavailable {
        let seen = match self.balancing_known {
            true => format!("{path} has no numa_hint_faults"),
            false => format!("{path} has no numa_hint_faults, and there is no {NUMA_BALANCING}"),
        };
        Unavailable::new(
            "counters of automatic NUMA balancing",
            seen,
            Fix::BuildOption("CONFIG_NUMA_BALANCING".to_owned()),
        )
    }
}
