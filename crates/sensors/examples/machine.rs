//! Writes a machine that does not exist to a folder, for `numa list --sysroot DIR`. Without
//! arguments it names the machines that there are.
//!
//! `cargo run -p numakit-sensors --example machine -- zen4 /tmp/zen4`, with three interconnect
//! cards `... -- opteron-15h /tmp/n2 3`.
#![allow(clippy::print_stdout)]

use numakit_sensors::fabricate;
use numakit_sys::root::Tree;
use std::error::Error;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.as_slice() {
        [] => fabricate::names().for_each(|name| println!("{name}")),
        [name, directory] => write(&fabricate::machine(name)?.tree, Path::new(directory))?,
        [name, directory, cards] => {
            let mut tree = fabricate::machine(name)?.tree;
            fabricate::cards(&mut tree, cards.parse()?, 0);
            write(&tree, Path::new(directory))?;
        }
        _ => return Err("give the name of a machine, a folder and a number of cards, or nothing".into()),
    }
    Ok(())
}

fn write(tree: &Tree, directory: &Path) -> Result<(), Box<dyn Error>> {
    if directory.join("sys").exists() {
        return Err(format!("{} holds a machine already; remove it first", directory.display()).into());
    }
    let place = |path: &str| -> PathBuf { directory.join(path.trim_start_matches('/')) };
    for path in tree.directories() {
        fs::create_dir_all(place(path))?;
    }
    for (path, content) in tree.files() {
        fs::write(place(path), content)?;
    }
    for (path, target) in tree.links() {
        symlink(target, place(path))?;
    }
    Ok(())
}
