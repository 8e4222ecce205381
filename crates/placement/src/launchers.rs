//! The configuration of launchers for a plan.

mod container;
mod job;
mod mpi;
mod openmp;
mod openmpi;
mod process;

use crate::request::CorePolicy;
use job::LauncherJob;
pub use job::sequence;
use numakit_model::plan::Plan;
use numakit_model::{Topology, suggest};
use thiserror::Error;

/// A launcher or runtime, and how its configuration is written.
#[derive(Debug, Clone, Copy)]
pub struct Launcher {
    /// As in `--for NAME`.
    pub name: &'static str,
    /// What is configured.
    pub help: &'static str,
    emit: fn(&LauncherJob<'_>) -> Result<LauncherLines, LauncherError>,
}

/// All launchers; help texts list them from here.
pub static LAUNCHERS: &[Launcher] = &[
    Launcher { name: "gomp", help: "OpenMP of GCC, by GOMP_CPU_AFFINITY", emit: openmp::gomp },
    Launcher { name: "openmp", help: "any OpenMP, by OMP_PLACES", emit: openmp::places },
    Launcher { name: "kmp", help: "OpenMP of LLVM and Intel, by KMP_AFFINITY", emit: openmp::kmp },
    Launcher { name: "nvhpc", help: "OpenMP of NVIDIA HPC and PGI, by MP_BLIST", emit: openmp::nvhpc },
    Launcher { name: "cray", help: "OpenMP of Cray, by OMP_PLACES, with its report", emit: openmp::cray },
    Launcher { name: "openmpi4", help: "rank file of Open MPI 3 and 4", emit: openmpi::four },
    Launcher { name: "openmpi5", help: "rank file of Open MPI 5", emit: openmpi::five },
    Launcher { name: "openmpi1", help: "rank file of Open MPI 1 and 2", emit: openmpi::one },
    Launcher { name: "mpich", help: "mpiexec of MPICH (Hydra)", emit: mpi::mpich },
    Launcher { name: "intelmpi", help: "mpirun of Intel MPI", emit: mpi::intel },
    Launcher { name: "slurm", help: "srun of Slurm", emit: mpi::slurm },
    Launcher { name: "taskset", help: "taskset of util-linux", emit: process::taskset },
    Launcher { name: "numactl", help: "numactl, with the memory policy", emit: process::numactl },
    Launcher { name: "llama", help: "llama.cpp, by --threads and --numa", emit: process::llama },
    Launcher {
        name: "systemd",
        help: "a drop-in for a unit, or systemd-run for several processes",
        emit: process::systemd,
    },
    Launcher { name: "docker", help: "docker run, also for podman", emit: container::docker },
    Launcher { name: "kubernetes", help: "a pod for the static CPU manager", emit: container::kubernetes },
];

impl Launcher {
    /// Where cores are chosen if the user does not say it. A language model reads all of its memory for each token: it gets the
    /// memory controllers of all nodes.
    pub fn usual_policy(&self) -> CorePolicy {
        if self.name == "llama" { CorePolicy::Balanced } else { CorePolicy::default() }
    }
}

/// Options of the user.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LauncherOptions {
    /// The machine's name in rank files; if it is `None`, the word `HOST` is written.
    pub host: Option<String>,
    /// The program with its arguments; if it is empty, `./app` is written.
    pub command: Vec<String>,
}

/// The configuration of a launcher.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LauncherLines {
    /// The lines, and nothing else: they may go into a file.
    pub text: String,
    /// Instructions, unless the lines are self-explanatory.
    pub hints: Vec<String>,
    /// Parts of the plan that the launcher cannot do.
    pub warnings: Vec<String>,
}

/// Why a launcher's lines cannot be written.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LauncherError {
    /// No launcher has this name.
    #[error("'{name}' is no launcher; {fix}")]
    Unknown {
        /// The requested name.
        name: String,
        /// The nearest name of a launcher, or all names.
        fix: String,
    },
    /// A plan without threads.
    #[error("the plan has no thread; request at least one core")]
    Empty,
    /// A CPU that the launcher cannot name.
    #[error("CPU {cpu} of the plan is not among the allowed CPUs {allowed}; make the plan on this machine")]
    NotAllowed {
        /// The CPU.
        cpu: u32,
        /// The allowed CPUs.
        allowed: String,
    },
    /// A host name that would break the launcher's line.
    #[error("'{0}' is no name of a host; give letters, digits, dots and dashes")]
    Host(String),
}

/// The program if none is given.
const APP: &str = "./app";

/// The lines of a launcher.
pub fn lines(
    name: &str,
    t: &Topology,
    plan: &Plan,
    options: &LauncherOptions,
) -> Result<String, LauncherError> {
    emit(name, t, plan, options).map(|lines| lines.text)
}

/// The lines of a launcher, with instructions and warnings.
pub fn emit(
    name: &str,
    t: &Topology,
    plan: &Plan,
    options: &LauncherOptions,
) -> Result<LauncherLines, LauncherError> {
    let launcher = find(name)?;
    if plan.steps.is_empty() {
        return Err(LauncherError::Empty);
    }
    if let Some(step) = plan.steps.iter().find(|step| !t.allowed.contains(step.cpu)) {
        return Err(LauncherError::NotAllowed { cpu: step.cpu, allowed: t.allowed.to_string() });
    }
    let host = options.host.as_deref().unwrap_or("HOST");
    if !is_host(host) {
        return Err(LauncherError::Host(host.to_owned()));
    }
    let stand_in = [APP.to_owned()];
    let command = if options.command.is_empty() { &stand_in } else { options.command.as_slice() };
    (launcher.emit)(&LauncherJob::new(launcher.name, t, plan, host, command))
}

/// Whether a word can be the name of a host in a launcher's line.
pub fn is_host(word: &str) -> bool {
    !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || ".-_+".contains(c))
}

/// The name by which launchers on a machine of this name know it.
pub fn host_of(name: &str) -> &str {
    if is_host(name) { name } else { "localhost" }
}

/// The launcher of this name.
pub fn find(name: &str) -> Result<&'static Launcher, LauncherError> {
    LAUNCHERS.iter().find(|launcher| launcher.name == name).ok_or_else(|| {
        let names = || LAUNCHERS.iter().map(|launcher| launcher.name);
        let longer: Vec<&str> = names().filter(|known| !name.is_empty() && known.starts_with(name)).collect();
        let near = suggest::nearest(name, names(), 1);
        let fix = match (longer.as_slice(), near.first()) {
            ([_, ..], _) => format!("there are {}", longer.join(", ")),
            (_, Some(near)) => format!("did you mean '{near}'?"),
            _ => format!("launchers are {}", names().collect::<Vec<_>>().join(", ")),
        };
        LauncherError::Unknown { name: name.to_owned(), fix }
    })
}
