//! What permits a refused call, in the words of what runs this process: the option of a container
//! runtime, the lines of a pod, a directive of a unit, or a command of the administrator.

use super::{Permission, Refuser, Runtime, Surroundings};
use numakit_model::Fix;

/// A refused permission, and where.
#[derive(Debug, Clone, Copy)]
pub struct Grant<'a> {
    /// What is refused.
    pub permission: Permission,
    /// What refuses it.
    pub refuser: &'a Refuser,
    /// Where this process runs.
    pub surroundings: &'a Surroundings,
}

impl Runtime {
    /// The option that gives a process this capability, named without `CAP_`, in the words of the runtime.
    pub fn with_capability(&self, name: &str) -> String {
        match self {
            Self::Host => format!("setcap cap_{}=ep on the program", name.to_lowercase()),
            Self::SystemdUnit(unit) => {
                format!("systemctl edit {unit}, and add under [Service]: AmbientCapabilities=CAP_{name}")
            }
            Self::Docker => format!("docker run --cap-add {name} ..."),
            Self::Podman => format!("podman run --cap-add {name} ..."),
            Self::Kubernetes => {
                format!("in the pod's container: securityContext: {{capabilities: {{add: [\"{name}\"]}}}}")
            }
            Self::Apptainer => format!("apptainer exec --add-caps CAP_{name} ..."),
            Self::Nspawn => format!("systemd-nspawn --capability=CAP_{name} ..."),
            Self::Lxc => format!("remove {} from lxc.cap.drop", name.to_lowercase()),
            Self::Other => format!(
                "start the container with CAP_{name} (--cap-add {name}; of a pod: capabilities.add: [\"{name}\"])"
            ),
        }
    }
}

/// What a container must be started with in addition.
enum Need {
    /// A capability, without `CAP_`.
    Capability(&'static str),
    /// No seccomp filter, or one that has the calls.
    Unfiltered,
}

impl Grant<'_> {
    /// What permits it.
    pub fn fix(&self) -> Fix {
        if let Refuser::Kernel(option) = self.refuser {
            return Fix::BuildOption((*option).to_owned());
        }
        if *self.refuser == Refuser::NoBudget {
            let fix = "write microseconds such as 100000 to cpu.rt_runtime_us of the control group and of those \
                       above it (docker run --cpu-rt-runtime); without it numakit runs with normal priority";
            return Fix::Step(fix.to_owned());
        }
        match &self.surroundings.runtime {
            Runtime::Host => self.on_the_host(),
            Runtime::SystemdUnit(unit) => self.in_a_unit(unit),
            container => Fix::Step(self.in_a_container(container)),
        }
    }

    fn on_the_host(&self) -> Fix {
        let as_root = |command: String| match self.surroundings {
            Surroundings { is_root: true, .. } => Fix::command(command),
            Surroundings { has_sudo: true, .. } => Fix::command(format!("sudo {command}")),
            _ => Fix::Step(format!("as root: {command}")),
        };
        match (self.refuser, self.permission) {
            (Refuser::Paranoid(_), _) => as_root("sysctl kernel.perf_event_paranoid=2".to_owned()),
            (Refuser::Limit { .. }, Permission::RealTime) => {
                let Surroundings { program, user, .. } = self.surroundings;
                as_root(format!(
                    "setcap cap_sys_nice=ep {program}; or allow 'ulimit -r 1' with the line \
                     '{user} - rtprio 1' in /etc/security/limits.conf"
                ))
            }
            (Refuser::Limit { .. }, _) => Fix::Step("raise the limit: ulimit -l unlimited".to_owned()),
            _ => Fix::Step(format!("permit {} in the filter or security module", self.calls())),
        }
    }

    fn in_a_unit(&self, unit: &str) -> Fix {
        let line = match self.permission {
            Permission::RealTime => "LimitRTPRIO=1".to_owned(),
            Permission::LockMemory => "LimitMEMLOCK=infinity".to_owned(),
            _ if matches!(self.refuser, Refuser::Paranoid(_)) => {
                return Fix::Step(self.surroundings.runtime.with_capability("PERFMON"));
            }
            _ => format!("SystemCallFilter={}", self.permission.calls().join(" ")),
        };
        Fix::Step(format!("systemctl edit {unit}, and add under [Service]: {line}"))
    }

    /// What the container needs. The default profiles of Docker and containerd permit policies with `CAP_SYS_NICE`, and
    /// counters with `CAP_PERFMON`; for all other calls, no capability helps.
    fn need(&self) -> Need {
        match self.permission {
            Permission::Policies | Permission::RealTime => Need::Capability("SYS_NICE"),
            Permission::Counters => Need::Capability("PERFMON"),
            Permission::LockMemory => Need::Capability("IPC_LOCK"),
            Permission::Tracing => Need::Capability("SYS_PTRACE"),
            Permission::MovePages | Permission::MigratePages | Permission::Affinity => Need::Unfiltered,
        }
    }

    fn in_a_container(&self, runtime: &Runtime) -> String {
        match (runtime, self.need()) {
            // Podman's profile permits policies without a capability, and counters only with this one.
            (Runtime::Podman, Need::Capability("PERFMON")) => runtime.with_capability("SYS_ADMIN"),
            (Runtime::Lxc, _) => format!("permit {} in the profile of lxc.seccomp.profile", self.calls()),
            (Runtime::Nspawn, _) => {
                format!("systemd-nspawn --system-call-filter='{}' ...", self.permission.calls().join(" "))
            }
            (_, Need::Capability(name)) => runtime.with_capability(name),
            (Runtime::Docker, Need::Unfiltered) => format!(
                "docker run --security-opt seccomp=PROFILE.json ..., with a profile that permits {}, or seccomp=unconfined",
                self.calls()
            ),
            (Runtime::Podman, Need::Unfiltered) => format!(
                "podman run --security-opt seccomp=PROFILE.json ..., with a profile that permits {}, or seccomp=unconfined",
                self.calls()
            ),
            (Runtime::Kubernetes, Need::Unfiltered) => format!(
                "in the pod's container: securityContext: {{seccompProfile: {{type: Localhost, localhostProfile: FILE}}}}, \
                 with a profile that permits {}, or type: Unconfined",
                self.calls()
            ),
            (Runtime::Apptainer, Need::Unfiltered) => {
                format!("leave '--security seccomp:FILE' out, or permit {} in it", self.calls())
            }
            (_, Need::Unfiltered) => {
                format!("start the container with a seccomp profile that permits {}", self.calls())
            }
        }
    }

    fn calls(&self) -> String {
        self.permission.calls().join(", ")
    }
}
