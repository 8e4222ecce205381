//! Rank files of Open MPI, and a script where a rank file cannot say it.

use super::job::{LauncherJob, Rank, joined};
use super::openmp::place_list;
use super::{LauncherError, LauncherLines};
use numakit_model::CpuSet;

type Result = std::result::Result<LauncherLines, LauncherError>;

/// Longer lists of slots overflow a buffer in 4, and are cut in 5.
const LONGEST: usize = 47;

/// Lines `rank 0=HOST slot=0:0,0:2`, where a core is given as its package and its number there.
pub fn one(job: &LauncherJob<'_>) -> Result {
    let slots = |rank: &Rank<'_>| {
        let mut slots: Vec<String> = Vec::new();
        for step in rank.steps {
            let place = job.place(step.cpu);
            let slot = format!("{}:{}", place.package, place.core_of_package);
            if !slots.contains(&slot) {
                slots.push(slot);
            }
        }
        slots.join(",")
    };
    let text = job.ranks.iter().map(|rank| line(job, rank, &slots(rank))).collect::<Vec<_>>();
    let mut lines = job.lines(text);
    let count = job.ranks.len();
    let (_, exports, warnings) = environment(job, false);
    lines.hints.push(started(&format!("mpirun -np {count} -rf rankfile{exports} {}", job.app)));
    lines.warnings.extend(warnings);
    if job.shared_cores() {
        lines.warnings.push(
            "Open MPI 1 binds to whole cores: processes of the plan that share a core share all its PUs"
                .to_owned(),
        );
    }
    Ok(lines)
}

/// `rank 0=HOST slot=0,2`, for `-rf`.
pub fn four(job: &LauncherJob<'_>) -> Result {
    let threads = if job.shared_cores() { " --use-hwthread-cpus" } else { "" };
    Ok(logical(job, &format!("-rf rankfile{threads}")))
}

/// The rank file for `--map-by rankfile`, which Open MPI 5 reads.
pub fn five(job: &LauncherJob<'_>) -> Result {
    let threads = if job.shared_cores() { ":hwtcpus" } else { "" };
    Ok(logical(job, &format!("--map-by rankfile:file=rankfile{threads}")))
}

/// A rank file in logical numbers: of cores, or of PUs where processes share cores.
fn logical(job: &LauncherJob<'_>, option: &str) -> LauncherLines {
    let pus = job.shared_cores();
    let slots = |rank: &Rank<'_>| -> CpuSet {
        match pus {
            true => rank.steps.iter().map(|step| job.place(step.cpu).pu).collect(),
            false => job.cores(rank),
        }
    };
    let all: Vec<String> = job.ranks.iter().map(|rank| slots(rank).to_string()).collect();
    if all.iter().any(|slots| slots.len() > LONGEST) {
        return script(job);
    }
    let text = job.ranks.iter().zip(&all).map(|(rank, slots)| line(job, rank, slots)).collect();
    let mut lines = job.lines(text);
    let count = job.ranks.len();
    let (_, exports, warnings) = environment(job, pus);
    lines.hints.push(started(&format!(
        "mpirun -np {count} --host {}:{count} {option}{exports} {}",
        job.host, job.app
    )));
    lines.warnings.extend(warnings);
    lines
}

fn line(job: &LauncherJob<'_>, rank: &Rank<'_>, slots: &str) -> String {
    format!("rank {}={} slot={slots}", rank.number, job.host)
}

fn started(command: &str) -> String {
    format!("with these lines in the file 'rankfile': {command}")
}

/// What a thread gets, the options that send the variables to all ranks, and warnings.
/// A rank bound to whole cores has all their PUs, so its threads take cores, unless the plan
/// has several on one.
fn environment(job: &LauncherJob<'_>, exact: bool) -> (&'static str, String, Vec<String>) {
    let places = if exact || job.crowded() { "threads" } else { "cores" };
    let variables = job.variables(places);
    let exports = variables.iter().map(|(name, value)| format!(" -x {name}={value}")).collect();
    (places, exports, job.set_warnings())
}

/// A script between mpirun and the program, which binds its rank: it can express every plan.
fn script(job: &LauncherJob<'_>) -> LauncherLines {
    let mut text = vec!["#!/bin/sh".to_owned(), "case $OMPI_COMM_WORLD_RANK in".to_owned()];
    for rank in &job.ranks {
        let cpus = rank.cpus();
        let threads = rank.steps.len();
        text.push(format!(
            "{}) export OMP_NUM_THREADS={threads} OMP_PROC_BIND=close OMP_PLACES='{}'; \
             exec taskset -c {cpus} \"$@\" ;;",
            rank.number,
            place_list(rank)
        ));
    }
    text.push("esac".to_owned());
    let count = job.ranks.len();
    LauncherLines {
        text: joined(&text),
        hints: vec![format!(
            "with these lines in the file 'place.sh': mpirun -np {count} --host {}:{count} --bind-to none \
             sh ./place.sh {}",
            job.host, job.app
        )],
        warnings: [format!(
            "Open MPI takes at most {LONGEST} characters of slots, and this plan needs more: these lines are \
             a script, not a rank file"
        )]
        .into_iter()
        .chain(job.memory_warning())
        .collect(),
    }
}
