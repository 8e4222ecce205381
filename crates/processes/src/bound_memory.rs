//! Programs whose memory is bound to some nodes while their threads run on others too.

use numakit_model::{CpuSet, Topology};
use numakit_sys::SysRoot;
use numakit_sys::proc::{TaskDir, numa_maps, processes};

/// What binds the memory of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryBound {
    /// The memory policy of its main thread.
    Policy,
    /// Its cpuset.
    Cpuset,
}

/// A program that gets memory of some nodes only, and has threads on others that have memory too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoundElsewhere {
    /// The process.
    pub pid: u32,
    /// Its name.
    pub name: String,
    /// The nodes that its memory comes from.
    pub memory: CpuSet,
    /// What says so.
    pub by: MemoryBound,
    /// The nodes of the CPUs that its threads last ran on.
    pub ran_on: CpuSet,
    /// Those of them whose memory it does not get.
    pub away: CpuSet,
}

/// Programs with threads on nodes whose memory they may not have. Where all that they may have is memory without CPUs, that is on
/// purpose. Those whose policy this user may not read are judged by their cpusets.
pub fn bound_elsewhere(root: &SysRoot, topology: &Topology) -> Vec<BoundElsewhere> {
    if topology.nodes.len() < 2 {
        return Vec::new();
    }
    let all = processes(root).unwrap_or_default();
    all.into_iter().filter_map(|pid| elsewhere(root, topology, pid)).collect()
}

fn elsewhere(root: &SysRoot, topology: &Topology, pid: u32) -> Option<BoundElsewhere> {
    let process = TaskDir::of(root, pid);
    let ran_on = ran_on(topology, &process);
    let allowed = process.status().ok()?.allowed_nodes()?;
    let (memory, by) = match policy(&process) {
        Some(policy) if !policy.and(&allowed).is_empty() => (policy.and(&allowed), MemoryBound::Policy),
        _ => (allowed, MemoryBound::Cpuset),
    };
    let away: CpuSet = ran_on.minus(&memory).iter().filter(|node| has_memory(topology, *node)).collect();
    let has_cpus = |node: u32| topology.node(node).is_some_and(|node| !node.cpus.is_empty());
    if away.is_empty() || !memory.iter().any(has_cpus) {
        return None;
    }
    let name = process.stat().ok()?.name();
    Some(BoundElsewhere { pid, name, memory, by, ran_on, away })
}

fn has_memory(topology: &Topology, node: u32) -> bool {
    topology.node(node).is_some_and(|node| node.memory_kb != Some(0))
}

/// The nodes of the CPUs that its threads last ran on. A thread that was bound to other CPUs since then has left its CPU.
fn ran_on(topology: &Topology, process: &TaskDir<'_>) -> CpuSet {
    let of_thread = |tid: u32| {
        let thread = process.thread(tid);
        let cpu = thread.stat().ok()?.cpu?;
        let allowed = thread.status().ok()?.allowed_cpus()?;
        allowed.contains(cpu).then(|| topology.node_of_cpu(cpu)).flatten()
    };
    process.live_threads().into_iter().filter_map(of_thread).map(|node| node.os_index).collect()
}

/// The nodes that the policy of its main thread binds memory to: that of its first mapping, which is of the program and has none of
/// its own. `None` if the policy binds nothing, or may not be read.
fn policy(process: &TaskDir<'_>) -> Option<CpuSet> {
    let line = numa_maps::first_line(process)?;
    let is_bind = line.split(|byte| *byte == b' ').nth(1)?.starts_with(b"bind");
    numa_maps::bound_to(&line)?.1.filter(|_| is_bind)
}

#[cfg(test)]
mod tests {
    use super::*;
    use numakit_model::topology::Node;
    use numakit_sys::root::FileTree;

    /// Three nodes of a package, and memory without CPUs.
    fn machine() -> Topology {
        let node = |os_index, cpus: &str| Node { os_index, cpus: cpus.parse().unwrap(), ..Node::default() };
        let nodes = vec![node(0, "0-3"), node(1, "4-7"), node(2, "8-11"), node(3, "")];
        Topology { nodes, ..Topology::default() }
    }

    /// A process with a thread on each of these CPUs, which may all be used.
    fn process(tree: &mut FileTree, pid: u32, cpus: &[u32], nodes: &str, policy: &str) {
        for (tid, cpu) in (pid..).zip(cpus) {
            let stat = format!("{tid} (server) S {}{cpu} 0 0\n", "0 ".repeat(35));
            let status = format!("Cpus_allowed_list:\t0-11\nMems_allowed_list:\t{nodes}\n");
            for folder in [format!("/proc/{pid}"), format!("/proc/{pid}/task/{tid}")] {
                tree.file(&format!("{folder}/stat"), stat.clone());
                tree.file(&format!("{folder}/status"), status.clone());
            }
        }
        tree.file(
            &format!("/proc/{pid}/numa_maps"),
            format!("55d0c000 {policy} file=/bin/server N0=1\n55d1 bind:1\n"),
        );
    }

    #[test]
    fn threads_on_nodes_whose_memory_is_not_theirs_are_found() {
        let mut tree = FileTree::new();
        process(&mut tree, 100, &[0, 5, 9], "0-3", "bind:0");
        process(&mut tree, 200, &[0, 5], "0", "default");
        process(&mut tree, 300, &[9], "0-3", "bind=static:0-1");
        // Memory of all their nodes, of their own node, without a policy, spread, and of a node without CPUs.
        process(&mut tree, 400, &[0, 5, 9], "0-3", "bind:0-2");
        process(&mut tree, 500, &[0, 1], "0-3", "bind:0");
        process(&mut tree, 600, &[0, 5, 9], "0-3", "default");
        process(&mut tree, 700, &[0, 5, 9], "0-3", "interleave:0");
        process(&mut tree, 800, &[0, 5], "0-3", "bind:3");
        let found = bound_elsewhere(&SysRoot::of_tree(tree), &machine());
        let rows: Vec<_> =
            found.iter().map(|f| (f.pid, f.memory.to_string(), f.by, f.away.to_string())).collect();
        let row = |pid, memory: &str, by, away: &str| (pid, memory.to_owned(), by, away.to_owned());
        assert_eq!(
            rows,
            [
                row(100, "0", MemoryBound::Policy, "1-2"),
                row(200, "0", MemoryBound::Cpuset, "1"),
                row(300, "0-1", MemoryBound::Policy, "2")
            ]
        );
        assert_eq!((found[0].name.as_str(), found[0].ran_on.to_string()), ("server", "0-2".to_owned()));
    }

    #[test]
    fn a_thread_that_was_bound_elsewhere_since_does_not_count() {
        let mut tree = FileTree::new();
        process(&mut tree, 100, &[0, 5], "0-3", "bind:0");
        tree.file("/proc/100/task/101/status", "Cpus_allowed_list:\t0-3\nMems_allowed_list:\t0-3\n");
        assert_eq!(bound_elsewhere(&SysRoot::of_tree(tree), &machine()), []);
    }
}
