//! Locks in files that were the registry until they were removed. Their holders still have them open, and the
//! kernel lists all locks of the machine.

use crate::scan::{CPUS, is_identity_lock};
use numakit_model::CpuSet;
use numakit_sys::SysRoot;
use std::collections::BTreeMap;

const LOCKS: &str = "/proc/locks";
/// The kernel returns at most a page per read. Locks that come and go in between shift the next chunk, so chunks
/// overlap by half.
const CHUNK: usize = 4096;

/// CPUs that are locked in files of these identities, except the file that the kernel lists as `own`; `None` if the list of
/// locks cannot be read. It takes some milliseconds: the kernel stops all CPUs for it.
pub fn locked_cpus(root: &SysRoot, identities: &[u64], own: Option<&str>) -> Option<CpuSet> {
    let list = root.source(LOCKS).ok()?;
    let (mut files, mut buffer) = (Files::new(), [0; CHUNK]);
    for from in (0..).step_by(CHUNK / 2) {
        let length = list.read_at(&mut buffer, from).ok()?;
        let text = String::from_utf8_lossy(&buffer[..length]);
        // The first and the last line of a chunk may be incomplete; the chunks overlap, so that another one has the whole
        // line.
        let end = text.rfind('\n').map_or(0, |at| at + 1);
        let start = if from == 0 { 0 } else { text.find('\n').map_or(end, |at| at + 1) };
        add(&mut files, &text[start.min(end)..end], identities, own);
        if length < CHUNK / 2 {
            break;
        }
    }
    Some(cpus(files))
}

/// Locked files, by the kernel's names for them.
type Files = BTreeMap<String, LockedFile>;

#[derive(Debug, Default)]
struct LockedFile {
    is_registry: bool,
    cpus: CpuSet,
}

fn add(files: &mut Files, text: &str, identities: &[u64], own: Option<&str>) {
    for line in text.lines() {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        // A process that waits for a lock has '->' as the second word.
        let [_, "OFDLCK", _, _, _, file, start, end] = words[..] else { continue };
        let Ok(start) = start.parse::<u64>() else { continue };
        // The last byte, or EOF.
        let end = end.parse::<u64>().map_or(u64::MAX, |last| last.saturating_add(1));
        if own == Some(file) || start >= end {
            continue;
        }
        let locked = files.entry(file.to_owned()).or_default();
        locked.is_registry |= identities.iter().any(|&identity| is_identity_lock(identity, start));
        if start < CPUS.end {
            let all = CpuSet::range(start as u32, end.min(CPUS.end) as u32 - 1);
            locked.cpus = locked.cpus.or(&all);
        }
    }
}

fn cpus(files: Files) -> CpuSet {
    let is_own = files.into_values().filter(|locked| locked.is_registry);
    is_own.fold(CpuSet::new(), |all, locked| all.or(&locked.cpus))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scan::identity_lock;
    use numakit_sys::root::FileTree;

    fn parse(text: &str, identities: &[u64], own: Option<&str>) -> CpuSet {
        let mut tree = FileTree::new();
        tree.file(LOCKS, text);
        locked_cpus(&SysRoot::of_tree(tree), identities, own).unwrap()
    }

    #[test]
    fn only_locks_in_removed_registries_are_found() {
        let (ours, other) = (identity_lock(1).start, identity_lock(2).start);
        let text = format!(
            "1: FLOCK  ADVISORY  WRITE 99 00:19:7 0 EOF\n\
             2: OFDLCK ADVISORY  READ  -1 00:19:7 {ours} {ours}\n\
             3: OFDLCK ADVISORY  WRITE -1 00:19:7 2 3\n\
             4: OFDLCK ADVISORY  WRITE -1 00:19:7 9 9\n\
             5: OFDLCK ADVISORY  WRITE -1 00:19:7 1099511627776 1099511627776\n\
             5: -> OFDLCK ADVISORY  WRITE -1 00:19:7 30 31\n\
             6: OFDLCK ADVISORY  READ  -1 00:19:8 {other} {other}\n\
             7: OFDLCK ADVISORY  WRITE -1 00:19:8 12 13\n\
             8: OFDLCK ADVISORY  WRITE -1 00:1a:7 14 15\n\
             9: OFDLCK ADVISORY  READ  -1 00:1b:7 {ours} {ours}\n\
             10: OFDLCK ADVISORY  WRITE -1 00:1b:7 20 EOF\n\
             11: POSIX  ADVISORY  WRITE 98 00:19:7 17 17\n"
        );
        assert_eq!(parse(&text, &[1], Some("00:1b:7")).to_string(), "2-3,9");
        assert_eq!(parse(&text, &[1, 2], Some("00:1b:7")).to_string(), "2-3,9,12-13");
        assert_eq!(parse(&text, &[1], None).to_string(), format!("2-3,9,20-{}", CPUS.end - 1));
        assert_eq!(parse("garbage\n1: OFDLCK\n\n", &[1], None), CpuSet::new());
    }

    #[test]
    fn a_list_of_many_chunks_is_read_completely() {
        let ours = identity_lock(1).start;
        let mut text = format!("0: OFDLCK ADVISORY  READ  -1 00:19:7 {ours} {ours}\n");
        for cpu in 0..1000 {
            text += &format!("{cpu}: OFDLCK ADVISORY  WRITE -1 00:19:7 {0} {0}\n", cpu * 2);
        }
        let found = parse(&text, &[1], None);
        assert_eq!(found, (0..1000).map(|cpu| cpu * 2).collect());
    }

    #[test]
    fn an_unreadable_list_returns_none() {
        assert_eq!(locked_cpus(&SysRoot::of_tree(FileTree::new()), &[1], None), None);
    }
}
