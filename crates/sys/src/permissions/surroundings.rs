//! Where a process runs: in a container, as a unit of systemd, or neither.

use crate::SysRoot;
use crate::proc::{TaskDir, cgroup, namespace};
use std::fmt;
use std::sync::OnceLock;

/// What runs a process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Runtime {
    /// Nothing that confines it.
    #[default]
    Host,
    /// A unit of systemd, with its name.
    SystemdUnit(String),
    /// Docker.
    Docker,
    /// Podman.
    Podman,
    /// A pod of Kubernetes.
    Kubernetes,
    /// LXC, LXD or Incus.
    Lxc,
    /// Apptainer or Singularity.
    Apptainer,
    /// systemd-nspawn.
    Nspawn,
    /// A container of another runtime.
    Other,
}

impl Runtime {
    /// Whether it is a container, where the host's settings cannot be changed.
    pub fn is_container(&self) -> bool {
        !matches!(self, Self::Host | Self::SystemdUnit(_))
    }
}

impl fmt::Display for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host => f.write_str("no container"),
            Self::SystemdUnit(unit) => write!(f, "systemd unit {unit}"),
            Self::Docker => f.write_str("Docker container"),
            Self::Podman => f.write_str("Podman container"),
            Self::Kubernetes => f.write_str("Kubernetes pod"),
            Self::Lxc => f.write_str("LXC container"),
            Self::Apptainer => f.write_str("Apptainer container"),
            Self::Nspawn => f.write_str("systemd-nspawn container"),
            Self::Other => f.write_str("container of an unknown runtime"),
        }
    }
}

/// Where a process runs and as whom.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Surroundings {
    /// What runs it.
    pub runtime: Runtime,
    /// Whether it runs as root, at least within its container.
    pub is_root: bool,
    /// A seccomp filter is in force.
    pub has_filter: bool,
    /// The folders of `PATH` have `sudo`.
    pub has_sudo: bool,
    /// The number of the container, with 64 digits, where its mounts tell it.
    pub container: Option<String>,
    /// The path of this program.
    pub program: String,
    /// The name of the user who runs it; `*` if the user has none.
    pub user: String,
}

/// Namespaces that runtimes give a container, and the number that the kernel gives that of the machine.
const NAMESPACES: [(&str, u64); 3] = [("pid", 0xEFFF_FFFC), ("ipc", 0xEFFF_FFFF), ("uts", 0xEFFF_FFFE)];

/// Whether this process has no namespace of its own. A virtual machine that was made of a container
/// image has the files of a container, but none of its namespaces.
fn has_namespaces_of_the_machine(root: &SysRoot) -> bool {
    NAMESPACES.into_iter().all(|(kind, number)| namespace(root, kind) == Some(number))
}

impl Surroundings {
    /// The surroundings of this process, which are read once.
    pub fn own() -> &'static Self {
        static OWN: OnceLock<Surroundings> = OnceLock::new();
        OWN.get_or_init(|| Self::of(&SysRoot::host(), |name| std::env::var(name).ok()))
    }

    /// The surroundings of the process whose files are below this root; `variable` looks up its environment.
    pub fn of(root: &SysRoot, variable: impl Fn(&str) -> Option<String>) -> Self {
        let status = TaskDir::own(root).status().unwrap_or_default();
        let path = variable("PATH").unwrap_or_default();
        Self {
            runtime: runtime(root, &variable),
            is_root: status.user() == Some(0),
            has_filter: status.field("Seccomp") == Some("2"),
            has_sudo: path.split(':').any(|folder| root.exists(&format!("{folder}/sudo"))),
            container: container(root),
            program: root.link(&TaskDir::own(root).path("exe")).unwrap_or_else(|_| "numa".to_owned()),
            user: variable("USER").unwrap_or_else(|| "*".to_owned()),
        }
    }
}

/// Docker, Podman and containerd mount files of the container, such as its `/etc/hostname`, from a folder named after it.
fn container(root: &SysRoot) -> Option<String> {
    let mounts = TaskDir::own(root).text("mountinfo").ok()?;
    let is_number = |name: &str| name.len() == 64 && name.bytes().all(|digit| digit.is_ascii_hexdigit());
    let after = |folder: &str| {
        let parts: Vec<&str> = folder.split('/').collect();
        let mut pairs = parts.windows(2);
        pairs
            .find(|pair| pair[0].ends_with("containers") && is_number(pair[1]))
            .map(|pair| pair[1].to_owned())
    };
    mounts.lines().filter_map(|line| line.split(' ').nth(3)).find_map(after)
}

fn runtime(root: &SysRoot, variable: &impl Fn(&str) -> Option<String>) -> Runtime {
    let is_pod = root.exists("/var/run/secrets/kubernetes.io") || root.exists("/run/secrets/kubernetes.io");
    if is_pod || variable("KUBERNETES_SERVICE_HOST").is_some() {
        return Runtime::Kubernetes;
    }
    if ["APPTAINER_CONTAINER", "SINGULARITY_CONTAINER"].into_iter().any(|name| variable(name).is_some()) {
        return Runtime::Apptainer;
    }
    let files = [("/run/.containerenv", Runtime::Podman), ("/.dockerenv", Runtime::Docker)];
    let has_own = !has_namespaces_of_the_machine(root);
    if let Some((_, runtime)) = files.into_iter().find(|(file, _)| has_own && root.exists(file)) {
        return runtime;
    }
    let first = TaskDir::of(root, 1).environment().unwrap_or_default();
    let named = first.get("container").map(|value| value.into_owned());
    let named = named.or_else(|| root.text("/run/systemd/container").ok()).or_else(|| variable("container"));
    match named.as_deref().map(str::trim) {
        Some("lxc" | "lxc-libvirt" | "incus") => return Runtime::Lxc,
        Some("systemd-nspawn") => return Runtime::Nspawn,
        Some("podman") => return Runtime::Podman,
        Some("docker") => return Runtime::Docker,
        Some("") | None => {}
        Some(_) => return Runtime::Other,
    }
    of_control_group(root, variable)
}

/// The runtime that the path of the control group names. In a control group namespace the path says nothing.
fn of_control_group(root: &SysRoot, variable: &impl Fn(&str) -> Option<String>) -> Runtime {
    let groups = TaskDir::own(root).text("cgroup").unwrap_or_default();
    for group in cgroup::lines(&groups) {
        for part in group.path.split('/') {
            match part {
                _ if part.starts_with("kubepods") => return Runtime::Kubernetes,
                "docker" => return Runtime::Docker,
                _ if part.starts_with("docker-") => return Runtime::Docker,
                _ if part.starts_with("libpod") => return Runtime::Podman,
                _ if part.starts_with("lxc.payload") => return Runtime::Lxc,
                _ => {}
            }
        }
    }
    if namespace(root, "pid").is_some_and(|number| number != NAMESPACES[0].1) {
        return Runtime::Other;
    }
    let unit = cgroup::lines(&groups).find_map(|group| {
        let last = group.path.rsplit('/').next()?;
        last.ends_with(".service").then(|| last.to_owned())
    });
    match (unit, variable("INVOCATION_ID")) {
        (Some(unit), Some(_)) if !unit.starts_with("user@") => Runtime::SystemdUnit(unit),
        _ => Runtime::Host,
    }
}
