//! Writes a simulated machine to a directory, for `numa list --sysroot DIR`. Without arguments it
//! prints the names of the machines.
//!
//! `cargo run -p numakit-testing --example machine -- zen4 /tmp/zen4`, with three interconnect
//! cards `... -- opteron-15h /tmp/n2 3`, without counters `... -- 'package:2 core:4' /tmp/two`.
#![allow(clippy::print_stdout)]

use numakit_testing::{cards, machines, sysfs};
use numakit_topology::synthetic;
use std::error::Error;
use std::path::Path;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (name, directory, count) = match arguments.as_slice() {
        [] => {
            machines::names().for_each(|name| println!("{name}"));
            return Ok(());
        }
        [name, directory] => (name, directory, None),
        [name, directory, cards] => (name, directory, Some(cards.parse()?)),
        _ => return Err("the arguments are MACHINE DIR [CARDS], or none".into()),
    };
    let mut tree = match name.contains(':') {
        true => sysfs::tree(&synthetic::parse(name)?),
        false => machines::machine(name)?.tree,
    };
    if let Some(count) = count {
        cards::put(&mut tree, count, 0);
    }
    if Path::new(directory).join("sys").exists() {
        return Err(format!("{directory} contains a machine; remove it first").into());
    }
    Ok(sysfs::write(&tree, Path::new(directory))?)
}
