//! The simulated interconnect: the plugin that counts, and a card on every node.

use crate::failure::{Failure, finished, on};
use crate::machine::escaped;
use crate::programs::is_stale;
use crate::shape::Shape;
use crate::traffic::Traffic;
use crate::{fetch, place};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

const FLAGS: [&str; 7] = ["-std=gnu11", "-shared", "-fPIC", "-O2", "-Wall", "-Wextra", "-o"];
/// What the plugin can count.
const MAX_CPUS: usize = 16;
const MAX_NODES: usize = 8;
const MAX_MIB: u64 = 3072;
/// A card's window.
const CARD: u64 = 1 << 20;
/// Numbers of the buses of the cards' bridges: eight fit below 256.
const BUSES: usize = 28;

/// How a machine is simulated.
#[derive(Debug, Clone, Default)]
pub struct Simulation {
    options: Vec<String>,
}

impl Simulation {
    /// Pages stay where first touch put them; a step may switch balancing on again.
    pub(crate) const KERNEL_OPTIONS: &str = "numa_balancing=disable";

    /// As the documents describe it.
    pub fn new() -> Self {
        Self::default()
    }

    /// A further option of the plugin, `NAME=VALUE`.
    pub fn option(mut self, option: &str) -> Self {
        self.options.push(option.to_owned());
        self
    }

    /// Writes what the plugin reads and gives the arguments of QEMU that come after the machine's.
    pub(crate) fn prepare(&self, shape: &Shape, folder: &Path) -> Result<Vec<String>, Failure> {
        check(shape)?;
        let card = |node: usize| folder.join(format!("card{node}"));
        for node in 0..shape.nodes.len() {
            let path = card(node);
            let file = File::create(&path).map_err(on("create", &path))?;
            file.set_len(CARD).map_err(on("enlarge", &path))?;
        }
        let machine = folder.join("machine");
        fs::write(&machine, machine_text(shape, &card)).map_err(on("write", &machine))?;
        let (plugin, machine, result) = (escaped(&plugin()?), escaped(&machine), escaped(&result(folder)));
        let mut options = format!("{plugin},machine={machine},result={result}");
        self.options.iter().for_each(|option| options += &format!(",{option}"));
        let mut list = vec!["-accel".to_owned(), "tcg,thread=single,tb-size=512".to_owned()];
        list.extend(cards(shape.nodes.len(), &card));
        list.extend(["-plugin".to_owned(), options]);
        Ok(list)
    }

    /// What the plugin counted.
    pub(crate) fn traffic(&self, folder: &Path) -> Result<Traffic, Failure> {
        let path = result(folder);
        let text = fs::read_to_string(&path).map_err(on("read", &path))?;
        Traffic::parse(&text)
    }
}

fn result(folder: &Path) -> PathBuf {
    folder.join("traffic.json")
}

fn check(shape: &Shape) -> Result<(), Failure> {
    let (cpus, nodes, mib) = (shape.cpus(), shape.nodes.len(), shape.memory_mib());
    if cpus <= MAX_CPUS && nodes <= MAX_NODES && mib < MAX_MIB {
        return Ok(());
    }
    Err(Failure::Request(format!(
        "shape '{}' has {cpus} CPUs, {nodes} nodes and {mib} MiB; the simulator takes at most {MAX_CPUS} CPUs, \
         {MAX_NODES} nodes and less than {MAX_MIB} MiB: take another shape or less memory",
        shape.name
    )))
}

fn machine_text(shape: &Shape, card: &dyn Fn(usize) -> PathBuf) -> String {
    let mut text = String::new();
    for (id, node) in shape.nodes.iter().enumerate() {
        text += &format!("node {id} {} {}\n", node.memory_mib << 20, card(id).display());
    }
    for (id, node) in shape.nodes.iter().enumerate() {
        node.cpus.iter().for_each(|cpu| text += &format!("cpu {cpu} {id}\n"));
    }
    for (from, row) in shape.distances.iter().enumerate() {
        for (to, value) in row.iter().enumerate() {
            text += &format!("distance {from} {to} {value}\n");
        }
    }
    text
}

/// A function of PCI for each node, behind a bridge of that node.
fn cards(nodes: usize, card: &dyn Fn(usize) -> PathBuf) -> Vec<String> {
    let device = |node: usize| {
        let file = escaped(&card(node));
        let bus = BUSES * (node + 1);
        [
            "-object".to_owned(),
            format!("memory-backend-file,id=card{node},size=1M,share=on,mem-path={file}"),
            "-device".to_owned(),
            format!("pxb,id=bridge{node},bus_nr={bus},numa_node={node},bus=pci.0"),
            "-device".to_owned(),
            format!("ivshmem-plain,memdev=card{node},bus=bridge{node}"),
        ]
    };
    (0..nodes).flat_map(device).collect()
}

/// The plugin, compiled from all its sources.
fn plugin() -> Result<PathBuf, Failure> {
    let folder = place::root().join("tests/guest/simulator");
    let files = fs::read_dir(&folder).map_err(on("list", &folder))?.flatten().map(|entry| entry.path());
    let (mut sources, mut inputs) = (Vec::new(), Vec::new());
    for path in files.filter(|path| path.is_file()) {
        if path.extension().is_some_and(|extension| extension == "c") {
            sources.push(path.clone());
        }
        inputs.push(path);
    }
    sources.sort();
    let _lock = place::locked("simulator")?;
    let plugin = place::folder("own")?.join("simulator.so");
    if is_stale(&plugin, &inputs) {
        let fresh = plugin.with_extension("new");
        finished(Command::new("cc").args(FLAGS).arg(&fresh).args(&sources).arg("-lm").arg("-pthread"))?;
        fs::rename(&fresh, &plugin).map_err(on("rename", &fresh))?;
    }
    Ok(plugin)
}

/// Whether a simulated machine can be had here.
pub fn available() -> Result<(), Failure> {
    fetch::qemu(true).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn card(node: usize) -> PathBuf {
        PathBuf::from(format!("/run,1/card{node}"))
    }

    #[test]
    fn the_plugin_reads_what_the_machine_is() {
        let text = machine_text(&Shape::named("memoryless").unwrap(), &card);
        let expected = "node 0 268435456 /run,1/card0\nnode 1 0 /run,1/card1\nnode 2 268435456 /run,1/card2\n\
                        cpu 0 0\ncpu 1 0\ncpu 2 1\ncpu 3 1\ncpu 4 2\ncpu 5 2\n\
                        distance 0 0 10\ndistance 0 1 20\ndistance 0 2 30\n\
                        distance 1 0 20\ndistance 1 1 10\ndistance 1 2 15\n\
                        distance 2 0 30\ndistance 2 1 15\ndistance 2 2 10\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn every_node_has_a_card_on_a_bus_of_its_own() {
        let list = cards(8, &card);
        assert_eq!(list.len(), 48);
        assert_eq!(list[1], "memory-backend-file,id=card0,size=1M,share=on,mem-path=/run,,1/card0");
        assert_eq!(list[45], "pxb,id=bridge7,bus_nr=224,numa_node=7,bus=pci.0");
        assert_eq!(list[47], "ivshmem-plain,memdev=card7,bus=bridge7");
    }

    #[test]
    fn what_is_too_large_is_refused_in_words() {
        let mut shape = Shape::named("four").unwrap();
        assert!(check(&shape).is_ok());
        shape.set_memory_mib(1024);
        let message = check(&shape).unwrap_err().to_string();
        assert!(message.starts_with("shape 'four' has 8 CPUs, 4 nodes and 4096 MiB; "), "{message}");
    }
}
