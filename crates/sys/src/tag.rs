//! A number that all descendants of a process inherit, whatever they close, change or execute, and that every user can
//! read: the soft limit of file locks (RLIMIT_LOCKS), which Linux has not enforced since 2.4.

use crate::proc::TaskDir;
use crate::{SysRoot, check};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io;

/// Distinguishes a tag from an ordinary limit.
const MARK: u64 = 0x4e55 << 48;
const MARK_BITS: u64 = 0x7fff << 48;

/// The tag with the lower 48 bits of this number.
pub fn of_number(number: u64) -> u64 {
    MARK | number & !MARK_BITS & !(1 << 63)
}

/// Tags this process and its future descendants. An error if the hard limit is lower, which only an administrator sets.
/// Makes only system calls.
pub fn set(tag: u64) -> io::Result<()> {
    Ok(setrlimit(Resource::Locks, Rlimit { current: Some(tag), ..getrlimit(Resource::Locks) })?)
}

/// The tag of this process.
pub fn own() -> Option<u64> {
    limit_of(0).ok().and_then(tag)
}

/// The tag of a process of any user.
pub fn of(root: &SysRoot, process: u32) -> Option<u64> {
    // The system call works only for the same user, but is faster than the file.
    if root.is_host()
        && let Ok(limit) = limit_of(process)
    {
        return tag(limit);
    }
    let text = TaskDir::of(root, process).text("limits").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("Max file locks"))?;
    tag(line.split_whitespace().next()?.parse().ok()?)
}

fn tag(limit: u64) -> Option<u64> {
    (limit & (MARK_BITS | 1 << 63) == MARK).then_some(limit)
}

/// The soft limit; 0 is this process.
fn limit_of(process: u32) -> io::Result<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    let none = std::ptr::null();
    // SAFETY: the structure outlives the call, and nothing is set.
    check(unsafe { libc::prlimit(process as i32, libc::RLIMIT_LOCKS, none, &mut limit) } as i64)?;
    Ok(limit.rlim_cur)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::root::FileTree;

    #[test]
    fn a_tag_differs_from_other_limits() {
        assert_eq!(tag(of_number(7)), Some(of_number(7)));
        assert_eq!(tag(of_number(u64::MAX)), Some(of_number(u64::MAX)));
        assert_ne!(of_number(7), of_number(8));
        assert_eq!([0, 1024, u64::MAX, i64::MAX as u64, MARK | 1 << 63].map(tag), [None; 5]);
    }

    #[test]
    fn the_tag_of_any_user_is_in_a_file() {
        let mut tree = FileTree::new();
        let line = |value: &str| {
            format!(
                "Limit  Soft Limit  Hard Limit  Units\nMax file locks     {value}     unlimited   locks\n"
            )
        };
        tree.file("/proc/7/limits", line(&of_number(99).to_string()));
        tree.file("/proc/8/limits", line("unlimited"));
        let root = SysRoot::of_tree(tree);
        assert_eq!([7, 8, 9].map(|process| of(&root, process)), [Some(of_number(99)), None, None]);
    }

    #[test]
    fn descendants_of_a_tagged_program_are_tagged() {
        let tag = of_number(12_345);
        let path = std::env::temp_dir().join(format!("numakit-tag-{}", std::process::id()));
        let script = format!("env -i setsid /bin/cat /proc/self/limits > {}", path.display());
        let words = ["sh", "-c", &script].map(Into::into).to_vec();
        let environment = std::env::vars_os().collect();
        let (file, tagged) = ("/bin/sh".into(), Some(tag));
        let start =
            crate::start::PreparedCommand { file, words, environment, tag: tagged, ..Default::default() };
        assert_eq!(crate::image::reap(start.spawn().unwrap()), 0);
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let line = text.lines().find(|line| line.starts_with("Max file locks")).unwrap();
        assert!(line.split_whitespace().any(|word| word == tag.to_string()), "{line}");
        assert_ne!(own(), Some(tag), "this process is as it was");
    }
}
