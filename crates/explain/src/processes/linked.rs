//! Programs that run under the name of a link to their file.

use numakit_sys::SysRoot;
use numakit_sys::proc::TaskDir;
use std::path::Path;

/// The file of the program of a process, and the name under which it runs if that is of a link beside the file: redis-server may be
/// a link to redis-check-rdb. `None` if the file has the better name.
pub(super) fn linked_program(host: &SysRoot, pid: u32, root: &Path) -> Option<(String, String)> {
    let task = TaskDir::of(host, pid);
    let program = host.link(&task.path("exe")).ok()?;
    let name = task.stat().ok()?.name();
    is_linked(host, root, &program, &name).then_some((program, name))
}

/// Whether a name is of a link beside a file, to that file. Names of which one is the begin of the other, such as python3 and
/// python3.12, say the same.
fn is_linked(host: &SysRoot, root: &Path, program: &str, name: &str) -> bool {
    let Some((folder, file)) = program.rsplit_once('/') else { return false };
    if name.is_empty() || name.contains('/') || file.starts_with(name) || name.starts_with(file) {
        return false;
    }
    let link = root.join(folder.trim_start_matches('/')).join(name);
    let target = link.to_str().and_then(|link| host.link(link).ok());
    target.is_some_and(|target| target == file || target == program)
}

#[cfg(test)]
mod tests {
    use super::*;
    use numakit_sys::root::FileTree;

    #[test]
    fn a_program_has_the_name_of_the_link_that_was_started() {
        let mut tree = FileTree::new();
        tree.symlink("/usr/bin/redis-server", "redis-check-rdb");
        tree.symlink("/usr/bin/sh", "/usr/bin/dash");
        tree.symlink("/usr/bin/python3", "python3.12");
        tree.symlink("/proc/7/root/usr/bin/redis-server", "redis-check-rdb");
        let host = SysRoot::of_tree(tree);
        let is = |root: &str, file: &str, name: &str| is_linked(&host, Path::new(root), file, name);
        assert!(is("/", "/usr/bin/redis-check-rdb", "redis-server") && is("/", "/usr/bin/dash", "sh"));
        assert!(is("/proc/7/root", "/usr/bin/redis-check-rdb", "redis-server"));
        // A thread with a name of its own, a link to another file, and a file whose name says more.
        assert!(!is("/", "/usr/bin/redis-check-rdb", "worker") && !is("/", "/usr/bin/bash", "sh"));
        assert!(!is("/", "/usr/bin/python3.12", "python3"));
    }
}
