//! The results of a machine, kept where other programs of numakit find them.

use crate::results::BenchResults;
use crate::results::conditions::BenchConditions;
use crate::results::read::BenchReadError;
use numakit_model::Topology;
use numakit_sys::proc::Processor;
use numakit_sys::{SysRoot, cache};
use std::fmt::Write;
use std::fs::DirEntry;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The folder in that of results.
const BELOW: &str = "bench";

/// The start and the factor of FNV-1a.
const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0100_0000_01b3;
/// Firmware takes a little more or less of the memory at every boot.
const MEMORY_UNIT_KB: u64 = 1 << 20;

/// A name for a machine: equal for the same processor, nodes, CPUs and memory to a GiB, whatever its host name.
pub(crate) fn machine_key(processor: &str, topology: &Topology) -> String {
    let mut text = format!("{processor}; {} packages", topology.packages.len());
    for node in &topology.nodes {
        let memory = node.memory_kb.map(|kb| (kb + MEMORY_UNIT_KB / 2) / MEMORY_UNIT_KB);
        // Writing to a string cannot fail.
        let _ = write!(text, "; {} {} {memory:?}", node.os_index, node.cpus);
    }
    let hash = text.bytes().fold(OFFSET, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME));
    format!("{hash:016x}")
}

/// The folder of results.
fn folder() -> Option<PathBuf> {
    Some(cache::state_folder()?.join(BELOW))
}

/// Keeps results of a machine, as JSON, and replaces its earlier ones. Returns the file.
pub fn keep(machine_key: &str, results: &str) -> io::Result<PathBuf> {
    store(&file_name(machine_key), results)
}

/// Replaces a file of this user.
fn store(name: &str, text: &str) -> io::Result<PathBuf> {
    let folder = folder().ok_or_else(|| io::Error::other("there is no folder for it; set XDG_STATE_HOME"))?;
    cache::store(&folder, name, text)?;
    Ok(folder.join(name))
}

fn file_name(machine_key: &str) -> String {
    format!("{machine_key}.json")
}

/// The key of a machine with the processor of this root.
pub fn key_of(root: &SysRoot, topology: &Topology) -> String {
    machine_key(&Processor::read(root).name, topology)
}

/// The results that were kept of a machine with the processor of this one: those of this user, else those of root. If
/// XDG_STATE_HOME is set, only folders below it are searched.
pub fn find(topology: &Topology) -> Result<BenchResults, NoPeak> {
    find_in(&folders(), &key_of(&SysRoot::host(), topology))
}

/// Those that are searched, in this order.
fn folders() -> Vec<PathBuf> {
    let is_chosen = std::env::var_os("XDG_STATE_HOME").is_some();
    let system = Some(Path::new(cache::SYSTEM_STATE).join(BELOW)).filter(|_| !is_chosen);
    folder().into_iter().chain(system).collect()
}

fn collectives_name(topology: &Topology) -> String {
    format!("{}.mpi", key_of(&SysRoot::host(), topology))
}

/// The table of measured collectives that was kept of this machine: its file and its text. That of this user comes first, as above.
pub(crate) fn collectives_table(topology: &Topology) -> Option<(PathBuf, String)> {
    let name = collectives_name(topology);
    folders().iter().find_map(|folder| Some((folder.join(&name), cache::load(folder, &name)?)))
}

/// Replaces that of this user.
pub(crate) fn keep_collectives_table(topology: &Topology, text: &str) -> io::Result<PathBuf> {
    store(&collectives_name(topology), text)
}

fn find_in(folders: &[PathBuf], key: &str) -> Result<BenchResults, NoPeak> {
    let name = file_name(key);
    let found = folders.iter().find_map(|folder| Some((folder.join(&name), cache::load(folder, &name)?)));
    if let Some((path, text)) = found {
        return peak(&path, &text, key);
    }
    let is_result = |entry: io::Result<DirEntry>| {
        entry.is_ok_and(|entry| entry.path().extension().is_some_and(|extension| extension == "json"))
    };
    let has_results = |folder: &&PathBuf| std::fs::read_dir(folder).is_ok_and(|mut all| all.any(is_result));
    Err(match folders.iter().find(has_results) {
        Some(folder) => NoPeak::Others { folder: folder.display().to_string() },
        None => NoPeak::Nothing,
    })
}

/// Results of the machine with this key.
fn peak(path: &Path, text: &str, key: &str) -> Result<BenchResults, NoPeak> {
    let path = || path.display().to_string();
    let results = BenchResults::parse(text.as_bytes())
        .map_err(|error| BenchReadError::Content { path: path(), error })?;
    match results.machine_key == key {
        false => {
            let BenchConditions { processor, machine, .. } = results.conditions;
            Err(NoPeak::OtherMachine { path: path(), other: format!("{processor}; {machine}") })
        }
        true if !results.complete => Err(NoPeak::Incomplete { path: path() }),
        true => Ok(results),
    }
}

/// Why there are no results to compare with.
#[derive(Debug, Error)]
pub enum NoPeak {
    /// No file of any machine.
    #[error(
        "the memory of this machine was not measured; 'numa bench all' measures it and keeps the results"
    )]
    Nothing,
    /// Only files of other machines, or of this one with another processor, memory or number of CPUs.
    #[error(
        "{folder} has only results of machines with another processor, other nodes or other memory; 'numa bench all' measures this one"
    )]
    Others {
        /// The folder with the results.
        folder: String,
    },
    /// The content is of a machine that the name of the file is not of.
    #[error(
        "{path}: it is of another machine ({other}), and no peak of this one; 'numa bench all' measures this one"
    )]
    OtherMachine {
        /// The file.
        path: String,
        /// The machine of these results.
        other: String,
    },
    /// Interrupted.
    #[error("{path}: the run was interrupted; 'numa bench all' measures the rest")]
    Incomplete {
        /// The file.
        path: String,
    },
    /// The file cannot be read, or contains something else.
    #[error(transparent)]
    Unreadable(#[from] BenchReadError),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::VERSION;

    /// A folder that is removed at the end.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let folder = std::env::temp_dir().join(format!("numakit-kept-{name}-{}", std::process::id()));
            std::fs::create_dir_all(&folder).unwrap();
            Self(folder)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn results(key: &str, complete: bool) -> String {
        let conditions = BenchConditions { processor: "Some CPU".to_owned(), ..BenchConditions::default() };
        let machine_key = key.to_owned();
        let all = BenchResults {
            version: VERSION,
            machine_key,
            conditions,
            topology: None,
            benchmarks: Vec::new(),
            runs: 1,
            complete,
        };
        serde_json::to_string(&all).unwrap()
    }

    #[test]
    fn results_are_found_by_their_machine() {
        let (own, system) = (Folder::new("own"), Folder::new("system"));
        let find = |key: &str| find_in(&[own.0.clone(), system.0.clone()], key);
        let refused = |key: &str| find(key).unwrap_err().to_string();
        assert!(refused("aa").contains("was not measured; 'numa bench all'"), "{}", refused("aa"));
        cache::store(&system.0, "bb.json", &results("bb", true)).unwrap();
        assert!(
            refused("aa").contains("only results of machines with another processor"),
            "{}",
            refused("aa")
        );
        assert_eq!(find("bb").unwrap().machine_key, "bb");
        cache::store(&own.0, "bb.json", &results("bb", false)).unwrap();
        assert!(refused("bb").contains("interrupted"), "the user's own file comes first");
        for (text, part) in [
            (results("cc", true), "it is of another machine (Some CPU; )"),
            (
                results("bb", true).replace("\"version\":1", "\"version\":2"),
                "version 2, and this numa reads version 1",
            ),
            ("{}".to_owned(), "no results of numa bench: missing field `version`"),
            (r#"{"version": 1}"#.to_owned(), "missing field `machine_key`"),
        ] {
            cache::store(&own.0, "bb.json", &text).unwrap();
            assert!(refused("bb").contains(part), "{part}: {}", refused("bb"));
        }
    }

    #[test]
    fn a_machine_keeps_its_key_until_it_is_another() {
        let parse = |text| numakit_topology::synthetic::parse(text).unwrap();
        let machine = parse("package:2 node:2(mem=32G) core:4 pu:2");
        let key = machine_key("Some CPU", &machine);
        assert_eq!((key.len(), &key), (16, &machine_key("Some CPU", &machine)));
        let mut rebooted = machine.clone();
        rebooted.nodes[0].memory_kb = rebooted.nodes[0].memory_kb.map(|kb| kb - 1000);
        assert_eq!(key, machine_key("Some CPU", &rebooted));
        assert_ne!(key, machine_key("Other CPU", &machine));
        assert_ne!(key, machine_key("Some CPU", &parse("package:2 node:2(mem=64G) core:4 pu:2")));
        assert_ne!(key, machine_key("Some CPU", &parse("package:2 node:2(mem=32G) core:8 pu:2")));
    }
}
