//! Containers.

use super::job::{LauncherJob, Rank, joined};
use super::process::environment;
use super::{LauncherError, LauncherLines};
use numakit_model::CpuSet;
use numakit_model::plan::Mode;

type Result = std::result::Result<LauncherLines, LauncherError>;

/// A cpuset for each container. Its list of memory nodes is a hard limit, so it is only set for the policy `bind`.
pub fn docker(job: &LauncherJob<'_>) -> Result {
    let several = job.ranks.len() > 1;
    let line = |rank: &Rank<'_>| {
        let mut words = vec![if several { "docker run --rm -d" } else { "docker run --rm" }.to_owned()];
        words.push(format!("--cpuset-cpus={}", rank.cpus()));
        if rank.memory().mode == Mode::Bind {
            words.push(format!("--cpuset-mems={}", rank.memory().nodes));
        }
        words.extend(environment(rank).into_iter().map(|variable| format!("-e '{variable}'")));
        words.push(format!("IMAGE {}", job.app));
        words.join(" ")
    };
    let mut lines = job.lines(job.ranks.iter().map(line).collect());
    lines.hints.push("put the name of the image in place of IMAGE".to_owned());
    if job.ranks.iter().all(|rank| matches!(rank.memory().mode, Mode::Local | Mode::Bind)) {
        lines.warnings.clear();
    } else {
        lines.hints.push("numactl in a container needs: docker run --cap-add SYS_NICE".to_owned());
    }
    Ok(lines)
}

/// A pod of class Guaranteed with whole CPUs, which the kubelet selects.
pub fn kubernetes(job: &LauncherJob<'_>) -> Result {
    let most = job.ranks.iter().max_by_key(|rank| job.pus(rank).len());
    let Some(largest) = most else { return Err(LauncherError::Empty) };
    let one_node = job.ranks.iter().all(|rank| rank.nodes().len() == 1);
    let mut text = kubelet(job, one_node);
    let count = job.ranks.len();
    let pod = pod(job, largest);
    if count == 1 {
        text.extend(["apiVersion: v1", "kind: Pod", "metadata:", "  name: app", "spec:"].map(str::to_owned));
        text.extend(pod.iter().map(|line| format!("  {line}")));
    } else {
        text.extend(["apiVersion: batch/v1", "kind: Job", "metadata:", "  name: app"].map(str::to_owned));
        text.extend(["spec:", "  completionMode: Indexed"].map(str::to_owned));
        text.push(format!("  completions: {count}"));
        text.push(format!("  parallelism: {count}"));
        text.extend(["  template:", "    spec:", "      restartPolicy: Never"].map(str::to_owned));
        text.extend(pod.iter().map(|line| format!("      {line}")));
    }
    let mut warnings = vec![format!(
        "the kubelet chooses the CPUs itself: a pod asks for {}, and not for those of the plan",
        if one_node { "whole CPUs on one node" } else { "whole CPUs" }
    )];
    warnings.extend(tie(job, largest));
    if job.ranks.iter().any(|rank| !matches!(rank.memory().mode, Mode::Local | Mode::Bind)) {
        warnings.extend(job.memory_warning());
    }
    if job.threads().is_none() {
        warnings.push(
            "all pods of a Job are alike: each gets as many CPUs as the process with the most threads"
                .to_owned(),
        );
    }
    Ok(LauncherLines { text: joined(&text), hints: vec!["kubectl apply -f FILE".to_owned()], warnings })
}

/// What the kubelet does where several nodes, or several sets of as many nodes, have the CPUs of a pod.
fn tie(job: &LauncherJob<'_>, largest: &Rank<'_>) -> Option<String> {
    let wanted = job.pus(largest).len();
    let mut sizes: Vec<(usize, u32)> =
        job.t.nodes.iter().map(|node| (node.cpus.and(&job.t.allowed).len(), node.os_index)).collect();
    sizes.sort_unstable_by(|one, other| other.cmp(one));
    let reached = |count: &usize| sizes[..*count].iter().map(|(cpus, _)| cpus).sum::<usize>() >= wanted;
    let count = (1..=sizes.len()).find(reached)?;
    // Others suit as well if one of them can take the place of the smallest that is needed.
    let needed: usize = sizes[..count - 1].iter().map(|(cpus, _)| cpus).sum();
    let alike: CpuSet = sizes[count - 1..]
        .iter()
        .filter(|(cpus, _)| needed + cpus >= wanted)
        .map(|(_, node)| *node)
        .chain(sizes[..count - 1].iter().map(|(_, node)| *node))
        .collect();
    if alike.len() <= count {
        return None;
    }
    let plan = job.plan.nodes();
    let shown = format!("the plan's {} {plan}", if plan.len() == 1 { "node is" } else { "nodes are" });
    Some(match count {
        1 => format!(
            "nodes {alike} each have the CPUs of a pod: of those that are free the kubelet takes the one with the lowest number, \
             unless the pod requests a device of another one; {shown}"
        ),
        _ => format!(
            "a pod needs {count} of nodes {alike}: of those that are free the kubelet takes the lowest numbers, near or far, \
             unless its topologyManagerPolicyOptions say prefer-closest-numa-nodes: \"true\"; {shown}"
        ),
    })
}

/// The necessary settings of the node's kubelet, as comments.
fn kubelet(job: &LauncherJob<'_>, one_node: bool) -> Vec<String> {
    let mut text = vec![
        "# The kubelet chooses the CPUs: a pod cannot name them. It gives whole CPUs that no other"
            .to_owned(),
        "# container has if its KubeletConfiguration on the node says:".to_owned(),
        "#   cpuManagerPolicy: static".to_owned(),
    ];
    if job.t.cores.iter().any(|core| core.cpus.len() > 1) {
        text.push("#   cpuManagerPolicyOptions: {full-pcpus-only: \"true\"}".to_owned());
    }
    let policy = if one_node { "single-numa-node" } else { "restricted" };
    text.push(format!("#   topologyManagerPolicy: {policy}"));
    if job.ranks.iter().any(|rank| rank.memory().mode == Mode::Bind) {
        text.push("#   memoryManagerPolicy: Static".to_owned());
    }
    text
}

/// The lines of a pod's `spec`. Requests equal limits: that makes it Guaranteed.
fn pod(job: &LauncherJob<'_>, rank: &Rank<'_>) -> Vec<String> {
    let cpus = job.pus(rank).len();
    let mut text: Vec<String> = ["containers:", "- name: app", "  image: IMAGE"].map(str::to_owned).into();
    // Words of JSON are words of YAML; the kubelet would replace $(NAME).
    let word = |word: &String| serde_json::Value::from(word.replace("$(", "$$(")).to_string();
    let command: Vec<String> = job.command.iter().map(word).collect();
    text.push(format!("  command: [{}]", command.join(", ")));
    let places = if job.crowded() { "threads" } else { "cores" };
    let variables = job.variables(places);
    if !variables.is_empty() {
        text.push("  env:".to_owned());
        text.extend(
            variables.iter().map(|(name, value)| format!("  - {{name: {name}, value: \"{value}\"}}")),
        );
    }
    text.push("  resources: # put in the memory that the program needs, twice the same".to_owned());
    text.push(format!("    requests: {{cpu: \"{cpus}\", memory: 1Gi}}"));
    text.push(format!("    limits: {{cpu: \"{cpus}\", memory: 1Gi}}"));
    text
}
