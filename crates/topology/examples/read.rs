//! Reads the topology below a directory, or of this machine, and prints how many nodes and
//! CPUs it has and how long that duration; `--files` prints the files instead.
#![allow(clippy::print_stdout)]

use numakit_sys::SysRoot;
use std::path::Path;
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let files = arguments.iter().position(|a| a == "--files").map(|at| arguments.remove(at)).is_some();
    let root = match arguments.first() {
        Some(path) => SysRoot::open(Path::new(path))?,
        None => SysRoot::host(),
    };
    let root = if files { root.traced() } else { root };
    let start = Instant::now();
    let topology = numakit_topology::read(&root)?;
    let duration = start.elapsed();
    if files {
        root.touched().iter().filter(|path| root.bytes(path).is_ok()).for_each(|path| println!("{path}"));
    } else {
        println!(
            "{} nodes, {} CPUs, {} us",
            topology.nodes.len(),
            topology.online.len(),
            duration.as_micros()
        );
    }
    Ok(())
}
