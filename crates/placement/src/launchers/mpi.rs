//! MPI launchers that take the kernel's numbers of CPUs.

use super::job::{LauncherJob, hexadecimal, list};
use super::{LauncherError, LauncherLines};
use numakit_model::plan::Mode;

type Result = std::result::Result<LauncherLines, LauncherError>;

/// `-bind-to user:0+1,2+3`: a rank's CPUs are joined by `+`.
pub fn mpich(job: &LauncherJob<'_>) -> Result {
    let sets: Vec<String> = job.ranks.iter().map(|rank| list(rank.cpus().iter()).replace(',', "+")).collect();
    let command =
        format!("mpiexec.hydra -n {} -bind-to user:{} {}", job.ranks.len(), sets.join(","), job.app);
    Ok(with_variables(job, Vec::new(), command))
}

/// A list of CPUs, or for several threads a mask for each rank.
pub fn intel(job: &LauncherJob<'_>) -> Result {
    let pins = if job.hybrid() {
        let masks: Vec<String> = job.ranks.iter().map(|rank| hexadecimal(&rank.cpus())).collect();
        vec![
            "unset I_MPI_PIN_PROCESSOR_LIST".to_owned(),
            format!("export I_MPI_PIN=1 I_MPI_PIN_DOMAIN='[{}]'", masks.join(",")),
        ]
    } else {
        let cpus = list(job.plan.steps.iter().map(|step| step.cpu));
        vec![
            "unset I_MPI_PIN_DOMAIN".to_owned(),
            format!("export I_MPI_PIN=1 I_MPI_PIN_PROCESSOR_LIST={cpus}"),
        ]
    };
    Ok(with_variables(job, pins, format!("mpirun -n {} {}", job.ranks.len(), job.app)))
}

/// `--cpu-bind` with a CPU or a mask for each task, and `--mem-bind`.
pub fn slurm(job: &LauncherJob<'_>) -> Result {
    let binding = if job.hybrid() {
        let masks: Vec<String> = job.ranks.iter().map(|rank| hexadecimal(&rank.cpus())).collect();
        format!("mask_cpu:{}", masks.join(","))
    } else {
        format!("map_cpu:{}", list(job.plan.steps.iter().map(|step| step.cpu)))
    };
    let masks = |word: &str| {
        let nodes: Vec<String> = job.ranks.iter().map(|rank| hexadecimal(&rank.memory().nodes)).collect();
        Some(format!("--mem-bind={word}mask_mem:{}", nodes.join(",")))
    };
    let modes: Vec<Mode> = job.ranks.iter().map(|rank| rank.memory().mode).collect();
    let memory = match modes.first() {
        Some(mode) if modes.iter().any(|other| other != mode) => None,
        Some(Mode::Local) => Some("--mem-bind=local".to_owned()),
        Some(Mode::Bind) => masks(""),
        Some(Mode::Prefer) => masks("prefer,"),
        _ => None,
    };
    let has_memory_option = memory.is_some();
    let memory = memory.map(|memory| format!("{memory} ")).unwrap_or_default();
    let command = format!("srun -N 1 -n {} --cpu-bind={binding} {memory}{}", job.ranks.len(), job.app);
    let mut lines = with_variables(job, Vec::new(), command);
    if has_memory_option {
        lines.warnings.retain(|warning| Some(warning) != job.memory_warning().as_ref());
    }
    lines.hints.push(
        "Slurm heeds these CPUs only in a job that has the whole node: salloc -N 1 --exclusive".to_owned(),
    );
    Ok(lines)
}

/// OpenMP's variables, the launcher's variables, and the launcher's command. Each rank has only the CPUs of its threads, so
/// each thread gets a PU.
fn with_variables(job: &LauncherJob<'_>, own: Vec<String>, command: String) -> LauncherLines {
    let mut text = Vec::new();
    if job.hybrid() {
        text.push("unset GOMP_CPU_AFFINITY KMP_AFFINITY".to_owned());
    }
    text.extend(job.variables("threads").iter().map(|(name, value)| format!("export {name}={value}")));
    text.extend(own);
    text.push(command);
    let mut lines = job.lines(text);
    lines.warnings.extend(job.set_warnings());
    lines
}
