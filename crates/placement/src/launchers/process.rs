//! Launchers that start one process. Several processes get a line each.

use super::job::{LauncherJob, Rank, joined, numactl_memory};
use super::openmp::place_list;
use super::{LauncherError, LauncherLines};
use numakit_model::plan::{Memory, Mode};

type Result = std::result::Result<LauncherLines, LauncherError>;

/// `taskset -c 0-3 ./app`.
pub fn taskset(job: &LauncherJob<'_>) -> Result {
    Ok(one_by_one(job, &|rank| format!("taskset -c {} {}", rank.cpus(), job.app), true))
}

/// `numactl -C 0-3 -l ./app`.
pub fn numactl(job: &LauncherJob<'_>) -> Result {
    let command = |rank: &Rank<'_>| {
        format!("numactl -C {} {} {}", rank.cpus(), numactl_memory(rank.memory()).join(" "), job.app)
    };
    Ok(one_by_one(job, &command, false))
}

/// `llama-server --threads 8 --numa distribute` where all nodes have as many threads. Otherwise numactl gives the CPUs, and
/// llama.cpp keeps them.
pub fn llama(job: &LauncherJob<'_>) -> Result {
    let command = |rank: &Rank<'_>| {
        let memory = numactl_memory(rank.memory()).join(" ");
        let threads = rank.steps.len();
        match (covers_nodes_evenly(job, rank), rank.memory().mode) {
            (true, Mode::Local) => format!("{} --threads {threads} --numa distribute", job.app),
            (true, _) => format!("numactl {memory} {} --threads {threads} --numa distribute", job.app),
            (false, _) => {
                format!("numactl -C {} {memory} {} --threads {threads} --numa numactl", rank.cpus(), job.app)
            }
        }
    };
    let mut lines = one_by_one(job, &command, false);
    lines.warnings = vec![match job.ranks.iter().any(|rank| covers_nodes_evenly(job, rank)) {
        true => {
            "llama.cpp binds its threads to the CPUs of the nodes in turn, and not to single cores; '--policy compact' keeps them \
                 near each other".to_owned()
        }
        false => "llama.cpp holds its threads on these CPUs, and they move between them".to_owned(),
    }];
    lines.hints.push(
        "a model that is in the page cache stays where it is: 'numa file show MODEL' says on which nodes"
            .to_owned(),
    );
    Ok(lines)
}

/// Whether a process has as many threads on each node of the machine, all of which have CPUs.
fn covers_nodes_evenly(job: &LauncherJob<'_>, rank: &Rank<'_>) -> bool {
    let on = |node: u32| rank.steps.iter().filter(|step| step.node == node).count();
    let each = job.t.nodes.first().map_or(0, |node| on(node.os_index));
    each > 0 && job.t.nodes.len() > 1 && job.t.nodes.iter().all(|node| on(node.os_index) == each)
}

fn one_by_one(
    job: &LauncherJob<'_>,
    command: &dyn Fn(&Rank<'_>) -> String,
    memory_is_lost: bool,
) -> LauncherLines {
    let text = match job.ranks.as_slice() {
        [only] => vec![command(only)],
        ranks => {
            let mut text: Vec<String> = ranks.iter().map(|rank| format!("{} &", command(rank))).collect();
            text.push("wait".to_owned());
            text
        }
    };
    let mut lines = job.lines(text);
    if !memory_is_lost {
        lines.warnings.clear();
    }
    if job.hybrid() {
        lines.warnings.push(format!(
            "{} holds a process on its CPUs, and its threads move between them; --for openmp binds threads",
            job.launcher
        ));
    }
    lines
}

/// A drop-in for a unit with one process. Several processes become units of their own, by systemd-run.
pub fn systemd(job: &LauncherJob<'_>) -> Result {
    let warnings = policy_warning(job).into_iter().collect();
    if let [only] = job.ranks.as_slice() {
        // Without the empty assignment, systemd adds the list to what the unit has already.
        let mut text = vec!["[Service]".to_owned(), "CPUAffinity=".to_owned()];
        text.push(format!("CPUAffinity={}", only.cpus()));
        text.extend(policy(only.memory()));
        text.extend(environment(only).into_iter().map(|variable| format!("Environment=\"{variable}\"")));
        let hint = "for the unit app.service: put these lines into \
                    /etc/systemd/system/app.service.d/cpus.conf, then systemctl daemon-reload";
        return Ok(LauncherLines { text: joined(&text), hints: vec![hint.to_owned()], warnings });
    }
    let line = |rank: &Rank<'_>| {
        let mut words = vec![format!("systemd-run --same-dir --unit=app-{}", rank.number)];
        words.push(format!("-p CPUAffinity={}", rank.cpus()));
        words.extend(policy(rank.memory()).into_iter().map(|setting| format!("-p {setting}")));
        words.extend(environment(rank).into_iter().map(|variable| format!("-E '{variable}'")));
        words.push(job.app.clone());
        words.join(" ")
    };
    let text: Vec<String> = job.ranks.iter().map(line).collect();
    Ok(LauncherLines { text: joined(&text), hints: Vec::new(), warnings })
}

/// Whether systemd has the policy.
fn expressible(memory: &Memory) -> bool {
    match memory.mode {
        Mode::Local | Mode::Bind | Mode::Interleave => true,
        Mode::Prefer => memory.nodes.len() == 1,
        Mode::Weighted => false,
    }
}

fn policy_warning(job: &LauncherJob<'_>) -> Option<String> {
    job.ranks.iter().any(|rank| !expressible(rank.memory())).then(|| job.memory_warning()).flatten()
}

fn policy(memory: &Memory) -> Vec<String> {
    if !expressible(memory) {
        return Vec::new();
    }
    let name = match memory.mode {
        Mode::Prefer => "preferred".to_owned(),
        mode => mode.to_string(),
    };
    let mut settings = vec![format!("NUMAPolicy={name}")];
    if memory.mode != Mode::Local {
        settings.push(format!("NUMAMask={}", memory.nodes));
    }
    settings
}

/// OpenMP's variables, where the process has several threads.
pub fn environment(rank: &Rank<'_>) -> Vec<String> {
    if rank.steps.len() == 1 {
        return Vec::new();
    }
    vec![
        format!("OMP_NUM_THREADS={}", rank.steps.len()),
        format!("OMP_PLACES={}", place_list(rank)),
        "OMP_PROC_BIND=close".to_owned(),
    ]
}
