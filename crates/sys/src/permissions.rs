//! What the kernel lets this process do. Each system call that may be refused is tried once, without an effect, and every
//! refusal has its reason. No other part of numakit guesses from an errno of these calls.

mod grant;
mod surroundings;

pub use grant::Grant;
pub use surroundings::{Runtime, Surroundings};

use crate::proc::TaskDir;
use crate::proc::status::TaskStatus;
use crate::{SysRoot, check, sched};
use numakit_model::Fix;
use rustix::process::{Resource, getrlimit};
use std::fmt;
use std::io;
use std::sync::OnceLock;

/// Something that a kernel, a container or a limit may refuse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Permission {
    /// Set and read memory policies: `set_mempolicy(2)`, `get_mempolicy(2)`, `mbind(2)`.
    Policies,
    /// Ask for the node of pages and move pages: `move_pages(2)`.
    MovePages,
    /// Move all pages of a process: `migrate_pages(2)`.
    MigratePages,
    /// Bind threads to CPUs: `sched_setaffinity(2)`.
    Affinity,
    /// Open performance events of its own threads: `perf_event_open(2)`.
    Counters,
    /// Keep memory from being swapped: `mlock(2)`.
    LockMemory,
    /// Run a thread with real-time priority: `sched_setscheduler(2)`.
    RealTime,
    /// Stop threads of own children for a moment: `ptrace(2)`.
    Tracing,
}

impl Permission {
    /// All permissions, in the order in which they are shown.
    pub const ALL: [Self; 8] = [
        Self::Affinity,
        Self::Policies,
        Self::MovePages,
        Self::MigratePages,
        Self::Counters,
        Self::Tracing,
        Self::RealTime,
        Self::LockMemory,
    ];

    /// What it is called in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Policies => "memory policies",
            Self::MovePages => "nodes of single pages",
            Self::MigratePages => "moving processes",
            Self::Affinity => "CPU affinity",
            Self::Counters => "performance counters",
            Self::LockMemory => "locked memory",
            Self::RealTime => "real-time priority",
            Self::Tracing => "tracing of children",
        }
    }

    /// The system calls behind it.
    pub fn calls(self) -> &'static [&'static str] {
        match self {
            Self::Policies => &["get_mempolicy", "mbind", "set_mempolicy"],
            Self::MovePages => &["move_pages"],
            Self::MigratePages => &["migrate_pages"],
            Self::Affinity => &["sched_setaffinity"],
            Self::Counters => &["perf_event_open"],
            Self::LockMemory => &["mlock"],
            Self::RealTime => &["sched_setscheduler"],
            Self::Tracing => &["ptrace"],
        }
    }

    /// How numakit works without the permission, in words.
    pub fn substitute(self) -> &'static str {
        match self {
            Self::Policies => "first touch on the thread's CPU",
            Self::MovePages => "/proc/PID/numa_maps, nodes of whole mappings",
            Self::MigratePages | Self::Affinity => "none",
            Self::Counters => "/proc and /sys",
            Self::LockMemory => "memory that may be swapped",
            Self::RealTime => "normal priority",
            Self::Tracing => "performance events, or a library in the program",
        }
    }

    /// What is lost if the permission is refused, in words.
    pub fn loss(self) -> &'static str {
        match self {
            Self::Policies => "--memory bind, prefer, interleave and weighted",
            Self::MovePages => {
                "moving stacks that were touched elsewhere; nodes of pages within a large mapping"
            }
            Self::MigratePages => "moving running processes",
            Self::Affinity => "placing threads",
            Self::Counters => "events of the sensors perf, uncore and task that the kernel counts",
            Self::LockMemory => "nothing unless memory runs short",
            Self::RealTime => "samples in time on a busy machine",
            Self::Tracing => "samples of static programs where performance events are refused",
        }
    }

    /// Tries the call with arguments that have no effect. A call that is refused by a filter fails
    /// before the kernel looks at them.
    fn attempt(self) -> io::Result<()> {
        match self {
            Self::Policies => attempt_policies(),
            // No page is asked for.
            Self::MovePages => {
                let none = std::ptr::null::<u64>();
                // SAFETY: with a count of 0 the kernel reads none of the arrays.
                check(unsafe { libc::syscall(libc::SYS_move_pages, 0, 0, none, none, none, 0) }).map(drop)
            }
            Self::MigratePages => {
                let none = [0u64; 1].as_ptr();
                // SAFETY: both masks have one word; no process has the number -1.
                check(unsafe { libc::syscall(libc::SYS_migrate_pages, -1, 2, none, none) }).map(drop)
            }
            Self::Affinity => sched::affinity().and_then(|mask| sched::set_affinity(&mask)),
            Self::Counters => crate::perf::attempt(),
            Self::LockMemory => attempt_limit(Resource::Memlock, MIN_LOCKED),
            Self::RealTime if sched::may_use_realtime() => Ok(()),
            Self::RealTime => Err(io::Error::from_raw_os_error(libc::EPERM)),
            // SAFETY: no process has the number -1.
            Self::Tracing => check(unsafe { libc::ptrace(libc::PTRACE_SEIZE, -1, 0usize, 0usize) }).map(drop),
        }
    }
}

/// No mode of a policy has this number: the kernel refuses it as invalid.
const NO_MODE: i32 = 99;

fn attempt_policies() -> io::Result<()> {
    let none = std::ptr::null::<u64>();
    // SAFETY: the kernel refuses the mode before it reads the mask.
    let set = unsafe { libc::syscall(libc::SYS_set_mempolicy, NO_MODE, none, 0) };
    if refuses(&check(set)) {
        return check(set).map(drop);
    }
    let flags = libc::c_ulong::MAX;
    // SAFETY: the kernel refuses the flags before it writes anything.
    check(unsafe { libc::syscall(libc::SYS_get_mempolicy, none, none, 0, none, flags) }).map(drop)
}

/// Bytes that the ring of a recorder locks at most.
const MIN_LOCKED: u64 = 1 << 20;

fn attempt_limit(resource: Resource, bytes: u64) -> io::Result<()> {
    match getrlimit(resource).current {
        Some(limit) if limit < bytes => Err(io::Error::from_raw_os_error(libc::EPERM)),
        _ => Ok(()),
    }
}

/// Whether the call itself is refused, and not only its arguments.
fn refuses<T>(result: &io::Result<T>) -> bool {
    let errno = result.as_ref().err().and_then(io::Error::raw_os_error);
    matches!(errno, Some(libc::EPERM | libc::EACCES | libc::ENOSYS))
}

/// What refuses a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refuser {
    /// A seccomp filter.
    Filter,
    /// The kernel is built without the call; the name of the build option.
    Kernel(&'static str),
    /// `kernel.perf_event_paranoid`, with its value.
    Paranoid(i64),
    /// A resource limit. With a capability, the limit does not apply.
    Limit {
        /// The limit, as `ulimit` and documentation call it.
        limit: &'static str,
        /// The capability.
        capability: &'static str,
    },
    /// The control group has no real-time budget, in kernels that give budgets to groups.
    NoBudget,
    /// Nothing that can be seen from here: a security module, or the container's runtime.
    Unknown,
}

impl fmt::Display for Refuser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Filter => f.write_str("a seccomp filter refuses it"),
            Self::Kernel(option) => write!(f, "the kernel is built without {option}"),
            Self::Paranoid(level) => write!(f, "kernel.perf_event_paranoid is {level}"),
            Self::Limit { limit, capability } => write!(f, "{limit} is too low and {capability} is missing"),
            Self::NoBudget => f.write_str("its control group has no real-time budget"),
            Self::Unknown => f.write_str("the kernel or a security module refuses it"),
        }
    }
}

/// Why something is not permitted, and what permits it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// What is refused.
    pub permission: Permission,
    /// What refuses it.
    pub refuser: Refuser,
    /// What permits it, in these surroundings.
    pub fix: Fix,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.permission.name(), self.refuser)
    }
}

/// What this process may do. It is found out once.
#[derive(Debug, Clone, Default)]
pub struct Permissions {
    /// Where it runs.
    pub surroundings: Surroundings,
    /// The refusals; everything else is permitted.
    pub refusals: Vec<Refusal>,
}

impl Permissions {
    /// The permissions of this process. The first call tries everything, real-time priority on a thread of its own.
    pub fn own() -> &'static Self {
        static OWN: OnceLock<Permissions> = OnceLock::new();
        OWN.get_or_init(|| Self::own_of(&Permission::ALL))
    }

    /// The permissions of this process, of which only these are tried; all others count as permitted.
    pub fn own_of(permissions: &[Permission]) -> Self {
        let surroundings = Surroundings::own().clone();
        Self::with(&SysRoot::host(), surroundings, permissions, Permission::attempt)
    }

    fn with(
        root: &SysRoot,
        surroundings: Surroundings,
        permissions: &[Permission],
        attempt: impl Fn(Permission) -> io::Result<()>,
    ) -> Self {
        let status = TaskDir::own(root).status().unwrap_or_default();
        let refusals = permissions.iter().filter_map(|&permission| {
            if permission == Permission::LockMemory && status.is_capable(CAP_IPC_LOCK) {
                return None;
            }
            let result = attempt(permission);
            let error = refuses(&result).then(|| result.err()).flatten()?;
            let refuser = refuser(root, &status, permission, &error);
            let grant = Grant { permission, refuser: &refuser, surroundings: &surroundings };
            let fix = grant.fix();
            Some(Refusal { permission, refuser, fix })
        });
        let refusals = refusals.collect();
        Self { surroundings, refusals }
    }

    /// Whether something is permitted; if not, why.
    pub fn check(&self, permission: Permission) -> Result<(), &Refusal> {
        match self.refusals.iter().find(|refusal| refusal.permission == permission) {
            Some(refusal) => Err(refusal),
            None => Ok(()),
        }
    }
}

/// Whether this process has the capability to lock memory beyond its limits.
pub fn locks_without_limit() -> bool {
    TaskDir::own(&SysRoot::host()).status().is_ok_and(|status| status.is_capable(CAP_IPC_LOCK))
}

const CAP_IPC_LOCK: u32 = 14;
const CAP_SYS_NICE: u32 = 23;

/// The mode of a process that has a filter, in the line `Seccomp:` of its status.
const FILTERED: &str = "2";
/// The first level at which kernels of Debian and Ubuntu refuse users all performance events.
const NO_EVENTS: i64 = 3;

fn refuser(root: &SysRoot, status: &TaskStatus, permission: Permission, error: &io::Error) -> Refuser {
    let option = match permission {
        // With the capability, no limit applies, so the control group must be the reason.
        Permission::RealTime if status.is_capable(CAP_SYS_NICE) => return Refuser::NoBudget,
        Permission::RealTime => {
            return Refuser::Limit { limit: "RLIMIT_RTPRIO", capability: "CAP_SYS_NICE" };
        }
        Permission::LockMemory => {
            return Refuser::Limit { limit: "RLIMIT_MEMLOCK", capability: "CAP_IPC_LOCK" };
        }
        Permission::Counters => "CONFIG_PERF_EVENTS",
        Permission::Affinity => "CONFIG_SMP",
        Permission::Tracing => "CONFIG_PROC_FS",
        Permission::Policies | Permission::MovePages | Permission::MigratePages => "CONFIG_NUMA",
    };
    let paranoid = || root.text("/proc/sys/kernel/perf_event_paranoid").ok()?.trim().parse::<i64>().ok();
    let is_built = match permission {
        Permission::Counters => paranoid().is_some(),
        Permission::Affinity | Permission::Tracing => true,
        _ => root.exists("/sys/devices/system/node"),
    };
    if error.raw_os_error() == Some(libc::ENOSYS) && !is_built {
        return Refuser::Kernel(option);
    }
    match paranoid().filter(|level| permission == Permission::Counters && *level >= NO_EVENTS) {
        Some(level) if error.raw_os_error() == Some(libc::EACCES) => Refuser::Paranoid(level),
        _ if status.field("Seccomp") == Some(FILTERED) => Refuser::Filter,
        _ => Refuser::Unknown,
    }
}

#[cfg(test)]
mod tests;
