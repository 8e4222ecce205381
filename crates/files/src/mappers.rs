//! Which processes map files, and where their threads run.

use crate::FoundFile;
use numakit_model::Topology;
use numakit_sys::SysRoot;
use numakit_sys::proc::maps::MapsEntry;
use numakit_sys::proc::{self, TaskDir};
use std::collections::{BTreeMap, HashMap};
use std::io::ErrorKind;
use std::path::PathBuf;

/// A process that maps a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapper {
    /// Its number.
    pub pid: u32,
    /// The name of its program.
    pub command: String,
    /// The file: its position among those that were asked for.
    pub file: usize,
    /// Bytes of its mappings of the file, touched or not.
    pub mapped: u64,
    /// Its threads by the node of the CPU on which they run or ran last.
    pub threads: BTreeMap<u32, u64>,
}

/// The position of a file, the file, and its absolute path.
type KnownFile<'a> = (usize, &'a FoundFile, Option<PathBuf>);

/// All of them, by process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mappers {
    /// The processes.
    pub list: Vec<Mapper>,
    /// Processes whose mappings this user may not read.
    pub denied: u64,
}

impl Mappers {
    /// Reads the mappings of all processes but this one.
    pub fn of(root: &SysRoot, topology: &Topology, files: &[FoundFile]) -> Self {
        let mut names: HashMap<u64, Vec<KnownFile<'_>>> = HashMap::new();
        for (at, file) in files.iter().enumerate() {
            let path = std::fs::canonicalize(&file.path).ok();
            names.entry(file.id.1).or_default().push((at, file, path));
        }
        let own = proc::own_pid(root);
        let mut all = Self::default();
        for pid in proc::processes(root).unwrap_or_default() {
            if Some(pid) == own {
                continue;
            }
            let process = TaskDir::of(root, pid);
            let text = match process.text("maps") {
                Ok(text) => text,
                Err(error) => {
                    all.denied += u64::from(error.kind == ErrorKind::PermissionDenied);
                    continue;
                }
            };
            let mut mapped: BTreeMap<usize, u64> = BTreeMap::new();
            for entry in text.lines().filter_map(MapsEntry::parse) {
                for (at, file, path) in names.get(&entry.inode).into_iter().flatten() {
                    // Some file systems report another device there.
                    let named = path.as_ref().is_some_and(|path| path.as_os_str() == entry.name);
                    if named || entry.device == device(file.id.0) {
                        *mapped.entry(*at).or_default() += entry.range.end - entry.range.start;
                    }
                }
            }
            if !mapped.is_empty() {
                all.add(&process, topology, pid, mapped);
            }
        }
        all
    }

    fn add(&mut self, process: &TaskDir<'_>, topology: &Topology, pid: u32, mapped: BTreeMap<usize, u64>) {
        // It may have ended.
        let Ok(stat) = process.stat() else { return };
        let threads = threads_by_node(process, topology);
        self.list.extend(mapped.into_iter().map(|(file, mapped)| Mapper {
            pid,
            command: stat.name(),
            file,
            mapped,
            threads: threads.clone(),
        }));
    }
}

/// The threads of a process by the node where they run or ran last.
pub(crate) fn threads_by_node(process: &TaskDir<'_>, topology: &Topology) -> BTreeMap<u32, u64> {
    let mut threads = BTreeMap::new();
    for tid in process.threads().unwrap_or_default() {
        let cpu = process.thread(tid).stat().ok().and_then(|stat| stat.cpu);
        if let Some(node) = cpu.and_then(|cpu| topology.node_of_cpu(cpu)) {
            *threads.entry(node.os_index).or_default() += 1;
        }
    }
    threads
}

/// Major and minor number.
fn device(number: u64) -> (u32, u32) {
    numakit_sys::file_pages::device(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use numakit_sys::root::FileTree;
    use numakit_testing::children::Started;
    use numakit_testing::until;

    const MAPS: &str = "7f0000000000-7f0000400000 r--s 00000000 fe:01 12 /models/a\n\
        7f0000400000-7f0000500000 r--s 00400000 fe:01 12 /models/a\n\
        7f0000600000-7f0000700000 r--s 00000000 fe:01 13 /models/b\n\
        7f0000700000-7f0000800000 rw-p 00000000 00:00 0\n";

    #[test]
    fn mappings_of_a_file_are_added_up_by_process() {
        let mut tree = FileTree::new();
        for pid in [7, 9] {
            let stat = format!("{pid} (server) S 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 2 0 5 0 0");
            tree.file(&format!("/proc/{pid}/maps"), if pid == 7 { MAPS } else { "" });
            tree.file(&format!("/proc/{pid}/stat"), stat.as_str());
            tree.file(&format!("/proc/{pid}/task/{pid}/stat"), stat.as_str());
        }
        let file = |inode| FoundFile { path: PathBuf::from("/nowhere"), id: (0xfe01, inode) };
        let topology = Topology::default();
        let all = Mappers::of(&SysRoot::of_tree(tree), &topology, &[file(13), file(12), file(14)]);
        let found: Vec<_> = all.list.iter().map(|m| (m.pid, m.file, m.mapped)).collect();
        assert_eq!(found, [(7, 0, 1 << 20), (7, 1, 5 << 20)]);
        assert_eq!(all.list[0].command, "server");
    }

    #[test]
    fn a_process_that_maps_a_file_is_found_by_the_kernel() {
        let path = std::fs::canonicalize("/bin/sleep").unwrap();
        let sleeper = Started(std::process::Command::new(&path).arg("600").spawn().unwrap());
        let there = std::fs::metadata(&path).unwrap();
        use std::os::unix::fs::MetadataExt;
        let file = FoundFile { path, id: (there.dev(), there.ino()) };
        let mappers = || Mappers::of(&SysRoot::host(), &Topology::default(), std::slice::from_ref(&file));
        // Until it executes its program.
        until!(mappers().list.iter().any(|mapper| mapper.pid == sleeper.id()), "it is a mapper");
    }
}
