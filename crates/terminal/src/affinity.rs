//! `numa top --affinity`: where a process may run and allocate memory, and what that means.

use crate::table::page_table;
use numakit_model::numbers::ABSENT;
use numakit_model::{CpuSet, Topology};
use numakit_processes::{Affinity, Policies, ThreadGroup};
use serde_json::{Value, json};

/// Number of threads of a group that are listed.
const MAX_NAMED: usize = 8;

/// A page about a process.
pub fn page(affinity: &Affinity, topology: &Topology) -> String {
    let count: usize = affinity.groups.iter().map(|g| g.threads.len()).sum();
    let threads = if count == 1 { "1 thread".to_owned() } else { format!("{count} threads") };
    let mut text = format!("{} {}, {threads}\n", affinity.pid, affinity.command);
    let rows: Vec<Vec<String>> = affinity.groups.iter().map(|group| row(group, topology)).collect();
    let headings = ["THREADS", "CPUS", "MASK", "THEIR NODES", "MEMORY FROM", "<MEANING"];
    text.push_str(&page_table(&headings, &rows, "  "));
    for line in policies(affinity.pid, &affinity.policies) {
        text.push_str(&format!("  {line}\n"));
    }
    text
}

/// The same as JSON.
pub fn json(affinity: &Affinity, topology: &Topology) -> Value {
    let group = |group: &ThreadGroup| {
        json!({
            "threads": group.threads,
            "cpus": group.cpus.to_string(),
            "mask": mask(&group.cpus),
            "nodes": nodes_of(&group.cpus, topology).to_string(),
            "memory": group.memory.as_ref().map(CpuSet::to_string),
            "meaning": meaning(group, topology),
        })
    };
    let (policies, why) = match &affinity.policies {
        Policies::Of(found) => (json!(found), None),
        Policies::TooLarge => (Value::Null, Some("large")),
        Policies::Denied(_) => (Value::Null, Some("denied")),
        Policies::Unknown => (Value::Null, Some("unknown")),
    };
    json!({
        "pid": affinity.pid,
        "command": affinity.command,
        "groups": affinity.groups.iter().map(group).collect::<Vec<_>>(),
        "policies": policies,
        "why": why,
    })
}

fn row(group: &ThreadGroup, topology: &Topology) -> Vec<String> {
    let named: Vec<String> = group.threads.iter().take(MAX_NAMED).map(u32::to_string).collect();
    let mut threads = named.join(",");
    if group.threads.len() > MAX_NAMED {
        threads.push_str(&format!(" and {} more", group.threads.len() - MAX_NAMED));
    }
    let set = |set: &CpuSet| if set.is_empty() { ABSENT.to_owned() } else { set.to_string() };
    vec![
        threads,
        set(&group.cpus),
        mask(&group.cpus),
        set(&nodes_of(&group.cpus, topology)),
        group.memory.as_ref().map_or(ABSENT.to_owned(), set),
        meaning(group, topology),
    ]
}

/// As `taskset` writes it: hexadecimal, highest CPU first.
fn mask(cpus: &CpuSet) -> String {
    let digits = cpus.last().map_or(1, |last| last / 4 + 1);
    let digit = |at: u32| {
        let bits = (0..4).filter(|bit| cpus.contains(at * 4 + bit)).map(|bit| 1 << bit).sum::<u32>();
        char::from_digit(bits, 16).unwrap_or('0')
    };
    (0..digits).rev().map(digit).collect()
}

fn nodes_of(cpus: &CpuSet, topology: &Topology) -> CpuSet {
    topology.nodes.iter().filter(|node| node.cpus.intersects(cpus)).map(|node| node.os_index).collect()
}

/// What the masks mean, in words.
fn meaning(group: &ThreadGroup, topology: &Topology) -> String {
    let nodes = nodes_of(&group.cpus, topology);
    let all = topology.nodes.iter().filter(|n| n.cpus.intersects(&topology.online)).count();
    let place = match (group.cpus.len(), nodes.len()) {
        _ if topology.online.is_subset(&group.cpus) => "not bound".to_owned(),
        (1, _) => "bound to one CPU".to_owned(),
        (_, 1) if all > 1 => format!("stays on node {nodes}"),
        (_, 0 | 1) => format!("stays on {} CPUs", group.cpus.len()),
        _ => format!("may move between nodes {nodes}, away from its memory"),
    };
    let present: CpuSet = topology.nodes.iter().map(|node| node.os_index).collect();
    // Without nodes in the topology, limits on nodes mean nothing.
    let limited = group.memory.as_ref().filter(|m| !present.is_empty() && !present.is_subset(m));
    match limited {
        Some(memory) if !nodes.is_empty() && !memory.intersects(&nodes) => {
            format!("{place}; its memory may only come from nodes {memory}: all of it is remote")
        }
        Some(memory) => format!("{place}; its memory may only come from nodes {memory}"),
        None => place,
    }
}

fn policies(pid: u32, policies: &Policies) -> Vec<String> {
    const LEAD: &str = "Memory policy";
    match policies {
        Policies::Of(found) if found.len() == 1 => {
            let all = found.keys().map(|policy| format!("{LEAD} {policy}: {}.", explained(policy)));
            all.collect()
        }
        Policies::Of(found) => {
            let mut by_count: Vec<(&String, &u64)> = found.iter().collect();
            by_count.sort_by_key(|(policy, count)| (std::cmp::Reverse(**count), (*policy).clone()));
            let line = |(policy, count): (&String, &u64)| {
                let mappings = if *count == 1 { "mapping" } else { "mappings" };
                format!("{LEAD} {policy} of {count} {mappings}: {}.", explained(policy))
            };
            by_count.into_iter().map(line).collect()
        }
        Policies::TooLarge => vec![
            format!("{LEAD} not read: that would stop the mappings of a process of this size for a while;"),
            format!("'head -n 1 /proc/{pid}/numa_maps' shows it anyway."),
        ],
        Policies::Denied(fix) => vec![format!("{LEAD} may not be read; {fix}.")],
        Policies::Unknown => {
            vec![format!("{LEAD} unknown; boot a kernel that is built with CONFIG_NUMA.")]
        }
    }
}

fn explained(policy: &str) -> String {
    let (mode, nodes) = policy.rsplit_once(':').unwrap_or((policy, ""));
    // Flags of a mode, such as `=static` or `=relative`.
    match mode.split('=').next().unwrap_or(mode) {
        "default" | "local" => "each page on the node of the thread that touches it first".to_owned(),
        "prefer" => format!("on node {nodes} as long as it has free memory, then on others"),
        "prefer (many)" => format!("on nodes {nodes} as long as they have free memory, then on others"),
        "bind" => format!("on nodes {nodes} only"),
        "interleave" => format!("page by page in turn on nodes {nodes}"),
        "weighted interleave" | "weighted" => format!("in turn on nodes {nodes}, by their weights"),
        _ => "as the kernel names it".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use numakit_model::topology::Node;

    /// Four nodes of four CPUs.
    fn machine() -> Topology {
        let node =
            |id: u32| Node { os_index: id, cpus: CpuSet::range(4 * id, 4 * id + 3), ..Node::default() };
        Topology { nodes: (0..4).map(node).collect(), online: CpuSet::range(0, 15), ..Topology::default() }
    }

    fn group(cpus: &str, memory: &str) -> ThreadGroup {
        ThreadGroup { threads: vec![7], cpus: cpus.parse().unwrap(), memory: memory.parse().ok() }
    }

    #[test]
    fn masks_are_those_of_taskset() {
        for (cpus, text) in [("0", "1"), ("0-7", "ff"), ("4", "10"), ("1,66", "40000000000000002"), ("", "0")]
        {
            assert_eq!(mask(&cpus.parse().unwrap()), text, "{cpus}");
        }
    }

    #[test]
    fn masks_are_explained_in_words() {
        for (cpus, memory, says) in [
            ("0-15", "0-3", "not bound"),
            ("0-63", "0-3", "not bound"),
            ("5", "0-3", "bound to one CPU"),
            ("4-6", "0-3", "stays on node 1"),
            ("2-5", "0-3", "may move between nodes 0-1, away from its memory"),
            ("4-7", "1", "stays on node 1; its memory may only come from nodes 1"),
            ("4-7", "2-3", "stays on node 1; its memory may only come from nodes 2-3: all of it is remote"),
        ] {
            assert_eq!(meaning(&group(cpus, memory), &machine()), says, "{cpus} {memory}");
        }
    }

    #[test]
    fn a_page_names_threads_and_policies() {
        let many = ThreadGroup { threads: (7..30).collect(), ..group("4-7", "0-3") };
        let found =
            [("default".to_owned(), 30), ("bind:1".to_owned(), 1), ("prefer (many):0-1".to_owned(), 2)];
        let affinity = Affinity {
            pid: 7,
            command: "solver".into(),
            groups: vec![many, group("0-15", "0-3")],
            policies: Policies::Of(found.into()),
        };
        let text = page(&affinity, &machine());
        assert!(text.starts_with("7 solver, 24 threads\n"), "{text}");
        for part in [
            "7,8,9,10,11,12,13,14 and 15 more",
            "  f0  ",
            "stays on node 1",
            "not bound",
            "Memory policy default of 30 mappings: each page on the node of the thread that touches it first.",
            "Memory policy bind:1 of 1 mapping: on nodes 1 only.",
            "Memory policy prefer (many):0-1 of 2 mappings: on nodes 0-1 as long",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        let json = json(&affinity, &machine());
        assert_eq!((&json["groups"][0]["mask"], &json["groups"][1]["cpus"]), (&json!("f0"), &json!("0-15")));
        assert_eq!(json["policies"]["bind:1"], 1);
        let large = Affinity { policies: Policies::TooLarge, ..affinity };
        assert!(page(&large, &machine()).contains("numa_maps"));
        assert_eq!(super::json(&large, &machine())["why"], "large");
    }
}
