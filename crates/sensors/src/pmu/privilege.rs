//! What this process may count (`kernel.perf_event_paranoid`, CAP_PERFMON), and what each error of
//! `perf_event_open` means.

use crate::Scene;
use numakit_model::{Fix, Unavailable};
use numakit_sys::SysRoot;
use numakit_sys::perf::{Counters, Errno, PerfEvent};
use numakit_sys::permissions::{Grant, Permission, Refuser, Runtime, Surroundings};
use numakit_sys::proc::TaskDir;
use std::io;
use std::sync::Arc;

/// The kernel's setting of who may count.
pub const PARANOID: &str = "/proc/sys/kernel/perf_event_paranoid";

const CAP_SYS_ADMIN: u32 = 21;
const CAP_PERFMON: u32 = 38;

/// What is counted, from the least to the most privileged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Need {
    /// The kernel's work for a process of the same user.
    Kernel,
    /// Everything that runs on a CPU, and everything outside of the CPUs.
    WholeCpu,
    /// Tracepoints of the kernel.
    Tracepoint,
}

impl Need {
    /// What events of a PMU need when they count a whole CPU.
    pub fn of(event: &PerfEvent) -> Self {
        if event.pmu == PerfEvent::TRACEPOINT { Self::Tracepoint } else { Self::WholeCpu }
    }

    /// The highest level at which it needs no capability. Tracepoints need -1 only for their
    /// records; counting them needs no more than counting a whole CPU.
    fn level(self) -> i64 {
        match self {
            Self::Kernel => 1,
            Self::WholeCpu | Self::Tracepoint => 0,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Kernel => "counts of the kernel's work",
            Self::WholeCpu => "counts of whole CPUs",
            Self::Tracepoint => "counts of the kernel's tracepoints",
        }
    }
}

/// What this process may count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Privilege {
    paranoid: Option<i64>,
    capable: bool,
    // The capability that this kernel checks; before 5.8 there was no CAP_PERFMON.
    capability: &'static str,
    program: String,
    surroundings: Surroundings,
}

impl Privilege {
    /// Reads it from /proc.
    pub fn read(root: &SysRoot) -> Self {
        let number = |path: &str| root.text(path).ok()?.trim().parse::<i64>().ok();
        let own = TaskDir::own(root);
        let status = own.status().unwrap_or_default();
        let last = number("/proc/sys/kernel/cap_last_cap").unwrap_or(i64::from(CAP_PERFMON));
        Self {
            paranoid: number(PARANOID),
            capable: [CAP_SYS_ADMIN, CAP_PERFMON].into_iter().any(|number| status.is_capable(number)),
            capability: if last >= i64::from(CAP_PERFMON) { "CAP_PERFMON" } else { "CAP_SYS_ADMIN" },
            surroundings: Surroundings::of(root, |name| root.is_host().then(|| std::env::var(name).ok())?),
            program: root.link(&own.path("exe")).unwrap_or_else(|_| "numa".to_owned()),
        }
    }

    /// Whether the kernel's documented rules permit it.
    pub fn permits(&self, need: Need) -> Result<(), Unavailable> {
        let Some(level) = self.paranoid else {
            let seen = format!("{PARANOID}: no such file");
            return Err(Unavailable::new(need.name(), seen, other_kernel()));
        };
        if self.capable || level <= need.level() {
            return Ok(());
        }
        let capability = self.capability;
        Err(Unavailable::new(
            need.name(),
            format!("kernel.perf_event_paranoid is {level} and this process lacks {capability}"),
            self.fix(need, &Refuser::Paranoid(level)),
        ))
    }

    /// What permits it here.
    fn fix(&self, need: Need, refuser: &Refuser) -> Fix {
        if self.surroundings.runtime != Runtime::Host {
            let permission = Permission::Counters;
            return Grant { permission, refuser, surroundings: &self.surroundings }.fix();
        }
        Fix::Commands(vec![
            format!("sudo sysctl kernel.perf_event_paranoid={}", need.level()),
            format!("sudo setcap {}=ep {}", self.capability.to_lowercase(), self.program),
        ])
    }

    /// What helps where the documented rules permit it and the kernel refuses: above 2, which the kernel itself does not know, those of
    /// Debian and Ubuntu ask for CAP_SYS_ADMIN.
    pub fn beyond_the_rules(&self) -> Fix {
        match self.paranoid {
            Some(3..) => Fix::command("sudo sysctl kernel.perf_event_paranoid=2"),
            _ => Fix::CommandLine("run as root".to_owned()),
        }
    }

    /// Why the kernel refused to open an event.
    pub fn explain(&self, event: &PerfEvent, cpu: u32, error: &io::Error) -> Unavailable {
        let need = Need::of(event);
        let Some(errno) = Errno::of(error) else {
            return Unavailable::new(need.name(), error.to_string(), again());
        };
        if matches!(errno, Errno::Denied)
            && let Err(why) = self.permits(need)
        {
            return why;
        }
        let (seen, fix) = match refusal(errno, event, cpu, error) {
            (seen, _) if matches!(errno, Errno::Denied) && self.surroundings.runtime != Runtime::Host => {
                (seen, self.fix(need, &Refuser::Filter))
            }
            other => other,
        };
        Unavailable::new(need.name(), seen, fix)
    }
}

/// What an error of `perf_event_open` means, and the fix.
fn refusal(errno: Errno, event: &PerfEvent, cpu: u32, error: &io::Error) -> (String, Fix) {
    let (what, pmu) = (format!("the event {:#x}", event.config[0]), pmu_name(event.pmu));
    let step = |text: &str| Fix::Step(text.to_owned());
    match errno {
        Errno::Denied => (
            format!(
                "perf_event_open is refused ({error}) although kernel.perf_event_paranoid and the capabilities permit it"
            ),
            step(
                "a container or a security module forbids it: run outside of the container, or start it \
                 with --cap-add PERFMON --security-opt seccomp=unconfined",
            ),
        ),
        Errno::NoSuchPmu => (
            format!("the kernel has no {pmu} with {what}"),
            step("load the kernel's module for it, or run on a machine that has it"),
        ),
        Errno::NoSupport => (
            format!("{pmu} cannot count {what}"),
            Fix::OtherMachine(
                "a machine whose PMU can; virtual machines often have none (QEMU: -cpu host,pmu=on)"
                    .to_owned(),
            ),
        ),
        Errno::Invalid => (
            format!("{pmu} refuses {what} on CPU {cpu} as invalid"),
            step("compare its fields with the folder 'format' of the PMU; a newer kernel may know it"),
        ),
        Errno::NoDevice => (
            format!("CPU {cpu} is offline"),
            Fix::command(format!("echo 1 | sudo tee /sys/devices/system/cpu/cpu{cpu}/online")),
        ),
        Errno::OpenFiles => (
            "this process has reached its limit of open files".to_owned(),
            step(
                "ulimit -n 65536 (as root, or LimitNOFILE=65536 in the systemd unit), or choose fewer \
                 series with -e",
            ),
        ),
        Errno::Busy => (
            format!("{pmu} is used by something else"),
            step("end what uses it (other profilers, the NMI watchdog: sudo sysctl kernel.nmi_watchdog=0)"),
        ),
        Errno::NoCall => ("the kernel has no perf_event_open".to_owned(), other_kernel()),
        Errno::Other => (format!("perf_event_open of {what} of {pmu}: {error}"), again()),
    }
}

fn again() -> Fix {
    Fix::Step("run it again".to_owned())
}

/// The fix for a kernel without performance events.
pub fn other_kernel() -> Fix {
    Fix::BuildOption("CONFIG_PERF_EVENTS".to_owned())
}

/// The fix for cores without a PMU.
pub fn other_core_pmu() -> Fix {
    let machine = "a machine that has one; a virtual machine gets one from its host (QEMU: -cpu host,pmu=on)";
    Fix::OtherMachine(machine.to_owned())
}

fn pmu_name(kind: u32) -> String {
    match kind {
        PerfEvent::SOFTWARE => "software PMU".to_owned(),
        PerfEvent::TRACEPOINT => "PMU of tracepoints".to_owned(),
        PerfEvent::HARDWARE | PerfEvent::CACHE => "PMU of the cores".to_owned(),
        kind => format!("PMU of type {kind}"),
    }
}

/// The counters of a machine, or why it has none.
pub fn counters<'a>(scene: &Scene<'a>) -> Result<&'a Arc<dyn Counters>, Unavailable> {
    scene.root.counters().ok_or_else(|| {
        let seen = format!("{} is a capture, which holds files and no counters", scene.root.name());
        Unavailable::new("performance counters", seen, Fix::OtherMachine("the captured machine".to_owned()))
    })
}

/// Checks that an event can be counted on a CPU: opens and closes it.
pub fn try_event(
    scene: &Scene<'_>,
    privilege: &Privilege,
    cpu: u32,
    event: &PerfEvent,
) -> Result<(), Unavailable> {
    match counters(scene)?.open(cpu, std::slice::from_ref(event)) {
        Ok(_) => Ok(()),
        Err(error) => Err(privilege.explain(event, cpu, &error)),
    }
}

#[cfg(test)]
mod tests;
