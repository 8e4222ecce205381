//! Cards (GPUs, network cards for RDMA, accelerators) that programs have open, and whether these run on the cards' nodes.

use numakit_model::{CpuSet, Topology};
use numakit_sys::SysRoot;
use numakit_sys::proc::{TaskDir, processes};
use std::collections::BTreeMap;

/// Classes of devices whose file has the name of their folder in /sys/class, with the folder of the files.
const CLASSES: [(&str, &str); 3] =
    [("drm", "/dev/dri"), ("infiniband_verbs", "/dev/infiniband"), ("accel", "/dev/accel")];
/// Where the driver of NVIDIA lists its cards by PCI address.
const NVIDIA: &str = "/proc/driver/nvidia/gpus";

/// A program with a card on a node where none of its threads runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CardElsewhere {
    /// The process.
    pub pid: u32,
    /// Its name.
    pub name: String,
    /// The file of the card: `/dev/nvidia0`.
    pub card: String,
    /// The node of the card.
    pub node: u32,
    /// The nodes of the CPUs that its threads last ran on.
    pub ran_on: CpuSet,
    /// Whether its threads may run on the card's node.
    pub may_move: bool,
}

/// Programs that have cards open, all of them on nodes where none of their threads last ran. A program that has a card of its own
/// node open is left out, as one that uses all cards. Those that this user may not look into are not seen.
pub fn cards_elsewhere(root: &SysRoot, topology: &Topology) -> Vec<CardElsewhere> {
    let cards = cards(root);
    if topology.nodes.len() < 2 || cards.is_empty() {
        return Vec::new();
    }
    let all = processes(root).unwrap_or_default();
    all.into_iter().filter_map(|pid| elsewhere(root, topology, &cards, pid)).collect()
}

/// The node of each card by its file, where the kernel states one.
fn cards(root: &SysRoot) -> BTreeMap<String, u32> {
    let node = |folder: String| {
        let text = root.text(&format!("{folder}/numa_node")).ok()?;
        // -1 means no node.
        text.trim().parse::<u32>().ok()
    };
    let mut cards = BTreeMap::new();
    for (class, files) in CLASSES {
        for name in root.list(&format!("/sys/class/{class}")).unwrap_or_default() {
            let of = node(format!("/sys/class/{class}/{name}/device"));
            cards.extend(of.map(|node| (format!("{files}/{name}"), node)));
        }
    }
    for address in root.list(NVIDIA).unwrap_or_default() {
        let text = root.text(&format!("{NVIDIA}/{address}/information")).unwrap_or_default();
        let minor = text.lines().find_map(|line| line.strip_prefix("Device Minor:")).map(str::trim);
        let minor = minor.and_then(|minor| minor.parse::<u32>().ok());
        let of = node(format!("/sys/bus/pci/devices/{}", address.to_ascii_lowercase()));
        cards.extend(minor.zip(of).map(|(minor, node)| (format!("/dev/nvidia{minor}"), node)));
    }
    cards
}

fn elsewhere(
    root: &SysRoot,
    topology: &Topology,
    cards: &BTreeMap<String, u32>,
    pid: u32,
) -> Option<CardElsewhere> {
    let process = TaskDir::of(root, pid);
    let files = root.list(&process.path("fd")).ok()?;
    let open = files.iter().filter_map(|file| root.link(&process.path(&format!("fd/{file}"))).ok());
    let open: BTreeMap<String, u32> =
        open.filter_map(|file| cards.get(&file).map(|node| (file, *node))).collect();
    let (card, &node) = open.first_key_value()?;
    let (mut ran_on, mut allowed) = (CpuSet::new(), CpuSet::new());
    for thread in process.live_threads() {
        let thread = process.thread(thread);
        let cpu = thread.stat().ok().and_then(|stat| stat.cpu);
        let on = cpu.and_then(|cpu| topology.node_of_cpu(cpu));
        on.iter().for_each(|node| ran_on.insert(node.os_index));
        allowed
            .insert_all(&thread.status().ok().and_then(|status| status.allowed_cpus()).unwrap_or_default());
    }
    if ran_on.is_empty() || open.values().any(|node| ran_on.contains(*node)) {
        return None;
    }
    let may_move = topology.node(node).is_some_and(|node| node.cpus.intersects(&allowed));
    let name = process.stat().ok()?.name();
    Some(CardElsewhere { pid, name, card: card.clone(), node, ran_on, may_move })
}

#[cfg(test)]
mod tests {
    use super::*;
    use numakit_model::topology::Node;
    use numakit_sys::root::FileTree;

    fn two_nodes() -> Topology {
        let node = |os_index, cpus: &str| Node { os_index, cpus: cpus.parse().unwrap(), ..Node::default() };
        Topology { nodes: vec![node(0, "0-3"), node(1, "4-7")], ..Topology::default() }
    }

    /// A process of one thread that last ran on this CPU, and what it has open.
    fn process(tree: &mut FileTree, pid: u32, cpu: u32, mask: &str, open: &[&str]) {
        for folder in [format!("/proc/{pid}"), format!("/proc/{pid}/task/{pid}")] {
            tree.file(&format!("{folder}/stat"), format!("{pid} (train) S {}{cpu} 0 0\n", "0 ".repeat(35)));
            tree.file(&format!("{folder}/status"), format!("Cpus_allowed_list:\t{mask}\n"));
        }
        for (number, file) in open.iter().enumerate() {
            tree.symlink(&format!("/proc/{pid}/fd/{number}"), file);
        }
    }

    fn found(tree: &FileTree) -> Vec<(u32, String, u32, String, bool)> {
        let found = cards_elsewhere(&SysRoot::of_tree(tree.clone()), &two_nodes());
        found.into_iter().map(|f| (f.pid, f.card, f.node, f.ran_on.to_string(), f.may_move)).collect()
    }

    #[test]
    fn a_program_away_from_its_card_is_found() {
        let mut tree = FileTree::new();
        tree.file("/sys/class/drm/renderD128/device/numa_node", "0\n");
        tree.file("/sys/class/drm/renderD129/device/numa_node", "-1\n");
        tree.file("/proc/driver/nvidia/gpus/0000:C1:00.0/information", "Model: \t A\nDevice Minor: \t 1\n");
        tree.file("/sys/bus/pci/devices/0000:c1:00.0/numa_node", "1\n");
        process(&mut tree, 10, 5, "4-7", &["/dev/null", "/dev/dri/renderD128"]);
        process(&mut tree, 11, 5, "0-7", &["/dev/dri/renderD128"]);
        // On its node, beside one of its cards, without one, and with one without a node.
        process(&mut tree, 12, 1, "0-7", &["/dev/dri/renderD128"]);
        process(&mut tree, 13, 5, "0-7", &["/dev/dri/renderD128", "/dev/nvidia1"]);
        process(&mut tree, 14, 5, "0-7", &["/dev/null"]);
        process(&mut tree, 15, 5, "0-7", &["/dev/dri/renderD129"]);
        process(&mut tree, 16, 0, "0-3", &["/dev/nvidia1"]);
        let card = |pid, card: &str, node, ran_on: &str, may_move| {
            (pid, card.to_owned(), node, ran_on.to_owned(), may_move)
        };
        assert_eq!(
            found(&tree),
            [
                card(10, "/dev/dri/renderD128", 0, "1", false),
                card(11, "/dev/dri/renderD128", 0, "1", true),
                card(16, "/dev/nvidia1", 1, "0", false)
            ]
        );
    }
}
