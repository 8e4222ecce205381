//! The machine itself: what its firmware, its memory modules, its settings or its hypervisor make slow, each with what it costs.

use super::CheckupItem;
use numakit_model::topology::{Node, Package};
use numakit_model::{CpuSet, Fix, Topology, thresholds};
use numakit_processes::{BoundElsewhere, MemoryBound, bound_elsewhere, cards_elsewhere};
use numakit_sys::SysRoot;

/// Maximum of findings of one kind.
const SHOWN: usize = 8;

/// Looks at packages, nodes, memory, huge pages, programs with cards, and programs with memory of other nodes alone.
pub fn check(root: &SysRoot, topology: &Topology) -> Vec<CheckupItem> {
    let mut found = notes(topology);
    found.extend(crossing(topology));
    found.extend(shared_node(root, topology));
    found.extend(without_memory(topology));
    found.extend(full(topology));
    found.extend(huge_pages(topology));
    found.extend(cards(root, topology));
    found.extend(bound(root, topology));
    if found.is_empty() {
        found.push(CheckupItem::ok("machine", "packages, nodes, memory and huge pages fit together"));
    }
    found
}

/// What was odd about the kernel's files.
fn notes(topology: &Topology) -> Vec<CheckupItem> {
    let note = |note: &String| CheckupItem {
        state: super::FindingState::Note,
        about: "machine as the kernel shows it".to_owned(),
        seen: note.clone(),
        fix: None,
    };
    topology.notes.iter().map(note).collect()
}

fn step(fix: impl Into<String>) -> Fix {
    Fix::Step(fix.into())
}

/// `node 0` or `nodes 0-1`.
fn named(nodes: &CpuSet) -> String {
    format!("node{} {nodes}", if nodes.len() == 1 { "" } else { "s" })
}

/// Nodes and packages that have some CPUs in common, and each has others too.
fn crossing(topology: &Topology) -> Option<CheckupItem> {
    let cross = |node: &Node, package: &Package| {
        node.cpus.intersects(&package.cpus)
            && !node.cpus.is_subset(&package.cpus)
            && !package.cpus.is_subset(&node.cpus)
    };
    let crossed = |node: &&Node| topology.packages.iter().any(|package| cross(node, package));
    let nodes: CpuSet = topology.nodes.iter().filter(crossed).map(|node| node.os_index).collect();
    let word = if nodes.len() == 1 { "crosses" } else { "cross" };
    (!nodes.is_empty()).then(|| {
        CheckupItem::note(
            "packages and nodes",
            format!(
                "{} {word} packages: CPUs of one node are in several packages, of which others are on other nodes, so threads \
                 of one node may be in different sockets. What that costs is not known: the kernel states one distance for \
                 all CPUs of a node",
                named(&nodes)
            ),
            step(
                "correct the description of the machine: in a virtual machine give each virtual node the CPUs of one \
                 package, otherwise ask for new firmware",
            ),
        )
    })
}

/// Several packages with memory of their own that are one node.
fn shared_node(root: &SysRoot, topology: &Topology) -> Option<CheckupItem> {
    // Packages without a last-level cache of their own are clusters of a small chip, or share one bus to memory.
    let has_cache =
        |package: &&Package| topology.caches_of_level(3).any(|cache| cache.cpus.is_subset(&package.cpus));
    let packages_of = |node: &Node| {
        topology
            .packages
            .iter()
            .filter(|package| package.cpus.is_subset(&node.cpus))
            .filter(has_cache)
            .count()
    };
    let (node, count) =
        topology.nodes.iter().map(|node| (node, packages_of(node))).find(|(_, count)| *count > 1)?;
    let cpuinfo = root.text("/proc/cpuinfo").unwrap_or_default();
    let is_guest = cpuinfo.split_ascii_whitespace().any(|word| word == "hypervisor");
    let options = root.text("/proc/cmdline").unwrap_or_default();
    let is_off = options.split_ascii_whitespace().any(|word| word == "numa=off");
    let fix = match (is_off, is_guest) {
        (true, _) => "boot without the kernel parameter numa=off",
        (_, true) => {
            "if the host has several nodes, give the virtual machine a virtual node for each package (QEMU: -numa node,cpus=...; \
             libvirt: <numa>)"
        }
        _ => {
            "in the firmware setup (BIOS) disable 'Node Interleaving' or enable 'NUMA' (AMD: NUMA nodes per socket not NPS0)"
        }
    };
    let seen = match is_guest {
        // Many hypervisors show each virtual CPU as a package.
        true => "whether they are different sockets of the host, and what memory of another one costs, cannot be seen here"
            .to_owned(),
        false => format!(
            "nothing can be placed near its memory; if pages are spread over all sockets, {} of {count} accesses to memory \
             go to another one. What such an access costs is not known, since one node has no distances",
            count - 1
        ),
    };
    let seen = format!("{count} packages are one node ({}): {seen}", node.os_index);
    Some(CheckupItem::note("packages and nodes", seen, step(fix)))
}

/// Nodes with CPUs and without memory.
fn without_memory(topology: &Topology) -> Option<CheckupItem> {
    let bare: Vec<&Node> =
        topology.nodes.iter().filter(|n| n.memory_kb == Some(0) && !n.cpus.is_empty()).collect();
    let costs = bare.iter().filter_map(|node| {
        let instead = nearest(topology, node.os_index, |other| other.memory_kb != Some(0))?;
        Some(format!(
            "memory of threads on node {} is on other nodes, at best node {instead}: {}",
            node.os_index,
            cost(topology, node.os_index, instead)
        ))
    });
    let costs: Vec<String> = costs.take(SHOWN).collect();
    let nodes: CpuSet = bare.iter().map(|node| node.os_index).collect();
    let have = if nodes.len() == 1 { "has" } else { "have" };
    (!costs.is_empty()).then(|| {
        CheckupItem::note(
            "memory of nodes",
            format!("{} {have} CPUs and no memory; {}", named(&nodes), costs.join("; ")),
            step(
                "put memory modules (DIMMs) into the slots of these nodes, or give virtual nodes memory; until then 'numa run' uses nodes with memory first",
            ),
        )
    })
}

/// Nodes with little free memory while others have some.
fn full(topology: &Topology) -> Vec<CheckupItem> {
    let is_full = |node: &Node| {
        node.free_kb.zip(node.memory_kb).is_some_and(|(free, all)| all > 0 && thresholds::is_full(free, all))
    };
    let of_node = |node: &Node| {
        let roomy = |other: &Node| other.memory_kb != Some(0) && other.free_kb.is_some() && !is_full(other);
        let instead = nearest(topology, node.os_index, roomy)?;
        let (free, all) = node.free_kb.zip(node.memory_kb)?;
        Some(CheckupItem::note(
            "memory of nodes",
            format!(
                "node {} has {} MiB of {} free: what programs on it allocate beyond comes from other nodes, at best \
                 node {instead}: {}",
                node.os_index,
                free >> 10,
                if all >= 10 << 20 { format!("{} GiB", all >> 20) } else { format!("{} MiB", all >> 10) },
                cost(topology, node.os_index, instead)
            ),
            step(
                "'numa top --once' shows whose memory it is, and 'numa file show PATH' the nodes of cached files; 'numa run' uses other \
                 nodes first",
            ),
        ))
    };
    topology.nodes.iter().filter(|node| is_full(node)).filter_map(of_node).take(SHOWN).collect()
}

/// Pools of huge pages that leave out nodes on which programs can run.
fn huge_pages(topology: &Topology) -> Vec<CheckupItem> {
    let mut sizes: Vec<u64> =
        topology.nodes.iter().flat_map(|n| &n.huge_pages).map(|pool| pool.size_kb).collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes.into_iter().filter_map(|size_kb| pools_of(topology, size_kb)).collect()
}

fn pools_of(topology: &Topology, size_kb: u64) -> Option<CheckupItem> {
    let count =
        |node: &Node| node.huge_pages.iter().find(|pool| pool.size_kb == size_kb).map(|pool| pool.count);
    let ids = |wanted: &dyn Fn(&Node) -> bool| -> CpuSet {
        topology.nodes.iter().filter(|node| wanted(node)).map(|node| node.os_index).collect()
    };
    let with = ids(&|node| count(node).is_some_and(|count| count > 0));
    let without = ids(&|node| count(node) == Some(0) && !node.cpus.is_empty() && node.memory_kb != Some(0));
    let (first, total) = (without.first()?, topology.nodes.iter().filter_map(count).sum::<u64>());
    let instead = nearest(topology, first, |other| with.contains(other.os_index))?;
    let each = (total / (with.len() + without.len()) as u64).max(1);
    let commands: Vec<String> = without
        .iter()
        .take(SHOWN)
        .map(|node| {
            format!("echo {each} > /sys/devices/system/node/node{node}/hugepages/hugepages-{size_kb}kB/nr_hugepages")
        })
        .collect();
    let name =
        if size_kb >= 1 << 20 { format!("{} GiB", size_kb >> 20) } else { format!("{} MiB", size_kb >> 10) };
    Some(CheckupItem::note(
        "reserved huge pages",
        format!(
            "all {total} pages of {name} are on {} and none on {}: a program on node {first} gets \
             remote ones, at best of node {instead}, or none if its memory is bound; {}",
            named(&with),
            named(&without),
            cost(topology, first, instead)
        ),
        step(format!("reserve them where programs run: {}", commands.join("; "))),
    ))
}

/// Programs that run on other nodes than their cards.
fn cards(root: &SysRoot, topology: &Topology) -> Vec<CheckupItem> {
    let all = cards_elsewhere(root, topology);
    let item = |found: &numakit_processes::CardElsewhere| {
        let (pid, node) = (found.pid, found.node);
        let from = found.ran_on.first().unwrap_or(node);
        let mask = if found.may_move { "" } else { ", and its CPU mask leaves that node out" };
        CheckupItem::note(
            "cards of programs",
            format!(
                "{} ({pid}) has {} of node {node} open and ran on {}{mask}: what it exchanges with the card crosses \
                 nodes. What that costs is not known; for a load of the CPUs of node {from} from node {node}, {}",
                found.name,
                found.card,
                named(&found.ran_on),
                cost(topology, from, node)
            ),
            step(format!(
                "start it with 'numa run --nodes {node}', or move it: numa run --nodes {node} --pid {pid}"
            )),
        )
    };
    all.iter().take(SHOWN).map(item).collect()
}

/// Programs with threads on nodes whose memory they do not get.
fn bound(root: &SysRoot, topology: &Topology) -> Vec<CheckupItem> {
    let item = |found: &BoundElsewhere| {
        let BoundElsewhere { pid, name, memory, by, ran_on, away } = found;
        let (from, to) = (away.first().unwrap_or(0), memory.first().unwrap_or(0));
        let (why, start) = match by {
            MemoryBound::Policy => {
                ("a memory policy binds it", format!("'numactl -m {ran_on}', or with 'numa run'"))
            }
            MemoryBound::Cpuset => ("its cpuset has no others", format!("cpuset.mems of {ran_on}")),
        };
        CheckupItem::note(
            "memory of programs",
            format!(
                "{name} ({pid}) gets memory of {} only ({why}), and ran on {}: all that its threads on {} use is remote. For a load \
                 of the CPUs of node {from} from node {to}, {}",
                named(memory),
                named(ran_on),
                named(away),
                cost(topology, from, to)
            ),
            step(format!(
                "start it with memory of the nodes of its threads: {start}; or keep its threads beside its memory: numa run \
                 --nodes {memory} --pid {pid}"
            )),
        )
    };
    bound_elsewhere(root, topology).iter().take(SHOWN).map(item).collect()
}

/// The nearest other node of a kind.
fn nearest(topology: &Topology, node: u32, is_wanted: impl Fn(&Node) -> bool) -> Option<u32> {
    let others = topology.nodes.iter().filter(|other| other.os_index != node && is_wanted(other));
    let distance = |other: u32| topology.distances.as_ref().and_then(|d| d.between(node, other));
    others.map(|other| other.os_index).min_by_key(|other| (distance(*other).unwrap_or(u32::MAX), *other))
}

/// What memory of another node costs the CPUs of a node: as it was measured, else as the firmware states it.
fn cost(topology: &Topology, from: u32, to: u32) -> String {
    let latency = topology.measured.as_ref().map(|measured| &measured.latency);
    if let Some(ns) = latency.and_then(|latency| latency.ns(from, to)) {
        // A node without memory has no loads of its own.
        let [local, theirs] = [from, to].map(|node| latency.and_then(|latency| latency.ns(node, node)));
        return match (local, theirs) {
            (Some(local), _) => format!("a load takes {ns:.0} ns instead of {local:.0} ns (measured)"),
            (None, Some(theirs)) => {
                format!("a load takes {ns:.0} ns, and {theirs:.0} ns from the CPUs of node {to} (measured)")
            }
            (None, None) => format!("a load takes {ns:.0} ns (measured)"),
        };
    }
    let stated = topology.distances.as_ref().and_then(|d| d.between(from, to).zip(d.between(from, from)));
    match stated {
        Some((far, near)) => format!(
            "the firmware states a distance of {far} instead of {near}; how long a load takes is not known before 'numa \
             bench all' measures it"
        ),
        None => "what that costs is not known before 'numa bench all' measures it".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::root;
    use numakit_model::MeasuredMemory;
    use numakit_model::measured::LatencyMatrix;
    use numakit_model::topology::HugePagePool;

    /// Two packages of two nodes.
    fn four() -> Topology {
        numakit_topology::synthetic::parse("package:2 node:2(mem=96G) l3:1 core:4 dist=10/12/32").unwrap()
    }

    fn found(files: &[(&str, &str)], topology: &Topology) -> Vec<(String, String, String)> {
        let fix = |item: &CheckupItem| item.fix.as_ref().map_or_else(String::new, ToString::to_string);
        let items = check(&root(files), topology);
        items.into_iter().map(|item| (fix(&item), item.about, item.seen)).map(|(f, a, s)| (a, s, f)).collect()
    }

    /// The only finding, with these words.
    fn one(files: &[(&str, &str)], topology: &Topology, about: &str, seen: &[&str], fix: &str) {
        let all = found(files, topology);
        let [item] = all.as_slice() else { panic!("{all:?}") };
        assert_eq!(item.0, about);
        assert!(seen.iter().all(|text| item.1.contains(text)) && item.2.contains(fix), "{item:?}");
    }

    #[test]
    fn a_machine_without_oddities_is_ok() {
        one(&[], &four(), "machine", &["fit together"], "");
        let single = numakit_topology::synthetic::parse("package:1 node:1 l3:2 core:4").unwrap();
        one(&[], &single, "machine", &["fit together"], "");
    }

    #[test]
    fn nodes_without_memory_cost_what_was_measured_or_stated() {
        let mut topology = four();
        topology.nodes[3].memory_kb = Some(0);
        topology.nodes[3].free_kb = Some(0);
        let stated = [
            "node 3 has CPUs and no memory",
            "at best node 2: the firmware states a distance of 12 instead of 10",
        ];
        one(&[], &topology, "memory of nodes", &stated, "DIMMs");
        let latency =
            LatencyMatrix { from: vec![2, 3], to: vec![2], ns: vec![vec![Some(90.4)], vec![Some(131.2)]] };
        topology.measured = Some(MeasuredMemory { latency, ..MeasuredMemory::default() });
        let measured = ["at best node 2: a load takes 131 ns, and 90 ns from the CPUs of node 2 (measured)"];
        one(&[], &topology, "memory of nodes", &measured, "DIMMs");
        (topology.measured, topology.distances) = (None, None);
        one(
            &[],
            &topology,
            "memory of nodes",
            &["what that costs is not known before 'numa bench all'"],
            "DIMMs",
        );
    }

    #[test]
    fn packages_that_share_a_node_are_told_from_small_chips() {
        let mut topology = four();
        let cpus = topology.online.clone();
        topology.nodes = vec![Node { cpus, memory_kb: Some(96 << 20), ..Node::default() }];
        topology.distances = None;
        let seen = ["2 packages are one node (0)", "1 of 2 accesses to memory go to another one"];
        one(&[], &topology, "packages and nodes", &seen, "Node Interleaving");
        let guest = [("/proc/cpuinfo", "flags\t\t: fpu hypervisor lm\n")];
        let virtual_ones = ["2 packages are one node (0): whether they are different sockets of the host"];
        one(&guest, &topology, "packages and nodes", &virtual_ones, "virtual node for each package");
        let off = [("/proc/cmdline", "root=/dev/sda1 numa=off\n")];
        one(&off, &topology, "packages and nodes", &seen, "without the kernel parameter numa=off");
        topology.caches.clear();
        one(&off, &topology, "machine", &["fit together"], "");
    }

    #[test]
    fn packages_and_nodes_that_cross_are_named() {
        let mut topology = four();
        let package =
            |os_index, cpus: &str| Package { os_index: Some(os_index), cpus: cpus.parse().unwrap() };
        topology.packages = vec![package(0, "0-1,4-9"), package(1, "2-3,10-15")];
        let seen = ["nodes 0,2 cross packages", "What that costs is not known"];
        one(&[], &topology, "packages and nodes", &seen, "virtual node");
    }

    #[test]
    fn huge_pages_of_other_nodes_only() {
        let mut topology = four();
        let pool = |count| vec![HugePagePool { size_kb: 2048, count }];
        topology.nodes.iter_mut().for_each(|node| node.huge_pages = pool(0));
        one(&[], &topology, "machine", &["fit together"], "");
        topology.nodes[0].huge_pages = pool(1024);
        let seen = [
            "all 1024 pages of 2 MiB are on node 0 and none on nodes 1-3",
            "a program on node 1",
            "distance of 12",
        ];
        let command =
            "echo 256 > /sys/devices/system/node/node1/hugepages/hugepages-2048kB/nr_hugepages; echo 256";
        one(&[], &topology, "reserved huge pages", &seen, command);
        // Nodes that cannot have or use some do not matter.
        for node in &mut topology.nodes[1..] {
            node.cpus = CpuSet::new();
        }
        one(&[], &topology, "machine", &["fit together"], "");
    }

    #[test]
    fn a_full_node_is_named_if_another_is_not() {
        let mut topology = four();
        topology.nodes[1].free_kb = Some(400 << 10);
        let seen =
            ["node 1 has 400 MiB of 96 GiB free", "at best node 0: the firmware states a distance of 12"];
        one(&[], &topology, "memory of nodes", &seen, "numa top --once");
        topology.nodes.iter_mut().for_each(|node| node.free_kb = Some(400 << 10));
        one(&[], &topology, "machine", &["fit together"], "");
    }

    #[test]
    fn programs_that_get_memory_of_other_nodes_alone() {
        let mut topology = four();
        topology.nodes.iter_mut().for_each(|node| node.huge_pages.clear());
        let stat = |tid: u32, cpu: u32| format!("{tid} (server) S {}{cpu} 0 0\n", "0 ".repeat(35));
        let status = "Cpus_allowed_list:\t0-15\nMems_allowed_list:\t0-3\n";
        let (main, other) = (stat(7, 0), stat(8, 5));
        let files = |policy: &'static str| {
            [
                ("/proc/7/stat", main.as_str()),
                ("/proc/7/status", status),
                ("/proc/7/task/7/stat", main.as_str()),
                ("/proc/7/task/7/status", status),
                ("/proc/7/task/8/stat", other.as_str()),
                ("/proc/7/task/8/status", status),
                ("/proc/7/numa_maps", policy),
            ]
        };
        let seen = [
            "server (7) gets memory of node 0 only (a memory policy binds it), and ran on nodes 0-1",
            "all that its threads on node 1 use is remote",
            "CPUs of node 1 from node 0",
        ];
        one(&files("55d0 bind:0 file=/s\n"), &topology, "memory of programs", &seen, "'numactl -m 0-1'");
        one(&files("55d0 bind:0-1 file=/s\n"), &topology, "machine", &["fit together"], "");
    }

    #[test]
    fn programs_away_from_their_cards_and_what_the_kernel_shows_oddly() {
        let files = [
            ("/sys/class/drm/renderD128/device/numa_node", "0\n"),
            ("/proc/7/status", "Cpus_allowed_list:\t4-7\n"),
        ];
        assert_eq!(found(&files, &four()).len(), 1);
        let mut tree = numakit_sys::root::FileTree::new();
        files.iter().for_each(|(path, text)| _ = tree.file(path, *text));
        for folder in ["/proc/7", "/proc/7/task/7"] {
            tree.file(&format!("{folder}/stat"), format!("7 (train) S {}5 0 0\n", "0 ".repeat(35)));
        }
        tree.symlink("/proc/7/fd/3", "/dev/dri/renderD128");
        let topology = Topology { notes: vec!["odd".to_owned()], ..four() };
        let [note, card] = check(&SysRoot::of_tree(tree), &topology).try_into().unwrap();
        assert_eq!((note.seen.as_str(), note.fix), ("odd", None));
        assert!(
            card.seen.starts_with("train (7) has /dev/dri/renderD128 of node 0 open and ran on node 1"),
            "{card:?}"
        );
        assert!(card.fix.unwrap().to_string().contains("numa run --nodes 0 --pid 7"));
    }
}
