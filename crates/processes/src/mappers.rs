//! Which processes map files, and where their threads run.

use crate::nodes::TaskNodes;
use crate::threads::threads_by_node;
use numakit_sys::SysRoot;
use numakit_sys::file_pages::device;
use numakit_sys::proc::maps::MapsEntry;
use numakit_sys::proc::{self, TaskDir};
use std::collections::{BTreeMap, HashMap};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

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

/// A file that is looked for: its position, the number of its device, and its absolute path.
type KnownFile = (usize, u64, Option<PathBuf>);

/// The processes that map files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mappers {
    /// The processes, in ascending order; one with several of the files is there once for each.
    pub list: Vec<Mapper>,
    /// Number of processes whose mappings this user may not read.
    pub denied: u64,
}

impl Mappers {
    /// Reads the mappings of all processes but this one, and finds these files in them. A file has its path, and the
    /// numbers of its device and inode.
    pub fn of<'a>(
        root: &SysRoot,
        nodes: &TaskNodes,
        files: impl IntoIterator<Item = (&'a Path, (u64, u64))>,
    ) -> Self {
        let mut names: HashMap<u64, Vec<KnownFile>> = HashMap::new();
        for (at, (path, (device, inode))) in files.into_iter().enumerate() {
            names.entry(inode).or_default().push((at, device, std::fs::canonicalize(path).ok()));
        }
        let own = proc::own_pid(root);
        let mut all = Self::default();
        for pid in proc::processes(root).unwrap_or_default() {
            if Some(pid) == own {
                continue;
            }
            let text = match TaskDir::of(root, pid).text("maps") {
                Ok(text) => text,
                Err(error) => {
                    all.denied += u64::from(error.kind == ErrorKind::PermissionDenied);
                    continue;
                }
            };
            let mut mapped: BTreeMap<usize, u64> = BTreeMap::new();
            for entry in text.lines().filter_map(MapsEntry::parse) {
                for (at, number, path) in names.get(&entry.inode).into_iter().flatten() {
                    // Some file systems report another device there.
                    let named = path.as_ref().is_some_and(|path| path.as_os_str() == entry.name);
                    if named || entry.device == device(*number) {
                        *mapped.entry(*at).or_default() += entry.range.end - entry.range.start;
                    }
                }
            }
            if !mapped.is_empty() {
                all.add(root, nodes, pid, mapped);
            }
        }
        all
    }

    fn add(&mut self, root: &SysRoot, nodes: &TaskNodes, pid: u32, mapped: BTreeMap<usize, u64>) {
        // The process may have ended.
        let Ok(stat) = TaskDir::of(root, pid).stat() else { return };
        let threads = threads_by_node(root, nodes, pid, &stat);
        self.list.extend(mapped.into_iter().map(|(file, mapped)| Mapper {
            pid,
            command: stat.name(),
            file,
            mapped,
            threads: threads.clone(),
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use numakit_testing::children::Started;
    use numakit_testing::processes::MadeProcess;
    use numakit_testing::until;

    const MAPS: &str = "7f0000000000-7f0000400000 r--s 00000000 fe:01 12 /models/a\n\
        7f0000400000-7f0000500000 r--s 00400000 fe:01 12 /models/a\n\
        7f0000600000-7f0000700000 r--s 00000000 fe:01 13 /models/b\n\
        7f0000700000-7f0000800000 rw-p 00000000 00:00 0\n";

    #[test]
    fn mappings_of_a_file_are_added_up_by_process() {
        let [server, other] =
            [7, 9].map(|pid| MadeProcess { command: "server", ..MadeProcess::new(pid, 1, 0) });
        let root = MadeProcess::machine(&[&server, &other]);
        root.change(|tree| _ = tree.file("/proc/7/maps", MAPS).file("/proc/9/maps", ""));
        let files = [13, 12, 14].map(|inode| (Path::new("/nowhere"), (0xfe01, inode)));
        let all = Mappers::of(&root, &TaskNodes::default(), files);
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
        let file = (path.as_path(), (there.dev(), there.ino()));
        let mappers = || Mappers::of(&SysRoot::host(), &TaskNodes::default(), [file]);
        // Until it executes its program.
        until!(mappers().list.iter().any(|mapper| mapper.pid == sleeper.id()), "it is a mapper");
    }
}
