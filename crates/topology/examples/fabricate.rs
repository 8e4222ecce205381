//! Writes the /sys and /proc of a described machine into a directory.
#![allow(clippy::print_stdout)]

use numakit_topology::{fabricate, synthetic};
use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(description), Some(directory)) = (arguments.next(), arguments.next()) else {
        return Err("usage: fabricate DESCRIPTION DIRECTORY".into());
    };
    let topology = synthetic::load(&description)?;
    fabricate::write_tree(&topology, &fabricate::Texts::default(), Path::new(&directory))?;
    println!("{} nodes, {} CPUs in {directory}", topology.nodes.len(), topology.online.len());
    Ok(())
}
