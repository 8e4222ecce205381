use super::*;
use std::path::PathBuf;

fn folder(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("numakit-root-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(path.join("sys/a")).unwrap();
    path
}

fn sample() -> FileTree {
    let mut tree = FileTree::new();
    tree.file("/sys/a/one", "1\n")
        .file("/sys/b/two", "2\n")
        .symlink("/sys/a/link", "../b/two")
        .symlink("/sys/a/absolute", "/sys/b")
        .symlink("/sys/a/dangling", "../gone")
        .symlink("/sys/a/loop", "loop");
    tree
}

fn check_sample(root: &SysRoot) {
    assert_eq!(root.text("/sys/a/one").unwrap(), "1\n");
    assert_eq!(root.text("/sys/a/link").unwrap(), "2\n");
    assert_eq!(root.text("/sys/a/absolute/two").unwrap(), "2\n");
    let mut front = [0; 1];
    assert_eq!((root.front("/sys/a/link", &mut front).unwrap(), front), (1, *b"2"));
    assert!(root.front("/sys/a/dangling", &mut front).unwrap_err().is_missing());
    assert_eq!(root.link("/sys/a/link").unwrap(), "../b/two");
    assert!(root.text("/sys/a/dangling").unwrap_err().is_missing());
    assert!(!root.exists("/sys/a/dangling"));
    assert!(root.exists("/sys/a") && root.exists("/sys/a/link"));
    assert!(root.text("/sys/a/loop").is_err());
    assert_eq!(root.list("/sys/a").unwrap(), ["absolute", "dangling", "link", "loop", "one"]);
    assert!(root.list("/sys/c").unwrap_err().is_missing());
}

#[test]
fn a_tree_in_memory_reads_like_a_file_system() {
    check_sample(&SysRoot::of_tree(sample()));
}

#[test]
fn a_directory_never_leads_out_of_itself() {
    let path = folder("dir");
    for (link, target) in
        [("link", "../b/two"), ("absolute", "/sys/b"), ("dangling", "../gone"), ("loop", "loop")]
    {
        std::os::unix::fs::symlink(target, path.join("sys/a").join(link)).unwrap();
    }
    std::fs::create_dir_all(path.join("sys/b")).unwrap();
    std::fs::write(path.join("sys/a/one"), "1\n").unwrap();
    std::fs::write(path.join("sys/b/two"), "2\n").unwrap();
    let root = SysRoot::open(&path).unwrap();
    check_sample(&root);
    // On the host these exist; below this root they do not.
    std::os::unix::fs::symlink("/proc/self/status", path.join("sys/out")).unwrap();
    std::os::unix::fs::symlink("../../../../../../proc/self/status", path.join("sys/up")).unwrap();
    for out in ["/sys/out", "/sys/up", "/proc/self/status", "/../../../proc/self/status"] {
        assert!(root.text(out).unwrap_err().is_missing(), "{out}");
    }
    std::fs::remove_dir_all(&path).unwrap();
}

#[test]
fn other_than_regular_files_are_refused_at_once() {
    let path = folder("odd");
    std::fs::create_dir_all(path.join("sys/folder")).unwrap();
    drop(crate::command::named_pipe(&path.join("sys/pipe"), 0o600).unwrap());
    let _socket = std::os::unix::net::UnixListener::bind(path.join("sys/socket")).unwrap();
    // Endless, and only root may make one.
    let made = std::process::Command::new("mknod").arg(path.join("sys/zero")).args(["c", "1", "5"]).status();
    if !made.is_ok_and(|status| status.success()) {
        numakit_skips::ROOT.skip_part("a device below a root: only root may make one");
    }
    let root = SysRoot::open(&path).unwrap();
    for name in ["folder", "pipe", "socket", "zero"] {
        let file = format!("/sys/{name}");
        assert!(root.bytes(&file).is_err() && root.front(&file, &mut [0; 16]).is_err(), "{name}");
    }
    assert_eq!(
        root.bytes("/sys/pipe").unwrap_err().to_string(),
        "/sys/pipe: it is a FIFO and not a regular file"
    );
    assert!(root.exists("/sys/pipe"));
    std::fs::remove_dir_all(&path).unwrap();
}

#[test]
fn an_archive_reads_like_its_directory() {
    let path = folder("archive");
    let file = path.join("c.tar.zst");
    archive::write(&sample(), &File::create(&file).unwrap(), "machine").unwrap();
    let root = SysRoot::open(&file).unwrap();
    check_sample(&root);
    assert_eq!(root.list("/sys").unwrap(), ["a", "b"]);
    std::fs::write(&file, b"garbage that is no archive").unwrap();
    assert!(SysRoot::open(&file).unwrap_err().to_string().contains("neither a directory nor a tar"));
    std::fs::remove_dir_all(&path).unwrap();
}

#[test]
fn an_archive_keeps_what_is_next_to_sys_and_proc() {
    let path = folder("beside");
    let file = path.join("c.tar.zst");
    let mut tree = FileTree::new();
    tree.file("/dev/cpuset/cpus", "0-3\n").file("/sys/a", "").directory("/sys/empty");
    archive::write(&tree, &File::create(&file).unwrap(), "some/machine").unwrap();
    let root = SysRoot::open(&file).unwrap();
    assert_eq!(root.text("/dev/cpuset/cpus").unwrap(), "0-3\n");
    assert_eq!(root.list("/sys/empty").unwrap(), Vec::<String>::new());
    std::fs::remove_dir_all(&path).unwrap();
}

#[test]
fn a_root_without_sys_and_proc_is_refused() {
    let path = folder("none");
    std::fs::remove_dir_all(path.join("sys")).unwrap();
    assert!(SysRoot::open(&path).unwrap_err().to_string().contains("neither a sys nor a proc"));
    std::fs::remove_dir_all(&path).unwrap();
}

#[test]
fn files_of_the_kernel_are_read_to_their_end() {
    let root = SysRoot::host();
    let mut source = root.source("/proc/self/smaps").unwrap();
    let mut content = Vec::new();
    source.read(&mut content).unwrap();
    // More than a page, and ends with a whole line.
    assert!(content.len() > 8192, "{}", content.len());
    assert_eq!(content.last(), Some(&b'\n'));
}

#[test]
fn changes_and_failures_show_in_an_open_source() {
    let root = SysRoot::of_tree(sample());
    let mut source = root.source("/sys/a/one").unwrap();
    let mut content = Vec::new();
    root.change(|tree| {
        tree.file("/sys/a/one", "7\n");
    });
    source.read(&mut content).unwrap();
    assert_eq!(content, b"7\n");
    root.change(|tree| {
        tree.failing("/sys/a/one", io::ErrorKind::PermissionDenied);
    });
    assert_eq!(source.read(&mut content).unwrap_err().kind, io::ErrorKind::PermissionDenied);
}

#[test]
fn a_trace_lists_accessed_paths() {
    let root = SysRoot::of_tree(sample()).traced();
    let _ = root.text("/sys/a/one");
    let _ = root.exists("/sys/none");
    assert_eq!(root.touched(), ["/sys/a/one", "/sys/none"]);
}
