//! Typed readers of /proc below a [`SysRoot`]: only this module knows the paths and formats of the files of processes
//! and threads. The parsers take bytes or text and return values, for callers with their own buffers.

pub mod cgroup;
mod environment;
pub mod machine;
pub mod maps;
pub mod mounts;
pub mod numa_maps;
mod processor;
pub mod smaps;
mod stat;
pub mod status;
pub mod syscall;
pub mod tree;

pub use environment::{LoopSchedule, RANKS, Variables};
pub use machine::{LoadAverage, digits, timer_slack};
pub use processor::Processor;
pub use stat::{Counts, TaskStat};
pub use status::TaskStatus;

use crate::{ReadError, RootFile, SysRoot};
use std::collections::HashMap;
use std::path::PathBuf;

/// The directory of all processes.
const FOLDER: &str = "/proc";

/// The directory of a process, or of one of its threads: both have the same files.
#[derive(Debug, Clone)]
pub struct TaskDir<'a> {
    root: &'a SysRoot,
    path: String,
    pid: Option<u32>,
}

impl<'a> TaskDir<'a> {
    /// The directory of a process.
    pub fn of(root: &'a SysRoot, pid: u32) -> Self {
        Self { root, path: format!("{FOLDER}/{pid}"), pid: Some(pid) }
    }

    /// The directory of this process; in a capture, of the process that made it.
    pub fn own(root: &'a SysRoot) -> Self {
        Self { root, path: format!("{FOLDER}/self"), pid: None }
    }

    /// The directory of a thread of this process.
    pub fn thread(&self, tid: u32) -> Self {
        Self { root: self.root, path: format!("{}/task/{tid}", self.path), pid: Some(tid) }
    }

    /// Whether the process or thread exists.
    pub fn exists(&self) -> bool {
        self.root.exists(&self.path)
    }

    /// The path of one of its files.
    pub fn path(&self, file: &str) -> String {
        format!("{}/{file}", self.path)
    }

    /// Whether the kernel has this file.
    pub fn has(&self, file: &str) -> bool {
        self.root.exists(&self.path(file))
    }

    /// The bytes of a file.
    pub fn bytes(&self, file: &str) -> Result<Vec<u8>, ReadError> {
        self.root.bytes(&self.path(file))
    }

    /// Reads the beginning of a file into the buffer; returns the length.
    pub fn front(&self, file: &str, buffer: &mut [u8]) -> Result<usize, ReadError> {
        self.root.front(&self.path(file), buffer)
    }

    /// A file as text.
    pub fn text(&self, file: &str) -> Result<String, ReadError> {
        self.root.text(&self.path(file))
    }

    /// A file that is read in parts.
    pub fn source(&self, file: &str) -> Result<RootFile, ReadError> {
        self.root.source(&self.path(file))
    }

    /// The folder in which its files are, if that is another one than ours, as in a container. What the link says does not tell: of
    /// a root outside of our own, it says `/`.
    pub fn other_root(&self) -> Option<PathBuf> {
        let inside = self.path("root");
        (self.root.identity(&inside)? != self.root.identity("/")?).then(|| PathBuf::from(inside))
    }

    /// `stat`. A malformed line is an error of the kind `InvalidData`.
    pub fn stat(&self) -> Result<TaskStat, ReadError> {
        TaskStat::parse(&self.bytes("stat")?)
            .ok_or_else(|| ReadError::invalid(&self.path("stat"), "malformed line"))
    }

    /// `status`.
    pub fn status(&self) -> Result<TaskStatus, ReadError> {
        self.text("status").map(TaskStatus::new)
    }

    /// The environment that the program was started with. Empty while the process executes another
    /// program.
    pub fn environment(&self) -> Result<Variables, ReadError> {
        self.bytes("environ").map(Variables::new)
    }

    /// Its threads in ascending order, except that the main thread is first: TIDs wrap around.
    pub fn threads(&self) -> Result<Vec<u32>, ReadError> {
        let mut threads = numbers_in(self.root, &self.path("task"))?;
        threads.sort_by_key(|tid| (Some(*tid) != self.pid, *tid));
        Ok(threads)
    }

    /// Its threads by the numbers that it knows them by, which are others in a PID namespace.
    pub fn threads_by_inner_number(&self) -> HashMap<u32, u32> {
        let inner = |dir: &Self| dir.status().ok().filter(TaskStatus::is_in_namespace)?.inner_number();
        // Outside of namespaces, no thread needs a look.
        let is_inside = inner(self).is_some();
        let number = |tid: u32| if is_inside { inner(&self.thread(tid)) } else { Some(tid) };
        let threads = self.threads().unwrap_or_default();
        threads.into_iter().filter_map(|tid| Some((number(tid)?, tid))).collect()
    }

    /// The threads of the process. If it has only one, the list is not read; empty if the process has ended.
    pub fn live_threads(&self) -> Vec<u32> {
        match (self.thread_count(), self.pid) {
            (Some(0 | 1), Some(pid)) => vec![pid],
            _ => self.threads().unwrap_or_default(),
        }
    }

    /// How many threads the process has, from the link count of a directory. This works only on this machine, not in a
    /// capture.
    pub fn thread_count(&self) -> Option<u64> {
        self.root.links(&self.path("task"))?.checked_sub(2)
    }

    /// The children of this thread; an error if the kernel does not list them.
    pub fn children(&self) -> Result<Vec<u32>, ReadError> {
        let text = self.text("children")?;
        Ok(text.split_ascii_whitespace().filter_map(|word| word.parse().ok()).collect())
    }
}

/// All processes, in ascending order.
pub fn processes(root: &SysRoot) -> Result<Vec<u32>, ReadError> {
    numbers_in(root, FOLDER)
}

/// The PID of this process, in the PID namespace of this /proc.
pub fn own_pid(root: &SysRoot) -> Option<u32> {
    root.link("/proc/self").ok()?.parse().ok()
}

/// The PID namespace of this process: the number in `pid:[4026531836]`.
pub fn pid_namespace(root: &SysRoot) -> Option<u64> {
    namespace(root, "pid")
}

/// The number of a namespace of the process that reads, by the name of its kind.
pub fn namespace(root: &SysRoot, kind: &str) -> Option<u64> {
    let link = root.link(&TaskDir::own(root).path(&format!("ns/{kind}"))).ok()?;
    link.strip_prefix(kind)?.strip_prefix(":[")?.strip_suffix(']')?.parse().ok()
}

/// The names in a directory that are numbers, in ascending order.
fn numbers_in(root: &SysRoot, folder: &str) -> Result<Vec<u32>, ReadError> {
    let mut numbers: Vec<u32> = root.list(folder)?.iter().filter_map(|name| name.parse().ok()).collect();
    numbers.sort_unstable();
    Ok(numbers)
}

/// A name from an untrusted source, made printable on a terminal.
pub fn printable(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::root::FileTree;
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};

    #[test]
    fn threads_begin_with_the_main_one() {
        let mut tree = FileTree::new();
        for thread in ["40", "7", "3", "x"] {
            tree.file(&format!("/proc/40/task/{thread}/stat"), "");
        }
        tree.file("/proc/9/comm", "").file("/proc/meminfo", "");
        let root = SysRoot::of_tree(tree);
        assert_eq!(TaskDir::of(&root, 40).threads().unwrap(), [40, 3, 7]);
        assert_eq!(processes(&root).unwrap(), [9, 40]);
        assert!(TaskDir::of(&root, 41).threads().unwrap_err().is_missing());
        assert!(TaskDir::of(&root, 9).exists() && !TaskDir::of(&root, 10).exists());
        assert_eq!(TaskDir::of(&root, 40).thread_count(), None, "only the kernel counts links");
    }

    #[test]
    fn this_process_is_read_from_the_kernel() {
        let root = SysRoot::host();
        let (me, number) = (TaskDir::own(&root), std::process::id());
        assert_eq!(own_pid(&root), Some(number));
        assert!(pid_namespace(&root).is_some());
        let stat = TaskDir::of(&root, number).stat().unwrap();
        assert_eq!(stat.parent, std::os::unix::process::parent_id());
        assert_eq!(me.thread_count(), Some(me.threads().unwrap().len() as u64));
        let status = me.status().unwrap();
        assert!(status.allowed_cpus().is_some() && status.users().len() == 4, "{status:?}");
        assert_eq!(me.environment().unwrap().get("PATH").is_some(), std::env::var_os("PATH").is_some());
    }

    #[test]
    fn a_root_outside_of_ours_is_seen_although_its_link_says_the_same() {
        let host = SysRoot::host();
        assert_eq!(TaskDir::own(&host).other_root(), None);
        let folder = std::env::temp_dir().join(format!("numakit-root-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("old")).unwrap();
        let enter = "mount --bind . . && cd . && pivot_root . old && echo inside && read line";
        let mut shell = Command::new("unshare")
            .args(["-m", "sh", "-c", enter])
            .current_dir(&folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(shell.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let pid = shell.id();
        let (link, other) = (host.link(&format!("/proc/{pid}/root")), TaskDir::of(&host, pid).other_root());
        drop(shell.stdin.take());
        shell.wait().unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        if line != "inside\n" {
            return numakit_skips::PRIVILEGES.skip("this user may not have a mount namespace of its own");
        }
        assert_eq!(link.unwrap(), "/");
        assert_eq!(other, Some(PathBuf::from(format!("/proc/{pid}/root"))));
    }

    #[test]
    fn a_malformed_line_is_an_error() {
        let mut tree = FileTree::new();
        tree.file("/proc/7/stat", "7 (a");
        let error = TaskDir::of(&SysRoot::of_tree(tree), 7).stat().unwrap_err();
        assert_eq!(error.kind, std::io::ErrorKind::InvalidData);
        assert_eq!(error.to_string(), "/proc/7/stat: malformed line");
    }
}
