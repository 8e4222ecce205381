//! What makes the objects of several processes one: the same shared memory, the same variable, the same line that allocates.

use crate::objects::ObjectOrigin;
use numakit_sampling::process::{MemoryKind, ProcessMapping};
use numakit_sys::SysRoot;
use numakit_sys::proc::TaskDir;

/// A file: its device and inode.
pub type FileId = ((u32, u32), u64);

/// Where an address is in the file, or in what the kernel has in its place, whose memory processes share. `None` for memory of
/// one process, and for memory of devices and of the kernel's own kinds of files, all of which may have one inode.
pub fn shared_offset(mapping: &ProcessMapping, address: u64) -> Option<(FileId, u64)> {
    let name = &mapping.name;
    let is_path = name.starts_with('/') && !name.starts_with("/dev/") || name.starts_with("/dev/hugepages/");
    // The first memory of System V has the number 0.
    let is_file = is_path && mapping.file.1 != 0 || is_memory(name);
    let is_shared = mapping.kind == MemoryKind::Shared && is_file;
    let offset = address.checked_sub(mapping.range.start)?.checked_add(mapping.offset)?;
    is_shared.then_some((mapping.file, offset))
}

/// Whether a shared mapping has this name because no file on a disk is behind it: anonymous, of System V, of `memfd_create`
/// or of `shm_open`.
pub fn is_memory(name: &str) -> bool {
    ["/dev/zero (deleted)", "/SYSV", "/memfd:", "/dev/shm/"].iter().any(|start| name.starts_with(start))
}

/// Processes between a process and the first one of its program, at most.
const MAX_DEPTH: usize = 64;

/// An object, whichever process uses it. Objects with the same identity are one row of a report.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ObjectIdentity {
    /// To what it belongs.
    pub owner: ObjectOwner,
    /// What it is there: addresses are from the begin of the owner, and a file has no path, since each process may see it at
    /// another one.
    pub origin: ObjectOrigin,
}

/// To what an object belongs.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ObjectOwner {
    /// A file: a mapped one, or the program or library that has the variable or allocates.
    File(FileId),
    /// Processes of one program that were started alike.
    Program(StartedProgram),
}

/// What processes of one program have in common that one of them forked, or that were started with the same arguments. Two
/// virtual machines with different programs have different heaps; the workers of one server are alike.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct StartedProgram {
    path: String,
    arguments: Vec<u8>,
}

/// The parent of a process that runs the same program, as the child of a fork does.
pub fn parent_of_same_program(root: &SysRoot, pid: u32) -> Option<u32> {
    let program = |pid| root.link(&TaskDir::of(root, pid).path("exe")).ok();
    let parent = TaskDir::of(root, pid).stat().ok()?.parent;
    (program(parent)? == program(pid)?).then_some(parent)
}

impl StartedProgram {
    /// The program of a process, and the arguments of the first of its ancestors that runs the same program. `None` if it has
    /// ended, or if its program is not told.
    pub fn of(root: &SysRoot, pid: u32) -> Option<Self> {
        let path = root.link(&TaskDir::of(root, pid).path("exe")).ok()?;
        let mut first = pid;
        for _ in 0..MAX_DEPTH {
            match parent_of_same_program(root, first) {
                Some(parent) => first = parent,
                None => break,
            }
        }
        let arguments = TaskDir::of(root, first).bytes("cmdline").ok()?;
        Some(Self { path, arguments })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use numakit_sampling::process::parse_mappings;
    use numakit_sys::root::FileTree;

    fn process(tree: &mut FileTree, pid: u32, parent: u32, program: &str, arguments: &str) {
        let zeros = "0 ".repeat(20);
        tree.file(&format!("/proc/{pid}/stat"), format!("{pid} (x) S {parent} {zeros}\n"));
        tree.symlink(&format!("/proc/{pid}/exe"), program);
        tree.file(&format!("/proc/{pid}/cmdline"), arguments);
    }

    #[test]
    fn shared_memory_has_one_place_and_devices_have_none() {
        let of = |line: &str| shared_offset(&parse_mappings(line)[0], 0x7000_1040);
        let file = Some((((0, 1), 9), 0x3040));
        assert_eq!(of("70000000-70100000 rw-s 00002000 00:01 9 /dev/zero (deleted)\n"), file);
        assert_eq!(of("70001000-70100000 rw-s 00003000 00:01 9 /dev/shm/counters\n"), file);
        assert_eq!(of("70000000-70100000 rw-s 00002000 00:01 9 /var/lib/db/index\n"), file);
        assert_eq!(
            of("70000000-70100000 rw-s 00000000 00:01 0 /SYSV00000000\n"),
            Some((((0, 1), 0), 0x1040))
        );
        for other in ["/dev/nvidia0", "anon_inode:[io_uring]", "anon_inode:[perf_event]"] {
            assert_eq!(of(&format!("70000000-70100000 rw-s 00000000 00:0e 9 {other}\n")), None, "{other}");
        }
        assert_eq!(of("70000000-70100000 rw-p 00000000 08:01 9 /var/lib/db/index\n"), None);
        assert_eq!(of("70000000-70100000 rw-p 00000000 00:00 0\n"), None);
    }

    #[test]
    fn workers_of_a_server_and_ranks_are_alike_and_two_servers_are_not() {
        let mut tree = FileTree::new();
        process(&mut tree, 1, 0, "/sbin/init", "init\0");
        process(&mut tree, 10, 1, "/bin/server", "server\0-c\0one\0");
        process(&mut tree, 11, 10, "/bin/server", "server: worker a\0");
        process(&mut tree, 12, 11, "/bin/server", "server: worker b\0");
        process(&mut tree, 20, 1, "/bin/server", "server\0-c\0two\0");
        process(&mut tree, 30, 1, "/bin/mpirun", "mpirun\0");
        process(&mut tree, 31, 30, "/bin/server", "server\0-c\0two\0");
        let root = SysRoot::of_tree(tree);
        let of = |pid| StartedProgram::of(&root, pid);
        assert_eq!((of(11), of(12)), (of(10), of(10)));
        assert!(of(10).is_some() && of(20) != of(10));
        assert_eq!(of(31), of(20));
        assert_eq!(of(99), None);
    }
}
