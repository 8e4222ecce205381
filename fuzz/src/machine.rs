//! Machines: the files of /sys and /proc, and other descriptions of machines.

use crate::files;
use numakit_model::Topology;
use numakit_sensors::{Probe, Scene, Tick};
use numakit_sys::SysRoot;
use numakit_sys::root::FileTree;
use numakit_terminal::topology as drawing;

/// Files from text. A line `> PATH` begins a file, `> PATH -> TARGET` is a symbolic link.
fn add_files(tree: &mut FileTree, text: &[u8]) {
    let mut path: Option<String> = None;
    let mut content: Vec<u8> = Vec::new();
    for line in text.split_inclusive(|&b| b == b'\n') {
        let Some(name) = line.strip_prefix(b"> ") else {
            content.extend_from_slice(line);
            continue;
        };
        if let Some(path) = path.take() {
            tree.file(&path, std::mem::take(&mut content));
        }
        let name = String::from_utf8_lossy(name).trim().to_owned();
        match name.split_once(" -> ") {
            Some((link, target)) => drop(tree.symlink(link, target)),
            None => path = Some(name),
        }
        content.clear();
    }
    if let Some(path) = path {
        tree.file(&path, content);
    }
}

fn tree(text: &[u8]) -> FileTree {
    let mut tree = FileTree::new();
    add_files(&mut tree, text);
    tree
}

/// Larger machines are not drawn, because that is slow.
const MAX_SHOWN: usize = 1024;

/// Prints a machine in every format.
fn show(topology: &Topology) {
    if topology.online.len() <= MAX_SHOWN && topology.nodes.len() <= MAX_SHOWN {
        numakit_topology::json::text(topology);
        drawing::tree(topology, drawing::TreeStyle { color: false, width: 80 });
        drawing::hardware(topology);
        drawing::svg(topology);
    }
}

/// Reads the topology of files, and prints it.
pub fn topology(input: &[u8]) -> bool {
    let Ok(topology) = numakit_topology::read(&SysRoot::of_tree(tree(input))) else { return false };
    show(&topology);
    true
}

/// Probes and reads all sensors; the files after a line `>>` change after the probe.
pub fn sensors(input: &[u8]) -> bool {
    let mark = b"\n>>\n";
    let split = input.windows(mark.len()).position(|w| w == mark);
    let (before, after) = split.map_or((input, &[][..]), |at| (&input[..at + 1], &input[at + mark.len()..]));
    let root = SysRoot::of_tree(tree(before));
    let topology = numakit_topology::read(&root).unwrap_or_default();
    let mut probe = Probe::new(&Scene::new(&root, &topology));
    read_all(&mut probe);
    let accepted = has_series(&probe, |sensor| sensor != "self");
    root.change(|tree| add_files(tree, after));
    read_all(&mut probe);
    accepted
}

/// Whether a sensor whose name is one of these has series.
fn has_series(probe: &Probe, is_one: impl Fn(&str) -> bool) -> bool {
    probe.series().any(|series| is_one(series.metric.sensor()))
}

fn read_all(probe: &mut Probe) {
    for sensor in &mut probe.sensors {
        let mut out = vec![None; sensor.series().len()];
        sensor.read(&Tick::default(), &mut out);
    }
}

/// Resource control: each line is the path of a file below /sys/fs/resctrl, and after `=` its
/// content; the files after a line `>>` change after the probe.
pub fn resctrl(input: &[u8]) -> bool {
    let folder = "/sys/fs/resctrl";
    let machine = numakit_topology::synthetic::parse("package:2 node:2 l3:1 core:2").unwrap_or_default();
    let mut tree = numakit_testing::sysfs::tree(&machine);
    tree.file(&format!("{folder}/info/L3_MON/mon_features"), "llc_occupancy\nmbm_total_bytes\n");
    let text = String::from_utf8_lossy(input);
    let (before, after) = text.split_once("\n>>\n").unwrap_or((&text, ""));
    let put = |tree: &mut FileTree, lines: &str| {
        for (path, content) in lines.lines().filter_map(|line| line.split_once('=')) {
            tree.file(&format!("{folder}/{path}"), format!("{content}\n"));
        }
    };
    put(&mut tree, before);
    let root = SysRoot::of_tree(tree);
    let mut probe = Probe::new(&Scene::new(&root, &machine));
    read_all(&mut probe);
    let accepted = has_series(&probe, |sensor| sensor == "resctrl");
    root.change(|tree| put(tree, after));
    read_all(&mut probe);
    accepted
}

/// Maximum number of cards in an input.
const MAX_CARDS: usize = 32;

/// Interconnect cards. The first two words of 32 bits are two registers of the local card: the
/// first card, and the link. Each further word is a card: its position and the next one, 12 bits each.
pub fn cards(input: &[u8]) -> bool {
    let word = |bytes: &[u8]| bytes.try_into().map_or(0, u32::from_le_bytes);
    let mut words = input.chunks_exact(4).map(word);
    let (first, link) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let mut tree = FileTree::new();
    let mut put = |address: u64, next: u32| {
        let mut window = vec![0; 0x4000];
        window[..4].copy_from_slice(&0x0700_1b47u32.to_le_bytes());
        window[0x10a4..0x10a8].copy_from_slice(&first.to_le_bytes());
        window[0x10a8..0x10ac].copy_from_slice(&next.to_le_bytes());
        window[0x3100..0x3690].iter_mut().zip(input).for_each(|(to, from)| *to = *from);
        tree.file(&format!("/dev/mem/{address:#x}.bin"), window);
    };
    put(0xf000_0000, link);
    for card in words.take(MAX_CARDS) {
        let position = u64::from(card & 0xfff);
        let offset = (23 + u64::from(link >> 12 & 7)) << 15;
        put(0x3f00_0000_0000 | position << 28 | offset, card >> 12);
    }
    let root = SysRoot::of_tree(tree);
    let machine = Topology::default();
    let mut probe = Probe::new(&Scene::new(&root, &machine));
    read_all(&mut probe);
    let accepted = has_series(&probe, |sensor| sensor != "self");
    // Arbitrary content of a file, and a removed card.
    root.change(|tree| _ = tree.file("/dev/mem/0xf0000000.bin", input).remove("/dev/mem/0x3f00000b8000.bin"));
    read_all(&mut probe);
    read_all(&mut Probe::new(&Scene::new(&root, &machine)));
    accepted
}

/// `package:2 node:2 core:4`.
pub fn synthetic(input: &[u8]) -> bool {
    match numakit_topology::synthetic::parse(&String::from_utf8_lossy(input)) {
        Ok(topology) => {
            reads_back(&topology);
            true
        }
        Err(error) => {
            assert!(!error.to_string().is_empty());
            false
        }
    }
}

/// A machine as JSON.
pub fn json(input: &[u8]) -> bool {
    let Ok(topology) = numakit_topology::json::parse(&String::from_utf8_lossy(input)) else { return false };
    reads_back(&topology);
    true
}

fn reads_back(topology: &Topology) {
    show(topology);
    if topology.online.len() > MAX_SHOWN || topology.nodes.len() > MAX_SHOWN {
        return;
    }
    let text = numakit_topology::json::text(topology);
    match numakit_topology::json::parse(&text) {
        Ok(again) => assert_eq!(&again, topology),
        Err(error) => panic!("{error}: {text}"),
    }
}

/// A capture. Compressed ones are not tested here: libraries unpack them.
pub fn archive(input: &[u8]) -> bool {
    if input.get(257..262) != Some(b"ustar") {
        return false;
    }
    let path = files::put("capture.tar", input);
    let root = SysRoot::open(&path);
    files::remove(&path);
    let Ok(root) = root else { return false };
    // It must return; any result is correct.
    let _ = numakit_topology::read(&root);
    true
}
